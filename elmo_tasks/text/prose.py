"""Finds data files that are given where raw text is expected: JSON over several lines, tables, columns, trees, pages.

Only what is almost surely not text is found: text may have tabs, quotes, brackets, commas, or one word on each line.

Warns of input without text, which has no result, for all that read text. What computes one result of a whole text
raises an error instead.
"""

from __future__ import annotations

import csv
import itertools
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from elmo_tasks.errors import DataError, some_of
from elmo_tasks.files.text import STANDARD_INPUT, ByteLines, decode_lines, read_lines

logger = logging.getLogger(__name__)

TOKENIZED_ADVICE = "--tokenized reads any file, a sentence of tokens on each line"
_FIRST_LINES = 40  # that are looked at
_FEWEST_ROWS = 3  # of columns

_TAG = re.compile(r"O|[BIESLUM]-\S+")
_USUAL_NAME = re.compile(
    "text|sentence[12]?|premise|hypothesis|(gold_)?labels?|(ner_)?tags?|tokens?|words?|pos|id|idx|index|question|answer|"
    "context|passage|target|class|category|sentiment|score|rating|stars|review|comment|tweet|title",
    re.IGNORECASE,
)
_COLUMN_NAME = re.compile(r"[\w#.-]+( [\w#.-]+){0,2}")
_TREE_OPEN = re.compile(r"\(\s*(\d+|[A-Z][A-Z0-9$=|+*-]*|[^\w\s()]+|-[A-Z]+-)?(?=[\s(])")
_TREE_LEAF = re.compile(rf"{_TREE_OPEN.pattern}\s+[^\s()]+\)")
_PAGE = re.compile(r"<\?xml\s|<!doctype\s+\w|<html[\s>]", re.IGNORECASE)

_JSON_LINES = "expected each JSON object on one line, as `jq -c {} FILE` prints them"
_TEXT = "expected text, a paragraph or a sentence on each line"


def prose_lines(
    lines: Iterator[tuple[int, str]],
    name: str | Path,
    advice: str,
    *,
    waiting: Callable[[], bool] = lambda: False,
    json_only: bool = False,
) -> Iterator[tuple[int, str]]:
    """The numbered lines of a text, unless the first ones are almost surely those of a data file.

    Arguments:
        name: what messages call the file.
        advice: the end of the message.
        waiting: whether the next line has not come yet; then the lines before it are yielded first.
        json_only: only looks for JSON over several lines, because the lines are objects.

    Raises:
        DataError: the lines are almost surely not those of a text; the message says what they look like.
    """
    held, shown = list[tuple[int, str]](), 0
    problem: DataError | None = None
    while len(held) < _FIRST_LINES:
        try:
            number, line = next(lines, (0, ""))
        except DataError as error:  # the lines before it are yielded first
            problem = error
            break
        if not number:
            break
        if not held and not line.strip():
            yield number, line
            continue
        held.append((number, line))
        if waiting():
            _check(held, name, advice, json_only)
            yield from held[shown:]
            shown = len(held)
    _check(held, name, advice, json_only)
    yield from held[shown:]
    if problem:
        raise problem
    yield from lines


def raw_lines(
    source: str | Path | ByteLines, *, tokenized: bool = False, advice: str = TOKENIZED_ADVICE
) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file or of standard input; see `prose_lines`. Tokenized lines are not checked."""
    name = source if isinstance(source, (str, Path)) else STANDARD_INPUT
    lines = read_lines(source) if isinstance(source, (str, Path)) else decode_lines(source, name)
    return noting_no_text(lines if tokenized else prose_lines(lines, name, advice), name)


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


def _check(held: Sequence[tuple[int, str]], name: str | Path, advice: str, json_only: bool = False) -> None:
    lines = [line for _, line in held]
    if found := looks_like(lines, json_only=json_only):
        raise DataError(name, f"looks like {found}; {advice}", held[0][0])


def looks_like(lines: Sequence[str], *, json_only: bool = False) -> str | None:
    """What a file with these lines almost surely is, and what is expected instead; only its first lines are looked at.

    None if they may be text, or JSON objects on a line each.
    """
    start = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    lines = lines[start : start + _FIRST_LINES]
    if not lines:
        return None
    if json_only or lines[0].lstrip().startswith("{"):
        return _json(lines)
    return _json(lines) or _page(lines) or _trees(lines) or _columns(lines) or _table(lines)


def _json(lines: Sequence[str]) -> str | None:
    """An array, or objects over several lines: the lines are the beginning of a JSON value, or all of one."""
    first, text = lines[0].strip(), "\n".join(lines).strip()
    if not text.startswith(("[", "{")):
        return None
    if not _begins_json(first):
        return None
    if first.startswith("{"):
        whole = first != text and _begins_json(text) and not _is_json(first)
        return f"a JSON object over several lines; {_JSON_LINES.format('.')}" if whole else None
    found = first if _is_json(first) else text
    if _begins_json(found) and (found == "[]" or re.search(r"[\"{]|\[\s*\[", found)):
        return "a JSON array; " + _JSON_LINES.format("'.[]'")
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _begins_json(text: str) -> bool:
    """Whether whole lines are JSON values or become so if others follow; a string does not go on in the next line."""
    try:
        while text:
            _, end = json.JSONDecoder().raw_decode(text)
            text = text[end:].lstrip()
    except json.JSONDecodeError as error:
        return error.pos >= len(text)
    except (ValueError, RecursionError):
        return False
    return True


def _page(lines: Sequence[str]) -> str | None:
    return f"XML or HTML; {_TEXT}, without the markup" if _PAGE.match(lines[0].lstrip()) else None


def _trees(lines: Sequence[str]) -> str | None:
    """Every word has its own bracket with a label, and some bracket holds two others."""
    text = "\n".join(lines)
    if not text.lstrip().startswith("(") or text.count("(") != len(_TREE_OPEN.findall(text)):
        return None
    rest, words = _TREE_LEAF.subn("", text)
    rest = _TREE_OPEN.sub("(", rest)
    is_tree = words > 1 and "(" in rest and not rest.replace("(", "").replace(")", "").strip()
    return f"labelled trees in brackets; {_TEXT}, without the brackets" if is_tree else None


def _columns(lines: Sequence[str]) -> str | None:
    """A token on each line, with its tags: the lines of a sentence have the same number of columns."""
    found = f"a token on each line with its tags, as in CoNLL files; {_TEXT}"
    if re.match(r"#begin document|-DOCSTART-\s+\S", lines[0]):
        return found
    tabbed = any("\t" in line for line in lines)
    split = [line.split("\t") if tabbed else line.split() for line in lines if not line.startswith(("#", "-DOCSTART-"))]
    blocks = [
        list(rows) for blank, rows in itertools.groupby(split, key=lambda row: not "".join(row).strip()) if not blank
    ]
    rows = [row for block in blocks for row in block]
    if len(rows) < _FEWEST_ROWS or any(len({len(row) for row in block}) > 1 for block in blocks):
        return None
    width = min(map(len, rows))
    if width > 1 and any(_are_tags([row[at] for row in rows], tabbed, at) for at in (*range(width), -1)):
        return found
    counted = all(row[0] == str(at) for block in blocks for at, row in enumerate(block, 1))
    is_conllu = width == 10 and all(re.fullmatch(r"\d+([-.]\d+)?", row[0]) for row in rows)
    return found if tabbed and width > 3 and (counted or is_conllu) else None


def _are_tags(cells: Sequence[str], tabbed: bool, at: int) -> bool:
    """Whether a column has only tags; one of O can also be one of words, unless it is the last of a table."""
    return all(map(_TAG.fullmatch, cells)) and (any("-" in cell for cell in cells) or (tabbed and at == -1))


def _table(lines: Sequence[str]) -> str | None:
    for kind, delimiter in (("TSV", "\t"), ("CSV", ","), ("CSV", ";")):
        try:
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
        except csv.Error:
            continue
        if len(rows[0]) > 1 and _has_header(rows):
            return f"a table ({kind}); expected only its column of texts, a text on each line"
    return None


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has names of columns, at least two of them usual ones, or one and as many in each row."""
    header = rows[0]
    usual = sum(bool(_USUAL_NAME.fullmatch(name)) for name in header)
    if len(rows) < 2 or not all(map(_COLUMN_NAME.fullmatch, header)) or len(set(header)) < len(header) or not usual:
        return False
    return all(len(row) >= len(header) if usual > 1 else len(row) == len(header) for row in rows[1:])
