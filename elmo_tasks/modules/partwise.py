"""Scores of concatenated vectors, computed part by part.

# ... any leading axes, D features of a part, H features of the first hidden layer
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo.dropout import Dropout
from elmo_tasks.modules.feed_forward import FeedForward, make_linear


class PartwiseScorer(nn.Module):
    """w · FFNN([a; b; ...]), a feed-forward scorer of concatenated vectors that never concatenates them.

    The first layer is W [a; b] + c = W_a a + W_b b + c. So a part is multiplied once and then added wherever it is
    needed: for the scores of all pairs of N things, that is N products instead of N x N, and a part that is a row of a
    small table needs only as many products as the table has rows. Numbers and gradients are those of the concatenation.

    Arguments:
        part_sizes: the parts' names and sizes D.
        hidden_sizes: features of each hidden layer; H is the first.
        dropout: probability of dropout on each hidden layer.
    """

    def __init__(self, part_sizes: Mapping[str, int], hidden_sizes: tuple[int, ...], dropout: float) -> None:
        super().__init__()
        self.part_sizes = dict(part_sizes)
        self.first = make_linear(sum(part_sizes.values()), hidden_sizes[0])
        self.rest = FeedForward(hidden_sizes[0], hidden_sizes[1:], dropout=dropout)
        self.output = nn.Linear(self.rest.output_size, 1, bias=False)
        nn.init.xavier_uniform_(self.output.weight)
        self.dropout = Dropout(dropout)

    def project(self, part: str, values: Tensor) -> Tensor:
        """What a part contributes to the first layer: (..., D) -> (..., H). The first part includes the bias."""
        names = list(self.part_sizes)
        weights = self.first.weight.split(list(self.part_sizes.values()), dim=1)
        position = names.index(part)
        return functional.linear(values, weights[position], self.first.bias if position == 0 else None)

    def score(self, projected: Tensor) -> Tensor:
        """The scores, in single precision, of the sum of all parts' contributions: (..., H) -> (...)."""
        hidden = self.dropout(torch.relu(projected))
        return self.output(self.rest(hidden)).squeeze(-1).float()
