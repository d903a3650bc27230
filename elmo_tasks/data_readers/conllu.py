"""CoNLL-U: the words of a treebank with their parts of speech.

Source: the format of Universal Dependencies, version 2 (universaldependencies.org/format.html). Ten columns separated
by single tabs, a word a line, an empty line after each sentence; `#` begins a comment, which stands before a sentence.
Tokens are the syntactic words, which alone have tags: a line with a range of numbers (`1-2`), the surface form of
several words, is checked and left out, and so is an empty node (`8.1`), which is not in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.errors import DataError
from elmo_tasks.files import read_lines
from elmo_tasks.tasks import Tagging, Task

_COLUMNS = 10
_FORM = 1
_TAG_COLUMNS = {"upos": 3, "xpos": 4}
_NUMBER = re.compile(r"(?P<first>[0-9]+)(?:-(?P<last>[0-9]+)|\.(?P<empty>[0-9]+))?")
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")


class ConlluConfig(DatasetReaderConfig):
    """Parts of speech from files in CoNLL-U."""

    type: Literal["conllu"] = "conllu"
    task: ClassVar[Task] = Tagging()
    tag_column: Annotated[
        Literal["upos", "xpos"],
        Field(description="The tags: 'upos' the universal ones, 'xpos' those of the treebank's language."),
    ] = "upos"

    def build(self) -> ConlluReader:
        return ConlluReader(self)


class ConlluReader(DatasetReader):
    """Makes examples of `Tagging`; documents begin at comments `# newdoc`. A form may contain spaces.

    Raises (from `read`):
        DataError: a line without exactly ten columns; words not numbered 1, 2, 3 and so on; a range or an empty node
            out of its place; a comment inside a sentence; a word without a tag. File and line are named.
    """

    version: ClassVar[int] = 1

    config: ConlluConfig

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        document = number = 0
        for sentence in _read_sentences(path, self.config.tag_column):
            if sentence.begins_document and number > 0:
                document, number = document + 1, 0
            yield {
                "tokens": sentence.forms,
                "tags": sentence.tags,
                "document": document,
                "sentence": number,
                "line": sentence.first_line,
            }
            number += 1


class _Sentence(NamedTuple):
    forms: list[str]
    tags: list[str]
    begins_document: bool
    first_line: int


def _read_sentences(path: Path, tag_column: str) -> Iterator[_Sentence]:
    sentence = _OpenSentence()
    begins_document = False
    number = 0
    for number, line in read_lines(path):
        if line.startswith("#"):
            if sentence.is_begun:
                raise DataError(path, "a comment inside a sentence; wanted an empty line before it", number)
            begins_document = begins_document or _NEW_DOCUMENT.match(line) is not None
        elif line.strip():
            if problem := sentence.add(line, tag_column):
                raise DataError(path, problem, number)
        elif sentence.is_begun:
            if problem := sentence.fault_at_the_end():
                raise DataError(path, problem, number - 1)
            yield _Sentence(sentence.forms, sentence.tags, begins_document, number - sentence.num_lines)
            sentence, begins_document = _OpenSentence(), False
    if sentence.is_begun:
        if problem := sentence.fault_at_the_end():
            raise DataError(path, problem, number)
        yield _Sentence(sentence.forms, sentence.tags, begins_document, number + 1 - sentence.num_lines)


class _OpenSentence:
    """The lines of a sentence so far, their numbers checked."""

    def __init__(self) -> None:
        self.forms: list[str] = []
        self.tags: list[str] = []
        self._empty = 0  # empty nodes since the last word
        self._range_end = 0  # the last word of the last range
        self.num_lines = 0

    @property
    def is_begun(self) -> bool:
        return self.num_lines > 0

    def add(self, line: str, tag_column: str) -> str | None:
        """Takes a line in; returns what is wrong with it, if anything is."""
        self.num_lines += 1
        fields = line.split("\t")
        if len(fields) != _COLUMNS:
            return f"{len(fields)} column(s); wanted {_COLUMNS}, separated by tabs: {line[:80]!r}"
        number = _NUMBER.fullmatch(fields[0])
        if number is None:
            return f"{fields[0]!r} does not number a word (1), a range of words (1-2) or an empty node (1.1)"
        if number["last"] is not None:
            return self._begin_range(int(number["first"]), int(number["last"]))
        if number["empty"] is not None:
            return self._add_empty_node(int(number["first"]), int(number["empty"]))
        return self._add_word(int(number["first"]), fields[_FORM], fields[_TAG_COLUMNS[tag_column]], tag_column)

    def fault_at_the_end(self) -> str | None:
        """What is wrong with the sentence if it ends here."""
        if not self.forms:
            return "a sentence without words"
        if self._range_end > len(self.forms):
            return f"the sentence ends at word {len(self.forms)}, but a range of words at {self._range_end}"
        return None

    def _add_word(self, number: int, form: str, tag: str, tag_column: str) -> str | None:
        if number != len(self.forms) + 1:
            return f"word {number} where word {len(self.forms) + 1} was wanted; is an empty line missing?"
        if not form or tag in ("", "_"):
            return f"word {number} has no form" if not form else f"word {number} ({form!r}) has no {tag_column}"
        self.forms.append(form)
        self.tags.append(tag)
        self._empty = 0
        return None

    def _begin_range(self, first: int, last: int) -> str | None:
        if first != len(self.forms) + 1 or last < first or first <= self._range_end:
            return f"the range {first}-{last}; wanted one that begins at word {len(self.forms) + 1}, outside of others"
        self._range_end = last
        return None

    def _add_empty_node(self, word: int, number: int) -> str | None:
        if (word, number) != (len(self.forms), self._empty + 1):
            return f"the empty node {word}.{number}; wanted {len(self.forms)}.{self._empty + 1} here"
        self._empty = number
        return None
