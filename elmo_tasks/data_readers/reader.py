"""What every reader has in common: from a file or a hub data set to a memory-mapped, cached `datasets.Dataset`."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import json
import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import datasets
from datasets.arrow_writer import ArrowWriter

from elmo_tasks.config import Part, to_json
from elmo_tasks.errors import DataError, ElmoTasksError, UnknownLabelError
from elmo_tasks.files import atomic_path, cache_folder, content_hash, write_json
from elmo_tasks.tasks import Task

logger = logging.getLogger(__name__)

HUB_PREFIX = "hub:"
# Where an example begins, beside what its reader makes of it: its file, as a place in `DatasetReader.files`, and its
# line there, from 1; in a hub data set its row, from 0. A line that the reader does not tell is None.
PLACE_FEATURES = datasets.Features({"file": datasets.Value("int32"), "line": datasets.Value("int32")})


class DatasetReaderConfig(Part):
    """The kind of part that reads a data set."""

    @property
    def task(self) -> Task:
        """The task whose examples the reader makes, known before anything is read; a class attribute will do."""
        raise NotImplementedError(f"{type(self).__name__} does not say for which task it reads")

    def build(self) -> DatasetReader:
        """The reader with these settings."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its reader")

    def misfit(self, wanted: Task, *, key: str, other: Part, other_key: str) -> str | None:
        """Why what the reader reads does not fit another part of an experiment, and what to do; None if it fits.

        Arguments:
            wanted: the task of the other part.
            key: where the experiment's config has the reader.
            other, other_key: the config of the other part, and where it is.
        """
        problem = self.task.misfit(wanted)
        if problem is None:
            return None
        if isinstance(self.task, type(wanted)):  # only settings differ
            remedy = self._changes(wanted, key, other, other_key)
        else:
            remedy = f"Readers that fit: {', '.join(map(repr, _readers_of(type(wanted)))) or 'none'}"
        return f"{key} {_type_name(self)!r} does not fit {other_key} {_type_name(other)!r}: {problem}. {remedy}"

    def _changes(self, wanted: Task, key: str, other: Part, other_key: str) -> str:
        """Which settings of the two configs can be changed so that their tasks are the same."""
        changes = []
        for field in dataclasses.fields(wanted):
            given_value, wanted_value = getattr(self.task, field.name), getattr(wanted, field.name)
            if given_value != wanted_value:
                if field.name in type(other).model_fields:
                    changes.append(f"{other_key}.{field.name} to {json.dumps(given_value)}")
                if field.name in type(self).model_fields:
                    changes.append(f"{key}.{field.name} to {json.dumps(wanted_value)}")
        return f"Set {', or '.join(changes)}" if changes else "Choose another reader"


class HubSource(NamedTuple):
    """A data set of the Hugging Face hub, or a local folder in one of the forms that the hub knows."""

    name: str
    config: str | None
    split: str | None

    @classmethod
    def parse(cls, source: str) -> HubSource:
        """Reads `hub:NAME[#CONFIG][:SPLIT]`, for example `hub:owner/conll#english:train[:10%]`."""
        name, _, split = source.removeprefix(HUB_PREFIX).partition(":")
        name, _, config = name.partition("#")
        if not name:
            raise ElmoTasksError(f"{source}: no name of a data set; wanted {HUB_PREFIX}NAME[#CONFIG][:SPLIT]")
        return cls(name, config or None, split or None)


class DatasetReader(abc.ABC):
    """Reads a publisher's files (or a hub data set) into examples of a task.

    Arguments:
        config: the reader's settings. They are part of the cache's key.

    Class attributes:
        version: to be raised whenever a change of the reader's code gives other examples: no cached file is used then.
    """

    version: ClassVar[int] = 1

    def __init__(self, config: DatasetReaderConfig) -> None:
        self.config = config
        self.task = config.task

    def read(self, source: str | Path) -> datasets.Dataset:
        """The whole data set, memory-mapped.

        What was read is kept in `<cache folder>/datasets` under a key made of the content of the source and of
        `cache_key`. Writes are atomic: several processes can read the same source at once. A damaged cache file is made
        anew.

        Arguments:
            source: a file, compressed or not, for some readers a folder, or `hub:NAME[#CONFIG][:SPLIT]`.

        Raises:
            DataError: the file is missing, holds no example or does not follow its format.
            ElmoTasksError: the hub data set cannot be loaded or lacks what the reader needs.
        """
        if str(source).startswith(HUB_PREFIX):
            rows = _load_from_hub(str(source))
            content = [str(source), *(content_hash(file["filename"]) for file in rows.cache_files)]
            examples = self.hub_examples(rows, str(source))
        else:
            content = [content_hash(file) for file in self.files(Path(source))]
            examples = self.examples(Path(source))
        key = json.dumps([*self.cache_key(), *content])
        path = cache_folder() / "datasets" / f"{hashlib.sha256(key.encode()).hexdigest()}.arrow"
        if _is_intact(path):
            logger.debug("%s: read from %s", source, path)
        else:
            self._write(source, examples, path)
        return datasets.Dataset.from_file(str(path))

    def cache_key(self) -> list[Any]:
        """What the examples depend on beside the source: the reader, its version, its settings.

        A reader whose examples depend on more, such as a tokenizer's version, adds that.
        """
        return [type(self).__module__, type(self).__name__, self.version, to_json(self.config), sorted(PLACE_FEATURES)]

    def _write(self, source: str | Path, examples: Iterator[dict[str, Any]], path: Path) -> None:
        """Streams the examples into a cache file and records the file's checksum beside it."""
        logger.info("reading %s", source)
        begin = time.monotonic()
        with atomic_path(path) as temporary:
            features = datasets.Features({**self.task.features, **PLACE_FEATURES})
            with ArrowWriter(features=features, path=str(temporary)) as writer:
                for example in examples:
                    writer.write({"file": 0, "line": None, **example})
                count, _ = writer.finalize()
            if count == 0:
                raise DataError(source, "holds no example")
            checksum = content_hash(temporary)
        write_json(_checksum_path(path), {"sha256": checksum})
        logger.info("%s: %d examples in %.1f s", source, count, time.monotonic() - begin)

    def unknown_label(self, source: str | Path, examples: datasets.Dataset, error: UnknownLabelError) -> ElmoTasksError:
        """The error of a data set that has a label which the vocabulary does not have, with the place of the first."""
        number, example = next(
            (number, example)
            for number, example in enumerate(examples, start=1)
            if error.label in self.task.labels(example).get(error.namespace, ())
        )
        line = example["line"]
        if line is None:
            return ElmoTasksError(f"{source}: example {number}: {error}")
        if str(source).startswith(HUB_PREFIX):
            return ElmoTasksError(f"{source}: row {line}: {error}")
        file = self.files(Path(source))[example["file"]]
        return DataError(file, f"in the example that begins here: {error}", line)

    def files(self, path: Path) -> Sequence[Path]:
        """The files that a source stands for, in the order in which they are read: itself, where folders are unknown.

        Raises:
            DataError: there is no such file.
        """
        if not path.is_file():
            raise DataError(path, "no such file")
        return (path,)

    @abc.abstractmethod
    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        """Parses a file, or all files of a folder, one example at a time.

        In addition to the columns of the task's `features`, an example may have those of `PLACE_FEATURES`: then the
        error about a label that a run does not know names its file and line.

        Raises:
            DataError: the file does not follow its format; file and line are named.
        """

    def hub_examples(self, rows: datasets.Dataset, source: str) -> Iterator[dict[str, Any]]:
        """The examples of a hub data set's rows. A reader that knows none leaves this as it is.

        Raises:
            ElmoTasksError: the rows lack what the reader needs.
        """
        raise ElmoTasksError(f"{source}: {type(self).__name__} reads files alone; give the path of a file")


def _type_name(part: Part) -> str:
    return type(part).model_fields["type"].default


def _readers_of(task: type[Task]) -> list[str]:
    """The types of the readers for a task. One whose task depends on a setting without a default is not found."""
    readers = sorted(DatasetReaderConfig.alternatives.items())
    # A setting that is missing raises an AttributeError.
    return [name for name, reader in readers if isinstance(getattr(reader.model_construct(), "task", None), task)]


def _load_from_hub(source: str) -> datasets.Dataset:
    """The rows of a hub source; without a split, of the only one that it has."""
    name, config, split = HubSource.parse(source)
    try:
        # In memory it would have no files, whose content is the cache's key.
        loaded = datasets.load_dataset(name, config, split=split, keep_in_memory=False)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        # RuntimeError is what data sets that need a script of their own, no longer run by `datasets`, end with.
        raise ElmoTasksError(f"{source}: cannot be loaded: {error}") from error
    if isinstance(loaded, datasets.Dataset):
        return loaded
    if len(loaded) != 1:
        raise ElmoTasksError(f"{source}: say which split: {', '.join(f'{source}:{key}' for key in loaded)}")
    return next(iter(loaded.values()))


def _checksum_path(path: Path) -> Path:
    return path.with_suffix(".json")


def _is_intact(path: Path) -> bool:
    """Whether the cache file is there, whole, and readable."""
    try:
        recorded = json.loads(_checksum_path(path).read_text())
        if recorded["sha256"] == content_hash(path):
            return True
        logger.warning("%s: the cached data set is damaged and is made anew", path)
    except FileNotFoundError:
        pass
    except (ValueError, KeyError, TypeError) as error:
        logger.warning("%s: the cached data set is damaged and is made anew (%s)", path, error)
    return False
