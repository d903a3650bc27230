"""Bidirectional layers: what torch's own make of packed sentences, padding, gradients."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmo_tasks.modules import bidirectional
from elmo_tasks.modules.bidirectional import BidirectionalLayer, BiGru, BiLstm
from elmo_tasks.modules.encoders import StackedBiLstmConfig
from tests.modules.helpers import gradients, mask_of

Layer = type[BiLstm] | type[BiGru]


@pytest.fixture(params=[BiLstm, BiGru])
def layer_class(request: pytest.FixtureRequest) -> Layer:
    return request.param


def reference(layer: BidirectionalLayer, inputs: Tensor, mask: Tensor) -> Tensor:
    """What torch's own layer makes of the packed sentences."""
    packed = pack_padded_sequence(inputs, mask.sum(1), batch_first=True, enforce_sorted=False)
    outputs, _ = torchs(type(layer)).forward(layer, packed)
    return pad_packed_sequence(outputs, batch_first=True, total_length=mask.shape[1])[0]


def torchs(layer_class: type[BidirectionalLayer]) -> Any:
    return nn.LSTM if layer_class is BiLstm else nn.GRU


LENGTHS = pytest.mark.parametrize(
    ("lengths", "num_tokens"),
    [([1, 1, 1], 1), ([4], 4), ([3, 9, 1, 5, 9], 9), ([2, 1], 6)],
)


@LENGTHS
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_equals_torch_on_packed_sentences(
    layer_class: Layer, lengths: list[int], num_tokens: int, dtype: torch.dtype, tolerance: float
) -> None:
    layer = layer_class(7, 12).to(dtype).train(num_tokens % 2 == 0)
    mask = mask_of(lengths, num_tokens)
    inputs = torch.randn(*mask.shape, 7, dtype=dtype, requires_grad=True)
    weights = torch.randn(*mask.shape, 24, dtype=dtype)
    outputs, expected = layer(inputs, mask), reference(layer, inputs, mask)
    torch.testing.assert_close(outputs, expected, atol=tolerance, rtol=0)
    variables = [inputs, *layer.parameters()]
    ours, theirs = gradients(outputs, weights, variables), gradients(expected, weights, variables)
    torch.testing.assert_close(ours, theirs, atol=10 * tolerance, rtol=10 * tolerance)


@pytest.fixture
def old_processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One on which oneDNN cannot train LSTMs in bfloat16."""
    lstm = torch.lstm

    def refusing(*arguments: Any, **settings: Any) -> Any:
        if torch.is_autocast_enabled("cpu"):
            raise RuntimeError("could not create a primitive descriptor")
        return lstm(*arguments, **settings)

    monkeypatch.setattr(torch, "lstm", refusing)
    bidirectional._trains_lstms.cache_clear()
    yield
    bidirectional._trains_lstms.cache_clear()


@pytest.mark.usefixtures("old_processor")
@pytest.mark.parametrize("bidirectional", [True, False])
def test_without_instructions_for_bfloat16_an_lstm_computes_in_float32(
    bidirectional: bool, caplog: pytest.LogCaptureFixture
) -> None:
    layer = StackedBiLstmConfig(hidden_sizes=(12,), bidirectional=bidirectional).build(7)
    mask = mask_of([3, 9, 1, 5])
    inputs = torch.randn(*mask.shape, 7)
    generators = torch.get_rng_state()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(2):
            outputs = layer(inputs.bfloat16(), mask)
    assert torch.equal(outputs, layer(inputs.bfloat16().float(), mask))
    assert caplog.messages == ["this processor cannot train LSTMs in bfloat16; they compute in float32"]
    assert torch.equal(generators, torch.get_rng_state())


def test_the_processor_is_tried_also_where_no_gradient_is_needed() -> None:
    bidirectional._trains_lstms.cache_clear()
    with torch.inference_mode():
        found = bidirectional._trains_lstms(torch.bfloat16)
    bidirectional._trains_lstms.cache_clear()
    assert bidirectional._trains_lstms(torch.bfloat16) is found


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_what_the_cpu_gives(layer_class: Layer) -> None:
    layer = layer_class(7, 12)
    mask = mask_of([3, 9, 1, 5, 9])
    inputs = torch.randn(*mask.shape, 7)
    expected = layer(inputs, mask)
    torch.testing.assert_close(layer.cuda()(inputs.cuda(), mask.cuda()).cpu(), expected, atol=1e-5, rtol=0)


def test_packed_sentences_give_the_same(layer_class: Layer) -> None:
    """The way of devices other than the CPU, which the CPU can go as well."""
    layer = layer_class(7, 12)
    mask = mask_of([3, 9, 1, 5, 9], 11)
    inputs = torch.randn(*mask.shape, 7)
    torch.testing.assert_close(layer._packed(inputs, mask), layer(inputs, mask), atol=1e-6, rtol=0)


def test_the_cpu_packs_nothing(layer_class: Layer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed sentences take it about twice as long."""
    monkeypatch.delattr(bidirectional, "pack_padded_sequence")
    assert layer_class(3, 2)(torch.randn(2, 4, 3), mask_of([4, 2])).shape == (2, 4, 4)
