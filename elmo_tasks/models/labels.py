"""What the heads that predict labels share: a label for each example, or a tag for each token.

# B batch, T tokens of the longest sentence, K labels
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from elmo_tasks.errors import ElmoTasksError, did_you_mean
from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.model import BatchT, ModelConfig, OutputT, Prediction, TaskModel
from elmo_tasks.modules.crf import TransitionConstraints
from elmo_tasks.tasks.task import Example
from elmo_tasks.text.tag_schemes import TagScheme, is_tag
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import natural_order

LabelWeights = dict[str, Annotated[float, Field(ge=0)]]


class LabelModelConfig(ModelConfig):
    """The base of the configs of heads that learn labels with a cross entropy."""

    class_weights: Literal["balanced"] | LabelWeights | None = Field(
        None,
        description="how much each label counts in the loss: {label: weight}, 1 for the others; or 'balanced': rare "
        "labels of the training data count more, so that all labels count the same in total",
    )


class LabelModel(TaskModel[BatchT, OutputT]):
    """The base of heads that learn a label for each example or token with a cross entropy: see `label_loss`.

    Arguments:
        embedder: reads the tokens.
        config: has the weights of the labels.
        labels: the K labels by their ids.

    Attributes:
        class_weights: the weights of the labels in the loss, (K,); None if all count the same.

    Raises:
        ElmoTasksError: the config has the weight of another label.
    """

    class_weights: Tensor | None

    def __init__(self, embedder: Embedder, config: LabelModelConfig, labels: tuple[str, ...]) -> None:
        super().__init__(embedder)
        self.labels = labels
        self.is_balanced = config.class_weights == "balanced"
        given = {} if config.class_weights == "balanced" else config.class_weights
        weights = None if given is None else label_weights(given, labels, "model.class_weights")
        self.register_buffer("class_weights", weights)  # a run keeps it with its frozen tensors

    def prepare_training(self, examples: Iterable[Example]) -> None:
        """Computes balanced weights, `N / (K * count)` for a label that is `count` of the data's N labels or tags.

        Source: scikit-learn's `class_weight="balanced"`. Labels that the data lacks are not among the K and keep 1.
        """
        if self.class_weights is not None and self.is_balanced:
            counts = Counter(label for example in examples for label in self.task.gold_labels(example))
            balanced = {label: counts.total() / (len(counts) * count) for label, count in counts.items()}
            self.class_weights.copy_(label_weights(balanced, self.labels, "model.class_weights"))

    def loss(self, output: OutputT, batch: BatchT) -> Tensor:
        """See `label_loss`."""
        return label_loss(output.logits, batch.labels, self.class_weights)  # type: ignore[attr-defined]

    def prediction_scores(self, output: OutputT, batch: BatchT, predictions: Sequence[Prediction]) -> Tensor:
        """See `label_scores`."""
        return label_scores(output.logits, predictions, self.labels)  # type: ignore[attr-defined]

    def tag_probabilities(self, logits: Tensor, tags: Tensor) -> Tensor:
        """The probabilities of tags (B, T) from logits (B, T, K), at the model's temperature; (B, T)."""
        return (logits.float() / self.temperature).softmax(2).gather(2, tags.unsqueeze(2)).squeeze(2)

    def to_average(self, output: OutputT) -> OutputT:
        """Labels and tags have their probabilities averaged."""
        return with_logits(output, output.logits.float().softmax(-1))  # type: ignore[attr-defined]

    def from_average(self, output: OutputT) -> OutputT:
        shares: Tensor = output.logits  # type: ignore[attr-defined]
        return with_logits(output, shares.clamp(min=torch.finfo(shares.dtype).tiny).log())  # finite where one is 0


def with_logits(output: OutputT, logits: Tensor) -> OutputT:
    return dataclasses.replace(output, logits=logits)  # type: ignore[call-arg]  # all of these outputs have them


def label_weights(given: Mapping[str, float], labels: Sequence[str], key: str) -> Tensor:
    """The weight of each label, (K,), 1 for those without one.

    Raises:
        ElmoTasksError: there is no such label; `key` says where it is in the config.
    """
    for label in given:
        if label not in labels:
            known = ", ".join(natural_order(labels) or labels)
            raise ElmoTasksError(f"{key}: no label {label!r}; expected some of {known}.{did_you_mean(label, labels)}")
    return torch.tensor([given.get(label, 1.0) for label in labels])


def label_loss(logits: Tensor, labels: Tensor | None, weights: Tensor | None = None) -> Tensor:
    """The mean cross entropy of the gold labels (B,), computed in single precision from logits (B, K).

    Arguments:
        weights: of the labels, (K,): that of its gold label multiplies the loss of an example. The sum is divided by
            the number of the examples, not by the sum of their weights as in PyTorch, so that the loss of an example
            does not depend on the others in its batch.

    Raises:
        ValueError: there are no gold labels.
    """
    if labels is None:
        raise ValueError("the batch has no gold labels")
    return functional.cross_entropy(logits.float(), labels, weights, reduction="sum") / len(labels)


def label_predictions(logits: Tensor, labels: tuple[str, ...], temperature: float | None) -> list[dict[str, Any]]:
    """The most probable label of each example from logits (B, K); with a temperature, all probabilities."""
    predictions: list[dict[str, Any]] = [{"label": labels[best]} for best in logits.argmax(1).tolist()]
    if temperature:
        shares = (logits.float() / temperature).softmax(1)
        for prediction, each in zip(predictions, label_probabilities(shares, labels), strict=True):
            prediction["probabilities"] = each
    return predictions


def label_probabilities(values: Tensor, labels: tuple[str, ...]) -> list[dict[str, float]]:
    """The probability of every label for each example, from values (B, K).

    The labels are in their natural order, or in that of the values. Rounding errors of exponentials, whose size depends
    on the processor, could make a probability exceed 1.
    """
    columns = [(label, labels.index(label)) for label in natural_order(labels) or labels]
    return [{label: row[column] for label, column in columns} for row in values.clamp(max=1).tolist()]


def add_attention(predictions: list[dict[str, Any]], attention: Tensor, mask: Tensor) -> None:
    """Adds `attention` to the prediction of each text: the weights of its tokens; both tensors are (B, T)."""
    lengths = mask.sum(1).tolist()
    for prediction, weights, length in zip(predictions, attention.clamp(max=1).tolist(), lengths, strict=True):
        prediction["attention"] = weights[:length]


@dataclasses.dataclass(frozen=True)
class TagScores(TensorRecord):
    """The scores of the tags of a batch."""

    logits: Tensor  # (B, T, K)
    mask: Tensor  # (B, T) bool


def tag_loss(output: TagScores, tags: Tensor | None, weights: Tensor | None = None) -> Tensor:
    """The cross entropy of the gold tags (B, T), summed over a sentence's tokens; the mean over the examples.

    A long sentence thus counts for more. AllenNLP takes the mean over the tokens of a batch. The two differ only by a
    factor if all batches have the same number of tokens per sentence.

    For the weights of the tags, (K,), see `label_loss`.

    Raises:
        ValueError: there are no gold tags.
    """
    if tags is None:
        raise ValueError("the batch has no gold tags")
    logits, gold = output.logits[output.mask].float(), tags[output.mask]  # (N, K) and (N,), of all tokens
    return functional.cross_entropy(logits, gold, weights, reduction="sum") / len(tags)


def tag_predictions(
    tags: Tensor, probabilities: Tensor | None, mask: Tensor, labels: tuple[str, ...]
) -> list[dict[str, Any]]:
    """The tags of each sentence and, if given, their probabilities, without the padding; all tensors are (B, T)."""
    lengths = mask.sum(1).tolist()
    predictions: list[dict[str, Any]] = [
        {"tags": [labels[tag] for tag in row[:length]]} for row, length in zip(tags.tolist(), lengths, strict=True)
    ]
    if probabilities is not None:
        for prediction, row, length in zip(predictions, probabilities.clamp(max=1).tolist(), lengths, strict=True):
            prediction["probabilities"] = row[:length]
    return predictions


def allowed_labels(predicted: Sequence[Sequence[str | None]], labels: tuple[str, ...], num_tokens: int) -> Tensor:
    """(B, T, K) bool, the predicted label of each token; all labels where it is None, and in the padding."""
    allowed = torch.ones(len(predicted), num_tokens, len(labels), dtype=torch.bool)
    for row, of_tokens in enumerate(predicted):
        for token, predicted_label in enumerate(of_tokens):
            if predicted_label is not None:
                allowed[row, token] = torch.tensor([predicted_label == label for label in labels])
    return allowed


def label_scores(logits: Tensor, predictions: Sequence[Prediction], labels: tuple[str, ...]) -> Tensor:
    """The log probability, (B,), of predicted labels, logits (B, K); of tags, (B, T, K), their sum.

    A tag that is None may be any.
    """
    likelihoods = logits.float().log_softmax(-1)
    if logits.dim() == 2:
        likelihoods = likelihoods.unsqueeze(1)  # as if each text had one token
    predicted = [each["tags"] if "tags" in each else [each["label"]] for each in predictions]
    allowed = allowed_labels(predicted, labels, likelihoods.shape[1]).to(logits.device)
    return likelihoods.masked_fill(~allowed, float("-inf")).logsumexp(2).sum(1)


def scheme_constraints(labels: tuple[str, ...], scheme: TagScheme, advice: str) -> TransitionConstraints:
    """The transitions that a scheme allows.

    Raises:
        ElmoTasksError: a label is not a tag of the scheme; the message ends with `advice`.
    """
    if wrong := [label for label in labels if not is_tag(label, scheme)]:
        raise ElmoTasksError(f"{wrong[0]!r} is not a tag of {scheme}; {advice}")
    return TransitionConstraints.of_scheme(labels, scheme)
