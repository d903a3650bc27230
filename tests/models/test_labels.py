"""Weights of labels in the loss of heads that learn labels with a cross entropy."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from elmo_tasks.errors import ElmoTasksError
from tests.models.small import make_head

LABELS = ("bad", "good", "odd")
LAYERS = {"type": "stacked_bilstm", "hidden_sizes": (4,)}
HEADS: dict[str, dict[str, Any]] = {
    "bcn": {
        "pre_encoder": {"hidden_sizes": (5,)},
        "encoder": LAYERS,
        "integrator": LAYERS,
        "output": {"hidden_sizes": (4,)},
    },
    "decomposable_attention": {"attend": {"hidden_sizes": (4,)}, "compare": {"hidden_sizes": (4,)}},
    "simple_tagger": {"encoder": LAYERS},
}
TEXTS = [["tarn", "vale", "moro"], ["orla"]]


def make(kind: str, gold: list[Any], class_weights: Any) -> tuple[Any, Any]:
    """The head and a batch of two examples."""
    label = "tags" if kind == "simple_tagger" else "label"
    model, vocabulary = make_head(
        {"type": kind, **HEADS[kind], "class_weights": class_weights}, {label.removesuffix("s") + "s": LABELS}
    )
    texts = [{"tokens": text, "premise": text, "hypothesis": text} for text in TEXTS]
    examples = [{**text, label: each} for text, each in zip(texts, gold, strict=True)]
    return model, model.task.collate(examples, vocabulary)


@pytest.mark.parametrize(
    ("kind", "gold"),
    [
        ("bcn", ["odd", "bad"]),
        ("decomposable_attention", ["odd", "bad"]),
        ("simple_tagger", [["bad", "odd", "bad"], ["good"]]),
    ],
)
def test_the_weight_of_its_label_multiplies_the_loss_of_each_example_or_token(kind: str, gold: list[Any]) -> None:
    model, batch = make(kind, gold, {"odd": 5, "good": 0.5})
    output = model(batch)
    logits, labels = output.logits, batch.labels if kind != "simple_tagger" else batch.tags
    if kind == "simple_tagger":
        logits, labels = logits[output.mask], labels[output.mask]
    losses = functional.cross_entropy(logits, labels, reduction="none")
    expected = (losses * torch.tensor([1, 0.5, 5])[labels]).sum() / 2
    assert model.loss(output, batch).item() == pytest.approx(expected.item())
    plain, _ = make(kind, gold, None)
    assert plain.loss(output, batch).item() == pytest.approx(losses.sum().item() / 2)


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    """`compute_class_weight("balanced", classes=["bad", "good"], y=["bad"] * 3 + ["good"])` is `[0.667, 2.0]`."""
    model, _ = make("bcn", ["bad", "bad"], "balanced")
    model.prepare_training([{"label": "bad"}] * 3 + [{"label": "good"}])
    assert model.class_weights.tolist() == pytest.approx([4 / 6, 4 / 2, 1])
    tagger, _ = make("simple_tagger", [["bad"] * 3, ["bad"]], "balanced")
    tagger.prepare_training([{"tags": ["bad", "odd", "bad"]}, {"tags": ["bad"]}])
    assert tagger.class_weights.tolist() == pytest.approx([4 / 6, 1, 4 / 2])


def test_a_weight_of_a_label_that_is_not_there_names_those_that_are() -> None:
    message = r"model\.class_weights: no label 'god'; expected some of bad, good, odd\. Did you mean 'good'\?"
    with pytest.raises(ElmoTasksError, match=message):
        make("bcn", ["odd", "bad"], {"god": 2})
