"""What the models that label pairs of texts by aligning them share.

# B batch, K labels
"""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import Tensor

from elmo_tasks.models.labels import LabelModel, label_predictions
from elmo_tasks.modules.attention import SoftAlignment
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.text_pairs import TextPairs, TextPairsBatch
from elmo_tasks.text.tokens import TensorRecord


@dataclasses.dataclass(frozen=True)
class InferenceOutput(TensorRecord):
    """The scores of the labels, and how the tokens of a pair attend to each other."""

    logits: Tensor  # (B, K)
    alignment: SoftAlignment  # of the premise with the hypothesis


class InferenceModel(LabelModel[TextPairsBatch, InferenceOutput]):
    """Labels pairs of texts, whose tokens it aligns with each other."""

    task: Task = TextPairs()

    def decode(
        self, output: InferenceOutput, batch: TextPairsBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The most probable label of each pair: `{"label": ..., "probabilities": {...}}` and the alignment.

        `premise_attention` has a row for each token of the premise: its attention to each token of the hypothesis,
        which sums to 1. `hypothesis_attention` is the same from the other side. If texts have an end token, it has no
        row and no column; what a row lacks to 1 is the attention to it.
        """
        predictions = label_predictions(output.logits, self.labels, self.temperature if probabilities else None)
        if probabilities:
            for row, (prediction, example) in enumerate(zip(predictions, batch.examples, strict=True)):
                premise, hypothesis = len(example["premise"]), len(example["hypothesis"])
                weights = output.alignment.first_weights[row, :premise, :hypothesis]
                prediction["premise_attention"] = weights.float().clamp(max=1).tolist()
                weights = output.alignment.second_weights[row, :hypothesis, :premise]
                prediction["hypothesis_attention"] = weights.float().clamp(max=1).tolist()
        return predictions
