"""The columns of CoNLL-2012 as such, for every task that is annotated in them.

Source: Pradhan et al. (2012), "CoNLL-2012 Shared Task: Modeling Multilingual Unrestricted Coreference in OntoNotes". A
document lies between `#begin document (NAME); part NNN` and `#end document`, one token a line, an empty line after each
sentence. Columns are separated by whitespace:

| column | what |
|---|---|
| 1, 2, 3 | the document's name, its part, the token's place in the sentence: not kept for each token |
| 4, 5, 6 | word, part of speech, piece of the bracketed parse |
| 7, 8, 9 | lemma, frameset and word sense, `-` where there is none; a token with a frameset is a predicate |
| 10 | speaker or author, `-` where none is known |
| 11 | named entities, as bracketed spans |
| 12 to the last but one | one for each predicate, in their order: its semantic roles, as bracketed spans |
| last | coreference: clusters' numbers in brackets, `|` between several, `-` where none begins or ends |
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from elmo_tasks.data_readers.columns import split_columns
from elmo_tasks.errors import DataError
from elmo_tasks.files import plain_name, read_lines
from elmo_tasks.text.tag_schemes import Span

logger = logging.getLogger(__name__)

_FIXED_COLUMNS = 12  # all but those of the roles
_BEGIN = "#begin document"
_END = "#end document"
_HEADER = re.compile(r"#begin document \((?P<name>.*)\)(?:; part (?P<part>\d+))?;?\s*")
_WANTED_HEADER = f"'{_BEGIN} (NAME); part NNN'"
_SPAN_CELL = re.compile(r"(?:\((?P<label>[^()*]+))?\*(?P<close>\))?")


@dataclasses.dataclass(frozen=True)
class Conll2012Sentence:
    """A sentence, column by column: every column has one cell for each token, as written.

    Attributes:
        first_line: the line of the first token in the file; the others follow without a gap.
        roles: one column for each predicate, (predicates, tokens).
        coreference: the last column; `coreference[i]` may open and close several clusters.
    """

    first_line: int
    words: tuple[str, ...]
    parts_of_speech: tuple[str, ...]
    parse: tuple[str, ...]
    lemmas: tuple[str, ...]
    framesets: tuple[str, ...]
    senses: tuple[str, ...]
    speakers: tuple[str, ...]
    named_entities: tuple[str, ...]
    roles: tuple[tuple[str, ...], ...]
    coreference: tuple[str, ...]

    @property
    def predicates(self) -> tuple[int, ...]:
        """The places of the predicates: of the tokens that have a frameset.

        A lemma alone makes no predicate: OntoNotes gives one to every token with a word sense.
        """
        return tuple(place for place, frameset in enumerate(self.framesets) if frameset != "-")


@dataclasses.dataclass(frozen=True)
class Conll2012Document:
    """One part of a document.

    Attributes:
        path: the file that it stands in, for messages.
        name: for example `bc/cctv/00/cctv_0000`; in OntoNotes the genre stands before the first slash.
        part: the part's number, from 0.
        sentences: in their order; a document may be empty.
    """

    path: Path
    name: str
    part: int
    sentences: tuple[Conll2012Sentence, ...]


class ColumnError(Exception):
    """A cell that is wrong in its column.

    Arguments:
        position: the place of the cell's token in the sentence.
        problem: what came and what was wanted.
    """

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(problem)
        self.position = position
        self.problem = problem


def conll2012_files(path: Path) -> list[Path]:
    """The files that a path stands for: a file itself; of a folder, all below it, in the order of their names.

    In a folder, names end in `_conll` or `.conll`, before the ending of a compressed file. Official folders hold each
    document twice, annotated by hand (`*gold_conll`) and by machine: then those by hand alone are meant.

    Raises:
        DataError: there is neither such a file nor such a folder, or the folder holds no file of that name.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(path, "no such file or folder")
    named = [file for file in path.rglob("*") if plain_name(file).endswith(("_conll", ".conll")) and file.is_file()]
    if not named:
        raise DataError(path, "the folder holds no file with a name in _conll or .conll, compressed or not")
    gold = [file for file in named if plain_name(file).endswith("gold_conll")]
    if gold and len(gold) < len(named):
        logger.info("%s: %d of %d files are read, those named *gold_conll", path, len(gold), len(named))
    return sorted(gold or named, key=lambda file: file.relative_to(path).parts)


def read_conll2012(path: Path) -> Iterator[Conll2012Document]:
    """Parses the documents of a file, compressed or not, or of all files of a folder (see `conll2012_files`).

    Raises:
        DataError: a line with too few columns, or not with as many as the first of its sentence; a token outside of a
            document; a document that is opened wrongly or never closed. File and line are named.
    """
    for file in conll2012_files(path):
        yield from _read_file(file)


def bracketed_spans(cells: Sequence[str]) -> list[Span]:
    """The labelled spans of a column of roles or named entities: `(ARG0*` opens one, `*)` closes it, `(V*)` does both.

    Raises:
        ColumnError: a cell is of another form, a span opens inside another, or brackets are not balanced.
    """
    spans = []
    label: str | None = None
    start = 0
    for position, cell in enumerate(cells):
        if cell == "*":  # most are, and each column is as long as its sentence
            continue
        match = _SPAN_CELL.fullmatch(cell)
        if match is None:
            raise ColumnError(position, f"{cell!r} in a column of spans; wanted *, (LABEL*, *) or (LABEL*)")
        if match["label"] is not None:
            if label is not None:
                raise ColumnError(position, f"{cell!r} opens a span inside the span ({label}* of token {start}")
            label, start = match["label"], position
        if match["close"] is not None:
            if label is None:
                raise ColumnError(position, f"{cell!r} closes a span, but none is open")
            spans.append(Span(label, start, position))
            label = None
    if label is not None:
        raise ColumnError(start, f"the span ({label}* is never closed in its sentence")
    return spans


class _Header(NamedTuple):
    """The line that opens a document."""

    line: int
    name: str
    part: int


def _read_file(path: Path) -> Iterator[Conll2012Document]:
    header: _Header | None = None
    sentences: list[Conll2012Sentence] = []
    rows: list[list[str]] = []
    for number, line in read_lines(path):
        fields = [] if line.startswith((_BEGIN, _END)) else split_columns(line)
        if fields:
            if header is None:
                raise DataError(
                    path, f"a token outside of a document; wanted '{_BEGIN} (NAME); part NNN' first", number
                )
            wanted = (len(rows[0]), number - len(rows)) if rows else None
            rows.append(_checked(fields, wanted, path, number))
            continue
        if rows:
            sentences.append(_sentence(rows, number - len(rows)))
            rows = []
        if line.startswith(_BEGIN):
            if header is not None:
                raise DataError(path, f"a document begins inside the one of line {header.line}", number)
            header = _read_header(line, path, number)
        elif line.startswith(_END):
            if header is None:
                raise DataError(path, "a document ends where none is open", number)
            yield Conll2012Document(path, header.name, header.part, tuple(sentences))
            header, sentences = None, []
    if header is not None:
        raise DataError(path, f"the document {header.name!r} is never closed; wanted {_END!r}", header.line)


def _read_header(line: str, path: Path, number: int) -> _Header:
    match = _HEADER.fullmatch(line)
    if match is None:
        raise DataError(path, f"{line[:80]!r}; wanted {_WANTED_HEADER}", number)
    return _Header(number, match["name"], int(match["part"] or 0))


def _checked(fields: list[str], wanted: tuple[int, int] | None, path: Path, number: int) -> list[str]:
    """The fields of a token, if they are as many as wanted: (their number, the line that says so)."""
    if len(fields) < _FIXED_COLUMNS:
        raise DataError(path, f"{len(fields)} column(s); wanted at least {_FIXED_COLUMNS}", number)
    if wanted is not None and len(fields) != wanted[0]:
        raise DataError(path, f"{len(fields)} columns; wanted {wanted[0]} as in line {wanted[1]}", number)
    return fields


def _sentence(rows: list[list[str]], first_line: int) -> Conll2012Sentence:
    columns = list(zip(*rows, strict=True))
    words, parts_of_speech, parse, lemmas, framesets, senses, speakers, named_entities = columns[3:11]
    return Conll2012Sentence(
        first_line=first_line,
        words=words,
        parts_of_speech=parts_of_speech,
        parse=parse,
        lemmas=lemmas,
        framesets=framesets,
        senses=senses,
        speakers=speakers,
        named_entities=named_entities,
        roles=tuple(columns[11:-1]),
        coreference=columns[-1],
    )
