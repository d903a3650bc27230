"""Which columns of a table have its texts and its labels, where nobody says it; and how its numbers are written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import get_args

from elmo_tasks.data_readers.records import THOUSANDS, Decimal, plain_number
from elmo_tasks.errors import DataError

_TRUTHS = [{"true", "false"}, {"0", "1"}, {"yes", "no"}]
_LABELS = ("label", "labels", "score")
_JSON = ("{", "[")
_FEW_VALUES, _MOST_VALUES = 5, 0.8  # of labels: in a table of a few rows, and for each row
_NUMBER = re.compile(r"\W{0,2}\d[\d.,' \xa0\u202f]*(e[-+]?\d+)?\s*(\W|[A-Z]{3})?", re.IGNORECASE)  # also 25 % or EUR
_DATE = re.compile(r"\d{1,4}([-./])\d{1,2}\1\d{1,4}(\D.*)?|\d{1,2}:\d\d.*|\d{1,2}\W{1,2}[^\W\d]{3,9}\W{1,2}\d{2,4}")
_LONG_ID = re.compile(r"\d{6,}|[\da-f]{8,}(-[\da-f]+)*", re.IGNORECASE)
_EXAMPLE = 40  # characters
_WITH_COMMA = re.compile(r"\s*[-+]?[\d.]*,\d+(e[-+]?\d+)?\s*", re.IGNORECASE)
_WITH_POINT = re.compile(r"\s*[-+]?\d*\.\d+\s*")


def find_columns(
    chosen: Mapping[str, str | int],
    given: Mapping[str, str | int],
    trained: Mapping[str, str],
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    location: str,
) -> dict[str, str | int]:
    """The columns of a table with a header row, by what they hold.

    A column that nobody names has its name in the training data, or its usual name, in any case; otherwise it is the
    only one that can be it: a text has several words in many cells, the values of a label come again, and scores are
    numbers.

    Arguments:
        chosen: the columns of what is read, by their usual names if nobody names them.
        given: the columns that somebody names.
        trained: those of the training data.
        rows: the first rows of the table.
        location: that of the header row, for errors.

    Raises:
        DataError: several columns are possible, or none.
    """
    folded = [name.strip().casefold() for name in names]
    by_name = {each: name for each, name in zip(folded, names, strict=True) if folded.count(each) == 1}
    by_name |= {name: name for name in names}
    usual = {what: by_name.get(trained.get(what, what), by_name.get(what, "")) for what in chosen}
    found = {what: column if what in given else usual[what] for what, column in chosen.items()}
    if not (missing := [what for what, column in found.items() if column == ""]):
        return found
    free = [at for at, name in enumerate(names) if name and name not in found.values() and at not in found.values()]
    cells = {at: [str(row[at]) for row in rows if len(row) == len(names)] for at in free}
    possible = {
        what: sorted((at for at in free if _can_be(what, cells[at])), key=lambda at: len(set(cells[at])))
        for what in missing
    }
    if any(len(columns) != 1 for columns in possible.values()):
        raise DataError(location, _choice(missing, possible, names, cells))
    header = [names[at] for what in missing if what in _LABELS for at in possible[what] if names[at] in cells[at]]
    if header:
        columns = " ".join(f"--set dataset_reader.columns.{what}={at}" for what, (at,) in possible.items())
        problem = f"{header[0]!r} is the name of a column here and a label in other rows; if this is not a header row"
        raise DataError(location, f"{problem}: --set dataset_reader.header=false {columns}")
    return found | {what: names[at] if names.count(names[at]) == 1 else at for what, (at,) in possible.items()}


def check_header(
    names: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]], wanted: Sequence[Collection[str]], location: str
) -> None:
    """Raises a `DataError` if the header row seems to be below what has been taken for it, such as a title.

    Arguments:
        rows: numbered rows below it.
        wanted: the possible names of each column that is read, without capitals.
    """
    given, width = {name.strip().casefold() for name in names}, max((len(cells) for _, cells in rows), default=0)
    is_title = 2 * len(list(filter(None, names))) <= width
    if any(map(given.intersection, wanted)) or (names and names[0].startswith(_JSON)):
        return
    for number, cells in rows:
        below = {str(cell).strip().casefold() for cell in cells}
        if (wanted and all(map(below.intersection, wanted))) or (is_title and len(cells) == width and all(cells)):
            shown = ", ".join(repr(str(cell)[:_EXAMPLE]) for cell in cells)
            problem = f"{', '.join(filter(None, names))!r:.80} is above what seems to be the header row, {shown}"
            raise DataError(location, f"{problem}. Skip what is above: --set dataset_reader.skip_rows={number - 1}")


def check_skipped(
    names: Sequence[str],
    skipped: Sequence[tuple[int, Sequence[str]]],
    columns: Sequence[str],
    location: str,
) -> str:
    """What is wrong if a row that `skip_rows` leaves out may be the header row or have data; empty if none may.

    Arguments:
        names: the header row, or the first row that is read; empty if all rows are left out.
        skipped: numbered rows above it.
        columns: those that are read, by the names that are given or known from the training data; empty if not.

    Raises:
        DataError: such a row has these names, and the header row does not.
    """
    warning = ""
    given = {str(name).strip().casefold() for name in names}
    wanted = {column.strip().casefold() for column in columns}
    for number, cells in skipped:
        shown = ", ".join(repr(str(cell)[:_EXAMPLE]) for cell in cells)
        setting = f"--set dataset_reader.skip_rows={number - 1}"
        above = {str(cell).strip().casefold() for cell in cells}
        if "" not in wanted and wanted <= above and not wanted <= given:
            problem = f"the names of the columns are in row {number}, {shown}, which skip_rows leaves out"
            raise DataError(location, f"{problem}. Set {setting}")
        if not warning and len([*filter(None, cells)]) >= max(2, len([*filter(None, names)])):
            warning = f"skip_rows leaves out row {number}, {shown}; if this is not a title, set {setting}"
    return warning


def _can_be(what: str, cells: Sequence[str]) -> bool:
    """Whether a column with these cells can be that of a text, a label or a score.

    Cells may be blank, and half of the scores may be anything: an error about them is better than another column.
    """
    given = [cell.strip() for cell in cells if cell.strip()]
    num_values, are_numbers = len(set(given)), sum(bool(_NUMBER.fullmatch(cell)) for cell in given) > len(given) / 2
    of_words = sum(" " in cell and any(map(str.isalpha, cell)) for cell in given)  # not a date and a time
    is_text = of_words > len(given) / 4 and num_values > len(given) / 2 and not are_numbers
    if what == "text":
        return is_text
    if not given or is_text or _names_rows(given, num_values):
        return False
    if what == "score":
        return are_numbers
    return what in _LABELS and 1 < num_values <= max(_FEW_VALUES, _MOST_VALUES * len(given))


def _names_rows(cells: Sequence[str], num_values: int) -> bool:
    """Whether cells only say which row it is, or when it was: running numbers, ids, dates and times."""
    if sum(bool(_DATE.fullmatch(cell)) for cell in cells) > len(cells) / 2:
        return True
    if num_values < len(cells) or len(cells) < 3:
        return False
    numbers = [int(cell) for cell in cells if cell.isdecimal()]
    is_running = numbers == sorted(numbers) or max(numbers) - min(numbers) < 2 * len(cells)
    return (len(numbers) == len(cells) and is_running) or all(map(_LONG_ID.fullmatch, cells))


def _choice(
    missing: Sequence[str], possible: Mapping[str, list[int]], names: Sequence[str], cells: Mapping[int, Sequence[str]]
) -> str:
    """What columns there are, and the settings that choose among them, or the reader of another format."""
    if names and names[0].startswith(_JSON):
        remedy = "set --set dataset_reader.type=jsonl, or dataset_reader.type=spans for an export of an annotation tool"
        return f"this is JSON, not a table; {remedy}"
    shown = ", ".join(
        f"{name!r} (such as {next(filter(None, cells.get(at, ())), '')[:_EXAMPLE]!r})" if at in cells else repr(name)
        for at, name in enumerate(names)
    )
    remaining = [*cells]
    picked: dict[str, int | None] = {}
    for what in missing:
        if (at := next((each for each in [*possible[what], *remaining] if each in remaining), None)) is not None:
            remaining.remove(at)
        picked[what] = at
    labels = [at for what, at in picked.items() if what in _LABELS and at is not None]
    is_header = not any(names[at] in cells[at] for at in labels)
    settings = [] if is_header else ["--set dataset_reader.header=false"]
    for what, at in picked.items():
        column = "NAME" if at is None else names[at] if is_header else at
        settings.append(f"--set {shlex.quote(f'dataset_reader.columns.{what}={column}')}")
    problem = f"no column {' and no column '.join(map(repr, missing))}; the columns are {shown}"
    for what, columns in possible.items():
        if len(columns) > 1:
            problem += f"; {' or '.join(repr(names[at]) for at in columns)} can be the {what}"
    truths = [repr(names[at]) for at, given in cells.items() if {cell.casefold() for cell in given} in _TRUTHS]
    if "labels" in missing and len(truths) > 1:
        remedy = "expected one column with the names of the true ones, separated by commas"
        return f"{problem}. {', '.join(truths)} seem to be true or false, one for each label; {remedy}"
    rows = "" if is_header else ", if this is not a header row"
    return f"{problem}. Choose them, for example{rows}: {' '.join(settings)}"


def find_decimal(cells: Sequence[str], location: str) -> Decimal:
    """What separates the fractions of numbers.

    Raises:
        DataError: all commas may separate thousands, as three digits follow each, or other numbers have points.
    """
    with_comma = [cell for cell in cells if "," in cell and _NUMBER.fullmatch(cell.strip())]
    fractions = list(filter(_has_decimal_comma, with_comma))
    with_point = [cell for cell in cells if _WITH_POINT.fullmatch(cell)]
    if fractions and with_point:
        problem = f"{fractions[0]!r} has a decimal comma and {with_point[0]!r} perhaps a decimal point"
        raise DataError(location, f"{problem}. Set --set dataset_reader.decimal=, or .")
    if with_point or not all(map(_WITH_COMMA.fullmatch, with_comma)):
        return "."
    if with_comma and all(map(THOUSANDS["."].search, with_comma)):
        values = " or ".join(f"{plain_number(with_comma[0], mark)} ({mark})" for mark in get_args(Decimal))
        raise DataError(location, f"{with_comma[0]!r} can be {values}. Set --set dataset_reader.decimal=, or .")
    return "," if with_comma else "."


def usual_decimal(cells: Iterable[str]) -> Decimal:
    """What separates the fractions of numbers in a table: a comma if some cells show it and none has a point."""
    mark: Decimal = "."
    for cell in cells:
        if _WITH_POINT.fullmatch(cell):
            return "."
        mark = "," if _has_decimal_comma(cell) else mark
    return mark


def _has_decimal_comma(cell: str) -> bool:
    """Whether a cell is a number with a comma that cannot separate thousands."""
    return bool(_WITH_COMMA.fullmatch(cell)) and not THOUSANDS["."].search(cell)
