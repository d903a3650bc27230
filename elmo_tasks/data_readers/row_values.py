"""Tokens and labels as rows have them: lists or strings, numbers, class ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import datasets

from elmo_tasks.data_readers.records import Record
from elmo_tasks.data_readers.tag_reading import clean
from elmo_tasks.errors import DataError
from elmo_tasks.files.text import BYTE_ORDER_MARK

# What Python, JSON or numpy print of a list of strings or whole numbers.
_PRINTED_LIST = re.compile(r"""\[(?:'.*'|".*"|[0-9]+(?:,?\s+[0-9]+)+),?\]""", re.DOTALL)

UNLABELLED = "row(s) without a gold label"  # what is left out


def class_names(feature: Any) -> list[str] | None:
    """The names of the class ids in a column of a `datasets.Dataset`, or of lists of ids; None if it has none."""
    label = getattr(feature, "feature", feature)
    return list(label.names) if isinstance(label, datasets.ClassLabel) else None


def is_no_label(value: Any) -> bool:
    """Whether a class id of a hub data set means that there is no gold label."""
    return value is None or (type(value) is int and value == -1)


def read_label(value: Any, place: str, *, what: str = "label", names: Sequence[str] | None = None) -> str:
    """A label as a string: a string without the white space around it, a whole number as its digits, true and false.

    Arguments:
        place: the place of the value, for errors.
        what: what it is, for errors.
        names: the names of class ids; then only an id is a label.

    Raises:
        DataError: the value is something else, or blank.
    """
    if value in (-100, "-100") and what != "label":
        pieces = "the mark of Hugging Face's tokenizers for pieces of words that do not count"
        raise DataError(place, f"the {what} is -100, {pieces}; expected whole words, each with its tag")
    if names is not None:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(names):
            raise DataError(place, f"the {what} is {value!r}; wanted a class id from 0 to {len(names) - 1}")
        return clean(names[value])
    if isinstance(value, str) and (label := clean(value)):
        return label
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    wanted = "a string that is not blank, a whole number, true or false"
    raise DataError(place, f"the {what} is {value!r}; wanted {wanted}")


def read_tokens(record: Record, column: str | int) -> list[str]:
    """The tokens of a column: a list of strings as it is, a string split at white space."""
    value = record.value(column)
    if isinstance(value, str):
        return _split(value.replace(BYTE_ORDER_MARK, ""), record, column)
    return check_tokens(value, record, column)


def _split(text: str, record: Record, column: str | int) -> list[str]:
    """The parts of a text between white space. A list that was printed as text, as in a table, is a DataError."""
    if _PRINTED_LIST.fullmatch(text.strip()):
        problem = f"{column!r} is a list that was printed as text: {text[:80]!r}"
        raise DataError(record.place, f"{problem}; expected its items with spaces between them, or JSON lines")
    return text.split()


def check_tokens(value: Any, record: Record, column: str | int) -> list[str]:
    """A list of tokens.

    Raises:
        DataError: the value of the column is something else.
    """
    if not isinstance(value, list):
        raise DataError(record.place, f"{column!r} is {value!r}; wanted a list of strings, or a string")
    if set(map(type, value)) == {str} and "" not in value and BYTE_ORDER_MARK not in "".join(value):  # almost always
        return value
    place, first = record.token_place
    for number, token in enumerate(value, first):
        if not isinstance(token, str) or token in ("", BYTE_ORDER_MARK):
            raise DataError(f"{place}{number}", f"the token is {token!r}; wanted a string that is not empty")
    return [token.replace(BYTE_ORDER_MARK, "") for token in value]


def read_tagged_tokens(
    record: Record, tokens_column: str | int, tags_column: str | int, names: Sequence[str] | None = None
) -> tuple[list[str], list[str]]:
    """The tokens and tags of a row, as many of each; each is a list or a string that is split at white space.

    Arguments:
        names: the names of class ids.
    """
    tokens = read_tokens(record, tokens_column)
    tags = record.value(tags_column)
    values = _split(tags, record, tags_column) if isinstance(tags, str) else record.items(tags_column)
    if len(values) != len(tokens):
        raise DataError(record.place, f"{len(values)} tags for {len(tokens)} tokens")
    if names is None and set(map(type, values)) == {str}:  # almost always; the rest may be wrong
        cleaned = list(map(clean, values))
        if "" not in cleaned and "-100" not in cleaned:
            return tokens, cleaned
    place, first = record.token_place
    return tokens, [
        read_label(value, f"{place}{number}", what="tag", names=names) for number, value in enumerate(values, first)
    ]
