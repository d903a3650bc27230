"""One label for each example: what the heads for classification have in common.

# B batch, K labels
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional


def label_loss(logits: Tensor, labels: Tensor | None) -> Tensor:
    """The cross entropy in single precision, the mean over the examples.

    Arguments:
        logits: (B, K).
        labels: (B,) int64, the ids of the gold labels.

    Raises:
        ValueError: there are no gold labels.
    """
    if labels is None:
        raise ValueError("the batch has no gold labels")
    return functional.cross_entropy(logits.float(), labels)


def label_predictions(logits: Tensor, labels: tuple[str, ...], *, probabilities: bool) -> list[dict[str, Any]]:
    """The most probable label of each example, and on demand the probability of every label.

    Arguments:
        logits: (B, K).
        labels: the K labels by their ids.

    Returns:
        B times `{"label": ..., "probabilities": {label: probability, ...}}`.
    """
    predictions: list[dict[str, Any]] = [{"label": labels[best]} for best in logits.argmax(1).tolist()]
    if probabilities:
        for prediction, row in zip(predictions, logits.float().softmax(1).tolist(), strict=True):
            prediction["probabilities"] = dict(zip(labels, row, strict=True))
    return predictions
