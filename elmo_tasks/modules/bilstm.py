"""A bidirectional LSTM layer, fast to train on the CPU too.

# B batch, T tokens, D features of the input, H units of one direction
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_tasks.modules.bidirectional import BidirectionalLayer
from elmo_tasks.modules.reversal import reversal


class BiLstm(BidirectionalLayer, nn.LSTM):  # type: ignore[misc]  # `forward` has other arguments
    """One bidirectional LSTM layer over padded sentences: `nn.LSTM` on packed ones, in parameters and results.

    On the CPU each direction is an LSTM of its own, whose steps over a padded batch are one operation of oneDNN.

    Arguments:
        input_size: D.
        hidden_size: H.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, batch_first=True, bidirectional=True)

    def _padded(self, inputs: Tensor, mask: Tensor) -> Tensor:
        first_rows = torch.arange(len(mask)) * mask.shape[1]  # (B,)
        order = (first_rows + reversal(mask.sum(1), mask.shape[1])).t().flatten()  # (B * T,)
        forward, backward = self.all_weights
        outputs = [
            self._direction(inputs, forward),
            _reorder(self._direction(_reorder(inputs, order), backward), order),
        ]
        return torch.cat(outputs, dim=2).masked_fill(~mask.unsqueeze(2), 0)  # (B, T, 2H)

    def _direction(self, inputs: Tensor, weights: list[nn.Parameter]) -> Tensor:
        """(B, T, D) -> (B, T, H), from the first token to the last."""
        state = inputs.new_zeros(1, len(inputs), self.hidden_size)
        outputs, _, _ = torch.lstm(
            inputs,
            (state, state),
            tuple(weights),
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=self.training,
            bidirectional=False,
            batch_first=True,
        )
        return outputs


def _reorder(values: Tensor, order: Tensor) -> Tensor:
    return values.flatten(0, 1).index_select(0, order).view(values.shape)
