"""A whole experiment as a config, and what its results hold."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

# Importing the packages of parts registers their types.
import elmo_tasks.data_readers
import elmo_tasks.models  # noqa: F401
from elmo_tasks.config import Config, DataPath
from elmo_tasks.data_readers.reader import DatasetReaderConfig
from elmo_tasks.elmo import ElmoConfig
from elmo_tasks.elmo.frozen_layers import FrozenLayersConfig
from elmo_tasks.errors import RunError, one_line
from elmo_tasks.files.json_files import Number
from elmo_tasks.models.model import ModelConfig, TaskModel
from elmo_tasks.modules.devices import shapes_only
from elmo_tasks.tasks import Task
from elmo_tasks.text.vocabulary import Vocabulary, VocabularyConfig
from elmo_tasks.training.batching import DataLoaderConfig
from elmo_tasks.training.data_splits import Augmentation, Fold, TrainShare
from elmo_tasks.training.trainer_config import TrainerConfig

logger = logging.getLogger(__name__)


class ExperimentConfig(Config):
    """A whole experiment: what is read, what is trained on it and how."""

    hints_for_other_configs = {  # noqa: RUF012
        "corpus": "describes the pretraining of a biLM, not a task; use `elmo-tasks pretrain`",
        "arms": "describes a study, not a task; use `elmo-tasks study`",
        "space": "describes a search, not a task; use `elmo-tasks tune`",
        "char_cnn": "the options of a biLM, not a config; --set model.embedder.elmo.bilm=DIR names its folder",
        "data": "data as SQuAD has it, not a config; name it with --set train_data_path=FILE",
    }

    dataset_reader: DatasetReaderConfig
    validation_dataset_reader: DatasetReaderConfig | None = Field(
        None, description="reads what is evaluated, for the same task; default: `dataset_reader`"
    )
    train_data_path: DataPath = Field(
        description="what to learn from: a file, compressed or not, a folder if the reader takes one, a pattern of "
        "names such as 'data/*.csv', a hub data set, or a list of them"
    )
    validation_data_path: DataPath | None = Field(
        description="the same, to choose the best epoch; null for none: then the last epoch is the best"
    )
    validation_share: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="holds out a random share of the training data as validation data, with `validation_data_path: "
        "null`; documents stay whole where they are known",
    )
    validation_seed: int = Field(1, ge=0, description="of the share or of the folds that are held out")
    folds: Annotated[int, Field(ge=2)] | None = Field(
        None,
        description="without validation data: `train` scores the run by a cross-validation with this many folds, which "
        "also choose the number of epochs, and then learns from all examples. Only up to 2,000 of them",
    )
    test_data_path: DataPath | None = Field(None, description="the same, evaluated once, after training")
    train_share: TrainShare | None = Field(None, description="trains on a random share of the training data")
    fold: Fold | None = Field(
        None, description="holds out a fold of the training data as validation data, with `validation_data_path: null`"
    )
    augment: Augmentation | None = Field(None, description="adds changed copies of the training examples")
    vocabulary: VocabularyConfig = VocabularyConfig()
    model: ModelConfig
    data_loader: DataLoaderConfig
    validation_data_loader: DataLoaderConfig | None = Field(
        None, description="batches for evaluation; by default those of `data_loader`, in a fixed order"
    )
    trainer: TrainerConfig
    random_seed: Annotated[int, Field(ge=0, lt=2**63)] = 13370
    calibrated: bool = Field(True, description="predicts at the temperature of `calibrate`, where the run has one")
    wanted_precision: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="a label is predicted only if it is probable enough for this share of right labels, by the "
        "predictions of the cross-validation or of `calibrate`; otherwise it is null",
    )
    evaluate_on_test: bool = Field(True, description="evaluates the best epoch on `test_data_path`, where there is one")

    @field_validator("augment")
    @classmethod
    def _can_change_examples(cls, augment: Augmentation | None, info: ValidationInfo) -> Augmentation | None:
        reader = info.data.get("dataset_reader")
        if augment and reader and (fault := augment.fault(reader.task)):
            raise ValueError(fault)
        return augment

    @field_validator("model")
    @classmethod
    def _fits_the_readers(cls, model: ModelConfig, info: ValidationInfo) -> ModelConfig:
        reader, evaluation_reader = info.data.get("dataset_reader"), info.data.get("validation_dataset_reader")
        model = model.for_task(reader.task) if reader else model
        for key, given in (("dataset_reader", reader), ("validation_dataset_reader", evaluation_reader)):
            if given and (problem := given.mismatch(model.task, key=key, other=model, other_key="model")):
                raise ValueError(problem)
        if reader and evaluation_reader:
            keys = {"key": "validation_dataset_reader", "other_key": "dataset_reader"}
            if problem := evaluation_reader.mismatch(reader.task, other=reader, **keys):
                raise ValueError(problem)
        return model

    @field_validator("data_loader")
    @classmethod
    def _has_labels_to_balance(cls, data_loader: DataLoaderConfig, info: ValidationInfo) -> DataLoaderConfig:
        task = type(info.data["model"].task) if "model" in info.data else None
        if task and data_loader.sampling and task.compared_labels is Task.compared_labels:
            raise ValueError(f"sampling: expected a task that predicts labels or tags, got {task.__name__}")
        if data_loader.sampling and (model := info.data.get("model")) and not model.trained_by_steps:
            raise ValueError(f"sampling: {model.type} learns without batches; expected model.class_weights: 'balanced'")
        return data_loader

    @field_validator("trainer")
    @classmethod
    def _has_the_metric(cls, trainer: TrainerConfig, info: ValidationInfo) -> TrainerConfig:
        if model := info.data.get("model"):
            trainer.check_metric({**model.task.build_metric().compute(), "loss": 0.0})
        return trainer

    @model_validator(mode="after")
    def _can_choose_an_epoch(self) -> ExperimentConfig:
        given = {"validation_data_path": self.validation_data_path, "validation_share": self.validation_share}
        for key, value in {"validation_share": self.validation_share, "fold": self.fold}.items():
            if others := [other for other in given if other != key and value and given[other] is not None]:
                raise ValueError(f"{key}: expected {others[0]}: null, which it replaces")
        waits = self.trainer.patience is not None and self.folds is None
        if (waits or self.trainer.learning_rate_scheduler.moves == "metric") and not self.has_validation():
            raise ValueError(
                "trainer: expected patience: null and a learning_rate_scheduler that does not follow a score, because "
                "there is no validation data; or set validation_share to hold some out of the training data"
            )
        return self

    def has_validation(self) -> bool:
        """Whether validation data chooses the best epoch."""
        return (self.validation_data_path or self.validation_share or self.fold) is not None

    def has_test(self) -> bool:
        """Whether the best epoch is evaluated on test data."""
        return self.test_data_path is not None and self.evaluate_on_test

    def evaluation_loader(self) -> DataLoaderConfig:
        return (self.validation_data_loader or self.data_loader).model_copy(
            update={"shuffle": False, "sampling": None, "min_batches": 1}
        )

    def evaluation_reader(self) -> DatasetReaderConfig:
        return self.validation_dataset_reader or self.dataset_reader

    def build_model(self, vocabulary: Vocabulary, *, pretrained: bool) -> TaskModel:
        """The untrained model. With `pretrained`, the word vectors are read; otherwise a run's tensors replace them."""
        embedder = self.model.embedder.build(vocabulary, pretrained=pretrained)
        return self.model.build(vocabulary, embedder)

    def tensor_shapes(self, vocabulary: Vocabulary, name: str | Path) -> dict[str, tuple[int, ...]]:
        """The shapes of the model's tensors. No memory is allocated for them, since the config may be a stranger's.

        Raises:
            RunError: the sizes are too large for a model; the message begins with `name`.
        """
        try:
            with shapes_only():
                model = self.build_model(vocabulary, pretrained=False)
        except (RuntimeError, OverflowError, TypeError) as error:  # torch's, of sizes beyond what it can count
            raise RunError(f"{name}: its sizes are too large for a model ({one_line(error)})") from None
        return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}

    def elmo(self) -> ElmoConfig | None:
        return self.model.embedder.elmo

    def transformer(self) -> FrozenLayersConfig | None:
        return self.model.embedder.transformer


class BestEpoch(Config):
    """What readers of `metrics.json` use of the best epoch's record."""

    model_config = ConfigDict(extra="allow")
    epoch: int
    validation: dict[str, int | Number]


class Results(Config):
    """The contents of `metrics.json`."""

    best: BestEpoch
    test: dict[str, int | Number] | None = None


class Answers(Config):
    """What comes of predicting only labels of at least some `probability`: shares from 0 to 1."""

    probability: float
    share: float  # of the examples, that get a label
    precision: float  # of these, that is right


class Calibration(Config):
    """What is read of `calibration.json`."""

    model_config = ConfigDict(extra="allow")
    temperature: Annotated[float, Field(ge=0.1, le=10)]
    answers: Sequence[Answers] = ()  # from the most to the fewest labels, with a growing precision

    def least_probability(self, precision: float, name: str | Path) -> float:
        """From which probability on labels have a precision, where there are `answers`.

        Raises:
            RunError: for none. It begins with `name`.
        """
        for each in self.answers:
            if each.precision >= precision:
                logger.info(
                    "labels from a probability of %.3f on: %.0f %% of the examples, of which %.1f %% are right",
                    each.probability,
                    100 * each.share,
                    100 * each.precision,
                )
                return each.probability
        best = self.answers[-1]
        raise RunError(
            f"{name}: no labels are right as often as {precision:g}; expected at most {best.precision:.3f}, which "
            f"{100 * best.share:.0f} % of the examples reach"
        )
