"""Data sets as users give them: files, patterns of names, hub data sets or examples; and the reading of one of them."""

from __future__ import annotations

import contextlib
import dataclasses
import glob
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from elmo_tasks.errors import ArgumentError, DataError, ElmoTasksError, OnError, some_of
from elmo_tasks.files.paths import each_once, is_clutter, matching_paths, plain_name, stored_file

if TYPE_CHECKING:
    import datasets

HUB_PREFIX, MEMORY_PREFIX = "hub:", "memory:"

DataSet: TypeAlias = "datasets.Dataset"
Examples: TypeAlias = "DataSet | Sequence[Mapping[str, Any]]"
Source: TypeAlias = "str | Path | Sequence[str | Path] | Examples"
"""A data set: a file, a hub data set (`hub:NAME`), several of them, or its examples with the columns of the task."""


def is_data_set(examples: Examples) -> TypeGuard[DataSet]:
    """Whether examples are a `datasets.Dataset`, and not a list."""
    import datasets  # here, since it takes as long to import as torch, and text to predict is in none

    return isinstance(examples, datasets.Dataset)


def features_of(columns: Mapping[str, Any]) -> datasets.Features:
    """The features of a `datasets.Dataset` with columns of these types; see `Task.features`."""
    import datasets

    def feature(kind: Any) -> Any:
        return datasets.Sequence(feature(kind[0])) if isinstance(kind, list) else datasets.Value(kind)

    return datasets.Features({name: feature(kind) for name, kind in columns.items()})


@dataclasses.dataclass
class Parsing:
    """One reading of a source: how it is read, and what does not become an example.

    A reader parses each unit of its source, the smallest part that can be left out, in a block `with
    parsing.caught()`: an error in it is raised, or the unit is skipped. It counts what it leaves out although it is
    right in `left_out`, for example under `pair(s) without a gold label`, and what it reads otherwise than it is
    written in `changed`.

    Arguments:
        skip: keeps the errors of units in `skipped`, and goes on with the next one; otherwise they are raised.
        on_error: is called with the errors instead, and reading goes on.
        needs_labels: whether an example must have gold labels; False for examples to predict.
        found: what a reader finds out about the source, and needs again.
    """

    skip: bool = False
    on_error: OnError | None = None
    needs_labels: bool = True
    skipped: list[DataError] = dataclasses.field(default_factory=list)
    left_out: Counter[str] = dataclasses.field(default_factory=Counter)
    changed: Counter[str] = dataclasses.field(default_factory=Counter)
    found: dict[Any, Any] = dataclasses.field(default_factory=dict)

    def add(self, error: DataError) -> None:
        """Raises the error of a unit, or keeps it."""
        if self.on_error:
            self.on_error(error)
        elif self.skip:
            self.skipped.append(error)
        else:
            raise error

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """For a block that reads one unit: an error ends the block, and is raised or kept."""
        try:
            yield
        except DataError as error:
            self.add(error)


def path_list(source: Source) -> list[str] | None:
    """The paths that a source consists of; None if it has examples."""
    if isinstance(source, (str, Path)):
        return [str(source)]
    if not (isinstance(source, Sequence) and source):
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
    if not (isinstance(source, Sequence) or is_data_set(source)):
        expected = "a path, a list of dicts or a datasets.Dataset"
        hint = "; of a pandas table, DATA.to_dict('records')" if type(source).__module__.startswith("pandas") else ""
        raise ArgumentError(f"got {type(source).__name__} as a data set; expected {expected}{hint}")
    digest = hashlib.sha256()
    if names := class_columns(source):  # the rows have only their ids
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


def class_names(feature: Any) -> list[str] | None:
    """The names of the class ids in a column of a `datasets.Dataset`, or of lists of ids; None if it has none."""
    import datasets

    label = getattr(feature, "feature", feature)
    return list(label.names) if isinstance(label, datasets.ClassLabel) else None


def class_columns(examples: Iterable[Any]) -> dict[str, list[str]]:
    """The names of the class ids in the columns of a `datasets.Dataset` that have such ids, or lists of them."""
    features = examples.features if is_data_set(examples) else {}
    return {column: names for column, feature in features.items() if (names := class_names(feature))}


def single_sources(source: Source) -> list[Source]:
    """The sources that a source consists of, in their order: those of a list, and what a pattern of names matches.

    A file comes only once, also if a list names it in several ways. The matches of a pattern are in the order of their
    names: files (see `without_copies`) or, if it matches no file, folders.

    Raises:
        DataError: no file's name matches a pattern.
    """
    if (paths := path_list(source)) is None:
        return [source]
    return [*each_once(each for path in paths for each in _matches(path))]


def _matches(path: str) -> list[str]:
    if glob.escape(path) == path or path.startswith((HUB_PREFIX, MEMORY_PREFIX)) or stored_file(Path(path)).exists():
        return [path]
    found = [each for each in matching_paths(path) if not is_clutter(each.name)]
    if not found:
        raise DataError(path, "no such file, and no file's name matches this pattern")
    return [str(each) for each in without_copies(each for each in found if each.is_file()) or found]


def without_copies(files: Iterable[Path]) -> list[Path]:
    """The files in the order of their names; of one that is there compressed too, only the one that is not."""
    kept: dict[Path, Path] = {}
    for file in sorted(files):
        kept.setdefault(file.with_name(plain_name(file)), file)
    return list(kept.values())


def joined(parts: Sequence[DataSet], first_files: Sequence[int]) -> DataSet:
    """Data sets one after the other. The numbers in the column `file` of each continue from its `first_files`."""
    import datasets

    numbered = []
    for part, first in zip(parts, first_files, strict=True):
        if first:  # otherwise the numbers are right, and the column stays on disk
            files: Any = part.data.column("file").to_numpy().astype(np.int32) + np.int32(first)
            part = part.remove_columns("file").add_column("file", files).select_columns(part.column_names)
        numbered.append(part)
    return datasets.concatenate_datasets(numbered)


def parse_hub_source(source: str) -> tuple[str, str | None, str | None]:
    """The name, config and split of `hub:NAME[#CONFIG][:SPLIT]`, for example `hub:owner/conll#english:train[:10%]`."""
    name, _, split = source.removeprefix(HUB_PREFIX).partition(":")
    name, _, config = name.partition("#")
    if not name:
        raise ElmoTasksError(f"{source}: not the name of a data set; expected {HUB_PREFIX}NAME[#CONFIG][:SPLIT]")
    return name, config or None, split or None


def load_from_hub(source: str) -> DataSet:
    """The rows of a hub source; without a split, those of its only one.

    Raises:
        ElmoTasksError: the data set cannot be loaded, or has several splits and none is named.
    """
    import datasets

    name, config, split = parse_hub_source(source)
    try:
        # In memory it would have no files, whose content is the cache's key.
        loaded = datasets.load_dataset(name, config, split=split, keep_in_memory=False)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        # Data sets that need a script raise a RuntimeError: `datasets` does not run scripts any more.
        raise ElmoTasksError(f"{source}: cannot be loaded: {error}") from error
    if is_data_set(loaded):
        return loaded
    if len(loaded) != 1:
        raise ElmoTasksError(f"{source}: say which split: {', '.join(f'{source}:{key}' for key in loaded)}")
    return next(iter(loaded.values()))
