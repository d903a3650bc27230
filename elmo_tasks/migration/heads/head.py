"""What the conversion of a head gives.

Each kind of AllenNLP's models has a file here with a function

    def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head

params: the whole config of the archive: `params.part("model")`, `params.part("dataset_reader")`.
weights: all tensors but those of the embedder, which have been taken. A head takes all that are left, or ignores them
    knowingly: an import with tensors that nobody has taken is refused.
vocabulary: the labels.
columns: (D,) int64: for each feature of our embedder's output the one of AllenNLP's, whose embedder concatenates its
    parts in another order. Columns of matrices that read the embedder's output are permuted: `matrix[:, columns]`.

Raises a `MigrationError` for what this project does not have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Head:
    """A converted head.

    Arguments:
        config: our `model` config as JSON values, without the `embedder`.
        tensors: our state dict without the embedder's part, by the names in our model.
        labels: our vocabulary's labels, in the order of the model's outputs: `{"tags": ("O", ...)}`; empty without.
        dataset_reader: our reader's config as JSON values; without its `tokenizer`.
        notes: what differs from AllenNLP, a line each.
    """

    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    labels: Mapping[str, tuple[str, ...]]
    dataset_reader: Mapping[str, Any]
    notes: tuple[str, ...] = ()
