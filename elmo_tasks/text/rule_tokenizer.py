"""Splits raw text by rules that are data: `tokenization.RULES`, or those in an exported model.

`elmo_runtime` has this file, too: it imports nothing of this package. `extras/export/page/tokenizer.js` is the same in
JavaScript. Both read the same patterns: those of `re`, without its flags except `(?i)`, and without possessive parts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

_Span = tuple[int, int]
_AFTER_MARKS = 500  # characters that rules look at


class RuleTokenizer:
    """Splits text into sentences, and those into words. It can be used by several threads.

    Arguments:
        rules: `patterns` of places by their names, `lists` of words, and the rules for `words`, each a pattern and what
            replaces it, which puts spaces around words; see `tokenization`.
    """

    def __init__(self, rules: Mapping[str, Any]) -> None:
        self._window, self._after, self._longest = rules["window"], rules["after_a_border"], rules["longest_word"]
        self._patterns = {name: re.compile(pattern) for name, pattern in rules["patterns"].items()}
        self._lists = {name: frozenset(words) for name, words in rules["lists"].items()}
        self._rules = [(re.compile(pattern), spaced) for pattern, spaced in rules["words"]]
        self._straight_quotes = str.maketrans(rules["straight_quotes"])

    def spans(self, text: str) -> Iterator[list[_Span]]:
        """The (start, end) of the words of each sentence that has any, in characters, ends exclusive.

        They are in order and do not overlap, and only white space and marks that nobody sees are left out. A blank line
        ends a sentence, and a sentence that is longer than a window is cut.
        """
        text = text if text.isascii() else self._patterns["unseen"].sub(" ", text)
        blank_lines = (match.span() for match in self._patterns["blank_line"].finditer(text))
        borders = [0, *itertools.chain.from_iterable(blank_lines), len(text)]
        for start, end in zip(borders[::2], borders[1::2], strict=True):
            for sentence in self._sentences(text, start, end):
                if spans := self._spans_of_words(text, *sentence):
                    yield spans

    def words(self, sentence: str) -> list[str]:
        """The words of a sentence with single spaces between what is apart, as written, but '' may become ``."""
        for rule, spaced in self._rules:
            sentence = rule.sub(spaced, sentence)
        return sentence.split()

    def _sentences(self, text: str, start: int, end: int) -> Iterator[_Span]:
        """The (start, end) of the sentences of text[start:end]; each ends where the next begins."""
        while start < end:
            stop = min(end, start + self._window)
            if stop < end and (space := text.rfind(" ", start + 1, stop)) > 0:
                stop = space
            part = text[start : min(end, stop + self._after)].translate(self._straight_quotes)
            places = self._patterns["place"].finditer(part)
            borders = [start + place.start(3) for place in places if self._is_border(part, place)]
            borders = [border for border in borders if border < stop]
            if borders and stop < end:
                stop = borders.pop()  # the window's last sentence may go on after it: it begins the next window
            yield from itertools.pairwise([start, *borders, stop])
            start = stop

    def _is_border(self, text: str, place: re.Match[str]) -> bool:
        """Whether a sentence ends at a match: its marks, what closes, what opens, and the word that follows."""
        marks, closing, follower = place[1], (place[2] or "").strip(), place[4]
        if place[2] is None:  # without white space: a bracket or quote, and a capital, or any letter after [
            opens, after = text[place.end(1)], text[place.end(1) + 1]
            if opens != ":" and not (after.isdecimal() or after.isupper() or (opens == "[" and after.isalpha())):
                return False
        rest = text[place.start(3) : place.start(3) + _AFTER_MARKS]
        goes_on = follower[:1].islower() and not self._patterns["address"].match(text, place.start(4))
        is_said = marks != "." and closing[-1:] in {'"', "'"} and self._begins(rest, "speaker", 0)
        if is_said or (closing and goes_on):
            return False
        if "?" in marks or "!" in marks:
            return True
        starts = follower[:1].isupper() and follower.lower() in self._lists["starters"]
        if marks != ".":
            return starts or bool(closing)
        word = self._word_before(text, place.start())
        if word in self._lists["never_last"] or (word in self._lists["before_numbers"] and follower[:1].isdigit()):
            return False
        if self._is_abbreviation(word):
            return starts or self._begins(rest, "speech", 1)
        return not (goes_on and word.isdigit() and len(word) < 3)  # an ordinal, or the number of a point

    def _begins(self, text: str, name: str, capital: int) -> bool:
        """Whether a text begins with a pattern, and has a capital at a place of it."""
        return self._patterns[name].match(text) is not None and text[capital].isupper()

    def _word_before(self, text: str, mark: int) -> str:
        """The word that ends where a mark begins, in lower case; perhaps empty."""
        word = self._patterns["last_word"].search(text, max(0, mark - self._longest), mark)
        return word.group().lower() if word else ""

    def _is_abbreviation(self, word: str) -> bool:
        """Whether a word in lower case keeps a period after it: an abbreviation, an initial, or several."""
        known = self._lists["abbreviations"]
        return word.rpartition("-")[2] in known or word in known or bool(self._patterns["initials"].fullmatch(word))

    def _spans_of_words(self, text: str, start: int, end: int) -> list[_Span]:
        """The (start, end) of the words of the sentence text[start:end]."""

        def apart(period: re.Match[str]) -> str:
            return "." if self._is_abbreviation(self._word_before(period.string, period.start())) else " ."

        # The rules change no lengths: their results tell how many characters each word has. Some are slow with long
        # runs of white space, so they get none.
        stand_in = self._patterns["apostrophe"].sub("'", text[start:end])
        stand_in = self._patterns["unsplit"].sub(lambda match: "x" * len(match.group()), stand_in)
        stand_in = self._patterns["inner_period"].sub(apart, stand_in)
        spans = []
        for word in self.words(" ".join(stand_in.split())):
            while text[start].isspace():
                start += 1
            spans.append((start, start + len(word)))
            start += len(word)
        return spans
