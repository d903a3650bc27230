"""How the text of a table is written: its encoding, what separates its cells, and whether they are in quotes."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elmo_tasks.errors import DataError
from elmo_tasks.files.limits import MAX_LINE_BYTES, limit
from elmo_tasks.files.paths import plain_name
from elmo_tasks.files.text import DAMAGE_ERRORS, open_binary, read_lines, wide_encoding

if TYPE_CHECKING:
    from elmo_tasks.extras.tables.delimited import DelimitedConfig

SAMPLE_ROWS = 1000  # the first ones, from which all is found out
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?')  # Excel's first line, which names the delimiter
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_CODE_PAGES = ("cp1252", "cp1250", "cp1251", "cp1254", "mac_roman")
# What Windows-1252 makes of the letters of other code pages; a few languages that it is for have some of them, too.
_NOT_WESTERN = re.compile(
    r"[ðýþÐÝÞšžŠŽŸƒ\ufffd]|[¹³](?=[a-z])|(?<=[a-zß-ÿ])[†‡‰\xa1-\xa9\xac-\xb3\xb4-\xb6\xb8-\xba\xbc-\xbf](?=[a-zß-ÿ]|\b)"
)
_BLANKS = re.compile(r' +"[^"]*" *')
_SAMPLE_BYTES = 50_000


class TableFormat(NamedTuple):
    """The encoding of a table, its delimiter, and whether cells can be in quotes."""

    encoding: str
    delimiter: str
    quotes: bool
    blanks: bool = False  # between a delimiter and a quote

    def __str__(self) -> str:
        separator = _DELIMITERS.get(self.delimiter, repr(self.delimiter))
        return f"{self.encoding.replace('cp125', 'Windows-125')}, separated by {separator}"


def find_format(path: Path, config: DelimitedConfig, names: Collection[str]) -> TableFormat:
    """The format of a table; what the config does not say is found out from the file.

    Arguments:
        names: columns that may be read, without capitals, if the table has a header row.

    Raises:
        DataError: two encodings or two delimiters are possible.
    """
    csv.field_size_limit(limit(MAX_LINE_BYTES))  # of the process; a cell may be as long as a line
    encoding, delimiter, quotes = _encoding(path, config.encoding), config.delimiter, config.quotes
    lines = [line for _, line in itertools.islice(table_lines(path, encoding, config.skip_rows), SAMPLE_ROWS)]
    if lines and (named := SEPARATOR_LINE.fullmatch(lines[0])):
        delimiter, lines = delimiter or named[1], lines[1:]
    if config.comment:
        lines = [line for line in lines if not line.startswith(config.comment)]
    delimiter = delimiter or _delimiter(lines, path, quotes, names)
    if quotes is None:  # a token may be a quote
        quotes = delimiter not in "\t " or (delimiter == "\t" and not config.by_token and _has_quotes(lines))
    cells = itertools.chain.from_iterable(_rows(lines, delimiter, True) if quotes and delimiter != "\t" else ())
    return TableFormat(encoding, delimiter, quotes, any(map(_BLANKS.fullmatch, cells)))


def table_lines(path: Path, encoding: str, skip: int) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file in an encoding, without the first ones; see `read_lines`."""
    if encoding == "UTF-8":
        yield from itertools.islice(read_lines(path), skip, None)
        return
    try:
        with open_binary(path) as stream, io.TextIOWrapper(stream, encoding) as text:
            lines = itertools.islice(enumerate(text, start=1), skip, None)
            yield from ((number, line.removesuffix("\n")) for number, line in lines)
    except UnicodeError as error:
        raise DataError(path, f"is not {encoding} ({error}); set another dataset_reader.encoding") from None


def _encoding(path: Path, given: str | None) -> str:
    """The given encoding or, without it, UTF-8 if a file has it, UTF-16 or UTF-32, or Windows-1252.

    Raises:
        DataError: another is more likely.
    """
    right, wrong, odd = 0, 0, b""  # lines that are UTF-8 or not, without those in ASCII
    with open_binary(path) as stream, contextlib.suppress(*DAMAGE_ERRORS):  # reading the rows finds the damage
        for number, line in enumerate(iter(lambda: stream.readline(limit(MAX_LINE_BYTES)), b"")):
            if number == 0 and line.startswith(b"PK\3\4"):
                raise DataError(path, "is a spreadsheet or an archive; name it as one, such as .xlsx")
            if number == 0 and (wide := wide_encoding(line)):
                return given or wide
            try:
                line.decode()
                right += not line.isascii()
            except UnicodeDecodeError:
                wrong, odd = wrong + 1, odd + line if len(odd) < _SAMPLE_BYTES else odd
    if given and right and not wrong and not given.startswith("UTF"):
        raise DataError(path, f"is UTF-8, not {given}; set --set dataset_reader.encoding=null")
    if given:
        return given
    if wrong <= right:  # damaged lines are errors of their own
        return "UTF-8"
    if not _NOT_WESTERN.search(odd.decode("cp1252", "replace")):
        return "cp1252"
    words = [word for word in odd.split() if not word.isascii()]
    telling = max(words, key=lambda word: len({word.decode(each, "replace") for each in _CODE_PAGES}))
    readings = " or ".join(f"{each} ({telling.decode(each, 'replace')!r})" for each in _CODE_PAGES)
    remedy = "Choose one: --set dataset_reader.encoding=cp1252, or another"
    raise DataError(path, f"is not UTF-8; it can be {readings}. {remedy}")


def _delimiter(lines: Sequence[str], path: Path, quotes: bool | None, names: Collection[str]) -> str:
    """The delimiter with which most rows are as wide as the first one, which has the names of columns if there are any.

    If the header row has one cell, it is one with which all rows have; otherwise the one that the file's name suggests.
    """
    readings = {each: _rows(lines, each, each != "\t" if quotes is None else quotes) for each in _DELIMITERS}
    known = {each: sum(cell.casefold() in names for cell in rows[0]) for each, rows in readings.items() if rows}
    named = [each for each, count in known.items() if count and count == max(known.values())]
    wide = {each: _share_as_wide(readings[each]) for each in named or readings}
    best = [each for each, share in wide.items() if share and share == max(wide.values())]
    if len(best) > 1 and "\t" not in best:  # which is hardly in a text
        cells = " or ".join(f"{_DELIMITERS[each]} ({', '.join(map(repr, readings[each][0]))[:200]})" for each in best)
        remedy = " or ".join(f"--set 'dataset_reader.delimiter={each}'" for each in best)
        raise DataError(path, f"can be separated by {cells}. Set {remedy}")
    if best:
        return "\t" if "\t" in best else best[0]
    usual = "," if plain_name(path).lower().endswith(".csv") else "\t"
    single = (each for each in (usual, *_DELIMITERS) if names and all(len(row) == 1 for row in readings[each]))
    return next(single, usual)


def _rows(lines: Iterable[str], delimiter: str, quotes: bool) -> list[list[str]]:
    """The rows that are not blank; the last one is empty if the lines after it are not a row."""
    rows: list[list[str]] = []
    quoting: Any = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    try:
        for row in csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, quoting=quoting, strict=True):
            rows += [row] if "".join(row).strip() else []
    except csv.Error:
        rows.append([])
    return rows


def _share_as_wide(rows: Sequence[Sequence[str]]) -> float:
    """The share of rows that have as many cells as the first one; if that has only one, a half if it is a title."""
    widths = [len(row) for row in rows]
    wide = [*itertools.dropwhile(lambda width: width < 2, widths)]
    if len(wide) == len(rows):
        return widths.count(widths[0]) / len(rows) if rows else 0.0
    return 0.5 if len(wide) > 2 and len(set(wide)) == 1 else 0.0


def _has_quotes(lines: Sequence[str]) -> bool:
    """Whether cells between tabs are in quotes, as Excel writes those that hold quotes, tabs or line ends."""
    plain, quoted = (_rows(lines, "\t", quotes) for quotes in (False, True))
    doubled = any('""' in cell[1:-1] for row in plain for cell in row if cell[:1] == cell[-1:] == '"')
    return _share_as_wide(quoted) == 1.0 and (doubled or _share_as_wide(plain) < 1.0)
