"""Bidirectional LSTM and GRU layers over padded sentences that are fast to train on the CPU too.

The references are torch's own layers over packed sentences. A training step of `BiLstm` is 2.4 times as fast, and that
of `BiGru` 1.5 times (60 units, 32 sentences of up to 40 tokens, one core). With `nn.LSTM` over packed sentences, a
whole step of a tagger takes 1.6 times as long (docs/speed.md; `python -m benchmarks.tagger_step`).

# B batch, T tokens, D features of the input, H units of one direction
"""

from __future__ import annotations

import contextlib
import functools
import logging
from abc import abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

logger = logging.getLogger(__name__)


def reversal(lengths: Tensor, num_tokens: int) -> Tensor:
    """(T, B) int64: the position of the token that comes at each time when each sentence is read from its end.

    The padding stays where it is. Applying the order twice restores the original one.

    Arguments:
        lengths: (B,) int64, in tokens.
        num_tokens: T.
    """
    time = torch.arange(num_tokens, device=lengths.device).unsqueeze(1)  # (T, 1)
    return torch.where(time < lengths, lengths - 1 - time, time)


def reordered(values: Tensor, order: Tensor) -> Tensor:
    """The rows of the first two axes of `values`, numbered through, in the given order; the shape stays."""
    return values.flatten(0, 1).index_select(0, order).view(values.shape)


@contextlib.contextmanager
def lstm_inputs(inputs: Tensor) -> Iterator[Tensor]:
    """Yields an LSTM's inputs; in the block, autocast is off if this processor cannot train LSTMs in its type.

    The LSTM then computes in single precision, and so do its inputs.
    """
    autocast = inputs.device.type == "cpu" and torch.is_autocast_enabled("cpu")
    if autocast and not _trains_lstms(torch.get_autocast_dtype("cpu")):
        with torch.autocast("cpu", enabled=False):
            yield inputs.float()
    else:
        yield inputs


@functools.cache
def _trains_lstms(dtype: torch.dtype) -> bool:
    """Whether an LSTM can be trained on the CPU with autocast to a type. In bfloat16, oneDNN can on some processors."""
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", dtype=dtype):
        weights = [torch.zeros(shape, requires_grad=True) for shape in ((4, 1), (4, 1), (4,), (4,))]
        state = torch.zeros(1, 1, 1)
        try:
            torch.lstm(torch.zeros(1, 1, 1), (state, state), weights, True, 1, 0.0, True, False, True)
        except RuntimeError as error:
            name = str(dtype).removeprefix("torch.")
            logger.debug("an LSTM in %s: %s", name, error)
            logger.warning("this processor cannot train LSTMs in %s; they compute in float32", name)
            return False
    return True


class BidirectionalLayer(nn.RNNBase):
    """Mixin for one bidirectional layer; list it before the torch class, `nn.LSTM` or `nn.GRU`.

    Parameters and results are those of the torch class on packed sentences. On the CPU torch runs these step by step,
    with separate operations and gradients for each step. A subclass therefore computes padded sentences there. Its
    backward direction reads them reversed, so that in both directions the padding comes after all tokens and does not
    reach them. Other devices run packed sentences.

    Arguments:
        input_size: D.
        hidden_size: H.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size, batch_first=True, bidirectional=True)  # type: ignore[arg-type, call-arg]

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
        lengths = mask.sum(1).cpu()  # where packing needs them
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        outputs, _ = super().forward(packed)
        return pad_packed_sequence(outputs, batch_first=True, total_length=mask.shape[1])[0]

    @abstractmethod
    def _padded(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """`forward` on the CPU."""


class BiLstm(BidirectionalLayer, nn.LSTM):  # type: ignore[misc]  # `forward` has other arguments
    """A `BidirectionalLayer` of LSTMs. On the CPU all steps of a direction are one operation of oneDNN."""

    def _padded(self, inputs: Tensor, mask: Tensor) -> Tensor:
        first_rows = torch.arange(len(mask)) * mask.shape[1]  # (B,)
        order = (first_rows + reversal(mask.sum(1), mask.shape[1])).t().flatten()  # (B * T,)
        forward, backward = self.all_weights
        with lstm_inputs(inputs) as inputs:
            outputs = [
                self._direction(inputs, forward),
                reordered(self._direction(reordered(inputs, order), backward), order),
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


class BiGru(BidirectionalLayer, nn.GRU):  # type: ignore[misc]  # `forward` has other arguments
    """A `BidirectionalLayer` of GRUs. On the CPU both directions take their steps together; see `_recurrence`."""

    def _padded(self, inputs: Tensor, mask: Tensor) -> Tensor:
        size, (num_sentences, num_tokens) = self.hidden_size, mask.shape
        input_weight, recurrent_weight, input_bias, recurrent_bias = zip(*self.all_weights, strict=True)
        gates = functional.linear(inputs, torch.cat(input_weight), torch.cat(input_bias))  # (B, T, 2 * 3H)
        to_read, to_write = _orders(mask)
        read = gates.view(-1, 3 * size).index_select(0, to_read).view(num_tokens, 2, num_sentences, 3 * size)
        outputs = _recurrence(read, torch.stack(recurrent_weight), torch.stack(recurrent_bias))  # (T, 2, B, H)
        written = outputs.view(-1, size).index_select(0, to_write).view(num_sentences, num_tokens, 2 * size)
        return written.masked_fill(~mask.unsqueeze(2), 0)  # (B, T, 2H)


def _orders(mask: Tensor) -> tuple[Tensor, Tensor]:
    """From rows of (B, T, 2) to rows of (T, 2, B) as the directions read them, and back; each flat.

    The second axis of (T, 2, B) is the direction, and T there are steps; in (B, T, 2) they are tokens.
    """
    num_sentences, num_tokens = mask.shape
    backward = reversal(mask.sum(1), num_tokens)  # (T, B), which is its own inverse
    forward = torch.arange(num_tokens, device=mask.device).unsqueeze(1).expand_as(backward)  # (T, B)
    sentences = torch.arange(num_sentences, device=mask.device)  # (B,)
    directions = torch.arange(2, device=mask.device).view(2, 1)  # (2, 1)
    positions = torch.stack([forward, backward], dim=1)  # (T, 2, B), tokens by steps and steps by tokens
    to_read = (sentences * num_tokens + positions) * 2 + directions  # (T, 2, B)
    to_write = (positions * 2 + directions) * num_sentences + sentences  # (T, 2, B)
    return to_read.flatten(), to_write.permute(2, 0, 1).flatten()


def _recurrence(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The steps of both directions of a GRU, which are independent of each other, at once, in the type of the weights.

    Each step computes the reset gate r, the update gate z, the candidate n and the output h from the inputs' part of
    the gates, x, and from the previous output, g:

        r = sigmoid(x_r + W_r g + b_r)    n = tanh(x_n + r * (W_n g + b_n))
        z = sigmoid(x_z + W_z g + b_z)    h = (1 - z) * n + z * g

    (T, 2, B, 3H), (2, 3H, H), (2, 3H) -> (T, 2, B, H).
    """
    sizes = [2 * weight.shape[2], weight.shape[2]]  # of both gates together, and of the candidate
    of_inputs = (part.unbind() for part in inputs.to(weight.dtype).split(sizes, dim=3))
    transposed, bias = weight.transpose(1, 2), bias.unsqueeze(1)
    before, outputs = bias.new_zeros(*inputs.shape[1:3], weight.shape[2]), []
    with torch.autocast("cpu", enabled=False):
        for gates, candidate in zip(*of_inputs, strict=True):
            own_gates, own_candidate = torch.baddbmm(bias, before, transposed).split(sizes, dim=2)
            reset, update = (gates + own_gates).sigmoid().chunk(2, dim=2)
            before = torch.lerp(torch.addcmul(candidate, reset, own_candidate).tanh(), before, update)
            outputs.append(before)
    return torch.stack(outputs)
