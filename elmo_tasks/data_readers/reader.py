"""What every reader has in common: from a file or a hub data set to a memory-mapped, cached `datasets.Dataset`."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
import itertools
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import datasets
from datasets.arrow_writer import ArrowWriter
from pydantic import Field

from elmo_tasks.config import Part, own_code, to_json
from elmo_tasks.config.data_folder import MissingDataError
from elmo_tasks.data_readers.bad_units import BadUnits
from elmo_tasks.data_readers.cache_records import CacheRecord, is_intact
from elmo_tasks.data_readers.hub import load_from_hub
from elmo_tasks.data_readers.several_sources import joined, single_sources
from elmo_tasks.data_readers.sources import (
    HUB_PREFIX,
    MEMORY_PREFIX,
    Examples,
    Source,
    checked_examples,
    path_list,
    source_name,
    with_task_columns,
)
from elmo_tasks.data_readers.suspicions import is_header, long_sentences
from elmo_tasks.errors import DataError, ElmoTasksError, OnError, UnknownLabelError, counted
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.cache import used_cache
from elmo_tasks.files.hashes import content_hash
from elmo_tasks.files.paths import refuse_stream, stored_file
from elmo_tasks.tasks import Task
from elmo_tasks.text.tokenizer_config import TokenizerChoice, build_tokenizer

logger = logging.getLogger(__name__)

Predicted = Callable[[int], str]
"""The prediction for a token, by the number of its line."""
# Where an example begins: its file, as an index into `DatasetReader.files`, and its line there, from 1; in a hub data
# set or one in memory its row, from 0. The line is None if the reader does not say it.
PLACE_FEATURES = datasets.Features({"file": datasets.Value("int32"), "line": datasets.Value("int32")})


class DatasetReaderConfig(Part):
    """The kind of part that reads a data set."""

    on_error: Annotated[
        Literal["fail", "skip"],
        Field(
            description="What happens with a sentence, document, proposition or row that does not follow the format: "
            "'fail' ends with an error; 'skip' leaves it out, and a warning names the lines."
        ),
    ] = "fail"
    tokenizer: Annotated[
        TokenizerChoice,
        Field(
            description="How raw text is split into sentences and tokens: text of the source that is not tokenized, "
            "and text to predict. 'treebank' is for English, 'unicode' for any language; 'whitespace' splits lines "
            "that are tokenized."
        ),
    ] = "treebank"

    @property
    def task(self) -> Task:
        """The task whose examples the reader makes. A class attribute is enough."""
        raise NotImplementedError(f"{type(self).__name__} does not say for which task it reads")

    def own_columns(self) -> Mapping[str, str]:
        """The names of the source's columns that differ from those of the task, and the task's: `{review: text}`."""
        return {}

    def trained_on(self, path: Path) -> DatasetReaderConfig:
        """The settings for the run that learns from a file, if other files are read by what is found out from it."""
        del path
        return self

    def build(self) -> DatasetReader:
        """The reader with these settings."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to build its reader")

    @classmethod
    def can_read(cls, task: Task) -> bool:
        """Whether readers of this type can make examples of a task of this kind, whatever its settings."""
        # The task may depend on a setting without a default: then there is no attribute `task` here.
        return isinstance(getattr(cls.model_construct(), "task", None), type(task))

    def mismatch(self, task: Task, *, key: str, other: Part, other_key: str) -> str | None:
        """Why the reader does not fit another part of an experiment, and what to do; None if it fits.

        Arguments:
            task: the task of the other part.
            key: the reader's key in the experiment's config.
            other, other_key: the config of the other part, and its key.
        """
        problem = self.task.mismatch(task)
        if problem is None:
            return None
        if isinstance(self.task, type(task)):  # only settings differ
            remedy = self._changes(task, key, other, other_key)
        else:
            readers = DatasetReaderConfig.choices().items()
            fitting = [
                repr(name)
                for name, reader in readers
                if issubclass(reader, DatasetReaderConfig) and reader.can_read(task)
            ]
            remedy = f"Readers that fit: {', '.join(fitting) or 'none'}"
        name, other_name = (type(part).model_fields["type"].default for part in (self, other))
        return f"{key} {name!r} does not fit {other_key} {other_name!r}: {problem}. {remedy}"

    def _changes(self, task: Task, key: str, other: Part, other_key: str) -> str:
        """Which settings of the two configs can be changed so that their tasks are the same."""
        changes = []
        for field in dataclasses.fields(task):
            own, others = getattr(self.task, field.name), getattr(task, field.name)
            if own != others:
                if field.name in type(other).model_fields:
                    changes.append(f"{other_key}.{field.name} to {json.dumps(own)}")
                if field.name in type(self).model_fields:
                    changes.append(f"{key}.{field.name} to {json.dumps(others)}")
        return f"Set {', or '.join(changes)}" if changes else "Choose another reader"


class DatasetReader(abc.ABC):
    """Reads a publisher's files (or a hub data set) into examples of a task.

    A reader parses each unit of its source, the smallest part that can be left out, in a block `with
    self.bad_units.caught()`: an error in it is raised, or the unit is skipped, as `on_error` says. It counts what it
    leaves out although it is right in `self.left_out`, for example under `pair(s) without a gold label`.

    Arguments:
        config: the reader's settings. They are part of the cache's key.

    Class attributes:
        version: raise it when a change of the code gives other examples, so that no cached file is used. A reader of
            your own needs it only in a notebook: otherwise a change of your files is seen.
        reads_text: whether the tokenizer makes tokens of the source, so that its version is part of the cache's key.
        needs_labels: whether an example must have gold labels; False where `unlabelled` reads examples to predict.
    """

    version: ClassVar[int] = 3
    reads_text: ClassVar[bool] = False
    needs_labels = True

    def __init__(self, config: DatasetReaderConfig) -> None:
        self.config = config
        self.task = config.task
        self.left_out: Counter[str] = Counter()
        self.bad_units = BadUnits(skip=config.on_error == "skip")
        self.quiet = False  # whether warnings, and what is skipped, are only kept; see `records_of`
        self.tokenizer = build_tokenizer(config.tokenizer)

    def read(self, source: Source) -> datasets.Dataset:
        """The whole data set, memory-mapped.

        The examples are cached in `<cache folder>/datasets`, by the content of the source, `cache_key` and the code of
        users' own parts. Several processes can read the same source at once. A damaged cache file is made again.

        Arguments:
            source: a file, see `stored_file`, or for some readers a folder; a pattern such as `data/*.csv`; or
                `hub:NAME[#CONFIG][:SPLIT]`; or a list of them; or the examples themselves, as a list of dicts or a
                `datasets.Dataset` with the columns of the task.

        Raises:
            DataError: the file is missing, has no example or does not follow its format; or the hub data set does not;
                or an example in memory lacks a column or has a wrong value.
            ElmoTasksError: the hub data set cannot be loaded.
        """
        if path_list(source) and (parts := single_sources(source)) != [str(source)]:
            counts = [len(self.origins(part)) for part in parts[:-1]]
            return joined([self.read(part) for part in parts], [0, *itertools.accumulate(counts)])
        if not isinstance(source, (str, Path)):
            given, source = source, source_name(source)
            content, examples = [source, self.tokenizer.version], self.memory_examples(given, source)
        elif str(source).startswith(MEMORY_PREFIX):
            raise DataError(source, "the examples were given in memory, and are not kept; give them again, or a file")
        elif str(source).startswith(HUB_PREFIX):
            rows = self._hub_rows(str(source))
            content = [str(source), *(content_hash(file["filename"]) for file in rows.cache_files)]
            examples = self.hub_examples(rows, str(source))
        else:
            source = stored_file(Path(source))
            content = self.file_key(source)
            examples = self.examples(source)
        key = json.dumps([*self.cache_key(), *own_code(self.config, type(self)), *content])
        path = used_cache("datasets") / f"{hashlib.sha256(key.encode()).hexdigest()}.arrow"
        if is_intact(path):
            logger.debug("%s: read from %s", source, path)
        else:
            self._write(source, examples, path)
        if not self.quiet:
            CacheRecord.read(path, source).warn(path)
        return datasets.Dataset.from_file(str(path))

    def unlabelled(self, source: str, on_error: OnError | None = None) -> Iterator[dict[str, Any]]:
        """The examples of a file or a hub data set to predict, one by one: those before an error come first.

        They need no gold labels where the format can do without: a column of labels or tags may be missing.

        Arguments:
            on_error: called with the error of each part that does not follow the format, which is left out then; by
                default the error is raised.

        Raises:
            DataError, ElmoTasksError: see `read`.
        """
        self.needs_labels, self.bad_units = False, BadUnits(on_error=on_error)
        is_hub = source.startswith(HUB_PREFIX)
        examples = (
            self.hub_examples(self._hub_rows(source), source) if is_hub else self.examples(stored_file(Path(source)))
        )
        for example in examples:
            yield {"line": None, **example}
        for what, number in (+self.left_out).items():
            logger.warning("%s: %d %s left out", source, number, what)

    def with_predictions(self, path: Path, predicted: Predicted) -> Iterator[str]:
        """The lines of a file with predictions, in the format that the reader reads.

        Arguments:
            predicted: called for each token, in their order, with the number of its line.

        Raises:
            ElmoTasksError: the format has no place for predictions.
        """
        name = type(self.config).model_fields["type"].default
        raise ElmoTasksError(
            f"files of the reader {name!r} have no place for predictions; expected a table (--output FILE.csv) or JSON "
            "lines"
        )

    def _hub_rows(self, source: str) -> datasets.Dataset:
        if type(self).hub_examples is DatasetReader.hub_examples:
            raise ElmoTasksError(f"{source}: {type(self).__name__} only reads files; give the path of a file")
        return load_from_hub(source)

    def cache_key(self) -> list[Any]:
        """What the examples depend on, in addition to the source."""
        key = [type(self).__module__, type(self).__name__, self.version, to_json(self.config), sorted(PLACE_FEATURES)]
        return [*key, self.tokenizer.version] if self.reads_text else key

    def file_key(self, path: Path) -> list[str]:
        """What the examples of a file or folder depend on: the content of its files."""
        return [content_hash(file) for file in self.files(path)]

    def _write(self, source: str | Path, examples: Iterator[dict[str, Any]], path: Path) -> None:
        """Streams the examples into a cache file, and writes its checksum and what was skipped next to it."""
        logger.info("reading %s", source)
        begin = time.monotonic()
        self.bad_units.take()  # of an earlier source, which was given up
        self.left_out.clear()
        long: list[tuple[dict[str, Any], int, int]] = []
        with atomic_write(path) as stream:
            features = datasets.Features({**self.task.features, **PLACE_FEATURES})
            with ArrowWriter(features=features, stream=stream) as writer:
                for example in examples:
                    writer.write(row := {"file": 0, "line": None, **example})
                    long += [(row, *found) for found in long_sentences(row, self.task.sentence_columns)]
                count, _ = writer.finalize()
            skipped = [str(error) for error in self.bad_units.take()]
            if count == 0:
                reasons = [f"{number} {what} left out" for what, number in (+self.left_out).items()]
                reasons += [f"{len(skipped)} were skipped, the first because of {skipped[0]}"] if skipped else []
                raise DataError(source, "; ".join(["has no example", *reasons]))
        warnings = [*self._suspicions(datasets.Dataset.from_file(str(path))[0], long, source)]
        for what, number in (+self.left_out).items():
            logger.info("%s: %d %s left out", source, number, what)
        record = CacheRecord(sha256=content_hash(path), source=str(source), skipped=skipped, warnings=warnings)
        record.write(path)
        logger.info("%s: %s in %.1f s", source, counted(count, "example"), time.monotonic() - begin)

    def _suspicions(
        self, first: Mapping[str, Any], long: Sequence[tuple[Mapping[str, Any], int, int]], source: str | Path
    ) -> Iterator[str]:
        """Warns of a header row that is read as the first example, and of sentences that are too long."""
        if is_header(first):
            yield (
                f"{self.location(source, first)}: what looks like the names of columns is read as data; delete "
                "the line, or for a table set header: true"
            )
        if long:
            example, sentence, length = long[0]
            inside = f" (sentence {sentence + 1} of the example)" if sentence else ""
            others = f" (and {len(long) - 1} more like it)" if len(long) > 1 else ""
            yield (
                f"{self.location(source, example)}: a sentence of {length:,} tokens{inside}{others}. Real "
                "sentences are shorter: is there no empty line after each sentence, no column named that numbers them, "
                "or a quote that is never closed?"
            )

    def location(self, source: Source, example: Mapping[str, Any]) -> str:
        """Where an example begins, as far as the reader says it."""
        return next(self.locations(source, [example]))

    def locations(self, source: Source, examples: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Where each example begins, as far as the reader says it."""
        origins, name = self.origins(source), source_name(source)
        for example in examples:
            origin, line = origins[example["file"]], example["line"]
            if line is None:  # as in SQuAD's files
                yield f"{origin}: {example['id']}" if example.get("id") else name
            else:
                yield f"{origin}{': row ' if origin.startswith((HUB_PREFIX, MEMORY_PREFIX)) else ':'}{line}"

    def origins(self, source: Source) -> list[str]:
        """What the numbers in the column `file` stand for: files, hub data sets or examples in memory.

        Raises:
            DataError: a file is missing.
        """
        origins: list[str] = []
        for part in map(source_name, single_sources(source)):
            is_elsewhere = part.startswith((HUB_PREFIX, MEMORY_PREFIX))
            origins += [part] if is_elsewhere else map(str, self.files(Path(part)))
        return origins

    def unknown_label(self, source: Source, examples: datasets.Dataset, error: UnknownLabelError) -> ElmoTasksError:
        """The error for a gold label that the vocabulary does not have, with the location of its first example."""
        number, example = next(
            (number, example)
            for number, example in enumerate(examples, start=1)
            if error.label in self.task.labels(example).get(error.namespace, ())
        )
        name = self.location(source, example)
        problem = f"{error} --unknown-labels count (unknown_labels='count') counts it as an error of the run"
        if example["line"] is None:
            return ElmoTasksError(f"{name}: example {number}: {problem}")
        begins = "" if name.startswith((HUB_PREFIX, MEMORY_PREFIX)) else "in the example that begins here: "
        return DataError(name, f"{begins}{problem}")

    def files(self, path: Path) -> Sequence[Path]:
        """The files of a source, in the order in which they are read. By default, a source is one file.

        Raises:
            DataError: there is no such file, or it is a folder.
        """
        file = stored_file(path)
        if file.is_dir():
            raise DataError(path, "is a folder; expected a file")
        refuse_stream(file)
        if not file.is_file():
            raise MissingDataError(path)
        return (file,)

    @abc.abstractmethod
    def examples(self, path: Path) -> Iterator[dict[str, Any]]:
        """Parses a file, or all files of a folder, one example at a time.

        In addition to the columns of the task's `features`, an example may have those of `PLACE_FEATURES`: errors about
        unknown labels name them.

        Raises:
            DataError: the file does not follow its format; file and line are named.
        """

    def memory_examples(self, examples: Examples, name: str) -> Iterator[dict[str, Any]]:
        """The examples of a data set in memory, with the columns of the task or its own; errors name it by `name`."""
        examples = with_task_columns(examples, self.config.own_columns())
        return checked_examples(examples, self.task, name, self.bad_units, self.left_out, self.tokenizer)

    def hub_examples(self, rows: datasets.Dataset, source: str) -> Iterator[dict[str, Any]]:
        """The examples of a hub data set's rows. A reader that does not override this only reads files.

        Raises:
            ElmoTasksError: the rows lack what the reader needs.
        """
        raise NotImplementedError
