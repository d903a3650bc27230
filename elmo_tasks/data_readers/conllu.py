"""CoNLL-U: the words of a treebank with their parts of speech.

Source: the format of Universal Dependencies, version 2 (universaldependencies.org/format.html). Ten columns separated
by single tabs, one word per line, an empty line after each sentence; `#` begins a comment before a sentence. Tokens are
the syntactic words, as only they have tags. A line with a range of numbers (`1-2`), the surface form of several words,
is checked and left out, and so is an empty node (`8.1`), which is not in the text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from elmo_tasks.data_readers.columns import DocumentNumbers
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig, Predicted
from elmo_tasks.errors import DataError
from elmo_tasks.files.text import BYTE_ORDER_MARK, read_lines
from elmo_tasks.tasks import Tagging, Task

_COLUMNS = 10
_TAG_COLUMNS = {"upos": 3, "xpos": 4}
_NUMBER = re.compile(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9})|\.(?P<empty>[0-9]{1,9}))?")
_NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")


class ConlluConfig(DatasetReaderConfig):
    """Parts of speech from files in CoNLL-U."""

    type: Literal["conllu"] = "conllu"
    task: ClassVar[Task] = Tagging()
    tag_column: Annotated[
        Literal["upos", "xpos"],
        Field(description="The tags: 'upos' are the universal ones, 'xpos' those of the treebank's language."),
    ] = "upos"

    def build(self) -> ConlluReader:
        return ConlluReader(self)


class ConlluReader(DatasetReader):
    """Makes examples of `Tagging`; documents begin with comments `# newdoc`. A form may contain spaces.

    Raises (from `read`):
        DataError: a line without exactly ten columns; words not numbered 1, 2, 3 and so on; a range or an empty node
            where it is not allowed; a comment inside a sentence; a word without a tag. File and line are named.
    """

    config: ConlluConfig

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        numbers = DocumentNumbers()
        for is_empty, lines in itertools.groupby(read_lines(path), key=lambda line: not line[1].strip()):
            if is_empty:
                continue
            numbered = list(lines)
            if any(line[0] == "#" and _NEW_DOCUMENT.match(line) for _, line in numbered):
                numbers.border()
            with self.bad_units.caught():
                sentence, first_line = self._parse(numbered, path)
                if first_line:
                    yield {"tokens": sentence.forms, "tags": sentence.tags, **numbers.sentence(), "line": first_line}

    def with_predictions(self, path: Path, predicted: Predicted) -> Iterator[str]:
        """See `DatasetReader`: predictions take the place of the tags."""
        column = _TAG_COLUMNS[self.config.tag_column]
        for number, line in read_lines(path):
            cells = line.split("\t")
            if cells[0].isdecimal():
                cells[column : column + 1] = [predicted(number)]
            yield "\t".join(cells)

    def _parse(self, lines: list[tuple[int, str]], path: Path) -> tuple[_OpenSentence, int]:
        """The sentence of numbered lines, and its first line, 0 if there are only comments."""
        sentence, first_line = _OpenSentence(self.config.tag_column, needs_tags=self.needs_labels), 0
        for number, line in lines:
            if not line.startswith("#"):
                first_line = first_line or number
                text = line if line.isascii() else line.replace(BYTE_ORDER_MARK, "")
                problem = sentence.add(text.split("\t"), line)
            else:
                problem = "a comment inside a sentence; expected an empty line before it" if first_line else None
            if problem:
                raise DataError(path, problem, number)
        if first_line and (problem := sentence.fault_at_the_end()):
            raise DataError(path, problem, lines[-1][0])
        return sentence, first_line


class _OpenSentence:
    """The words of a sentence so far, their numbers checked."""

    def __init__(self, tag_column: str, *, needs_tags: bool) -> None:
        self._needs_tags = needs_tags
        self.forms: list[str] = []
        self.tags: list[str] = []
        self._tag_column = tag_column
        self._empty = 0  # empty nodes since the last word
        self._range_end = 0  # the last word of the last range

    def add(self, fields: list[str], line: str) -> str | None:
        """Adds a line; returns what is wrong with it, if anything is."""
        if len(fields) != _COLUMNS:
            return f"{len(fields)} column(s); expected {_COLUMNS}, separated by tabs: {line[:80]!r}"
        if not (number := _NUMBER.fullmatch(fields[0])):
            return f"{fields[0]!r} does not number a word (1), a range of words (1-2) or an empty node (1.1)"
        first, words = int(number["first"]), len(self.forms)
        if number["last"]:
            last = int(number["last"])
            if first != words + 1 or last < first or first <= self._range_end:
                return f"the range {first}-{last}; expected one that begins at word {words + 1}, outside of others"
            self._range_end = last
        elif number["empty"]:
            self._empty += 1
            if (first, int(number["empty"])) != (words, self._empty):
                return f"the empty node {first}.{int(number['empty'])}; expected {words}.{self._empty} here"
        else:
            return self._add_word(first, fields[1], fields[_TAG_COLUMNS[self._tag_column]])
        return None

    def _add_word(self, number: int, form: str, tag: str) -> str | None:
        tag = tag.strip()
        if number != len(self.forms) + 1:
            return f"word {number} where word {len(self.forms) + 1} was expected; is an empty line missing?"
        if not form or (self._needs_tags and tag in ("", "_")):
            return f"word {number} ({form!r}) has no {self._tag_column}" if form else f"word {number} has no form"
        self.forms.append(form)
        self.tags.append(tag)
        self._empty = 0
        return None

    def fault_at_the_end(self) -> str | None:
        """What is wrong with the sentence if it ends here."""
        if not self.forms:
            return "a sentence without words"
        if self._range_end > len(self.forms):
            return f"the sentence ends at word {len(self.forms)}, but a range of words at {self._range_end}"
        return None
