"""Bidirectional recurrent layers over padded sentences, fast to train on the CPU too.

# B batch, T tokens, D features of the input, H units of one direction
"""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BidirectionalLayer(nn.RNNBase):
    """Mixin for bidirectional RNNs; list it before the torch class.

    Parameters and results are those of the torch class on packed sentences. On the CPU torch runs these step by step,
    each step with operations and gradients of its own. A subclass therefore computes padded sentences there. Its
    backward direction reads them reversed, so that in both directions the padding comes after all tokens and does not
    reach them. Other devices run packed sentences.
    """

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
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

    @abstractmethod
    def _padded(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """`forward` on the CPU."""
