"""What a head makes of the scores of a text, by its task: the most probable label, a set of labels, or a number.

# B batch, K scores: of the labels, or one for a number
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.models.labels import label_loss, label_predictions, label_probabilities, label_scores, log_of
from elmo_tasks.models.model import Prediction
from elmo_tasks.tasks.task import Example


class Target(nn.Module):
    """What is learned and predicted: here, one of K labels, `{"label": ..., "probabilities": {...}}`.

    Arguments:
        labels: the names of the labels; none for a number.

    Attributes:
        num_scores: K.
        threshold: what the probabilities of a set's labels are compared with at first; None for other targets.
    """

    threshold: float | None = None

    def __init__(self, labels: tuple[str, ...]) -> None:
        super().__init__()
        self.labels = labels
        self.num_scores = len(labels)

    def prepare_training(self, examples: Iterable[Example]) -> None:
        """Takes from the training data what the loss needs; by default nothing."""

    def loss(self, scores: Tensor, gold: Tensor, weights: Tensor | None) -> Tensor:
        """The mean loss of the examples, in single precision.

        Arguments:
            scores: (B, K).
            gold: what the batch has as `labels`.
            weights: of the labels in the loss, (K,); None if all count the same, or there are none.
        """
        return label_loss(scores, gold, weights)

    def predictions(self, scores: Tensor, temperature: float | None, threshold: Tensor | None) -> list[dict[str, Any]]:
        """The prediction of each example from scores (B, K); with a temperature, also the probabilities."""
        return label_predictions(scores, self.labels, temperature)

    def prediction_scores(self, scores: Tensor, predictions: Sequence[Prediction]) -> Tensor:
        """The score of a given prediction of each example, (B,), from scores (B, K)."""
        return label_scores(scores, predictions, self.labels)

    def to_average(self, scores: Tensor) -> Tensor:
        """What an ensemble averages, (B, K): probabilities, or numbers."""
        return scores.float().softmax(1)

    def from_average(self, means: Tensor) -> Tensor:
        """The scores (B, K) that stand for such means."""
        return log_of(means)


class LabelSetTarget(Target):
    """Those of K labels whose probability is at least the threshold: `{"labels": [...], "probabilities": {...}}`.

    Each label has a sigmoid of its own. The loss is the binary cross entropy, the mean over the labels.
    """

    threshold = 0.5

    def loss(self, scores: Tensor, gold: Tensor, weights: Tensor | None) -> Tensor:
        return functional.binary_cross_entropy_with_logits(scores.float(), gold, weights)

    def predictions(self, scores: Tensor, temperature: float | None, threshold: Tensor | None) -> list[dict[str, Any]]:
        assert threshold is not None  # the head has one, because the target has
        chosen = scores.float().sigmoid() >= threshold  # (B, K)
        predictions: list[dict[str, Any]] = [
            {"labels": [label for label, is_chosen in zip(self.labels, row, strict=True) if is_chosen]}
            for row in chosen.tolist()
        ]
        if temperature:
            shares = (scores.float() / temperature).sigmoid()  # (B, K)
            for prediction, each in zip(predictions, label_probabilities(shares, self.labels), strict=True):
                prediction["probabilities"] = each
        return predictions

    def prediction_scores(self, scores: Tensor, predictions: Sequence[Prediction]) -> Tensor:
        """The sum of the log probabilities of the labels in the predicted sets."""
        chosen = torch.tensor([[label in each["labels"] for label in self.labels] for each in predictions])
        return functional.logsigmoid(scores.float()).masked_fill(~chosen.to(scores.device), 0).sum(1)

    def to_average(self, scores: Tensor) -> Tensor:
        return scores.float().sigmoid()

    def from_average(self, means: Tensor) -> Tensor:
        return means.logit(eps=1e-7)


class NumberTarget(Target):
    """A number: `{"score": ...}`. The loss is the squared error, in standard deviations of the training data.

    So the scores are near 0, whatever the unit of the numbers is. The numbers are in double precision: in single
    precision, times in seconds would be exact to two minutes.
    """

    mean: Tensor  # () float64
    deviation: Tensor  # () float64

    def __init__(self, labels: tuple[str, ...]) -> None:
        super().__init__(labels)
        self.num_scores = 1
        self.register_buffer("mean", torch.tensor(0.0, dtype=torch.float64))
        self.register_buffer("deviation", torch.tensor(1.0, dtype=torch.float64))

    def prepare_training(self, examples: Iterable[Example]) -> None:
        numbers = torch.tensor([example["score"] for example in examples], dtype=torch.float64)
        self.mean.fill_(numbers.mean())
        self.deviation.fill_(numbers.std(correction=0) or 1.0)

    def loss(self, scores: Tensor, gold: Tensor, weights: Tensor | None) -> Tensor:
        return functional.mse_loss(scores.float().squeeze(1), ((gold - self.mean) / self.deviation).float())

    def predictions(self, scores: Tensor, temperature: float | None, threshold: Tensor | None) -> list[dict[str, Any]]:
        return [{"score": score} for score in self.prediction_scores(scores, ()).tolist()]

    def prediction_scores(self, scores: Tensor, predictions: Sequence[Prediction]) -> Tensor:
        """The numbers themselves."""
        return self.to_average(scores).squeeze(1)

    def to_average(self, scores: Tensor) -> Tensor:
        return scores.double() * self.deviation + self.mean

    def from_average(self, means: Tensor) -> Tensor:
        return (means - self.mean) / self.deviation


TARGETS = {"label": Target, "labels": LabelSetTarget, "score": NumberTarget}
"""The targets by the column of an example that is predicted."""
