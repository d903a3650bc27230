from __future__ import annotations

from pathlib import Path

import pytest

from elmo_tasks.errors import DataError
from elmo_tasks.pretraining.output_vocabulary import OutputVocabulary, most_frequent


@pytest.mark.parametrize(
    ("size", "min_count", "words"),
    [(None, 1, ["a", "b", "c"]), (5, 1, ["a", "b"]), (None, 2, ["a", "b"]), (4, 2, ["a"]), (3, 1, [])],
)
def test_the_most_frequent_words_and_the_special_ones_among_them(
    size: int | None, min_count: int, words: list[str]
) -> None:
    assert most_frequent(["a", "b", "c"], [3, 2, 1], size, min_count).words == ("<S>", "</S>", "<UNK>", *words)


def test_words_that_its_file_cannot_hold_are_unknown(tmp_path: Path) -> None:
    vocabulary = most_frequent(["a", "\n", "b\r", "\ufeff", "\ufeffa", "", "c\u2028"], range(7, 0, -1), None, 1)
    vocabulary.save(tmp_path / "words.txt")
    assert OutputVocabulary.load(tmp_path / "words.txt").words == ("<S>", "</S>", "<UNK>", "a", "c\u2028")
    OutputVocabulary([]).save(tmp_path / "words.txt")
    assert len(OutputVocabulary.load(tmp_path / "words.txt")) == 3


def test_a_vocabulary_goes_round_and_numbers_its_words(tmp_path: Path) -> None:
    vocabulary = OutputVocabulary(["the", "</S>", "mill"])
    assert vocabulary.numbers(["mill", "<S>", "boat", "</S>", "the"]) == [4, 0, 2, 1, 3]
    vocabulary.save(tmp_path / "words.txt")
    assert (tmp_path / "words.txt").read_text() == "<S>\n</S>\n<UNK>\nthe\nmill\n"
    loaded = OutputVocabulary.load(tmp_path / "words.txt")
    assert loaded.words == vocabulary.words
    assert loaded.fingerprint() == vocabulary.fingerprint() != OutputVocabulary(["mill", "the"]).fingerprint()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["<S>", "</S>", "the"], ":3: got 'the'; expected '<UNK>', as bilm-tf"),
        (["the"], ":1: got 'the'; expected '<S>', as bilm-tf"),
        (["<S>", "</S>"], ": got 2 lines; expected <S>, </S>, <UNK> and the words"),
        (["<S>", "</S>", "<UNK>", "the", "", "a"], ":5: is empty; expected one word per line"),
        (["<S>", "</S>", "<UNK>", "the", "a", "the"], ":6: 'the' is already on line 4; expected one word per line"),
        (["<S>", "</S>", "<UNK>", "<S>"], ":4: '<S>' is already on line 1"),
    ],
)
def test_files_that_are_not_vocabularies(lines: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(DataError) as caught:
        OutputVocabulary.load(tmp_path / "words.txt")
    assert f"words.txt{message}" in str(caught.value)
