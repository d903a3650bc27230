"""The data sets of a run."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets

from elmo_tasks.config import Overrides, override_list
from elmo_tasks.data_readers.reader import DatasetReader, examples_hash
from elmo_tasks.data_readers.sources import HUB_PREFIX, Source, source_name
from elmo_tasks.errors import DataError, counted
from elmo_tasks.files.paths import matching_paths, stored_file
from elmo_tasks.models.model import TaskModel
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import WORD_VECTORS
from elmo_tasks.tasks.classification import LABELS
from elmo_tasks.text.vocabulary import Counts, Vocabulary
from elmo_tasks.training.data_splits import split_off

logger = logging.getLogger(__name__)

TRAINING = "training"
_HELD_OUT = 0.2  # of training data without validation data


def with_validation(config: ExperimentConfig, overrides: Overrides, given: Collection[str] = ()) -> ExperimentConfig:
    """The config; with a fifth of the training data held out, if only this was set, by overrides or as `given`, and the
    config's file of validation data is not there.
    """
    keys = {*(each.partition("=")[0] for each in override_list(overrides)), *given}
    path = config.validation_data_path
    if "train_data_path" not in keys or "validation_data_path" in keys or not isinstance(path, str):
        return config
    if path.startswith(HUB_PREFIX) or matching_paths(stored_file(Path(path))):
        return config
    held_out = "a fifth of the training data is held out, of each label if there are labels"
    logger.info("%s: no such file, and no validation_data_path is set: %s; --folds 5 scores all", path, held_out)
    return config.model_copy(update={"validation_data_path": None, "validation_share": _HELD_OUT})


def with_columns(config: ExperimentConfig) -> ExperimentConfig:
    """The config, whose reader reads other files by what it finds out from the training data, if this is one file."""
    path = config.train_data_path
    if not isinstance(path, str) or not (file := stored_file(Path(path))).is_file():
        return config
    return config.model_copy(update={"dataset_reader": config.dataset_reader.trained_on(file)})


@dataclasses.dataclass(frozen=True)
class Data:
    """The data sets of a run."""

    reader: DatasetReader  # of the training data
    evaluation_reader: DatasetReader  # of the held-out data
    training: datasets.Dataset  # with the copies that `augment` adds
    held_out: Mapping[str, datasets.Dataset]  # the validation data and the test data, as far as there are any

    @classmethod
    def read(
        cls, config: ExperimentConfig, given: Mapping[str, Source | None] | None = None, *, quiet: bool = False
    ) -> Data:
        """Reads the data sets: those in `given`, by their key in the config, and the config's.

        Arguments:
            quiet: the readers log no warnings; see `records_of`.
        """
        reader, evaluation_reader = config.dataset_reader.build(), config.evaluation_reader().build()
        reader.quiet = evaluation_reader.quiet = quiet
        keys = ("train_data_path", "validation_data_path", "test_data_path")
        source, validation, test = ((given or {}).get(key, getattr(config, key)) for key in keys)
        held_out: dict[str, datasets.Dataset] = {}
        if validation is not None:
            held_out["validation"] = read_examples(evaluation_reader, validation)
        if test is not None and config.has_test() and not config.fold:
            held_out["test"] = read_examples(evaluation_reader, test)
        training = read_examples(reader, source)
        again = training
        if (config.fold or config.validation_share) and evaluation_reader.config != reader.config:
            again = read_examples(evaluation_reader, source)
        if config.fold:
            rest, _ = config.fold.split(again, again, reader.task)
            training, held_out["test"] = config.fold.split(training, again, reader.task)
            again = rest
        if config.validation_share:
            training, held_out["validation"] = split_off(
                training, again, reader.task, config.validation_share, config.validation_seed
            )
        if config.train_share:
            training = config.train_share.take(training)
        if config.augment:  # last, so that no copy is of an example that is held out
            training = config.augment.with_copies(training, reader.task)
        return cls(reader, evaluation_reader, training, held_out)

    def vocabulary(self, config: ExperimentConfig) -> Vocabulary:
        pretrained = config.model.embedder.pretrained_words()
        training, *held_out = self.counts.values()
        return config.vocabulary.build(training, held_out, pretrained)

    @property
    def parts(self) -> dict[str, datasets.Dataset]:
        """The training data and the held-out data."""
        return {TRAINING: self.training, **self.held_out}

    @functools.cached_property
    def counts(self) -> dict[str, Counts]:
        """What each part has."""
        return {name: Counts.of(self.reader.task, examples) for name, examples in self.parts.items()}

    def check_labels(self, config: ExperimentConfig) -> None:
        """Raises `DataError` if all texts of the training data have the same label."""
        labels = list(self.counts[TRAINING].labels.get(LABELS, ()))
        if len(labels) == 1 and "label" in self.reader.task.features:
            problem = f"all {counted(len(self.training), 'training example')} have the label {labels[0]!r}"
            remedy = "expected at least two labels: is it the right column, and the whole file?"
            raise DataError(source_name(config.train_data_path), f"{problem}; {remedy}")

    def words(self, config: ExperimentConfig, part: str) -> Counter[str]:
        """How often a part has each word, in the form in which it is looked up."""
        words: Counter[str] = Counter()
        for token, number in self.counts[part].tokens.items():
            words[config.vocabulary.key(token)] += number
        return words

    def same_texts(self, part: str) -> int:
        """The examples of a part whose texts are those of a training example."""
        known = set(self.counts[TRAINING].keys)
        return sum(key in known for key in self.counts[part].keys)

    def origin(self, config: ExperimentConfig, part: str) -> tuple[DatasetReader, Source]:
        """The reader and the source of a part."""
        if part == TRAINING:
            return self.reader, config.train_data_path
        path = config.validation_data_path if part == "validation" else not config.fold and config.test_data_path
        return self.evaluation_reader, path or config.train_data_path

    def hashes(self, config: ExperimentConfig) -> dict[str, str]:
        """Hashes of the contents on which a run depends, by their names in messages."""
        hashes = {f"{name} data": examples_hash(part, self.reader.task) for name, part in self.parts.items()}
        vectors = config.model.embedder.word_vectors_hash()
        return {**hashes, WORD_VECTORS: vectors} if vectors else hashes

    def validation_locations(self, config: ExperimentConfig) -> list[str]:
        """Where each example of the validation data begins."""
        reader, source = self.origin(config, "validation")
        return list(reader.locations(source, self.held_out["validation"]))

    def texts(self, model: TaskModel[Any, Any]) -> list[Sequence[str]]:
        """Every sequence of tokens that the model embeds, each once."""
        examples = (example for data in self.parts.values() for example in data)
        return list(dict.fromkeys(tuple(tokens) for example in examples for tokens in model.embedded_texts(example)))


def read_examples(reader: DatasetReader, source: Source) -> datasets.Dataset:
    """A data set to learn from or to score; raises `DataError` if it has no gold labels that could be found."""
    examples = reader.read(source)
    if problem := reader.task.nothing_to_learn(examples):
        raise DataError(source_name(source), problem)
    return examples
