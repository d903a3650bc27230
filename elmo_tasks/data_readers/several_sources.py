"""Data sets of several files: lists of paths, and patterns of file names such as `data/*.conll`."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np

from elmo_tasks.data_readers.sources import HUB_PREFIX, MEMORY_PREFIX, Source, path_list
from elmo_tasks.errors import DataError
from elmo_tasks.files.paths import each_once, is_clutter, matching_paths, plain_name, stored_file


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


def joined(parts: Sequence[datasets.Dataset], first_files: Sequence[int]) -> datasets.Dataset:
    """Data sets one after the other. The numbers in the column `file` of each continue from its `first_files`."""
    numbered = []
    for part, first in zip(parts, first_files, strict=True):
        if first:  # otherwise the numbers are right, and the column stays on disk
            files: Any = part.data.column("file").to_numpy().astype(np.int32) + np.int32(first)
            part = part.remove_columns("file").add_column("file", files).select_columns(part.column_names)
        numbered.append(part)
    return datasets.concatenate_datasets(numbered)
