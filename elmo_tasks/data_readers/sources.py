"""Data sets as users give them: paths, hub data sets or examples in memory; their names, and the check of examples."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import datasets

from elmo_tasks.data_readers.bad_units import BadUnits
from elmo_tasks.data_readers.records import UNLABELLED, class_names, is_no_label, read_label
from elmo_tasks.errors import ArgumentError, DataError, some_of
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.task import NUMBER
from elmo_tasks.text.tokenizers import Tokenizer

HUB_PREFIX, MEMORY_PREFIX = "hub:", "memory:"
_INTEGER_BOUND = 2**31  # the columns of whole numbers have at least 32 bits

Examples: TypeAlias = datasets.Dataset | Sequence[Mapping[str, Any]]
Source: TypeAlias = str | Path | Sequence[str | Path] | Examples
"""A data set: a file, a hub data set (`hub:NAME`), several of them, or its examples with the columns of the task."""


def path_list(source: Source) -> list[str] | None:
    """The paths that a source consists of; None if it has examples."""
    if isinstance(source, (str, Path)):
        return [str(source)]
    if isinstance(source, datasets.Dataset) or not (source and isinstance(source, Sequence)):
        return None
    paths = [str(each) for each in source if isinstance(each, (str, Path))]
    return paths if len(paths) == len(source) else None


def source_name(source: Source) -> str:
    """The name of a data set in configs and messages. That of examples in memory depends only on their content.

    Raises:
        DataError: an example is not a dict, or has values that JSON or UTF-8 does not have.
        ArgumentError: the source is something else, such as an iterator, which could be read only once.
    """
    if paths := path_list(source):
        return some_of(paths)
    if not isinstance(source, (datasets.Dataset, Sequence)):
        raise ArgumentError(
            f"got {type(source).__name__} as a data set; expected a path, a list of dicts or a datasets.Dataset"
        )
    digest = hashlib.sha256()
    if names := _class_names(source):  # the rows have only their ids
        digest.update(json.dumps(names, sort_keys=True).encode())
    for number, example in enumerate(source):
        try:
            if not isinstance(example, Mapping):
                raise TypeError
            text = json.dumps(dict(example), sort_keys=True)
            if "\\ud" in text:  # half of a surrogate pair is a UnicodeEncodeError
                json.dumps(dict(example), ensure_ascii=False).encode()
            digest.update(text.encode())
        except (TypeError, ValueError):
            problem = f"{example!r}; expected a dict of strings, numbers and lists of them"
            raise DataError(f"{MEMORY_PREFIX} example {number}", problem) from None
    return f"{MEMORY_PREFIX}{digest.hexdigest()[:16]}"


def config_value(source: Source) -> str | list[str]:
    """A data set as the value of a config: the list of its paths if there are several, otherwise its name."""
    paths = path_list(source) or []
    return paths if len(paths) > 1 else source_name(source)


def task_keys(fields: Mapping[str, Any], own_columns: Mapping[str, str]) -> dict[str, Any]:
    """Values under the task's names instead of those of the data's own columns, unless there are values under both.

    A text stays under `text` where the data has tokens there, and tokens are `tokens` where it has texts.
    """
    names = {key: _task_key(key, value, own_columns) for key, value in fields.items()}
    return {key if names[key] in fields else names[key]: value for key, value in fields.items()}


def _task_key(key: str, value: Any, own_columns: Mapping[str, str]) -> str:
    name = own_columns.get(key, key)
    if key == "text" and isinstance(value, str) and name in ("tokens", "sentences"):
        return key
    return "tokens" if name == "text" != key and isinstance(value, list) else name


def with_task_columns(examples: Examples, own_columns: Mapping[str, str]) -> Examples:
    """The examples with the task's names of columns. As in files, the data's own columns come before those."""
    if isinstance(examples, datasets.Dataset):
        names, replaced = _renaming(examples.column_names, own_columns)
        return examples.remove_columns(replaced).rename_columns(names)
    return [_in_task_columns(example, own_columns) for example in examples]


def _in_task_columns(example: Mapping[str, Any], own_columns: Mapping[str, str]) -> dict[str, Any]:
    names, replaced = _renaming(example, own_columns)
    return {names.get(column, column): value for column, value in example.items() if column not in replaced}


def _renaming(columns: Collection[str], own_columns: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The new names of the data's own columns, and the columns that they replace; a text also replaces tokens."""
    names = {own: name for own, name in own_columns.items() if own in columns}
    given = {*names.values(), *(["tokens"] if "text" in names.values() else [])}
    return names, [column for column in columns if column in given and column not in names]


def checked_examples(
    examples: Examples,
    task: Task,
    name: str,
    bad_units: BadUnits,
    left_out: Counter[str],
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
    names = _class_names(examples)
    for number, given in enumerate(examples):
        with bad_units.caught():
            if "label" in names and is_no_label(given.get("label")):
                left_out[UNLABELLED] += 1
            else:
                example = _with_tokens(given, task, tokenizer) if tokenizer else given
                yield {**_checked(example, task, names, f"{name}: example {number}"), "line": number}


def _with_tokens(given: Mapping[str, Any], task: Task, tokenizer: Tokenizer) -> Mapping[str, Any]:
    """An example with the tokens of its texts."""
    texts = {}
    for column in task.sentence_columns:
        key = "text" if column == "tokens" else column
        if isinstance(text := given.get(key), str) and (key == column or column not in given):
            texts[column] = [token.text for token in tokenizer.words(text)]
        elif isinstance(text, list) and column not in given:  # as in files, a text may be its tokens
            texts[column] = text
    return {**given, **texts}


def _class_names(examples: Iterable[Any]) -> dict[str, list[str]]:
    """The names of the class ids in the columns of a `datasets.Dataset` that have such ids, or lists of them."""
    features = examples.features if isinstance(examples, datasets.Dataset) else {}
    return {column: names for column, feature in features.items() if (names := class_names(feature))}


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
    if (item := getattr(feature, "feature", None)) is not None:  # a list of these
        return isinstance(value, (list, tuple)) and all(_fits(each, item) for each in value)
    if feature.dtype == "string":
        return isinstance(value, str) and value != ""
    if feature.dtype == "float64":
        return type(value) in (int, float) and abs(value) <= sys.float_info.max
    return type(value) is int and abs(value) < _INTEGER_BOUND


def _described(feature: Any) -> str:
    depth = 0
    while hasattr(feature, "feature"):
        feature, depth = feature.feature, depth + 1
    is_string = feature.dtype == "string"
    kind = "string" if is_string else "number" if feature.dtype == "float64" else "whole number"
    what = f"a {'list of ' + 'lists of ' * (depth - 1) + kind + 's' if depth else kind}"
    return f"{what} that {'are' if depth else 'is'} not empty" if is_string else what
