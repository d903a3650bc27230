"""What the heads that predict labels share: a label for each example, or a tag for each token.

# B batch, T tokens of the longest sentence, K labels
"""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import Tensor
from torch.nn import functional

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.modules.crf import TransitionConstraints
from elmo_tasks.text.label_order import natural_order
from elmo_tasks.text.tag_schemes import TagScheme, is_tag
from elmo_tasks.text.tokens import TensorRecord


def label_loss(logits: Tensor, labels: Tensor | None) -> Tensor:
    """The mean cross entropy of the gold labels (B,), computed in single precision from logits (B, K).

    Raises:
        ValueError: there are no gold labels.
    """
    if labels is None:
        raise ValueError("the batch has no gold labels")
    return functional.cross_entropy(logits.float(), labels)


def label_predictions(logits: Tensor, labels: tuple[str, ...], probabilities: bool) -> list[dict[str, Any]]:
    """The most probable label of each example from logits (B, K), on request with the probability of every label.

    The labels of these are in their natural order, or in that of the logits.

    Rounding errors of exponentials, whose size depends on the processor, could make a probability exceed 1.
    """
    predictions: list[dict[str, Any]] = [{"label": labels[best]} for best in logits.argmax(1).tolist()]
    if probabilities:
        columns = [(label, labels.index(label)) for label in natural_order(labels) or labels]
        for prediction, row in zip(predictions, logits.float().softmax(1).clamp(max=1).tolist(), strict=True):
            prediction["probabilities"] = {label: row[column] for label, column in columns}
    return predictions


@dataclasses.dataclass(frozen=True)
class TagScores(TensorRecord):
    """The scores of the tags of a batch."""

    logits: Tensor  # (B, T, K)
    mask: Tensor  # (B, T) bool


def tag_loss(output: TagScores, tags: Tensor | None) -> Tensor:
    """The cross entropy of the gold tags (B, T), summed over a sentence's tokens; the mean over the examples.

    A long sentence thus counts for more. AllenNLP takes the mean over the tokens of a batch. The two differ only by a
    factor if all batches have the same number of tokens per sentence.

    Raises:
        ValueError: there are no gold tags.
    """
    if tags is None:
        raise ValueError("the batch has no gold tags")
    logits, gold = output.logits[output.mask].float(), tags[output.mask]  # (N, K) and (N,), of all tokens
    return functional.cross_entropy(logits, gold, reduction="sum") / len(tags)


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


def scheme_constraints(labels: tuple[str, ...], scheme: TagScheme, advice: str) -> TransitionConstraints:
    """The transitions that a scheme allows.

    Raises:
        ElmoTasksError: a label is not a tag of the scheme; the message ends with `advice`.
    """
    if wrong := [label for label in labels if not is_tag(label, scheme)]:
        raise ElmoTasksError(f"{wrong[0]!r} is not a tag of {scheme}; {advice}")
    return TransitionConstraints.of_scheme(labels, scheme)
