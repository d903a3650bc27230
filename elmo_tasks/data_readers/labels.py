"""One label for each example: what the readers for classification have in common.

# B batch
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.text.vocabulary import Vocabulary

LABELS = "labels"  # the namespace of the labels


def label_tensor(examples: Sequence[Mapping[str, Any]], vocab: Vocabulary) -> Tensor | None:
    """The ids of the examples' `"label"`, (B,) int64; None where they are not all known, as in prediction.

    Raises:
        UnknownLabelError: the vocabulary does not have a label.
    """
    labels = [example.get("label") for example in examples]
    known = [label for label in labels if label is not None]
    if len(known) < len(labels):
        return None
    return torch.tensor([vocab.label_id(LABELS, label) for label in known], dtype=torch.int64)  # (B,)
