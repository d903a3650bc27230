"""The data sets of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import datasets

from elmo_tasks.data_readers.in_memory import Source, source_name
from elmo_tasks.data_readers.reader import DatasetReader, examples_hash
from elmo_tasks.errors import DataError
from elmo_tasks.models.model import TaskModel
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import WORD_VECTORS
from elmo_tasks.text.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Data:
    """The data sets of a run."""

    reader: DatasetReader  # of the training data
    evaluation_reader: DatasetReader  # of the held-out data
    training: datasets.Dataset
    held_out: tuple[datasets.Dataset, ...]  # the validation data and, if there is any, the test data

    @classmethod
    def read(cls, config: ExperimentConfig, given: Mapping[str, Source | None] | None = None) -> Data:
        """Reads the data sets: those in `given`, by their key in the config, and the config's."""
        reader, evaluation_reader = config.dataset_reader.build(), config.evaluation_reader().build()
        keys = ("train_data_path", "validation_data_path", "test_data_path")
        source, *others = ((given or {}).get(key, getattr(config, key)) for key in keys)
        if config.fold or not config.has_test():
            others = others[:1]
        held_out = [read_examples(evaluation_reader, other) for other in others if other is not None]
        training = read_examples(reader, source)
        if config.fold:
            training, test = config.fold.split(training, read_examples(evaluation_reader, source), reader.task)
            held_out.append(test)
        if config.train_share:
            training = config.train_share.take(training)
        return cls(reader, evaluation_reader, training, tuple(held_out))

    def vocabulary(self, config: ExperimentConfig) -> Vocabulary:
        pretrained = config.model.embedder.pretrained_words()
        return config.vocabulary.build(self.reader.task, self.training, self.held_out, pretrained)

    def hashes(self, config: ExperimentConfig) -> dict[str, str]:
        """Of the contents on which a run depends, by their names in messages."""
        parts = zip(("training data", "validation data", "test data"), (self.training, *self.held_out), strict=False)
        hashes = {name: examples_hash(examples, self.reader.task) for name, examples in parts}
        vectors = config.model.embedder.word_vectors_hash()
        return {**hashes, WORD_VECTORS: vectors} if vectors else hashes

    def texts(self, model: TaskModel[Any, Any]) -> list[Sequence[str]]:
        """Every sequence of tokens that the model embeds, each once."""
        examples = (example for data in (self.training, *self.held_out) for example in data)
        return list(dict.fromkeys(tuple(tokens) for example in examples for tokens in model.embedded_texts(example)))


def read_examples(reader: DatasetReader, source: Source) -> datasets.Dataset:
    """A data set to learn from or to score; raises `DataError` if it has no gold labels that could be found."""
    examples = reader.read(source)
    if problem := reader.task.nothing_to_learn(examples):
        raise DataError(source_name(source), problem)
    return examples
