"""Whether text is in the language that a biLM reads.

A biLM gives vectors of any word, also of one in another language, where they say little. So a warning counts the words
of the text that are not among the 10,000 that the biLM has read most often. Words with a capital do not count, because
names are rare in any language.

With the biLM in the package, these are 7 to 20 % of the words of English test sets (questions 7 %, tweets 14 %, reviews
16 %, biomedical abstracts 20 %), and 72 to 96 % of those in French, Spanish, Dutch, German, Danish, Hungarian and
Finnish. Of passages of 50 words, the threshold misjudges 1 of 4,800 English ones and 1 of 1,800 others.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.elmo.options import VOCABULARY_FILE
from elmo_tasks.errors import DataError
from elmo_tasks.files.text import read_lines

logger = logging.getLogger(__name__)

_FREQUENT_WORDS = 10_000
_FEWEST_WORDS = 50  # to judge by


def language_problem(files: BiLMFiles, words: Mapping[str, int]) -> str | None:
    """What is wrong if a text does not look like what a biLM reads.

    Arguments:
        files: the biLM's. Nothing is wrong if it comes without its words, or with fewer than 10,000 of them.
        words: how often the text has each.
    """
    counts = Counter({word: count for word, count in words.items() if _is_judged(word)})
    if counts.total() < _FEWEST_WORDS or not (known := _frequent_words(files)):
        return None
    unknown = Counter({word: count for word, count in counts.items() if word not in known})
    if (share := unknown.total() / counts.total()) <= 0.5:
        return None
    text = f"the text does not look like what the biLM {files.weights.parent.name} has read: {100 * share:.0f} % of its"
    text += f" words in lower case are not among the {_FREQUENT_WORDS:,} most frequent ones there, such as "
    text += ", ".join(repr(word) for word, _ in unknown.most_common(3))
    return f"{text}; the biLM in the package reads English: see docs/other_languages.md"


class LanguageCheck:
    """Warns once if the first texts that a biLM gets do not look like what it has read."""

    def __init__(self, files: BiLMFiles) -> None:
        self._files = files
        self._words: Counter[str] = Counter()
        self._is_done = False

    def see(self, texts: Iterable[Sequence[str]]) -> None:
        """Counts the words of tokenized sentences, until there are enough to judge by."""
        if self._is_done:
            return
        self._words.update(word for tokens in texts for word in tokens if _is_judged(word))
        if self._words.total() >= _FEWEST_WORDS:
            self._is_done = True
            if problem := language_problem(self._files, self._words):
                logger.warning("%s", problem)


language_check = functools.lru_cache(maxsize=64)(LanguageCheck)
"""The check of a biLM that all its users in this process share."""


@functools.lru_cache(maxsize=4)
def _frequent_words(files: BiLMFiles) -> frozenset[str]:
    """The words that a biLM has read most often; none if they are not known, or too few to judge by."""
    words: list[str] = []
    with contextlib.suppress(DataError):  # it is missing, or damaged
        words = [word for _, word in read_lines(files.options.with_name(VOCABULARY_FILE))]
    return frozenset(words[:_FREQUENT_WORDS] if len(words) >= _FREQUENT_WORDS else ())


def _is_judged(word: str) -> bool:
    return word == word.lower() and any(map(str.isalpha, word))
