"""Records: rows of tables, JSON lines and hub data sets, and objects in JSON files, with their locations for errors.

Also examples in memory, which must have the columns of their task.

Their values are read as tokens, tags and labels: lists or strings, numbers, class ids.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from elmo_tasks.data_readers.columns import clean
from elmo_tasks.data_readers.sources import DataSet, Examples, Parsing, class_columns, is_data_set
from elmo_tasks.errors import DataError
from elmo_tasks.files.json_files import parse_json
from elmo_tasks.files.text import BYTE_ORDER_MARK
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.task import NUMBER, STRING
from elmo_tasks.text.tokenizers import Tokenizer

# What Python, JSON or numpy print of a list of strings or whole numbers.
_PRINTED_LIST = re.compile(r"""\[(?:'.*'|".*"|[0-9]+(?:,?\s+[0-9]+)+),?\]""", re.DOTALL)
_KINDS = {dict: "an object", list: "a list", str: "a string", int: "a whole number"}

Decimal = Literal[",", "."]
# What separates thousands, by what separates the fraction.
THOUSANDS = {",": re.compile(r"(?<=\d)\.(?=\d{3}(\D|$))"), ".": re.compile(r"(?<=\d),(?=\d{3}(\D|$))")}

_TRUTHS = frozenset({"TRUE", "True", "FALSE", "False"})
_INTEGER_BOUND = 2**31  # the columns of whole numbers have at least 32 bits
# What the Penn Treebank writes, and what a text has.
_AS_WRITTEN = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
    "`": "'",
}

_LABELS = ("label", "labels", "tags")  # columns of examples in memory
UNLABELLED = "row(s) without a gold label"  # what is left out

_ValueT = TypeVar("_ValueT")


class Record(NamedTuple):
    """A row: the values of its columns by name, its number (a line from 1, or a row from 0) and its location.

    If each token of the row has a line, `token_lines` is the file and the first line, such as `("data.tsv:", 7)`.
    """

    columns: Any  # a dict, or what a JSON file has in its place; a column without a name has a number
    number: int
    location: str
    token_lines: tuple[str, int] | None = None

    @property
    def token_location(self) -> tuple[str, int]:
        """What errors about a token begin with, and the number of the first token."""
        return self.token_lines or (f"{self.location}, token ", 0)

    def value(self, column: str | int) -> Any:
        """The value of a column; raises a `DataError` if the record does not have it, or is not an object."""
        try:
            return self.columns[column]
        except KeyError:
            names = ", ".join(map(str, self.columns)) or "no columns"
            raise DataError(self.location, f"no {name_of(column)} among {names}") from None
        except TypeError:
            raise DataError(self.location, f"{self.columns!r:.80} is not an object with {column!r}") from None

    def get(self, column: str | int, kind: type[_ValueT]) -> _ValueT:
        """The value of a column, which must have this type."""
        value = self.value(column)
        if type(value) is not kind:  # True is an int too
            raise DataError(self.location, f"{name_of(column)} is {value!r:.80}; expected {_KINDS[kind]}")
        return value

    def objects(self, column: str, separator: str = ".") -> Iterator[Record]:
        """The objects of a list, with their locations in this one, such as `data[0].paragraphs[2]`."""
        for index, value in enumerate(self.get(column, list)):
            yield Record(value, index, f"{self.location}{separator}{column}[{index}]")


def json_records(
    lines: Iterable[tuple[int, str]], path: Path, parsing: Parsing, kinds: tuple[type, ...] = (dict,)
) -> Iterator[Record]:
    """The objects of numbered JSON lines, or other values of these kinds; blank lines are left out."""
    for number, line in lines:
        if not line.strip():
            continue
        with parsing.caught():
            value = parse_json(line, path, "one JSON object per line", number)
            if not isinstance(value, kinds):
                raise DataError(path, f"a JSON {type(value).__name__}; expected an object", number)
            yield Record(value, number, f"{path}:{number}")


def hub_records(rows: DataSet, source: str) -> Iterator[Record]:
    """The rows of a hub data set."""
    for number, row in enumerate(rows):
        yield Record(row, number, f"{source}: row {number}")


def require_columns(columns: Iterable[str], names: Iterable[str], location: str, remedy: str) -> None:
    """Raises a DataError that names `location` and `remedy` unless all `columns` are among `names`."""
    if missing := sorted(set(columns).difference(names)):
        raise DataError(location, f"no column {', '.join(map(repr, missing))} among {', '.join(names)}; {remedy}")


def check_distinct(names: Collection[str], path: Path, line: int) -> None:
    """Raises a `DataError` if a header row has a name twice."""
    if repeated := [name for name, count in Counter(names).items() if count > 1 and name]:
        raise DataError(path, f"columns that the header row has twice: {', '.join(map(repr, repeated))}", line)


def name_of(column: str | int) -> str:
    """What messages call a column."""
    return f"column {column}" if isinstance(column, int) else repr(column)


def plain_number(text: str, decimal: Decimal) -> str:
    """A number as Python writes it, without what separates thousands."""
    return THOUSANDS[decimal].sub("", text).replace(decimal, ".")


def is_no_label(value: Any) -> bool:
    """Whether a class id of a hub data set means that there is no gold label."""
    return value is None or (type(value) is int and value == -1)


def read_label(value: Any, location: str, *, what: str = "label", names: Sequence[str] | None = None) -> str:
    """A label as a string: a string without the white space around it, a whole number as its digits, true and false.

    The label is the same in all formats of a table: Excel's TRUE and Python's True are `true`.

    Arguments:
        location: the location of the value, for errors.
        what: what it is, for errors.
        names: the names of class ids; then only an id is a label.

    Raises:
        DataError: the value is something else, or blank.
    """
    if value in (-100, "-100") and what != "label":
        pieces = "the mark of Hugging Face's tokenizers for pieces of words that do not count"
        raise DataError(location, f"the {what} is -100, {pieces}; expected whole words, each with its tag")
    if names is not None:
        if type(value) is not int or not 0 <= value < len(names):
            raise DataError(location, f"the {what} is {value!r}; expected a class id from 0 to {len(names) - 1}")
        return clean(names[value])
    if isinstance(value, str) and (label := clean(value)):
        return label.lower() if what == "label" and label in _TRUTHS else label
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    expected = "a string that is not blank, a whole number, true or false"
    raise DataError(location, f"the {what} is {value!r}; expected {expected}")


def split_items(text: str, record: Record, column: str | int, separator: str | None = None) -> list[str]:
    """The parts of a text between separators, by default white space.

    A list that was printed as text, as in a table, is a DataError.
    """
    if _PRINTED_LIST.fullmatch(text.strip()):
        problem = f"{name_of(column)} is a list that was printed as text: {text[:80]!r}"
        between = "spaces" if separator is None else repr(separator)
        raise DataError(record.location, f"{problem}; expected its items with {between} between them, or JSON lines")
    return text.split(separator)


def check_tokens(value: Any, record: Record, column: str | int) -> list[str]:
    """A list of tokens; raises a `DataError` if the value of the column is something else."""
    if not isinstance(value, list):
        raise DataError(record.location, f"{name_of(column)} is {value!r}; expected a list of strings, or a string")
    if set(map(type, value)) == {str} and "" not in value and BYTE_ORDER_MARK not in "".join(value):  # almost always
        return value
    location, first = record.token_location
    for number, token in enumerate(value, first):
        if not isinstance(token, str) or token in ("", BYTE_ORDER_MARK):
            raise DataError(f"{location}{number}", f"the token is {token!r}; expected a string that is not empty")
    return [token.replace(BYTE_ORDER_MARK, "") for token in value]


def read_tagged_tokens(
    record: Record, tokens_column: str | int, tags_column: str | int | None, names: Sequence[str] | None = None
) -> tuple[list[str], list[str]]:
    """The tokens and tags of a row, as many of each; each is a list or a string that is split at white space.

    Arguments:
        tags_column: None if there are no tags.
        names: the names of class ids.
    """
    tokens = record.value(tokens_column)
    if isinstance(tokens, str):
        tokens = split_items(tokens.replace(BYTE_ORDER_MARK, ""), record, tokens_column)
    else:
        tokens = check_tokens(tokens, record, tokens_column)
    if tags_column is None:
        return tokens, []
    tags = record.value(tags_column)
    values = split_items(tags, record, tags_column) if isinstance(tags, str) else record.get(tags_column, list)
    if len(values) != len(tokens):
        raise DataError(record.location, f"{len(values)} tags for {len(tokens)} tokens")
    location, first = record.token_location
    return tokens, [
        read_label(value, f"{location}{number}", what="tag", names=names) for number, value in enumerate(values, first)
    ]


def unescape(token: str) -> str:
    r"""The token as a text has it, and as `elmo_tasks.text.tokenization` would make it of that text.

    Brackets, quotes, and the backslash before a slash or a star are undone: `-LRB-`, ` `` ` and `and\/or` become `(`,
    `"` and `and/or`. Any other token, one already unescaped included, stays as it is.
    """
    return _AS_WRITTEN.get(token) or token.replace("\\/", "/").replace("\\*", "*")


def with_task_columns(examples: Examples, own_columns: Mapping[str, str]) -> Examples:
    """The examples with the task's names of columns. As in files, the data's own columns come before those."""
    if is_data_set(examples):
        names, replaced = _renaming(examples.column_names, own_columns)
        return examples.remove_columns(replaced).rename_columns(names)
    renamed = []
    for example in examples:
        names, replaced = _renaming(example, own_columns)
        renamed.append({names.get(key, key): value for key, value in example.items() if key not in replaced})
    return renamed


def _renaming(columns: Collection[str], own_columns: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The new names of the data's own columns, and the columns that they replace; a text also replaces tokens."""
    names = {own: name for own, name in own_columns.items() if own in columns}
    given = {*names.values(), *(["tokens"] if "text" in names.values() else [])}
    return names, [column for column in columns if column in given and column not in names]


def checked_examples(
    examples: Examples,
    task: Task,
    name: str,
    parsing: Parsing,
    tokenizer: Tokenizer | None = None,
) -> Iterator[dict[str, Any]]:
    """The examples with the columns of the task, with their number, from 0, as their `line`.

    Class ids of a `datasets.Dataset` become their names, a column in `task.optional` may be missing, and other columns
    are ignored. Examples whose label is the class id -1 are left out and counted.

    Arguments:
        tokenizer: makes tokens of texts: `text` may take the place of `tokens`, and a column of tokens with another
            name, such as `premise`, may be a text.

    Raises:
        DataError: an example lacks a column, or has a value of the wrong type. The example is named.
    """
    names = class_columns(examples)
    for number, given in enumerate(examples):
        with parsing.caught():
            if "label" in names and is_no_label(given.get("label")):
                parsing.left_out[UNLABELLED] += 1
            else:
                texts: dict[str, Any] = {}  # their tokens
                if tokenizer:
                    for column in task.sentence_columns:
                        key = "text" if column == "tokens" else column
                        text = given.get(key)
                        if isinstance(text, str) and (key == column or column not in given):
                            texts[column] = [token.text for token in tokenizer.words(text)]
                        elif isinstance(text, list) and column not in given:  # as in files, a text may be its tokens
                            texts[column] = text
                    labels = [column for column in _LABELS if column in given and column not in names]
                    texts |= {column: _label_in_memory(given[column]) for column in labels}
                    if "tokens" in task.features and "tokens" not in {**given, **texts}:
                        found = (
                            f"'text' is {given['text']!r:.80}" if "text" in given else "there is no 'text' or 'tokens'"
                        )
                        raise DataError(f"{name}: example {number}", f"{found}; expected a text, or a list of tokens")
                yield {**_checked({**given, **texts}, task, names, f"{name}: example {number}"), "line": number}


def _label_in_memory(value: Any) -> Any:
    """A whole number, or True or False, as `read_label` reads it; not -1 and -100, which mostly mean no label."""
    if isinstance(value, (list, tuple)):
        return [_label_in_memory(each) for each in value]
    return read_label(value, "") if isinstance(value, int) and value not in (-1, -100) else value


def _checked(given: Mapping[str, Any], task: Task, names: Mapping[str, Sequence[str]], location: str) -> dict[str, Any]:
    """The columns of the task; raises a DataError that names `location` if one is missing or has a wrong value."""
    example = {}
    for column, feature in task.features.items():
        example[column] = value = _named(given.get(column), names.get(column), column, location)
        if not (_fits(value, feature) or (value is None and column in task.optional)):
            found = f"{column!r} is {value!r}" if column in given else f"there is no {column!r}"
            raise DataError(location, f"{found}; expected {_described(feature)}")
        if feature == NUMBER and value is not None:  # Arrow does not take every whole number as one with a fraction
            example[column] = float(value)
    if fault := task.fault(example):
        raise DataError(location, fault)
    return example


def _named(value: Any, names: Sequence[str] | None, column: str, location: str) -> Any:
    """A class id, or a list of them, as names. Raises a DataError for an id without a name."""
    if names is None or value is None:
        return value
    if isinstance(value, list):
        return [_named(each, names, column, location) for each in value]
    return read_label(value, location, what=column, names=names)


def _fits(value: Any, feature: Any) -> bool:
    if isinstance(feature, list):
        return isinstance(value, (list, tuple)) and all(_fits(each, feature[0]) for each in value)
    if feature == STRING:
        return isinstance(value, str) and value != ""
    if feature == NUMBER:
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    return type(value) is int and abs(value) < _INTEGER_BOUND


def _described(feature: Any) -> str:
    depth = 0
    while isinstance(feature, list):
        feature, depth = feature[0], depth + 1
    kind = {STRING: "string", NUMBER: "number"}.get(feature, "whole number")
    what = f"a list of {'lists of ' * (depth - 1)}{kind}s" if depth else f"a {kind}"
    if feature != STRING:
        return what
    return f"{what} that {'are' if depth else 'is'} not empty"
