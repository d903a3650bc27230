"""CoNLL-2003: named entities, one token per line, columns separated by whitespace, an empty line between sentences.

Source: Tjong Kim Sang and De Meulder (2003), "Introduction to the CoNLL-2003 Shared Task". The official English files
have the columns word, part of speech, chunk and entity, tags in IOB1, and a line `-DOCSTART-` before each document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import datasets
import pydantic
from pydantic import Field

from elmo_tasks.data_readers.columns import read_rows
from elmo_tasks.data_readers.memory import Examples
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig, label_names, require_columns
from elmo_tasks.data_readers.records import Record, hub_records
from elmo_tasks.data_readers.row_values import read_tagged_tokens
from elmo_tasks.data_readers.tag_reading import InputScheme, TagReader
from elmo_tasks.tasks import Tagging
from elmo_tasks.text.tag_schemes import TagScheme

DOCUMENT_BORDER = "-DOCSTART-"


class Conll2003Config(DatasetReaderConfig):
    """Files in the column format of CoNLL-2003, or hub data sets with tokens and tags."""

    type: Literal["conll2003"] = "conll2003"
    tag_scheme: Annotated[
        TagScheme | None,
        Field(description="The scheme of the tags that come out; null: tags are not spans, such as parts of speech."),
    ] = "BIOUL"
    input_scheme: Annotated[
        InputScheme,
        Field(description="The scheme of the tags in the file; 'auto' finds it from the first span of the file."),
    ] = "auto"
    columns: Annotated[
        tuple[int, int],
        Field(description="The columns of the word and of the tag in a line: 0 is the first, -1 the last."),
    ] = (0, -1)
    hub_columns: Annotated[
        tuple[str, str], Field(description="The columns of the tokens and of their tags in a hub data set.")
    ] = ("tokens", "ner_tags")

    @pydantic.field_validator("columns", "hub_columns")
    @classmethod
    def _two_columns(cls, value: tuple[int, int] | tuple[str, str]) -> tuple[int, int] | tuple[str, str]:
        if value[0] == value[1]:
            raise ValueError(f"words and tags cannot both be in column {value[0]!r}")
        return value

    @property
    def task(self) -> Tagging:
        return Tagging(self.tag_scheme)

    def build(self) -> Conll2003Reader:
        return Conll2003Reader(self)


class Conll2003Reader(DatasetReader):
    """Makes examples of `Tagging`, with tags in the scheme `tag_scheme`.

    A file without document borders is one document. Rows of a hub data set without tokens are left out; the log says
    how many.

    Raises (from `read`):
        DataError: a line has too few columns, or not as many as the first; a tag is not in the scheme, or not allowed
            in its place; bytes are not UTF-8; a hub data set does not have the columns, or a row lacks tokens or tags,
            has more of one than of the other, or has one of the wrong type. File and line, or row, are named.
    """

    version: ClassVar[int] = 2

    config: Conll2003Config

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        word, tag = self.config.columns
        least = max(2, *(column + 1 if column >= 0 else -column for column in (word, tag)))
        tag_reader = TagReader(self.config.tag_scheme, self.config.input_scheme)
        document = number = 0
        for line, rows in read_rows(path, least, self.bad_units, borders=(DOCUMENT_BORDER,), same_in_file=True):
            if rows and len(rows[0]) == 1:
                if number > 0:  # several borders in a row enclose no document
                    document, number = document + 1, 0
                continue
            with self.bad_units.caught():
                if rows:
                    tags = tag_reader.convert([row[tag] for row in rows], f"{path}:", line)
                    place = {"document": document, "sentence": number, "line": line}
                    yield {"tokens": [row[word] for row in rows], "tags": tags, **place}
                    number += 1

    def hub_examples(self, rows: datasets.Dataset, source: str) -> Iterator[dict[str, Any]]:
        columns = self.config.hub_columns
        require_columns(columns, rows.column_names, source, "name the columns of tokens and tags in hub_columns")
        names = label_names(rows, columns[1], source)
        return self._row_examples(hub_records(rows, source), columns, names, source)

    def memory_examples(self, examples: Examples, name: str) -> Iterator[dict[str, Any]]:
        """See `DatasetReader`. Tags may be in any scheme, as in files; documents and sentences are numbered anew."""
        given, columns = super().memory_examples(examples, name), ("tokens", "tags")
        records = (
            Record({key: list(each[key]) for key in columns}, each["line"], f"{name}: example {each['line']}")
            for each in given
        )
        return self._row_examples(records, columns, None, name)

    def _row_examples(
        self, records: Iterable[Record], columns: tuple[str, str], names: Sequence[str] | None, source: str
    ) -> Iterator[dict[str, Any]]:
        """The examples of rows with lists of tokens and tags; `names` are those of the tags if they are class ids."""
        tag_reader = TagReader(self.config.tag_scheme, self.config.input_scheme)
        document = number = 0
        for record in records:
            with self.bad_units.caught():
                tokens, given = read_tagged_tokens(record, *columns, names)
                if tokens[:1] == [DOCUMENT_BORDER]:
                    if number > 0:
                        document, number = document + 1, 0
                elif tokens:
                    tags = tag_reader.convert(given, *record.token_place)
                    place = {"document": document, "sentence": number, "line": record.number}
                    yield {"tokens": tokens, "tags": tags, **place}
                    number += 1
                else:
                    self.left_out["row(s) without tokens"] += 1
