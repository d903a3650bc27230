"""Where labels have an order of their own, people see them in it, whatever the order in the vocabulary."""

from __future__ import annotations

import pytest
import torch

from elmo_tasks.models.labels import label_predictions
from elmo_tasks.text.label_order import natural_order


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (
            "very positive,neutral,very negative,negative,positive",
            "very negative,negative,neutral,positive,very positive",
        ),
        ("positive,negative", "negative,positive"),
        ("Positive,Negative", "Negative,Positive"),
        ("contradiction,entailment,neutral", "entailment,neutral,contradiction"),
        ("10,9,2,9", "2,9,10"),
        ("1.5,-1,+0", "-1,+0,1.5"),
        ("10,9,other", None),
        ("positive,negative,mixed", None),
        ("nan,1", None),
        ("contradiction,negative", None),
    ],
)
def test_the_order_of_the_publisher_or_of_numbers(labels: str, order: str | None) -> None:
    assert natural_order(labels.split(",")) == (order and order.split(","))


def test_probabilities_are_shown_in_this_order_and_keep_their_meaning() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0]])
    (prediction,) = label_predictions(logits, ("contradiction", "entailment", "neutral"), True)
    assert prediction["label"] == "entailment"
    assert list(prediction["probabilities"]) == ["entailment", "neutral", "contradiction"]
    assert list(prediction["probabilities"].values()) == pytest.approx(logits.softmax(1)[0, [1, 2, 0]].tolist())
    (prediction,) = label_predictions(logits, ("b", "a", "c"), True)
    assert list(prediction["probabilities"]) == ["b", "a", "c"]
