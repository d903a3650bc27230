"""What all heads share: from a batch to an output, to a loss or to predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from torch import Tensor, nn

from elmo_tasks.config import Part
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.embedder import Embedder, EmbedderConfig
from elmo_tasks.modules.dropout import Probability as Probability  # heads import it from here
from elmo_tasks.tasks import Batch, Task
from elmo_tasks.tasks.task import Example
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import Vocabulary

BatchT = TypeVar("BatchT", bound=Batch)
OutputT = TypeVar("OutputT", bound=TensorRecord)

Prediction = Mapping[str, Any]


class ModelConfig(Part):
    """The base of the configs of heads."""

    trained_by_steps: ClassVar[bool] = True  # False: `prepare_training` fits the head, and nothing is left to train

    embedder: EmbedderConfig

    @property
    def task(self) -> Task:
        """The task of the head; a class attribute is enough."""
        raise NotImplementedError(f"{type(self).__name__} does not say which task its head is for")

    def for_task(self, task: Task) -> ModelConfig:
        """This config for the task of a reader, if it does not name one. By default, a head has only one task."""
        return self

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> TaskModel[Any, Any]:
        """Makes the head.

        Arguments:
            vocabulary: has the labels.
            embedder: made by `self.embedder`; it becomes part of the head.
        """
        raise NotImplementedError


class TaskModel(nn.Module, ABC, Generic[BatchT, OutputT]):
    """A head on top of an embedder.

    `forward` returns only tensors, so that a training step neither decodes nor measures. The output for an example does
    not depend on the other examples of the batch.

    Arguments:
        embedder: reads the tokens. Heads also take the settings of their layers, and the labels by their ids.

    Attributes:
        task: the task of its config, whose batches it reads.
        threshold: what `decode` compares scores with, for models that have a threshold. Each validation sets it to the
            value that `Metric.choose_threshold` chooses, and a run keeps that of the best epoch.
        temperature: divides the scores that `decode` turns into probabilities, but not those by which it decides. 1
            unless the run is calibrated: Guo et al. (2017), "On Calibration of Modern Neural Networks", section 4.2.
    """

    task: Task
    threshold: Tensor | None  # ()

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder = embedder
        self.register_buffer("threshold", None)
        self.temperature = 1.0

    def embedded_texts(self, example: Example) -> Iterable[Sequence[str]]:
        """The token sequences of an example that the embedder reads; by default those of the task."""
        return self.task.texts(example)

    def prepare_training(self, examples: Iterable[Example]) -> None:
        """Takes from the training data what the loss needs, such as the frequencies of labels; by default nothing.

        It is called once before the first step, when the layers of all texts are in the store.
        """

    @abstractmethod
    def forward(self, batch: BatchT) -> OutputT:
        """The scores of a batch."""

    @abstractmethod
    def loss(self, output: OutputT, batch: BatchT) -> Tensor:
        """The loss of a batch with gold labels, a scalar: the mean over its examples.

        Raises:
            ValueError: the batch has no gold labels.
        """

    @abstractmethod
    def decode(self, output: OutputT, batch: BatchT, *, probabilities: bool = True) -> list[dict[str, Any]]:
        """The prediction of each example, in their order, as values for JSON.

        Arguments:
            probabilities: adds probabilities and attention, which metrics do not need.
        """

    def prediction_scores(self, output: OutputT, batch: BatchT, predictions: Sequence[Prediction]) -> Tensor:
        """The score of a prediction of each example, (B,), with a gradient: what `saliency` explains.

        It is the log probability of the prediction, or of the part of it that is to be explained; a number is its own
        score.

        Arguments:
            predictions: what `decode` gives, or a part of it that an explanation is about.

        Raises:
            ElmoTasksError: the head does not say what its predictions' scores are.
        """
        raise ElmoTasksError(f"{type(self).__name__} has no prediction_scores; without it no prediction is explained")

    def with_choices(self, outputs: Sequence[OutputT], batch: BatchT) -> BatchT:
        """The batch with all choices that models have made for their outputs, so that `forward` makes the same.

        They are choices that have no gradient and cannot be averaged. By default, a head makes none, and the result is
        the batch itself.
        """
        return batch

    def to_average(self, output: OutputT) -> OutputT:
        """The output in the form in which an ensemble averages it; by default the scores that it has.

        Its K labels, if it has any, stay in the last dimension of `logits`.
        """
        return output

    def from_average(self, output: OutputT) -> OutputT:
        """The output for `loss` and `decode` again, from the means of what `to_average` gives."""
        return output

    def details(self, output: OutputT, batch: BatchT) -> list[dict[str, Any]]:
        """What pictures of each prediction show in addition to `decode`'s values; by default nothing."""
        return [{} for _ in range(len(batch))]
