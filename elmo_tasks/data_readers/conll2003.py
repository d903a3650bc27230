"""CoNLL-2003: named entities, one token per line, columns separated by whitespace, an empty line between sentences.

Source: Tjong Kim Sang and De Meulder (2003), "Introduction to the CoNLL-2003 Shared Task". The official English files
have the columns word, part of speech, chunk and entity, tags in IOB1, and a line `-DOCSTART-` before each document.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args

import datasets
import pydantic
from pydantic import Field

from elmo_tasks.data_readers.columns import read_rows
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig, label_names, require_columns
from elmo_tasks.errors import DataError
from elmo_tasks.tasks import Tagging
from elmo_tasks.text.tag_schemes import TagScheme, convert_tags, detect_scheme, find_fault, is_tag

logger = logging.getLogger(__name__)

DOCUMENT_BORDER = "-DOCSTART-"


class Conll2003Config(DatasetReaderConfig):
    """Files in the column format of CoNLL-2003, or hub data sets with tokens and tags."""

    type: Literal["conll2003"] = "conll2003"
    tag_scheme: Annotated[TagScheme, Field(description="The scheme of the tags that come out.")] = "BIOUL"
    input_scheme: Annotated[
        Literal["auto", "IOB1", "IOB2", "BIOUL"],
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
        return _examples(self._file_sentences(path), self.config)

    def hub_examples(self, rows: datasets.Dataset, source: str) -> Iterator[dict[str, Any]]:
        columns = self.config.hub_columns
        require_columns(columns, rows.column_names, source, "name the columns of tokens and tags in hub_columns")
        names = label_names(rows, columns[1], source)
        return _examples(_hub_sentences(rows, columns, names, source), self.config)

    def _file_sentences(self, path: Path) -> Iterator[_Sentence]:
        word, tag = self.config.columns
        least = max(2, *(column + 1 if column >= 0 else -column for column in (word, tag)))
        for line, rows in read_rows(path, least, borders=(DOCUMENT_BORDER,), same_in_file=True):
            if len(rows[0]) == 1:
                yield _Sentence([DOCUMENT_BORDER], ["O"], line, f"{path}:", line)
            else:
                yield _Sentence([row[word] for row in rows], [row[tag] for row in rows], line, f"{path}:", line)


class _Sentence(NamedTuple):
    """The tokens and tags of a sentence, or a document border."""

    tokens: list[str]
    tags: list[str]
    line: int  # its first line in the file, or its row in the hub data set
    source: str  # errors name a token by this text and its number
    first: int  # the number of the first token


def _hub_sentences(
    rows: datasets.Dataset, columns: Sequence[str], names: Sequence[str] | None, source: str
) -> Iterator[_Sentence]:
    """Yields the sentences of a hub data set; `names` are those of its tags if it has class ids."""
    empty = 0
    for number, row in enumerate(rows):
        for column in columns:
            if not isinstance(row[column], list):
                raise DataError(f"{source}: row {number}", f"{column!r} is {row[column]!r}; wanted a list")
        tokens, tags = (row[column] for column in columns)
        if len(tags) != len(tokens):
            raise DataError(f"{source}: row {number}", f"{len(tags)} tags for {len(tokens)} tokens")
        place = f"{source}: row {number}, token "
        for position, (token, tag) in enumerate(zip(tokens, tags, strict=True)):
            if not isinstance(token, str):
                raise DataError(f"{place}{position}", f"the token is {token!r}; wanted a string")
            if names is None and not isinstance(tag, str):
                raise DataError(f"{place}{position}", f"the tag is {tag!r}; wanted a string")
            if names is not None and (not isinstance(tag, int) or not 0 <= tag < len(names)):
                wanted = f"a class id from 0 to {len(names) - 1}"
                raise DataError(f"{place}{position}", f"the tag is {tag!r}; wanted {wanted}")
        if tokens:
            yield _Sentence(tokens, [names[tag] for tag in tags] if names else tags, number, place, 0)
        empty += not tokens
    if empty:
        logger.info("%s: %d row(s) without tokens left out", source, empty)


def _examples(sentences: Iterator[_Sentence], config: Conll2003Config) -> Iterator[dict[str, Any]]:
    """Numbers documents and sentences, checks and converts the tags."""
    scheme: TagScheme | None = None if config.input_scheme == "auto" else config.input_scheme
    hint = "" if scheme else " (the scheme of the first span; set input_scheme if it is another)"
    document = number = 0
    for tokens, tags, line, source, first in sentences:
        if tokens[0] == DOCUMENT_BORDER:
            if number > 0:  # several borders in a row enclose no document
                document, number = document + 1, 0
            continue
        if scheme is None:
            for place, tag in enumerate(tags, first):
                if not any(is_tag(tag, known) for known in get_args(TagScheme)):
                    problem = f"{tag!r} is not a tag; wanted O or a tag such as B-LOC"
                    raise DataError(f"{source}{place}", problem)
            scheme = detect_scheme(tags)
        if scheme and (fault := find_fault(tags, scheme)):
            raise DataError(f"{source}{first + fault[0]}", fault[1] + hint)
        converted = convert_tags(tags, config.tag_scheme)
        yield {"tokens": tokens, "tags": converted, "document": document, "sentence": number, "line": line}
        number += 1
