"""The scores of tokens: surprisals, ranks and substitutes as NumPy computes them, and sums as those of perplexity."""

import csv
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.elmo import TINY_OPTIONS, batch_to_ids
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.pretraining import scores
from elmo_tasks.extras.pretraining.corpus import CorpusPart
from elmo_tasks.extras.pretraining.language_model import LanguageModel
from elmo_tasks.extras.pretraining.scores import (
    SentenceScores,
    TokenScores,
    evaluate_perplexity,
    score_sentences,
    unigram_perplexity,
)
from elmo_tasks.extras.pretraining.softmax import OutputVocabulary
from elmo_tasks.extras.pretraining.tokenize_files import number_tokens
from elmo_tasks.extras.pretraining.windows import SlotReader

WORDS = ["the", "dog", "barked", "cat", "."]
SENTENCES = [["the", "dog", "barked", "."], ["cat"], ["the", "zebra", "."], ["."] * 9]


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    torch.manual_seed(3)
    model = LanguageModel.untrained(TINY_OPTIONS, OutputVocabulary(WORDS), dropout=0.5)
    torch.nn.init.normal_(model.softmax_bias)
    with torch.no_grad():
        model.softmax_weight.mul_(20)  # so that words differ
    return model


def log_softmax(values: np.ndarray) -> np.ndarray:
    values = values - values.max(axis=-1, keepdims=True)
    return values - np.log(np.exp(values).sum(axis=-1, keepdims=True))


def expected(model: LanguageModel, sentence: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The log-probabilities of all words (n + 1, V) in double precision: of each token and the end from the left, and
    of the begin and each token from the right."""
    with torch.no_grad():
        top = model.bilm.eval()(batch_to_ids([sentence])).layers[0, -1].double().numpy()  # (n + 2, D), with borders
    weight, bias = (each.detach().double().numpy() for each in (model.softmax_weight, model.softmax_bias))
    forward, backward = np.split(top, 2, axis=1)
    return log_softmax(forward[:-1] @ weight.T + bias), log_softmax(backward[1:] @ weight.T + bias)


def test_surprisals_ranks_and_substitutes_are_those_of_numpy(model: LanguageModel) -> None:
    vocabulary = model.vocabulary
    for sentence, found in zip(SENTENCES, score_sentences(model, SENTENCES, substitutes=3), strict=True):
        forward, backward = expected(model, sentence)
        assert found.end == pytest.approx(-forward[-1, 1], abs=1e-5)
        assert found.begin == pytest.approx(-backward[0, 0], abs=1e-5)
        assert [each.token for each in found.tokens] == sentence
        both = log_softmax(forward[:-1] + backward[1:])
        for index, (each, word) in enumerate(zip(found.tokens, vocabulary.numbers(sentence), strict=True)):
            left, right = forward[index], backward[index + 1]
            assert (each.forward, each.backward, each.both) == pytest.approx(
                (-left[word], -right[word], -both[index, word]), abs=1e-5
            )
            assert (each.forward_rank, each.backward_rank) == ((left >= left[word]).sum(), (right >= right[word]).sum())
            assert each.is_known == (each.token in WORDS)
            order = sorted(WORDS, key=lambda word: -both[index, vocabulary.words.index(word)])[:3]
            assert [word for word, _ in each.substitutes] == order
            probabilities = [math.exp(both[index, vocabulary.words.index(word)]) for word in order]
            assert [probability for _, probability in each.substitutes] == pytest.approx(probabilities, abs=1e-5)
        assert found.pseudo_log_likelihood == pytest.approx(-sum(each.both for each in found.tokens))


def test_the_record_of_a_sentence_has_its_sums_and_means() -> None:
    first = TokenScores("the", True, 1.0, 2.0, 0.5, 1, 2, (("a", 0.75), ("the", 0.125)))
    second = TokenScores("zebra", False, 3.0, 4.0, 0.25, 5, 6)
    found = SentenceScores((first, second), end=0.5, begin=0.75).record()
    ranks = {"forward_rank": 1, "backward_rank": 2}
    words = {"substitutes": {"a": 0.75, "the": 0.125}}
    assert found == {
        "tokens": [
            {"token": "the", "is_known": True, "forward": 1, "backward": 2, "both": 0.5, **ranks, **words},
            {"token": "zebra", "is_known": False, "forward": 3, "backward": 4, "both": 0.25,
             "forward_rank": 5, "backward_rank": 6},
        ],
        "begin": 0.75,
        "end": 0.5,
        "forward": 4.5,
        "backward": 6.75,
        "mean_forward": 1.5,
        "mean_backward": 2.25,
        "pseudo_log_likelihood": -0.75,
    }  # fmt: skip


def test_sums_over_a_large_vocabulary_are_those_of_the_perplexity_and_of_numpy() -> None:
    model = LanguageModel.load("default")
    sentences = [["The", "dog", "barked", "."], ["A", "zebra", "crossed", "the", "old", "bridge", "."]]
    text = number_tokens(sentences)
    perplexity = evaluate_perplexity(model, model.reader(CorpusPart.of(text), text.types), visible=False)
    found = model.score(sentences)
    words = [[0, *model.vocabulary.numbers(sentence), 1] for sentence in sentences]
    for direction, name in enumerate(("forward", "backward")):
        total = sum(getattr(each, name) for each in found)
        assert math.exp(total / perplexity["targets"]) == pytest.approx(perplexity[name], rel=1e-6)
        targets = [np.array(each[1:] if name == "forward" else each[:-1]) for each in words]
        rows = [expected(model, sentence)[direction] for sentence in sentences]
        of_numpy = -sum(each[range(len(own)), own].sum() for each, own in zip(rows, targets, strict=True))
        assert total == pytest.approx(of_numpy, rel=3e-7)


def values(found: SentenceScores) -> list[float]:
    tokens = [value for each in found.tokens for value in (each.forward, each.backward, each.both)]
    return [found.begin, found.end, *tokens]


def test_neither_batches_nor_training_mode_change_scores(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [values(each) for each in score_sentences(model, SENTENCES)]
    for name, size in (("_SLOTS_AT_ONCE", 5), ("_SCORES_AT_ONCE", 20), ("_SENTENCES_AT_ONCE", 2)):
        monkeypatch.setattr(scores, name, size)
    model.train()
    for each, other in zip(score_sentences(model, iter(SENTENCES)), whole, strict=True):
        assert values(each) == pytest.approx(other, abs=1e-5)
    assert model.training
    with pytest.raises(ElmoTasksError, match="a sentence has no token"):
        list(score_sentences(model, [["the"], []]))
    with pytest.raises(ElmoTasksError, match="expected a list of tokens for each sentence"):
        list(score_sentences(model, ["the dog"]))
    with pytest.raises(ElmoTasksError, match="substitutes"):
        list(score_sentences(model, SENTENCES, -1))

    def damaged() -> Iterator[list[str]]:
        yield SENTENCES[0]
        raise ElmoTasksError("line 2: damaged")

    found = score_sentences(model, damaged())
    assert values(next(found)) == pytest.approx(whole[0], abs=1e-5)
    with pytest.raises(ElmoTasksError, match="line 2: damaged"):
        next(found)


def test_a_language_model_scores_text_and_tokens(model: LanguageModel, bilm: Path) -> None:
    loaded = elmo_tasks.load_language_model(bilm)
    expected = list(score_sentences(model, SENTENCES[:2], substitutes=2))
    assert [values(each) for each in loaded.score(SENTENCES[:2])] == [pytest.approx(values(each)) for each in expected]
    assert loaded.score("the dog barked.\ncat", 2) == loaded.score(SENTENCES[:2], 2)
    assert loaded.score(" ") == []
    assert loaded.substitutes("the dog barked.", "DOG", 2) == loaded.score(SENTENCES[:1], 2)[0].tokens[1].substitutes
    assert len(loaded.substitutes(SENTENCES[3], 3)) == len(WORDS)
    with pytest.raises(ElmoTasksError, match=r"'\.' occurs 9 times"):
        loaded.substitutes(SENTENCES[3], ".")
    with pytest.raises(TypeError, match="expected a list of tokens for each sentence"):
        loaded.score(["the dog"])


@pytest.fixture
def bilm(model: LanguageModel, tmp_path: Path) -> Path:
    model.save(tmp_path / "bilm")
    return tmp_path / "bilm"


def test_the_command_writes_tables_objects_and_pages(
    bilm: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the dog barked.\n\nthe zebra.\n")
    call = ["score", str(text), "--bilm", str(bilm), "--substitutes", "2"]
    found = list(score_sentences(LanguageModel.load(bilm), [["the", "dog", "barked", "."], ["the", "zebra", "."]], 2))

    assert cli.main([*call, "--html", str(tmp_path / "page.html"), "--output", str(tmp_path / "scores.tsv")]) == 0
    rows = list(csv.DictReader((tmp_path / "scores.tsv").read_text().splitlines(), delimiter="\t"))
    assert [row["token"] for row in rows[:6]] == ["<S>", "the", "dog", "barked", ".", "</S>"]
    assert [row["position"] for row in rows[:6]] == list("012345")
    assert [row["known"] for row in rows[6:]] == ["", "1", "0", "1", ""]
    for number, each in enumerate(found, start=1):
        own = [row for row in rows if row["sentence"] == str(number)]
        for name in ("forward", "backward"):
            assert sum(float(row[name] or 0) for row in own) == pytest.approx(getattr(each, name), abs=1e-4)
            assert all(float(row[f"{name}_bits"]) * math.log(2) == pytest.approx(float(row[name]), abs=1e-5)
                       for row in own if row[name])  # fmt: skip
        assert own[1]["substitutes"].split()[0].split(":")[0] == each.tokens[0].substitutes[0][0]
    page = (tmp_path / "page.html").read_text()
    assert "zebra (unknown)" in page
    bits = [f"{token.both / math.log(2):.1f} bits" for each in found for token in each.tokens]
    assert re.findall('title="([^"]*)"', page) == bits
    assert page.endswith("</html>\n")

    assert cli.main([*call, "--json"]) == 0
    records = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [record["forward"] for record in records] == pytest.approx([each.forward for each in found], rel=1e-5)
    assert records[0]["mean_forward"] == pytest.approx(found[0].forward / 5, rel=1e-5)
    assert list(records[1]["tokens"][1]["substitutes"]) == [word for word, _ in found[1].tokens[1].substitutes]
    assert cli.main(["score", str(text), "--bilm", str(bilm)]) == 0  # no terminal: the table
    assert capsysbinary.readouterr().out.startswith(b"sentence\tposition\ttoken\t")
    assert cli.main(["score", str(text), "--bilm", str(bilm), "--output", str(tmp_path / "scores.tsv")]) == 2
    assert b"the file exists; --force replaces it" in capsysbinary.readouterr().err


TYPES = ["a", "b", "rare"]
VOCABULARY = OutputVocabulary(TYPES[:2])


def reader(*sentences: tuple[int, ...]) -> SlotReader:
    """Slots of sentences, all of one document."""
    tokens = np.array([token for sentence in sentences for token in sentence], dtype=np.uint32)
    borders = np.cumsum([0, *map(len, sentences)])
    return SlotReader(CorpusPart(tokens, borders, np.array([0, len(sentences)])), TYPES, VOCABULARY, 50)


TEXT = reader((0, 1, 0), (2,), (0,), (1, 2, 0, 0))


def test_unigrams_by_hand() -> None:
    # Counts in training, plus one: a 3, b 2, </S> 2, <S> 1, <UNK> 1. Held out are b and </S>.
    assert unigram_perplexity(reader((0, 0, 1)), reader((1,)), 5) == pytest.approx(9 / 2)


def make_model(dropout: float = 0.0) -> LanguageModel:
    torch.manual_seed(3)
    return LanguageModel.untrained(TINY_OPTIONS, VOCABULARY, dropout)


@pytest.mark.parametrize("slots", [4, 4096])
def test_of_a_model_that_knows_only_frequencies_by_hand(slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "_PERPLEXITY_SLOTS_AT_ONCE", slots)
    model = make_model()
    probabilities = [1 / 16, 1 / 4, 1 / 8, 1 / 2, 1 / 16]  # of <S>, </S>, <UNK>, a, b
    with torch.no_grad():
        model.softmax_weight.zero_()
        model.softmax_bias.copy_(torch.tensor(probabilities).log())
    # In bits: five times a 1, twice b 4, twice <UNK> 3, and four borders, forward 2 and backward 4.
    assert evaluate_perplexity(model, TEXT, visible=False) == pytest.approx(
        {
            "forward": 2 ** ((5 * 1 + 2 * 4 + 2 * 3 + 4 * 2) / 13),
            "backward": 2 ** ((5 * 1 + 2 * 4 + 2 * 3 + 4 * 4) / 13),
            "mean": 2 ** ((5 * 1 + 2 * 4 + 2 * 3 + 4 * 3) / 13),
            "unknown_percent": 200 / 13,
            "targets": 13,
        }
    )


@pytest.mark.parametrize("training", [True, False])
def test_it_is_measured_without_dropout_which_training_then_goes_on_with(training: bool) -> None:
    model = make_model(dropout=0.5).train(training)
    found = evaluate_perplexity(model, TEXT)
    assert model.training is training
    assert found == evaluate_perplexity(make_model().eval(), TEXT)


def test_a_model_that_has_lost_its_way_has_an_infinite_one() -> None:
    model = make_model()
    with torch.no_grad():
        model.softmax_bias[3] = -1e5
    found = evaluate_perplexity(model, TEXT)
    assert found["forward"] == found["mean"] == math.inf


def test_a_terminal_shows_how_many_words_are_done(terminal: Callable[[], str]) -> None:
    evaluate_perplexity(make_model(), TEXT)
    assert re.search(r"perplexity .* 13/13 ", terminal())
    evaluate_perplexity(make_model(), TEXT, visible=False)
    assert terminal() == ""
