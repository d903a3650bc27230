"""The words that a language model predicts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.errors import DataError
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.text import BYTE_ORDER_MARK, read_lines

UNKNOWN = "<UNK>"
_NOT_A_LINE = re.compile(rf"^$|^{BYTE_ORDER_MARK}|[\r\n]")  # readers leave out a byte order mark that begins a line
_FIRST = (BEGIN_SENTENCE, END_SENTENCE, UNKNOWN)
UNKNOWN_NUMBER = _FIRST.index(UNKNOWN)
NUM_SPECIAL_WORDS = len(_FIRST)


class OutputVocabulary:
    """The words of the softmax: sentence borders, the unknown word, then the others, the most frequent first.

    The order is that of bilm-tf's vocabulary files; the sampling of candidates depends on it.

    Arguments:
        words: distinct words, most frequent first; `<S>`, `</S>` and `<UNK>` are moved before them.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.words: tuple[str, ...] = (*_FIRST, *(word for word in words if word not in _FIRST))
        self._numbers = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def numbers(self, tokens: Iterable[str]) -> list[int]:
        """The tokens' indices among the words; unknown words have that of `<UNK>`."""
        return [self._numbers.get(token, UNKNOWN_NUMBER) for token in tokens]

    def fingerprint(self) -> str:
        """The SHA-256 of the words in their order, in hexadecimal."""
        return hashlib.sha256("\n".join(self.words).encode()).hexdigest()

    def save(self, path: str | Path) -> None:
        """Writes one word per line, as bilm-tf does, atomically."""
        with atomic_write(path) as stream:
            stream.writelines(f"{word}\n".encode() for word in self.words)

    @classmethod
    def load(cls, path: str | Path) -> OutputVocabulary:
        """Reads a file with one word per line.

        Raises:
            DataError: the first three lines are not `<S>`, `</S>` and `<UNK>`, or a line is empty or repeated.
        """
        words: dict[str, int] = {}
        for line, word in read_lines(path):
            if line <= len(_FIRST) and word != _FIRST[line - 1]:
                raise DataError(
                    path, f"got {word!r}; expected {_FIRST[line - 1]!r}, as bilm-tf's vocabularies have", line
                )
            if not word or word in words:
                problem = "is empty" if not word else f"{word!r} is already on line {words[word]}"
                raise DataError(path, f"{problem}; expected one word per line, each once", line)
            words[word] = line
        if len(words) < len(_FIRST):
            raise DataError(path, f"got {len(words)} lines; expected <S>, </S>, <UNK> and the words, one per line")
        return cls(list(words)[len(_FIRST) :])


def most_frequent(types: Sequence[str], counts: Iterable[int], size: int | None, min_count: int) -> OutputVocabulary:
    """The vocabulary of a corpus: its most frequent words, except those that a file with a word per line cannot hold.

    Arguments:
        types, counts: distinct words, most frequent first, and how often each occurs.
        size: most words, `<S>`, `</S>` and `<UNK>` included; None for all.
        min_count: less frequent words are unknown.
    """
    frequent = (word for word, count in zip(types, counts, strict=True) if count >= min_count)
    words = [word for word in frequent if not _NOT_A_LINE.search(word)]
    return OutputVocabulary(words if size is None else words[: max(0, size - len(_FIRST))])
