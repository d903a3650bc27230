"""A bidirectional LSTM layer, fast to train on the CPU too.

# B batch, T tokens, D features of the input, H units of one direction
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BiLstm(nn.LSTM):
    """One bidirectional LSTM layer over padded sentences: `nn.LSTM` on packed ones, in parameters and results.

    On the CPU torch runs packed sentences step by step, each step with operations and gradients of its own, while the
    steps of a padded batch are one operation of oneDNN. So there each direction is an LSTM of its own over padded
    sentences, the backward one over sentences that begin with their last token: the padding comes after all tokens of
    both and does not reach them. Other devices have the packed sentences.

    Arguments:
        input_size: D.
        hidden_size: H.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, batch_first=True, bidirectional=True)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        """Runs the layer.

        Arguments:
            inputs: (B, T, D), finite; what stands in the padding does not matter.
            mask: (B, T) bool, True at the tokens, which come before the padding; no sentence is empty.

        Returns:
            (B, T, 2H), the forward direction first; zero in the padding.
        """
        return self._padded(inputs, mask) if inputs.device.type == "cpu" else self._packed(inputs, mask)

    def _packed(self, inputs: Tensor, mask: Tensor) -> Tensor:
        lengths = mask.sum(1).cpu()  # packing wants them there
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        outputs, _ = super().forward(packed)
        padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=mask.shape[1])
        return padded

    def _padded(self, inputs: Tensor, mask: Tensor) -> Tensor:
        reversal = _reversal(mask)
        forward, backward = self.all_weights
        outputs = [
            self._direction(inputs, forward),
            _reorder(self._direction(_reorder(inputs, reversal), backward), reversal),
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


def _reversal(mask: Tensor) -> Tensor:
    """(B * T,): the order of a batch's rows that reads each sentence from its end and leaves padding in its place."""
    num_sentences, num_tokens = mask.shape
    lengths = mask.sum(1, keepdim=True)  # (B, 1)
    time = torch.arange(num_tokens, device=mask.device)  # (T,)
    first_rows = torch.arange(num_sentences, device=mask.device).unsqueeze(1) * num_tokens  # (B, 1)
    return (first_rows + torch.where(mask, lengths - 1 - time, time)).flatten()


def _reorder(values: Tensor, order: Tensor) -> Tensor:
    return values.flatten(0, 1).index_select(0, order).view(values.shape)
