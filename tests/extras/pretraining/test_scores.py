"""The scores of tokens: surprisals, ranks and substitutes as NumPy computes them, and sums as those of perplexity."""

import csv
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas
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
    evaluate_perplexity,
    score_texts,
    unigram_perplexity,
)
from elmo_tasks.extras.pretraining.softmax import OutputVocabulary
from elmo_tasks.extras.pretraining.tokenize_files import number_tokens
from elmo_tasks.extras.pretraining.windows import SlotReader

WORDS = ["the", "dog", "barked", "cat", "."]
SENTENCES = [["the", "dog", "barked", "."], ["cat"], ["the", "zebra", "."], ["."] * 9]
TEXTS = [[each] for each in SENTENCES]  # each read by itself


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
    for sentence, found in zip(SENTENCES, score_texts(model, TEXTS, substitutes=3), strict=True):
        forward, backward = expected(model, sentence)
        assert found.end == pytest.approx(-forward[-1, 1], abs=1e-5)
        assert found.begin == pytest.approx(-backward[0, 0], abs=1e-5)
        assert [each.token for each in found.tokens] == sentence
        both = log_softmax(forward[:-1] + backward[1:])
        for index, (each, word) in enumerate(zip(found.tokens, vocabulary.numbers(sentence), strict=True)):
            left, right = forward[index], backward[index + 1]
            entropies = [-(np.exp(scores) * scores).sum() for scores in (left, right)]
            assert [each.forward_entropy, each.backward_entropy] == pytest.approx(entropies, abs=1e-5)
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
    whole = [values(each) for each in score_texts(model, TEXTS)]
    for name, size in (("_SLOTS_AT_ONCE", 5), ("_SCORES_AT_ONCE", 20), ("_TEXTS_AT_ONCE", 2)):
        monkeypatch.setattr(scores, name, size)
    model.train()
    for each, other in zip(score_texts(model, iter(TEXTS)), whole, strict=True):
        assert values(each) == pytest.approx(other, abs=1e-5)
    assert model.training
    with pytest.raises(ElmoTasksError, match="a sentence has no token"):
        list(score_texts(model, [[["the"], []]]))
    with pytest.raises(ElmoTasksError, match="sentence 0 is 'the dog'; expected a list of tokens"):
        list(score_texts(model, [["the dog"]]))
    with pytest.raises(ElmoTasksError, match="substitutes"):
        list(score_texts(model, TEXTS, -1))

    def damaged() -> Iterator[list[list[str]]]:
        yield TEXTS[0]
        raise ElmoTasksError("line 2: damaged")

    found = score_texts(model, damaged())
    assert values(next(found)) == pytest.approx(whole[0], abs=1e-5)
    with pytest.raises(ElmoTasksError, match="line 2: damaged"):
        next(found)


def test_a_language_model_scores_text_and_tokens(model: LanguageModel, bilm: Path) -> None:
    loaded = elmo_tasks.load_language_model(bilm)
    expected = list(score_texts(model, TEXTS[:2], substitutes=2))
    assert [values(each) for each in loaded.score(SENTENCES[:2])] == [pytest.approx(values(each)) for each in expected]
    assert loaded.score("the dog barked.\ncat", 2) == loaded.score(SENTENCES[:2], 2)
    assert loaded.score(" ") == []
    assert loaded.substitutes("the dog barked.", "DOG", 2) == loaded.score(SENTENCES[:1], 2)[0].tokens[1].substitutes
    assert len(loaded.substitutes(SENTENCES[3], 3)) == len(WORDS)
    assert loaded.substitutes(SENTENCES[0], -4, 1) == loaded.substitutes(SENTENCES[0], 0, 1)
    for index, count, problem in (
        (4, 1, "word is 4; expected an index from 0 to 3"),
        (-5, 1, "word is -5"),
        (0, 0, "count"),
    ):
        with pytest.raises(ElmoTasksError, match=problem):
            loaded.substitutes(SENTENCES[0], index, count)
    with pytest.raises(ElmoTasksError, match=r"'\.' occurs 9 times"):
        loaded.substitutes(SENTENCES[3], ".")
    with pytest.raises(TypeError, match="sentence 0 is 'the dog'; expected a list of tokens"):
        loaded.score(["the dog"])


ROWS: list[dict[object, object]] = [
    {"item": "07", "sentence": "the dog, barked."},
    {"item": "8", "sentence": " the  zebra barked. The cat"},
    {"item": "9", "sentence": ""},
]
BITS = ("forward_bits", "backward_bits", "both_bits", "forward_entropy_bits", "backward_entropy_bits")


def in_bits(forward: np.ndarray, backward: np.ndarray, words: Sequence[int], summed: slice) -> list[float]:
    """The scores of a word by the log-probabilities (n, V) from the left and right of all tokens of its sentence."""
    sums = [-sum(scores[at, word] for at, word in [*enumerate(words)][summed])
            for scores in (forward, backward, log_softmax(forward + backward))]  # fmt: skip
    ends = forward[summed][0], backward[summed][-1]
    return [float(each) / math.log(2) for each in (*sums, *(-(np.exp(end) * end).sum() for end in ends))]


def test_words_have_the_sums_of_their_tokens_by_hand(model: LanguageModel) -> None:
    words = model.score_words(ROWS, "sentence")
    assert [(row["item"], row["word_number"], row["word"], row["tokens"], row["known"]) for row in words] == [
        ("07", 1, "the", "the", 1), ("07", 2, "dog,", "dog ,", 0), ("07", 3, "barked.", "barked .", 1),
        ("8", 1, "the", "the", 1), ("8", 2, "zebra", "zebra", 0), ("8", 3, "barked.", "barked .", 1),
        ("8", 4, "The", "The", 0), ("8", 5, "cat", "cat", 1), ("9", 1, "", "", None),
    ]  # fmt: skip
    spans = [(0, 1), (1, 3), (3, 5)], [(0, 1), (1, 2), (2, 4)], [(0, 1), (1, 2)]
    sentences = [["the", "dog", ",", "barked", "."], ["the", "zebra", "barked", "."], ["The", "cat"]]
    by_hand = []
    for sentence, own in zip(sentences, spans, strict=True):
        forward, backward = expected(model, sentence)
        numbers = model.vocabulary.numbers(sentence)
        by_hand += [in_bits(forward[:-1], backward[1:], numbers, slice(*span)) for span in own]
    assert [row[name] for row in words[:-1] for name in BITS] == pytest.approx(np.ravel(by_hand), abs=2e-4)
    assert [words[-1][name] for name in BITS] == [None] * 5

    forward, backward = expected(model, sentences[0])
    plain = model.score_words(pandas.DataFrame(ROWS), "sentence", punctuation=False)
    without = in_bits(forward[:-1], backward[1:], model.vocabulary.numbers(sentences[0]), slice(1, 2))
    assert (plain[1]["known"], plain[1]["tokens"]) == (1, "dog ,")
    assert [plain[1][name] for name in BITS] == pytest.approx(without, abs=2e-4)
    alone = [{"sentence": "the . dog"}]  # a word without others counts
    assert model.score_words(alone, "sentence", punctuation=False) == model.score_words(alone, "sentence")

    tables: list[tuple[list[dict[object, object]], str]] = [
        ([{"text": "a"}], r"row 0: 'sentence' is None; expected a text \(columns: \['text'\]\)"),
        ([ROWS[0], {"sentence": math.nan}], "row 1: 'sentence' is nan; expected a text"),
        ([ROWS[0] | {"word": "dog"}], "row 0: has a column 'word'"),
    ]
    for rows, problem in tables:
        with pytest.raises(ElmoTasksError, match=problem):
            model.score_words(rows, "sentence")


def test_with_context_sentences_follow_those_before_them(model: LanguageModel) -> None:
    """The forward direction reads `<S> the zebra barked . <S> The cat`, the backward one its sentences in this order,
    each from its end."""
    first, second = ["the", "zebra", "barked", "."], ["The", "cat"]
    (*_, the, cat) = model.score_words([ROWS[2], ROWS[1]], "sentence", context=True)
    forward = expected(model, [*first, "<S>", *second])[0][5:7]
    backward = expected(model, [*second, "</S>", *first])[1][1:3]
    numbers = model.vocabulary.numbers(second)
    for at, row in enumerate((the, cat)):
        by_hand = in_bits(forward, backward, numbers, slice(at, at + 1))
        assert [row[name] for name in BITS] == pytest.approx(by_hand, abs=2e-4)
    assert model.score_words(ROWS[2:], "sentence", context=True) == model.score_words(ROWS[2:], "sentence")
    shorter = model.score_words([{"sentence": "The cat"}], "sentence")
    assert shorter[0]["forward_bits"] != the["forward_bits"]
    before, _ = score_texts(model, [[first, second]])
    assert before.end == pytest.approx(-expected(model, [*first, "<S>", *second])[0][4, 1], abs=1e-5)


@pytest.mark.parametrize(("given", "written"), [("tsv", "xlsx"), ("parquet", "csv")])
def test_the_command_scores_the_words_of_a_table(
    bilm: Path, model: LanguageModel, tmp_path: Path, given: str, written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame, table, output = pandas.DataFrame(ROWS), tmp_path / f"items.{given}", tmp_path / f"scored.{written}"
    frame.to_parquet(table) if given == "parquet" else frame.to_csv(table, index=False, sep="\t")
    call = ["score", str(table), "--bilm", str(bilm), "--output", str(output), "--context", "--no-punctuation"]
    assert cli.main(call) == 0
    found = (pandas.read_excel if written == "xlsx" else pandas.read_csv)(output, dtype={"item": str})
    expected = pandas.DataFrame(model.score_words(ROWS, "sentence", context=True, punctuation=False))
    assert list(found["item"]) == list(expected["item"])
    assert list(found["word"].fillna("")) == list(expected["word"])
    assert found[list(BITS)].to_numpy() == pytest.approx(expected[list(BITS)].to_numpy(float), abs=2e-4, nan_ok=True)
    assert cli.main(["score", str(table), "--bilm", str(bilm), "--json"]) == 2
    assert cli.main([*call[:4], "--set", "dataset_reader.columns.text=words"]) == 2
    assert cli.main([*call[:4], "--set", "columns.text=words"]) == 2
    messages = capsys.readouterr().err
    assert all(
        each in messages for each in ("--json: not for a table", "no column 'words'", "expected dataset_reader.KEY")
    )
    assert cli.main(call[:4]) == 0
    assert capsys.readouterr().out.startswith("item\tsentence\tword_number\tword\ttokens\tknown\t")


@pytest.fixture
def bilm(model: LanguageModel, tmp_path: Path) -> Path:
    model.save(tmp_path / "bilm")
    return tmp_path / "bilm"


def test_the_command_writes_tables_and_objects(
    bilm: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the dog barked.\n\nthe zebra.\n")
    call = ["score", str(text), "--bilm", str(bilm), "--substitutes", "2"]
    found = list(score_texts(LanguageModel.load(bilm), [TEXTS[0], TEXTS[2]], 2))

    assert cli.main([*call, "--output", str(tmp_path / "scores.tsv")]) == 0
    rows = list(csv.DictReader((tmp_path / "scores.tsv").read_text().splitlines(), delimiter="\t"))
    assert [row["token"] for row in rows[:6]] == ["<S>", "the", "dog", "barked", ".", "</S>"]
    assert [row["position"] for row in rows[:6]] == list("012345")
    assert [row["known"] for row in rows[6:]] == ["", "1", "0", "1", ""]
    for number, each in enumerate(found, start=1):
        own = [row for row in rows if row["sentence"] == str(number)]
        for name in ("forward", "backward"):
            total = sum(float(row[f"{name}_bits"] or 0) for row in own)
            assert total * math.log(2) == pytest.approx(getattr(each, name), abs=1e-4)
        assert own[1]["substitutes"].split()[0].split(":")[0] == each.tokens[0].substitutes[0][0]
    assert cli.main([*call, "--json"]) == 0
    records = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [record["forward"] for record in records] == pytest.approx([each.forward for each in found], rel=1e-5)
    (token,) = [each for each in records[1]["tokens"] if not each["is_known"]]
    assert token.items() >= {"token": "zebra", "substitutes": dict(found[1].tokens[1].substitutes)}.items()
    assert list(records[0]) == ["tokens", "begin", "end", "forward", "backward", "pseudo_log_likelihood"]
    text.write_text("the dog barked. the zebra.\n")
    assert cli.main([*call, "--json", "--context"]) == 0
    whole = score_texts(LanguageModel.load(bilm), [[SENTENCES[0], SENTENCES[2]]])
    records = [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]
    assert [record["backward"] for record in records] == pytest.approx([each.backward for each in whole], rel=1e-5)
    assert records[1]["backward"] != pytest.approx(found[1].backward, rel=1e-3)
    assert cli.main(["score", str(text), "--bilm", str(bilm)]) == 0  # no terminal: the table
    assert capsysbinary.readouterr().out.startswith(b"sentence\tposition\ttoken\t")
    assert cli.main(["score", str(text), "--bilm", str(bilm), "--output", str(tmp_path / "scores.tsv")]) == 2
    assert b"the file exists; --force replaces it" in capsysbinary.readouterr().err
    for wrong, problem in (
        (["--no-punctuation"], b"--no-punctuation: not for text"),
        (["--output", "scores.jsonl"], b"--json writes JSON lines"),
        (["--json", "--output", "scores.tsv"], b"Without --json, it is a table"),
    ):
        assert cli.main(["score", str(text), "--bilm", str(bilm), *wrong]) == 2
        assert problem in capsysbinary.readouterr().err


VOCABULARY = OutputVocabulary(["a", "b"])


def reader(*sentences: str) -> SlotReader:
    """Slots of sentences, all of one document."""
    text = number_tokens(map(str.split, sentences))
    return SlotReader(CorpusPart.of(text), text.types, VOCABULARY, 50)


TEXT = reader("a b a", "rare", "a", "b rare a a")


def test_unigrams_by_hand() -> None:
    # Counts in training, plus one: a 3, b 2, </S> 2, <S> 1, <UNK> 1. Held out are b and </S>.
    assert unigram_perplexity(reader("a a b"), reader("b"), 5) == pytest.approx(9 / 2)


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


def test_a_terminal_shows_surprising_words_and_those_that_are_expected(
    bilm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_text("the zebra.\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    assert cli.main(["score", str(tmp_path / "text.txt"), "--bilm", str(bilm), "--substitutes", "1"]) == 0
    shown = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    (found,) = score_texts(LanguageModel.load(bilm), [TEXTS[2]], 1)
    expected = []
    for name, each in zip(["the", "zebra (unknown)", "."], found.tokens, strict=True):
        (word, share), *_ = each.substitutes
        bits = f"{each.forward / math.log(2):.1f} {each.backward / math.log(2):.1f}"
        expected.append(f"{name}: {bits} bits {word} {100 * share:.0f}%")
    expected.append(f"forward and backward: {found.forward / math.log(2):.1f} {found.backward / math.log(2):.1f} bits")
    assert shown == ["the zebra .", *expected, ""]


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
