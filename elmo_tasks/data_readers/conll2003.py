"""CoNLL-2003: named entities, one token a line, its columns separated by whitespace, an empty line between sentences.

Source: Tjong Kim Sang and De Meulder (2003), "Introduction to the CoNLL-2003 Shared Task". The official English files
have the columns word, part of speech, chunk and entity, tags in IOB1, and a line `-DOCSTART-` before each document.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

import datasets
import pydantic
from pydantic import Field

from elmo_tasks.data_readers.columns import split_columns
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files import read_lines
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
        Field(description="The scheme of the tags in the file; 'auto' tells it by the first span of the file."),
    ] = "auto"
    columns: Annotated[
        tuple[int, int],
        Field(description="Where the word and the tag stand in a line: 0 is the first column, -1 the last."),
    ] = (0, -1)
    hub_columns: Annotated[
        tuple[str, str], Field(description="The columns of the tokens and of their tags in a hub data set.")
    ] = ("tokens", "ner_tags")

    @pydantic.field_validator("columns", "hub_columns")
    @classmethod
    def _two_columns(cls, value: tuple[int, int] | tuple[str, str]) -> tuple[int, int] | tuple[str, str]:
        if value[0] == value[1]:
            raise ValueError(f"words and tags cannot both stand in column {value[0]!r}")
        return value

    @property
    def task(self) -> Tagging:
        return Tagging(self.tag_scheme)

    def build(self) -> Conll2003Reader:
        return Conll2003Reader(self)


class Conll2003Reader(DatasetReader):
    """Makes examples of `Tagging`, with tags in the scheme `tag_scheme`.

    A file without document borders is one document. Rows of a hub data set that have no token are left out; how many is
    logged.

    Raises (from `read`):
        DataError: a line with too few columns or with another number of columns than the first; a tag that the scheme
            does not know or does not allow in its place; bytes that are not UTF-8. File and line are named.
        ElmoTasksError: a hub data set without the columns, or with a row that lacks tokens or tags, has not as many of
            each, a token that is no string or a wrong tag; the row is named.
    """

    version: ClassVar[int] = 2

    config: Conll2003Config

    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        sentences = _Sentences(self.config)
        for tokens, tags, first_line in _read_columns(path, self.config.columns):
            try:
                for example in sentences.add(tokens, tags):
                    yield {**example, "line": first_line}
            except _TokenError as error:
                raise DataError(path, error.problem, first_line + error.position) from None

    def hub_examples(self, rows: datasets.Dataset, source: str) -> Iterator[dict[str, Any]]:
        tokens_column, tags_column = self.config.hub_columns
        if missing := {tokens_column, tags_column} - set(rows.column_names):
            raise ElmoTasksError(
                f"{source}: no column {', '.join(map(repr, sorted(missing)))} among {', '.join(rows.column_names)}; "
                "name the columns of tokens and tags in hub_columns"
            )
        names = _class_names(rows.features[tags_column], f"{source}: column {tags_column!r}")
        sentences = _Sentences(self.config)
        empty = 0
        for number, row in enumerate(rows):
            place = f"{source}: row {number}"
            try:
                tokens, tags = _hub_sentence(row, self.config.hub_columns, names, place)
                for example in sentences.add(tokens, tags) if tokens else ():
                    yield {**example, "line": number}
                empty += not tokens
            except _TokenError as error:
                raise ElmoTasksError(f"{place}, token {error.position}: {error.problem}") from None
        if empty:
            logger.info("%s: %d row(s) without tokens left out", source, empty)


class _TokenError(Exception):
    """A token or a tag that is wrong at a position of its sentence."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(problem)
        self.position = position
        self.problem = problem


class _Sentences:
    """Makes examples of one source's sentences, in their order: checks and converts tags, numbers sentences."""

    def __init__(self, config: Conll2003Config) -> None:
        self._output_scheme = config.tag_scheme
        self._input_scheme: TagScheme | None = None if config.input_scheme == "auto" else config.input_scheme
        self._told = "" if self._input_scheme else " (told by the first span; set input_scheme if it is another)"
        self._document = 0
        self._sentence = 0

    def add(self, tokens: Sequence[str], tags: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yields the sentence as an example; nothing for a document's border."""
        if tokens[:1] == [DOCUMENT_BORDER]:
            if self._sentence > 0:  # borders in a row enclose no document
                self._document += 1
                self._sentence = 0
            return
        yield {
            "tokens": tokens,
            "tags": self._convert(tags),
            "document": self._document,
            "sentence": self._sentence,
        }
        self._sentence += 1

    def _convert(self, tags: Sequence[str]) -> list[str]:
        if self._input_scheme is None:
            for position, tag in enumerate(tags):
                if not any(is_tag(tag, scheme) for scheme in get_args(TagScheme)):
                    raise _TokenError(position, f"{tag!r} is no tag; wanted O or a tag such as B-LOC")
            self._input_scheme = detect_scheme(tags)
        fault = find_fault(tags, self._input_scheme) if self._input_scheme else None
        if fault is not None:
            raise _TokenError(fault[0], fault[1] + self._told)
        return convert_tags(tags, self._output_scheme)


def _read_columns(path: Path, columns: tuple[int, int]) -> Iterator[tuple[list[str], list[str], int]]:
    """Yields (words, tags, number of the first line) of each sentence; a document's border counts as one."""
    wanted = max(2, *(column + 1 if column >= 0 else -column for column in columns))
    given_at = 0  # the line whose number of columns all others must have
    words: list[str] = []
    tags: list[str] = []
    number = 0
    for number, line in read_lines(path):
        fields = split_columns(line) if line.strip() else []
        is_border = fields[:1] == [DOCUMENT_BORDER]
        if (not fields or is_border) and words:
            yield words, tags, number - len(words)
            words, tags = [], []
        if is_border:
            yield [DOCUMENT_BORDER], ["O"], number
        elif fields:
            if len(fields) < wanted or (given_at and len(fields) != wanted):
                expected = f"{wanted} as in line {given_at}" if given_at else f"at least {wanted}"
                raise DataError(path, f"{len(fields)} column(s); wanted {expected}: {line[:80]!r}", number)
            wanted, given_at = len(fields), given_at or number
            words.append(fields[columns[0]])
            tags.append(fields[columns[1]])
    if words:
        yield words, tags, number + 1 - len(words)


def _hub_sentence(
    row: Mapping[str, Any], columns: tuple[str, str], names: Sequence[str] | None, place: str
) -> tuple[list[str], list[str]]:
    """The tokens of a hub data set's row and their tags, by their names where the row has class ids."""
    for column in columns:
        if not isinstance(row[column], list):
            raise ElmoTasksError(f"{place}: {column!r} is {row[column]!r}; wanted a list")
    tokens, tags = (row[column] for column in columns)
    if len(tags) != len(tokens):
        raise ElmoTasksError(f"{place}: {len(tags)} tags for {len(tokens)} tokens")
    for position, (token, tag) in enumerate(zip(tokens, tags, strict=True)):
        if not isinstance(token, str):
            raise _TokenError(position, f"the token is {token!r}; wanted a string")
        if names is None and not isinstance(tag, str):
            raise _TokenError(position, f"the tag is {tag!r}; wanted a string")
        if names is not None and (not isinstance(tag, int) or not 0 <= tag < len(names)):
            raise _TokenError(position, f"the tag is {tag!r}; wanted a class id from 0 to {len(names) - 1}")
    return tokens, tags if names is None else [names[tag] for tag in tags]


def _class_names(feature: Any, place: str) -> list[str] | None:
    """The names of a column's class ids; None where the column holds the tags' names themselves."""
    inner = getattr(feature, "feature", None)
    if isinstance(inner, datasets.ClassLabel):
        return list(inner.names)
    if getattr(inner, "dtype", None) in ("string", "large_string"):
        return None
    raise ElmoTasksError(f"{place}: {feature}; wanted a list of tags, as strings or as class ids with names")
