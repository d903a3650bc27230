"""CoNLL-2003: named entities, one token per line, columns separated by tabs or spaces, an empty line between sentences.

Source: Tjong Kim Sang and De Meulder (2003), "Introduction to the CoNLL-2003 Shared Task". The official English files
have the columns word, part of speech, chunk and entity, tags in IOB1, and a line `-DOCSTART-` before each document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field

from elmo_tasks.data_readers.columns import DOCUMENT_BORDER, DocumentNumbers, InputScheme, TagReader, clean, read_rows
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig, Predicted
from elmo_tasks.data_readers.records import Record, hub_records, read_tagged_tokens, require_columns
from elmo_tasks.data_readers.sources import DataSet, Examples, Parsing, class_names
from elmo_tasks.files.text import read_lines
from elmo_tasks.tasks import Tagging
from elmo_tasks.text.tag_schemes import TagScheme


class Conll2003Config(DatasetReaderConfig):
    """Files in the column format of CoNLL-2003, or hub data sets with tokens and tags."""

    type: Literal["conll2003"] = "conll2003"
    tag_scheme: TagScheme | None = Field(
        "BIOUL", description="The scheme of the examples' tags; null: tags are not spans, such as parts of speech."
    )
    input_scheme: InputScheme = Field(
        "auto", description="The scheme of the tags in the file; 'auto' finds it from the first span of the file."
    )
    columns: tuple[int, int] = Field(
        (0, -1), description="The columns of the word and of the tag in a line: 0 is the first, -1 the last."
    )
    comment: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="What lines begin with that belong to no sentence, such as '#'."
    )
    hub_columns: tuple[str, str] = Field(
        ("tokens", "ner_tags"), description="The columns of the tokens and of their tags in a hub data set."
    )

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


def _is_border(text: str) -> bool:
    """Whether a line, or its first cell, is a border of documents."""
    return text.split()[:1] == [DOCUMENT_BORDER]


class Conll2003Reader(DatasetReader):
    """Makes examples of `Tagging`, with tags in the scheme `tag_scheme`.

    A file without document borders is one document. Rows of a hub data set without tokens are left out.

    What does not follow the format:

    - a line with too few columns, not as many as the first, or without a word or a tag;
    - a row of a hub data set without tokens or tags, or not with as many of both;
    - a tag that is not of the scheme, or not allowed where it is.
    """

    config: Conll2003Config

    def examples(self, path: Path, parsing: Parsing) -> Iterator[dict[str, Any]]:
        word, tag = self.config.columns if parsing.needs_labels else (self.config.columns[0],) * 2
        fewest = 2 if parsing.needs_labels else 1
        least = max(fewest, *(column + 1 if column >= 0 else -column for column in (word, tag)))
        tag_reader = TagReader(self.config.tag_scheme, self.config.input_scheme)
        numbers, comment = DocumentNumbers(), self.config.comment
        sentences = read_rows(
            path,
            least,
            parsing,
            borders=(DOCUMENT_BORDER,),
            same_in_file=True,
            needed=(word, tag),
            comment=comment,
        )
        for line, rows in sentences:
            if rows and (_is_border(rows[0][0]) or rows[0][word] == DOCUMENT_BORDER):
                numbers.border()
                continue
            location = (f"{path}:{line}, token ", 0) if comment else (f"{path}:", line)  # comments have lines too
            with parsing.caught():
                if rows:
                    tags = [clean(row[tag]) for row in rows] if parsing.needs_labels else []
                    tags = tag_reader.convert(tags, *location)
                    yield {"tokens": [row[word] for row in rows], "tags": tags, **numbers.sentence(), "line": line}

    def with_predictions(self, path: Path, predicted: Predicted) -> Iterator[str]:
        """See `DatasetReader`: tokens have one more column, the last."""
        for number, line in read_lines(path, columns=True):
            text = line.rstrip()
            is_comment = self.config.comment is not None and text.startswith(self.config.comment)
            if text and not is_comment and not _is_border(text):
                text += ("\t" if "\t" in text else " ") + predicted(number)
            yield text

    def hub_examples(self, rows: DataSet, source: str, parsing: Parsing) -> Iterator[dict[str, Any]]:
        tokens, tags = self.config.hub_columns[0], self.config.hub_columns[1] if parsing.needs_labels else None
        needed = [tokens, tags] if tags else [tokens]
        require_columns(needed, rows.column_names, source, "name the columns of tokens and tags in hub_columns")
        names = class_names(rows.features[tags]) if tags else None
        return self._row_examples(hub_records(rows, source), (tokens, tags), names, parsing)

    def memory_examples(self, examples: Examples, name: str, parsing: Parsing) -> Iterator[dict[str, Any]]:
        """See `DatasetReader`. Tags may be in any scheme, as in files; documents and sentences are numbered anew."""
        given, columns = super().memory_examples(examples, name, parsing), ("tokens", "tags")
        records = (
            Record({key: list(each[key]) for key in columns}, each["line"], f"{name}: example {each['line']}")
            for each in given
        )
        return self._row_examples(records, columns, None, parsing)

    def _row_examples(
        self,
        records: Iterable[Record],
        columns: tuple[str, str | None],
        names: Sequence[str] | None,
        parsing: Parsing,
    ) -> Iterator[dict[str, Any]]:
        """The examples of rows with lists of tokens and tags; `names` are those of the tags if they are class ids.

        The column of the tags is None for rows to predict.
        """
        tag_reader = TagReader(self.config.tag_scheme, self.config.input_scheme)
        numbers = DocumentNumbers()
        for record in records:
            with parsing.caught():
                tokens, given = read_tagged_tokens(record, *columns, names)
                if tokens[:1] == [DOCUMENT_BORDER]:
                    numbers.border()
                elif tokens:
                    tags = tag_reader.convert(given, *record.token_location)
                    yield {"tokens": tokens, "tags": tags, **numbers.sentence(), "line": record.number}
                else:
                    parsing.left_out["row(s) without tokens"] += 1
