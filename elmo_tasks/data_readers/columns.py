"""Files of one token per line, with columns separated by tabs or by spaces, and an empty line after each sentence.

Their tags are checked, and those of spans are converted to another scheme.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from elmo_tasks.data_readers.sources import Parsing
from elmo_tasks.errors import DataError
from elmo_tasks.files.text import BYTE_ORDER_MARK, read_lines
from elmo_tasks.text.tag_schemes import TagScheme, convert_tags, detect_scheme, find_fault, is_tag

DOCUMENT_BORDER = "-DOCSTART-"
InputScheme = Literal["auto", "IOB1", "IOB2", "BIOUL", "BIOES", "BMES"]
Line: TypeAlias = tuple[int, str, list[str]]
"""A line of a table: its number, its text as messages show it, and its cells."""


class DocumentNumbers:
    """Numbers the documents of a source, and the sentences of each document, both from 0."""

    def __init__(self) -> None:
        self._document = self._sentence = 0

    def border(self) -> None:
        """Begins a document. Several borders in a row enclose no document."""
        if self._sentence > 0:
            self._document, self._sentence = self._document + 1, 0

    def sentence(self) -> dict[str, int]:
        """The columns `document` and `sentence` of the next example."""
        self._sentence += 1
        return {"document": self._document, "sentence": self._sentence - 1}


@dataclasses.dataclass
class LineWidths:
    """Checks that lines have the same number of cells.

    Arguments:
        path: the file, for errors.
        least: the lowest number of cells.
        parsing: gets the error of a sentence with a wrong line.
        needed: the indices of cells that must not be empty.
        same_in_file: all lines have as many cells as the first sentence that is right; otherwise, those of a sentence.
        known: the line that shows the number of cells, such as a header row.
    """

    path: Path
    least: int
    parsing: Parsing
    needed: Sequence[int] = ()
    same_in_file: bool = True
    known: Line | None = None

    def check(self, sentence: list[Line]) -> list[Line]:
        """The lines of a sentence; none if it is wrong and skipped.

        Raises:
            DataError: a line has too few cells, not as many as the others, or an empty one that is needed. The
                line is named.
        """
        with self.parsing.caught():
            like = self.known or sentence[0]
            width = len(like[2])
            for number, text, cells in sentence:
                if len(cells) != width or width < self.least:
                    expected = f"at least {self.least}" if width < self.least else f"{width} as in line {like[0]}"
                    problem = f"{len(cells)} column(s); expected {expected}: {text[:80]!r}"
                    raise DataError(self.path, problem, number)
                for index in self.needed if "" in cells else ():
                    if not cells[index]:
                        problem = f"column {index} is empty; expected a word or a tag there: {text[:80]!r}"
                        raise DataError(self.path, problem, number)
            self.known = like if self.same_in_file else None
            return sentence
        return []


def read_rows(
    path: Path,
    least: int,
    parsing: Parsing,
    *,
    borders: tuple[str, ...] = (),
    same_in_file: bool = False,
    filler: str | None = None,
    needed: Sequence[int] = (),
    comment: str | None = None,
) -> Iterator[tuple[int, list[list[str]]]]:
    """Yields (number of the first line, columns of each line) of each sentence.

    A line with a tab, apart from white space at its end, is split at each tab: cells can be empty and can contain
    spaces, but spaces around them are left out. Other lines are split at spaces.

    Arguments:
        path: the file, compressed or not.
        least, parsing, same_in_file, needed: see `LineWidths`. A wrong sentence that is skipped comes without rows.
        borders: first words of the lines between documents. Such a line ends a sentence, and comes as the only row,
            `[[line]]`.
        filler: a cell without a value. A tab that ends a line after it stands before an empty last column; other tabs
            at the end of a line mean nothing.
        comment: what the lines begin with that belong to no sentence.

    Raises:
        DataError: a line has too few columns, or another fault that `LineWidths.check` names with its file and line.
    """
    widths = LineWidths(path, least, parsing, needed=needed, same_in_file=same_in_file)
    for sentence in _sentences(path, borders, filler, comment):
        number, text, cells = sentence[0]
        if not cells:
            yield number, [[text]]
        else:
            yield number, [cells for _, _, cells in widths.check(sentence)]


def _sentences(path: Path, borders: tuple[str, ...], filler: str | None, comment: str | None) -> Iterator[list[Line]]:
    """Yields the lines of each sentence. A border is a sentence of its own, without cells."""
    sentence: list[Line] = []
    for number, line in read_lines(path, columns=True):
        text = line.rstrip()
        if comment and text.startswith(comment):
            continue
        cells = _cells(text) if text else []
        if cells and cells[-1] == filler and line.endswith("\t"):
            cells.append("")
        is_border = cells and cells[0].startswith(borders) and cells[0].split()[0] in borders
        if sentence and (is_border or not cells):
            yield sentence
            sentence = []
        if is_border:
            yield [(number, line, [])]
        elif cells:
            sentence.append((number, line, cells))
    if sentence:
        yield sentence


def _cells(text: str) -> list[str]:
    if "\t" in text:
        return [cell.strip(" ") for cell in text.split("\t")]
    return [cell for cell in text.split(" ") if cell]  # not at every white space: a token may contain a no-break space


def clean(label: str) -> str:
    """A label or a tag without the white space around it and without byte order marks."""
    return (label if label.isascii() else label.replace(BYTE_ORDER_MARK, "")).strip()


class TagReader:
    """Reads the tags of one source, sentence by sentence.

    Arguments:
        scheme: the scheme of the results; None if tags are not spans, then they are returned as they are.
        input_scheme: the scheme of the source; 'auto' finds it from the first span that shows it.
    """

    def __init__(self, scheme: TagScheme | None, input_scheme: InputScheme) -> None:
        self._scheme = scheme
        self._input: TagScheme | None = None if input_scheme == "auto" else input_scheme
        hint = " (the scheme of the first span; set input_scheme if it is another)"
        self._hint = "" if self._input else hint

    def convert(self, tags: Sequence[str], location: str, first: int) -> list[str]:
        """The tags of a sentence in the scheme of the results.

        Arguments:
            location, first: errors name a tag by `location` and its number, counted from `first`, such as its line.

        Raises:
            DataError: something is not a tag, or not allowed where it is.
        """
        if "" in tags:
            raise DataError(f"{location}{first + tags.index('')}", "the tag is empty; expected one for each token")
        if self._scheme is None:
            return list(tags)
        scheme = self._input
        if scheme is None:
            for number, tag in enumerate(tags, first):
                if not any(is_tag(tag, known) for known in get_args(TagScheme)):
                    raise DataError(f"{location}{number}", f"{tag!r} is not a tag; expected O or a tag such as B-LOC")
            detected = detect_scheme(tags)
            scheme = detected or "BIOES"  # without a longer span it has the same tags as BMES
        if fault := find_fault(tags, scheme):
            raise DataError(f"{location}{first + fault[0]}", fault[1] + self._hint)
        self._input = self._input or detected
        return convert_tags(tags, self._scheme)
