"""The Stanford Sentiment Treebank: one bracketed tree per line, with a sentiment from 0 to 4 at every phrase.

Source: Socher et al. (2013), "Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank", in the
form `(3 (2 It) (4 (2 's) (3 lovely)))` of its publisher's `train.txt`, `dev.txt` and `test.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.records import unescape
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.errors import DataError
from elmo_tasks.files.text import read_lines
from elmo_tasks.tasks import Classification, Task
from elmo_tasks.text.vocabulary import SENTIMENT_LABELS

# The names of the file's numbers in examples and predictions, by granularity. Two classes have no neutral one.
SENTIMENTS: dict[int, dict[int, str]] = {
    5: dict(enumerate(SENTIMENT_LABELS)),
    2: {0: "negative", 1: "negative", 3: "positive", 4: "positive"},
}

_PIECE = re.compile(r"[()]|[^() \t]+")  # not every whitespace: a token may hold a no-break space
_DIGITS = {str(sentiment): sentiment for sentiment in SENTIMENTS[5]}
# What may follow each kind of piece within a tree, and its name in messages.
_MAY_FOLLOW = {
    "": (("(",), "an opening bracket"),
    "(": (("label",), "a label from 0 to 4"),
    "label": (("(", "word"), "a word or an opening bracket"),
    "word": ((")",), "a closing bracket"),
    ")": (("(", ")"), "a bracket"),
}


class SstConfig(DatasetReaderConfig):
    """Sentiment trees: whole sentences or all their phrases, in five classes or in two."""

    type: Literal["sst"] = "sst"
    task: ClassVar[Task] = Classification()
    granularity: Literal[5, 2] = Field(
        5,
        description="The number of classes: 5 are 'very negative', 'negative', 'neutral', 'positive' and 'very "
        "positive' (0 to 4 in the file); 2 are 'negative' and 'positive', without neutral phrases.",
    )
    subtrees: bool = Field(
        False, description="Make an example of every phrase of a tree, not only of the whole sentence."
    )
    min_length: int = Field(
        1, ge=1, description="The fewest tokens of a phrase that becomes an example; whole sentences always do."
    )
    deduplicate: bool = Field(
        False, description="Leave out examples, also whole sentences, whose tokens and label occur earlier in the file."
    )

    def build(self) -> SstReader:
        return SstReader(self)


class SstReader(DatasetReader):
    r"""Makes examples of `Classification`: each sentence, then its phrases from left to right.

    The Treebank's escapes (`-LRB-`, ` `` `, `\/`) are undone, as in raw text. Repeated phrases are kept, as in the
    published data, unless `deduplicate` is set. See `parse_tree` for what is not a tree.
    """

    config: SstConfig

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        names = SENTIMENTS[self.config.granularity]
        seen: set[tuple[str, ...]] = set()
        for line, tokens, sentiment in self._phrases(path, parsing):
            if sentiment not in names:
                parsing.left_out["neutral example(s)"] += 1
                continue
            label = names[sentiment]
            if self.config.deduplicate:
                before = len(seen)
                seen.add((label, *tokens))
                if len(seen) == before:
                    parsing.left_out["example(s) seen before"] += 1
                    continue
            yield {"tokens": tokens, "label": label, "line": line}

    def _phrases(self, path: Path, parsing: Parsing) -> Iterator[tuple[int, list[str], int]]:
        """Yields the line, the tokens and the sentiment of each phrase that is read."""
        for number, line in read_lines(path, columns=True):
            if not line.strip():
                continue
            with parsing.caught():
                tokens, (root, *inner) = parse_tree(line.rstrip(), f"{path}:{number}")
                yield number, tokens, root.sentiment
                for sentiment, start, length in inner if self.config.subtrees else ():
                    if length >= self.config.min_length:
                        yield number, tokens[start : start + length], sentiment


class Phrase(NamedTuple):
    """A labelled node of a tree."""

    sentiment: int
    start: int  # its first token
    length: int  # in tokens


def parse_tree(text: str, location: str = "tree") -> tuple[list[str], list[Phrase]]:
    """The tokens of a bracketed tree and its phrases, each before those that it consists of.

    Raises:
        DataError: the text is not one whole tree. The message names `location` and the column, from 1.
    """
    tokens: list[str] = []
    phrases: list[Phrase] = []
    open_phrases: list[int] = []
    previous = ""  # the kind of the piece before
    for match in _PIECE.finditer(text):
        kind = piece = match.group()
        if piece not in "()":
            kind = "label" if previous == "(" else "word"
        if kind == "label":
            piece = piece.strip()
        problem, (allowed, expected) = "", _MAY_FOLLOW[previous]
        if previous and not open_phrases:
            problem = "outside the tree; expected one tree per line, and as many closing brackets as opening ones"
        elif kind not in allowed or (kind == "label" and piece not in _DIGITS):
            problem = f"where {expected} was expected"
        if problem:
            raise DataError(location, f"column {match.start() + 1}: {piece!r} {problem}")
        if kind == "(":
            open_phrases.append(len(phrases))
        elif kind == "label":
            phrases.append(Phrase(_DIGITS[piece], start=len(tokens), length=0))
        elif kind == "word":
            tokens.append(unescape(piece))
        else:
            closed = open_phrases.pop()
            phrases[closed] = phrases[closed]._replace(length=len(tokens) - phrases[closed].start)
        previous = kind
    if open_phrases:
        raise DataError(location, f"the tree ends with {len(open_phrases)} bracket(s) that are not closed")
    if not phrases:
        raise DataError(location, "no tree; expected one such as (3 (2 It) (3 works))")
    return tokens, phrases
