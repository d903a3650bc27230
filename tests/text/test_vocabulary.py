"""The vocabulary's rules, sentences as ids, saving."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_tasks.errors import ElmoTasksError, RunError
from elmo_tasks.models.labels import label_predictions
from elmo_tasks.text import vocabulary
from elmo_tasks.text.vocabulary import Counts, Vocabulary, VocabularyConfig, natural_order


class Pairs:
    """Examples of two token sequences and labels of two kinds."""

    def texts(self, example: Mapping[str, Any]) -> Iterable[Sequence[str]]:
        return (example["one"], example["other"])

    def labels(self, example: Mapping[str, Any]) -> Mapping[str, Iterable[str]]:
        return {"verdict": [example["verdict"]], "kinds": example["kinds"]}

    def key(self, example: Mapping[str, Any]) -> int:
        return 0


def example(one: str, other: str = "", verdict: str = "yes", kinds: str = "k") -> dict[str, Any]:
    return {"one": one.split(), "other": other.split(), "verdict": verdict, "kinds": kinds.split()}


TRAIN = [example("b a c a", "The b"), example("the a", "d", verdict="no", kinds="z k")]
TEST = [example("e F a", "the", verdict="perhaps", kinds="q")]


def build(pretrained: Iterable[str] = (), **settings: Any) -> Vocabulary:
    return VocabularyConfig(**settings).build(Counts.of(Pairs(), TRAIN), [Counts.of(Pairs(), TEST)], pretrained)


FILE = ("x", "a", "y", "F", "z", "e", "c", "x")  # of pretrained vectors


@pytest.mark.parametrize(
    ("settings", "file", "trained", "fixed"),
    [
        ({}, (), "a b The c d the", ""),  # by frequency, then in alphabetical order
        ({"lowercase_words": True}, (), "a b the c d", ""),
        ({"min_count": 2}, (), "a b", ""),
        ({"pretrained_words": 0}, FILE, "a b The c d the", "F e"),  # words of the test data, in the order of the file
        ({"pretrained_words": 3}, FILE, "a b The c d the", "x y F e"),  # and the first of the file
        ({"pretrained_words": None}, FILE, "a b The c d the", "x y F z e"),
        ({"pretrained_words": 0, "min_count": 2}, ("c", "q"), "a b", "c"),  # a rare word has a vector in the file
        ({"pretrained_words": None, "lowercase_words": True}, ("F", "f", "X", "x"), "a b the c d", "f x"),
    ],
)
def test_words(settings: dict[str, Any], file: tuple[str, ...], trained: str, fixed: str) -> None:
    vocab = build(file, **settings)
    assert vocab.words == ("<padding>", "<unknown>", *trained.split(), *fixed.split())
    assert vocab.num_trained_words == 2 + len(trained.split())


def test_case_and_frequency_of_words_leave_characters_as_written() -> None:
    vocab = build(lowercase_words=True)
    assert vocab.characters == ("<padding>", "<unknown>", "a", "b", "e", "h", "T", "c", "d", "t")
    assert (vocab.word_id("THE"), build().word_id("THE")) == (4, 1)
    assert "d" in build(min_count=2).characters


def test_labels_come_from_all_the_data_in_alphabetical_order() -> None:
    assert build().labels == {"kinds": ("k", "q", "z"), "verdict": ("no", "perhaps", "yes")}


def test_a_token_that_reads_like_a_special_word_is_a_word() -> None:
    train = [example("<unknown> <padding> <unknown>")]
    vocab = VocabularyConfig().build(Counts.of(Pairs(), train), [])
    assert [vocab.word_id(word) for word in ("<unknown>", "<padding>", "other")] == [2, 3, 1]
    assert [build().word_id(word) for word in ("<unknown>", "<padding>")] == [1, 1]


def test_index_tokens() -> None:
    vocab = build()
    texts = [["a", "zoo", "The"], [], ["The"]]
    tokens = vocab.index_tokens(texts)
    assert tokens.texts == texts
    assert tokens.mask.tolist() == [[True, True, True], [False] * 3, [True, False, False]]
    assert tokens.words.tolist() == [[2, 1, 4], [0, 0, 0], [4, 0, 0]]
    assert tokens.distinct.tolist() == [[1, 2, 3], [0, 0, 0], [3, 0, 0]]
    spelled = [[vocab.characters[i] for i in row] for row in tokens.characters.tolist()]
    assert spelled == [
        ["<padding>"] * 3,
        ["a", "<padding>", "<padding>"],
        ["<unknown>"] * 3,
        ["T", "h", "e"],
    ]
    assert tokens.mask.dtype == torch.bool
    for ids in (tokens.words, tokens.distinct, tokens.characters):
        assert ids.dtype == torch.int64


def test_words_of_different_case_share_a_row_but_no_characters() -> None:
    tokens = build(lowercase_words=True).index_tokens([["The", "the"]])
    assert tokens.words[0, 0] == tokens.words[0, 1]
    assert tokens.distinct.tolist() == [[1, 2]]
    assert not torch.equal(tokens.characters[1], tokens.characters[2])


def test_long_words_are_cut() -> None:
    assert build().index_tokens([["a" * 80]]).characters.shape == (2, 50)
    train = [example("a" * 50 + "Z")]
    assert "Z" not in VocabularyConfig().build(Counts.of(Pairs(), train), []).characters


def test_no_sentence_at_all() -> None:
    tokens = build().index_tokens([])
    assert (tokens.mask.shape, tokens.words.shape, tokens.characters.shape) == ((0, 0), (0, 0), (1, 0))


def test_label_ids() -> None:
    vocab = build()
    assert [vocab.label_id("verdict", label) for label in ("no", "yes")] == [0, 2]
    with pytest.raises(ElmoTasksError, match=r"'yess' is not among .*: no, perhaps, yes. Did you mean 'yes'\?"):
        vocab.label_id("verdict", "yess")
    with pytest.raises(ElmoTasksError, match=r"'qqq' is not among the verdict of the run: no, perhaps, yes\.$"):
        vocab.label_id("verdict", "qqq")
    with pytest.raises(ElmoTasksError, match="no labels 'tags'; the vocabulary has: kinds, verdict"):
        vocab.label_id("tags", "O")
    with pytest.raises(ElmoTasksError, match="no labels 'topics'; the vocabulary has: "):
        vocab.labels["topics"]


def test_the_same_data_in_another_order_gives_the_same_vocabulary() -> None:
    again = VocabularyConfig().build(Counts.of(Pairs(), TRAIN[::-1]), [Counts.of(Pairs(), TEST)])
    assert again == build()
    assert json.dumps(again.to_json()) == json.dumps(build().to_json())


def test_save_and_load(tmp_path: Path) -> None:
    vocab = VocabularyConfig(lowercase_words=True).build(Counts.of(Pairs(), [example("Ærø \u2028 \ud7ff")]), [])
    vocab.save(tmp_path / "vocabulary.json")
    assert Vocabulary.load(tmp_path / "vocabulary.json") == vocab


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, ": no such file"),
        ("{", ":1: Invalid JSON: EOF"),
        ("[]", ": Input should be an object"),
        ('{"words": 1}', ": words: .* got 1\n.*: the key 'num_trained_words' is missing; .* the vocabulary of a run"),
        ({"words": [1, "x"]}, ": words.0: .*string; got 1"),
        ({"words": ["a", "b", "c"]}, r": words and .* begin with .'a', 'b'.; expected .'<padding>', '<unknown>'."),
        ({"characters": []}, r": words and characters begin with .*; expected .'<padding>', '<unknown>'."),
        ({"labels": {"tags": "abc"}}, ": labels.tags: .* got 'abc'"),
        ({"num_trained_words": 1}, ": num_trained_words is 1; expected 2 to"),
        ({"num_trained_words": 10**6}, ": num_trained_words is 1000000; expected 2 to"),
        ({"num_trained_words": 2.0}, ": num_trained_words: .*; got 2.0"),
        ({"words": [None] * 100}, ": words.0: .*\n.*words.1: .*\n(.*\n)+.*: 95 more problems"),
    ],
    ids=range(12),
)
def test_a_damaged_file(tmp_path: Path, content: str | dict[str, Any] | None, problem: str) -> None:
    path = tmp_path / "vocabulary.json"
    if content is not None:
        text = content if isinstance(content, str) else json.dumps({**build().to_json(), **content})
        path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RunError, match=rf"vocabulary\.json{problem}"):
        Vocabulary.load(path)


def test_a_file_of_an_earlier_version_and_one_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "vocabulary.json"
    values = build().to_json()
    del values["byte_characters"]
    path.write_text(json.dumps(values))
    assert Vocabulary.load(path) == build()
    monkeypatch.setattr(vocabulary, "MAX_VOCABULARY_BYTES", 100)
    with pytest.raises(RunError, match=r"vocabulary\.json: "):
        Vocabulary.load(path)


@pytest.mark.parametrize("borders", [True, False])
def test_bytes_as_characters(borders: bool, tmp_path: Path) -> None:
    vocab = build(byte_characters=True, border_characters=borders)
    vocab.save(tmp_path / "vocabulary.json")
    assert Vocabulary.load(tmp_path / "vocabulary.json") == vocab
    assert len(vocab.characters) == 2 + 256 + 2 * borders
    tokens = vocab.index_tokens([["é", "a"]])
    rows = [[ord("Ã") + 2, ord("©") + 2], [ord("a") + 2]]  # UTF-8's C3 A9, after padding and unknown
    expected = [[258, *row, 259] if borders else row for row in rows]
    assert [[each for each in row if each] for row in tokens.characters[1:].tolist()] == expected


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (
            "very positive,neutral,very negative,negative,positive",
            "very negative,negative,neutral,positive,very positive",
        ),
        ("positive,negative", "negative,positive"),
        ("Positive,Negative", "Negative,Positive"),
        ("contradiction,entailment,neutral", "entailment,neutral,contradiction"),
        ("10,9,2,9", "2,9,10"),
        ("1.5,-1,+0", "-1,+0,1.5"),
        ("10,9,other", None),
        ("positive,negative,mixed", None),
        ("nan,1", None),
        ("contradiction,negative", None),
    ],
)
def test_the_order_of_the_publisher_or_of_numbers(labels: str, order: str | None) -> None:
    assert natural_order(labels.split(",")) == (order and order.split(","))


def test_probabilities_are_shown_in_this_order_and_keep_their_meaning() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0]])
    (prediction,) = label_predictions(logits, ("contradiction", "entailment", "neutral"), 1.0)
    assert prediction["label"] == "entailment"
    assert list(prediction["probabilities"]) == ["entailment", "neutral", "contradiction"]
    assert list(prediction["probabilities"].values()) == pytest.approx(logits.softmax(1)[0, [1, 2, 0]].tolist())
    (prediction,) = label_predictions(logits, ("b", "a", "c"), 1.0)
    assert list(prediction["probabilities"]) == ["b", "a", "c"]
