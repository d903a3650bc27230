"""Refuses data files that are given where raw text is expected, and warns of input without text.

A file that is not text is recognized by the ending of its name, or by its first line that is not blank. Only what is
almost surely not text is found.

What computes one result of a whole text raises an error if there is no text. All others only warn.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from elmo_tasks.errors import DataError, some_of
from elmo_tasks.files.paths import JSON_LINES, plain_name

logger = logging.getLogger(__name__)

_TEXT = "expected text, a paragraph or a sentence on each line"
_EACH_ON_ONE_LINE = "expected each JSON object on one line, as `jq -c {} FILE` prints them"
_TABLE = "expected only its column of texts, a text on each line"
_COLUMNS = f"a token on each line with its tags, as in CoNLL files; {_TEXT}"
_BY_ENDING = {
    **dict.fromkeys((".csv", ".tsv", ".xlsx", ".xlsm", ".xls", ".ods", ".parquet", ".arrow"), f"a table; {_TABLE}"),
    **dict.fromkeys((".conll", ".conllu", ".iob", ".bio"), _COLUMNS),
    **dict.fromkeys((".xml", ".html", ".htm"), f"XML or HTML; {_TEXT}, without the markup"),
    **dict.fromkeys((".py", ".ipynb", ".jsonnet", ".libsonnet", ".yaml", ".yml", ".toml"), f"code; {_TEXT}"),
    **dict.fromkeys((".pdf", ".doc", ".docx", ".odt", ".rtf", ".hdf5", ".npz", ".tar", ".zip"), f"a document; {_TEXT}"),
}
_JSON_ARRAY = re.compile(r'\[\s*($|\[|\{|\]$|"[^"]*"\s*[,\]])')
_JSON_OBJECT_BEGINS = re.compile(r'\{\s*("[^"]*"\s*:\s*[\[{]*\s*)?$')
_TAG = r"(?:O|[BIELMSU]-[A-Z]\S+)"
_BY_FIRST_LINE = {
    re.compile(r"<\?xml\s|<!doctype\s+\w|<html[\s>]", re.IGNORECASE): f"XML or HTML; {_TEXT}, without the markup",
    re.compile(r"\(\s*([0-4]|ROOT|TOP|S)?\s\(([0-4]|[A-Z]+)(\s|$)"): f"labelled trees; {_TEXT}, without brackets",
    re.compile(r"-DOCSTART-\s+\S|#begin document|# (newdoc|sent_id|text) = "): _COLUMNS,
    # two cells; or some between tabs; or a line of CoNLL-2003, with two tags
    re.compile(rf"(\S+ (O|[BIELMSU]-[A-Z]{{2,}})|\S+(\t\S*)*\t{_TAG}|\S+ \S+ (_|{_TAG}) {_TAG})$"): _COLUMNS,
}
_USUAL_COLUMN = re.compile(
    "text|sentence[12]?|premise|hypothesis|(gold_)?labels?|(ner_)?tags?|tokens?|words?|pos|id|idx|index|question|answer|"
    "context|passage|target|class|category|sentiment|score|rating|stars|review|comment|tweet|title",
    re.IGNORECASE,
)


def looks_like(name: str | Path, line: str, *, json_lines: bool = False) -> str | None:
    """What a file almost surely is, and what is expected instead; None if it may be text.

    Arguments:
        line: its first line that is not blank.
        json_lines: whether the lines may be JSON objects. Then an array, or an object over several lines, is found.
    """
    line, ending = line.strip(), Path(plain_name(Path(name))).suffix.lower()
    if _JSON_ARRAY.match(line):
        return "a JSON array; " + _EACH_ON_ONE_LINE.format("'.[]'")
    if _JSON_OBJECT_BEGINS.match(line):
        return "a JSON object over several lines; " + _EACH_ON_ONE_LINE.format(".")
    if json_lines and line.startswith("{"):
        return None
    if ending in JSON_LINES and not json_lines:
        return f"JSON; {_TEXT}"
    if ending in _BY_ENDING:
        return _BY_ENDING[ending]
    if found := next((kind for pattern, kind in _BY_FIRST_LINE.items() if pattern.match(line)), None):
        return found
    for kind, delimiter in (("TSV", "\t"), ("CSV", ","), ("CSV", ";")):
        names = [cell.strip('"') for cell in line.split(delimiter)]
        if sum(bool(_USUAL_COLUMN.fullmatch(cell)) for cell in names) > 1:
            return f"a table ({kind}); {_TABLE}"
    return None


def prose_lines(
    lines: Iterable[tuple[int, str]], name: str | Path, advice: str, *, json_lines: bool = False
) -> Iterator[tuple[int, str]]:
    """The numbered lines of a text.

    Arguments:
        name: what messages call the file.
        advice: the end of the message.
        json_lines: see `looks_like`.

    Raises:
        DataError: they are almost surely not those of a text; the message says what the file looks like.
    """
    is_checked = False
    for number, line in lines:
        if not is_checked and line.strip():
            is_checked = True
            if found := looks_like(name, line, json_lines=json_lines):
                raise DataError(name, f"looks like {found}; {advice}", number)
        yield number, line


def noting_no_text(lines: Iterable[tuple[int, str]], name: str | Path) -> Iterator[tuple[int, str]]:
    """The numbered lines; after the last one there is a warning if all were blank."""
    number, found = 0, False
    for number, line in lines:
        found = found or bool(line.strip())
        yield number, line
    if not found:
        warn_of_no_text(name, number)


def warn_of_no_text(name: str | Path, num_lines: int) -> None:
    """Warns that a whole file has no text."""
    logger.warning("%s: no text in %d line(s)", name, num_lines)


def warn_of_blank(name: str | Path, numbers: Sequence[int]) -> None:
    """Warns of inputs that have no text, by their numbers."""
    logger.warning("%s: no result for %d input(s) without text: number %s", name, len(numbers), some_of(numbers))
