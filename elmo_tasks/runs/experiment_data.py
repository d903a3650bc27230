"""The data sets of a run."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import functools
import hashlib
import json
import logging
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic

from elmo_tasks.config import Overrides, override_list
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig, Notes
from elmo_tasks.data_readers.sources import HUB_PREFIX, DataSet, Source, source_name
from elmo_tasks.errors import DataError, RunError, counted
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.paths import matching_paths, stored_file
from elmo_tasks.models.model import TaskModel
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import WORD_VECTORS
from elmo_tasks.runs.learned import HELD_OUT, LEARNED, Learned
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.classification import LABELS
from elmo_tasks.text.vocabulary import Counts, Vocabulary
from elmo_tasks.training.data_splits import split_off

logger = logging.getLogger(__name__)

TRAINING = "training"
_HELD_OUT = 0.2  # of training data without validation data


def lacks_validation(config: ExperimentConfig, overrides: Overrides, given: Collection[str] = ()) -> bool:
    """Whether only the training data was set, by overrides or as `given`, and the config's validation data is gone."""
    keys = {*(each.partition("=")[0] for each in override_list(overrides)), *given}
    path = config.validation_data_path
    if "train_data_path" not in keys or "validation_data_path" in keys or not isinstance(path, str):
        return False
    return not (path.startswith(HUB_PREFIX) or matching_paths(stored_file(Path(path))))


def wants_folds(config: ExperimentConfig, overrides: Overrides, given: Mapping[str, Any]) -> bool:
    """Whether a run of this config is scored by a cross-validation: it says so, and has no validation data."""
    if config.folds is None or config.validation_share or config.fold:
        return False
    is_set = any(each.partition("=")[0] == "validation_data_path" for each in override_list(overrides))
    without = "validation_data_path" in given and given["validation_data_path"] is None and not is_set
    return without or lacks_validation(config, overrides, given)


def with_validation(
    config: ExperimentConfig, overrides: Overrides, given: Mapping[str, Any] | None = None
) -> ExperimentConfig:
    """The config; with a fifth of the training data held out if it lacks validation data, see `lacks_validation`."""
    given = given or {}
    if not (lacks_validation(config, overrides, given) or wants_folds(config, overrides, given)):
        return config
    logger.info("a fifth of the training data is held out as validation data, of each label if there are labels")
    return config.model_copy(update={"validation_data_path": None, "validation_share": _HELD_OUT})


class RunReaders(pydantic.BaseModel):
    """What the config of a run says of its readers."""

    dataset_reader: DatasetReaderConfig | None = None
    validation_dataset_reader: DatasetReaderConfig | None = None

    @classmethod
    def of(cls, run: str | Path) -> RunReaders:
        """Without those that are not known here, such as readers of a package that is not included."""
        config = open_run(run).config
        with contextlib.suppress(RunError):
            return read_json(config, cls, "the config of a run")
        return cls()


def with_columns(config: ExperimentConfig, earlier: str | Path | None = None) -> ExperimentConfig:
    """The config. If the training data is a single file, its reader reads all other files as this one, such as by the
    same columns.

    Arguments:
        earlier: a run whose columns are looked for first.
    """
    path = config.train_data_path
    if not isinstance(path, str) or not (file := stored_file(Path(path))).is_file():
        return config
    known = RunReaders.of(earlier).dataset_reader if earlier else None
    return config.model_copy(update={"dataset_reader": config.dataset_reader.trained_on(file, known)})


@dataclasses.dataclass(frozen=True)
class PartCounts(Counts):
    """What one pass over the training, validation or test data finds: all that a start needs of it."""

    sha256: str  # of the examples, in their order; it does not depend on where they come from
    right: array.array[int]  # of each example: a hash of what is right for it, 32 bits
    batch_lengths: array.array[int]  # of each example, as `Task.length` counts it

    @classmethod
    def of_part(cls, examples: DataSet, task: Task, loaded_as: Task) -> PartCounts:
        """Reads the examples once.

        Arguments:
            task: of the training data, whose columns are hashed, and whose texts and labels are counted.
            loaded_as: of the reader of the part, which says how long an example is.
        """
        digest, lengths, columns = hashlib.sha256(), array.array("q"), sorted(task.features)
        right, metric = array.array("q"), task.build_metric()

        def noted() -> Iterator[dict[str, Any]]:
            for example in examples:
                digest.update(json.dumps({column: example[column] for column in columns}).encode())
                lengths.append(loaded_as.length(example))
                right.append(zlib.crc32(json.dumps(metric.right(example)).encode()))
                yield example

        counts = Counts.of(task, noted())
        return cls(**vars(counts), sha256=digest.hexdigest(), right=right, batch_lengths=lengths)


@dataclasses.dataclass(frozen=True)
class Data:
    """The data sets of a run."""

    reader: DatasetReader  # of the training data
    evaluation_reader: DatasetReader  # of the held-out data
    training: DataSet  # with the copies that `augment` adds
    held_out: Mapping[str, DataSet]  # the validation data and the test data, as far as there are any

    @classmethod
    def read(
        cls,
        config: ExperimentConfig,
        given: Mapping[str, Source | None] | None = None,
        notes: dict[str, list[Notes]] | None = None,
        earlier: Learned | None = None,
    ) -> Data:
        """Reads the data sets: those in `given`, by their key in the config, and the config's.

        Arguments:
            notes: gets what the readers notice, by the name of the part; by default it is logged as warnings.
            earlier: what an earlier run has learned from; what it held out is held out again.
        """

        def read(part: str, reader: DatasetReader, source: Source) -> DataSet:
            return read_examples(reader, source, None if notes is None else notes.setdefault(part, []))

        reader, evaluation_reader = config.dataset_reader.build(), config.evaluation_reader().build()
        keys = ("train_data_path", "validation_data_path", "test_data_path")
        source, validation, test = ((given or {}).get(key, getattr(config, key)) for key in keys)
        training = read(TRAINING, reader, source)
        held_out: dict[str, DataSet] = {}
        if validation is not None:
            held_out["validation"] = read("validation", evaluation_reader, validation)
        if test is not None and config.has_test():
            held_out["test"] = read("test", evaluation_reader, test)
        as_held_out = training  # the same examples, as held-out data is read
        if (config.fold or config.validation_share) and evaluation_reader.config != reader.config:
            as_held_out = read("validation", evaluation_reader, source)
        known = earlier.parts if earlier else None
        if config.fold:
            training, held_out["validation"] = config.fold.split(training, as_held_out, reader.task, known)
        elif config.validation_share:
            training, held_out["validation"] = split_off(
                training, as_held_out, reader.task, config.validation_share, config.validation_seed, known
            )
        if config.train_share:
            training = config.train_share.take(training)
        if config.augment:  # last, so that no copy is of an example that is held out
            training = config.augment.with_copies(training, reader.task)
        return cls(reader, evaluation_reader, training, held_out)

    def vocabulary(self, config: ExperimentConfig) -> Vocabulary:
        vectors = config.model.embedder.word_vectors()
        training, *held_out = self.counts.values()
        return config.vocabulary.build(training, held_out, vectors.words if vectors else ())

    @property
    def parts(self) -> dict[str, DataSet]:
        """The training data and the held-out data."""
        return {TRAINING: self.training, **self.held_out}

    @functools.cached_property
    def counts(self) -> dict[str, PartCounts]:
        """What each part has."""
        counts: dict[str, PartCounts] = {}
        for name, examples in self.parts.items():
            reader = self.reader if name == TRAINING else self.evaluation_reader
            counts[name] = PartCounts.of_part(examples, self.reader.task, loaded_as=reader.task)
        return counts

    def learned(self, config: ExperimentConfig) -> Learned:
        """What a run learns from, and what is held out of the training data."""
        parts, right = dict[int, int](), defaultdict[int, set[int]](set)
        names = {"validation": HELD_OUT} if config.validation_share or config.fold else {}
        for name, part in (names | {TRAINING: LEARNED}).items():  # what is also learned from is not held out
            counts = self.counts[name]
            parts.update(dict.fromkeys(counts.keys, part))
            for key, each in zip(counts.keys, counts.right, strict=True):
                right[key].add(each)
        return Learned(parts, {key: sum(right[key]) for key in parts})

    def check_labels(self, config: ExperimentConfig) -> None:
        """Raises `DataError` if all texts of the training data have the same label."""
        labels = list(self.counts[TRAINING].labels.get(LABELS, ()))
        if len(labels) == 1 and "label" in self.reader.task.features:
            problem = f"all {counted(len(self.training), 'training example')} have the label {labels[0]!r}"
            remedy = "expected at least two labels: is it the right column, and the whole file?"
            raise DataError(source_name(config.train_data_path), f"{problem}; {remedy}")

    def origin(self, config: ExperimentConfig, part: str) -> tuple[DatasetReader, Source]:
        """The reader and the source of a part."""
        if part == TRAINING:
            return self.reader, config.train_data_path
        path = config.validation_data_path if part == "validation" else config.test_data_path
        return self.evaluation_reader, path or config.train_data_path

    def hashes(self, config: ExperimentConfig) -> dict[str, str]:
        """Hashes of the contents on which a run depends, by their names in messages."""
        hashes = {f"{name} data": counts.sha256 for name, counts in self.counts.items()}
        vectors = config.model.embedder.word_vectors()
        return {**hashes, WORD_VECTORS: vectors.fingerprint} if vectors else hashes

    def texts(self, model: TaskModel[Any, Any]) -> list[Sequence[str]]:
        """Every sequence of tokens that the model embeds, each once. Not counted before: they need much memory."""
        examples = (example for data in self.parts.values() for example in data)
        return list(dict.fromkeys(tuple(tokens) for example in examples for tokens in model.embedded_texts(example)))


def read_examples(reader: DatasetReader, source: Source, notes: list[Notes] | None = None) -> DataSet:
    """A data set to learn from or to score; raises `DataError` if it has no gold labels that could be found.

    Arguments:
        notes: see `DatasetReader.read`.
    """
    examples = reader.read(source, notes)
    if problem := reader.task.nothing_to_learn(examples):
        raise DataError(source_name(source), problem)
    return examples
