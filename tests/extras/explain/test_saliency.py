"""Contributions to scores whose gradients and integrals have closed forms."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_tasks.extras.explain.saliency import STEPS, Saliency, saliency
from elmo_tasks.models.model import TaskModel
from elmo_tasks.tasks import TextPairs
from tests.models.small import make_head

Function = Callable[[Tensor], Tensor]

PAIRS = [
    {"premise": ["tarn", "vale"], "hypothesis": ["moro"]},
    {"premise": ["orla"], "hypothesis": ["vale", "tarn", "orla"]},
]
# What a token that contributes 1 to a sum s contributes to the function of s: the mean of the gradients from 0 to s.
CLOSED_FORMS: dict[str, tuple[Function, Function]] = {
    "linear": (lambda s: 3 * s, lambda s: 3 + 0 * s),
    "quadratic": (lambda s: s**2, lambda s: s),
    "cubic": (lambda s: s**3, lambda s: s**2),
    "exponential": (torch.exp, lambda s: (s.exp() - 1) / s),
    "only from 0 to s": (lambda s: s.sqrt() * s, lambda s: s.sqrt()),
}


class FunctionOfSum(TaskModel[Any, Any]):
    """Sums the features of all tokens of a pair; the score of a prediction is a function of this sum."""

    task = TextPairs()

    def __init__(self, embedder: Any, function: Function) -> None:
        super().__init__(embedder)
        self._function = function
        self.has_gradient: list[bool] = []  # of each output that a score was asked for

    def forward(self, batch: Any) -> Tensor:
        return sum(self.embedder(tokens).inputs.sum(dim=(1, 2)) for tokens in (batch.premise, batch.hypothesis))

    def prediction_scores(self, output: Tensor, batch: Any, predictions: Sequence[Any]) -> Tensor:
        self.has_gradient.append(output.requires_grad)
        return self._function(output)

    def loss(self, output: Tensor, batch: Any) -> Tensor:
        raise NotImplementedError

    def decode(self, output: Tensor, batch: Any, *, probabilities: bool = True) -> list[dict[str, Any]]:
        raise NotImplementedError


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_contributions_are_those_of_closed_forms(name: str) -> None:
    function, integral = CLOSED_FORMS[name]
    head, vocabulary = make_head({"type": "text_classifier", "task": "text_pairs"}, {"labels": ("no", "yes")})
    with torch.no_grad():
        head.embedder.words.trained.abs_()  # so that no sum is below zero
    model = FunctionOfSum(head.embedder, function)
    embedded: list[Any] = []
    head.embedder.register_forward_hook(lambda *_: embedded.append(1))
    batch = model.task.collate(PAIRS, vocabulary)
    found = saliency(model, batch, [{}] * 2)
    for row, pair in enumerate(PAIRS):
        values = [
            [head.embedder.words.trained[vocabulary.words.index(token)].sum() for token in tokens]
            for tokens in pair.values()
        ]
        total = torch.stack([value for own in values for value in own]).sum().detach()
        factor = integral(total).item()
        assert found.scores[row].item() == pytest.approx(function(total).item(), rel=1e-5)
        for side, own in zip(pair, values, strict=True):
            expected = [factor * value.item() for value in own]
            assert found.contributions[side][row, : len(own)].tolist() == pytest.approx(expected, rel=1e-4)
    assert model.embedder is head.embedder  # the model is as it was
    assert len(embedded) == 2  # each side of the pairs once
    assert sum(model.has_gradient) == STEPS  # what requests are limited by


def test_shares_are_parts_of_the_sum_of_sizes() -> None:
    _, vocabulary = make_head({"type": "text_classifier", "task": "text_pairs"}, {"labels": ("no", "yes")})
    batch = TextPairs().collate([*PAIRS, PAIRS[0]], vocabulary)
    premise, hypothesis = [[3.0, -1.0], [2.0, 9.0], [0.0, 0.0]], [[4.0, 9.0, 9.0], [-2.0, 0.0, 4.0], [0.0] * 3]
    contributions = {"premise": torch.tensor(premise), "hypothesis": torch.tensor(hypothesis)}  # 9: padding
    assert Saliency(torch.zeros(3), contributions).shares(batch) == [
        {"premise": [["tarn", 3 / 8], ["vale", -1 / 8]], "hypothesis": [["moro", 4 / 8]]},
        {"premise": [["orla", 2 / 8]], "hypothesis": [["vale", -2 / 8], ["tarn", 0.0], ["orla", 4 / 8]]},
        {"premise": [["tarn", 0.0], ["vale", 0.0]], "hypothesis": [["moro", 0.0]]},
    ]
