"""CoNLL-U: the words of a treebank with their parts of speech.

Source: the format of Universal Dependencies, version 2 (universaldependencies.org/format.html). Ten columns separated
by single tabs, one word per line, an empty line after each sentence; `#` begins a comment before a sentence. Tokens are
the syntactic words, as only they have tags. A line with a range of numbers (`1-2`), the surface form of several words,
is left out, and so is an empty node (`8.1`), which is not in the text.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from elmo_tasks.data_readers.columns import DocumentNumbers
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig, Predicted
from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.errors import DataError
from elmo_tasks.files.text import BYTE_ORDER_MARK, read_lines
from elmo_tasks.tasks import Tagging, Task

_COLUMNS = 10
_TAG_COLUMNS = {"upos": 3, "xpos": 4}
_NUMBER = re.compile(r"[0-9]{1,9}(?P<other>[-.][0-9]{1,9})?")
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

    What does not follow the format:

    - a line without exactly ten columns, or a comment inside a sentence;
    - words that are not numbered 1, 2, 3 and so on, or a word without a tag.
    """

    config: ConlluConfig

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        numbers = DocumentNumbers()
        with contextlib.closing(read_lines(path)) as lines:
            for is_empty, group in itertools.groupby(lines, key=lambda line: not line[1].strip()):
                if is_empty:
                    continue
                numbered = list(group)
                if any(line[0] == "#" and _NEW_DOCUMENT.match(line) for _, line in numbered):
                    numbers.border()
                with parsing.caught():
                    forms, tags, first_line = self._parse(numbered, path, parsing.needs_labels)
                    if first_line:
                        yield {"tokens": forms, "tags": tags, **numbers.sentence(), "line": first_line}

    def with_predictions(self, path: Path, predicted: Predicted) -> Iterator[str]:
        """See `DatasetReader`: predictions take the place of the tags."""
        column = _TAG_COLUMNS[self.config.tag_column]
        for number, line in read_lines(path):
            cells = line.split("\t")
            if cells[0].isdecimal():
                cells[column : column + 1] = [predicted(number)]
            yield "\t".join(cells)

    def _parse(self, lines: list[tuple[int, str]], path: Path, needs_tags: bool) -> tuple[list[str], list[str], int]:
        """The forms and the tags of numbered lines, and the first line of the sentence; 0 without words."""
        forms, tags, first_line = list[str](), list[str](), 0
        for number, line in lines:
            if line.startswith("#"):
                if first_line:
                    raise DataError(path, "a comment inside a sentence; expected an empty line before it", number)
                continue
            first_line = first_line or number
            if word := self._word(line, len(forms) + 1, path, number, needs_tags):
                forms.append(word[0])
                tags.append(word[1])
        if first_line and not forms:
            raise DataError(path, "a sentence without words", lines[-1][0])
        return forms, tags, first_line

    def _word(self, line: str, expected: int, path: Path, number: int, needs_tag: bool) -> tuple[str, str] | None:
        """The form and the tag of a line; None for a range of words and for an empty node."""
        fields = (line if line.isascii() else line.replace(BYTE_ORDER_MARK, "")).split("\t")
        problem = None
        if len(fields) != _COLUMNS:
            problem = f"{len(fields)} column(s); expected {_COLUMNS}, separated by tabs: {line[:80]!r}"
        elif not (match := _NUMBER.fullmatch(fields[0])):
            problem = f"{fields[0]!r} does not number a word (1), a range of words (1-2) or an empty node (1.1)"
        elif match["other"]:
            return None
        elif int(fields[0]) != expected:
            problem = f"word {int(fields[0])} where word {expected} was expected; is an empty line missing?"
        elif not fields[1]:
            problem = f"word {expected} has no form"
        elif (tag := fields[_TAG_COLUMNS[self.config.tag_column]].strip()) in ("", "_") and needs_tag:
            problem = f"word {expected} ({fields[1]!r}) has no {self.config.tag_column}"
        if problem:
            raise DataError(path, problem, number)
        return fields[1], tag
