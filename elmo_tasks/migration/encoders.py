"""AllenNLP's sequence-to-sequence encoders."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from elmo_tasks.migration.params import Params
from elmo_tasks.migration.weights import Weights


def convert_encoder(params: Params, weights: Weights, columns: Tensor) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """An encoder's config and tensors here.

    Arguments:
        params: the encoder's part of the config, such as `params.part("model").part("encoder")`.
        weights: the encoder's tensors, such as `weights.part("encoder.")`, with the wrapper's `_module.` in them.
        columns: (D,) int64: for each input feature of our encoder the one of AllenNLP's; `torch.arange(D)` if both are
            in the same order.

    Returns:
        the encoder's config as JSON values, and its tensors by their names in our encoder (without `encoder.`).

    Raises:
        MigrationError: this project has no such encoder, or the tensors do not fit the config.
    """
    raise NotImplementedError
