import itertools
import math
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from elmo_tasks.elmo import ScalarMix
from elmo_tasks.elmo.scalar_mix import LayerNormalization


@pytest.fixture(scope="module")
def batch() -> tuple[Tensor, Tensor]:
    """Layers (B, L+1, T, D) with a value far off at padding, which must not count, and their mask."""
    layers = 3 * torch.randn(3, 4, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 1
    mask = torch.tensor([[True] * 5, [True, True, False, False, False], [False] * 5])
    return layers.masked_fill(~mask[:, None, :, None], 1e3), mask


def _by_hand(layers: Tensor, mask: Tensor, chosen: tuple[int, ...], w: list[float], gamma: float, kind: str) -> Tensor:
    """The mix, number by number."""
    result = torch.zeros(layers.shape[0], *layers.shape[2:], dtype=layers.dtype)
    total = sum(math.exp(weight) for weight in w)
    batches, _, tokens, features = layers.shape
    real = [(b, t) for b in range(batches) for t in range(tokens) if mask[b, t]]
    for layer, weight in zip(chosen, w, strict=True):
        whole = [layers[b, layer, t, d].item() for b, t in real for d in range(features)]
        for b, t in real:
            values = whole if kind == "batch" else layers[b, layer, t].tolist()
            mean = sum(values) / len(values)
            deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values) + 1e-12)
            for d in range(features):
                value = layers[b, layer, t, d].item()
                normalized = value if kind == "none" else (value - mean) / deviation
                result[b, t, d] += gamma * math.exp(weight) / total * normalized
    return result


SUBSETS = [subset for size in (1, 2, 4) for subset in itertools.combinations(range(4), size)] + [(3, 0)]


@pytest.mark.parametrize("kind", ["none", "batch", "token"])
@pytest.mark.parametrize("chosen", SUBSETS, ids=str)
def test_every_subset_and_normalization(batch: tuple[Tensor, Tensor], kind: str, chosen: tuple[int, ...]) -> None:
    w = [0.3 * layer - 0.4 for layer in chosen]
    normalization = cast(LayerNormalization, kind)
    mix = ScalarMix(4, chosen, initial_weights=w, gamma=1.7, layer_normalization=normalization).double()
    torch.testing.assert_close(mix(*batch), _by_hand(*batch, chosen, w, 1.7, kind), rtol=1e-6, atol=1e-6)


def test_sums_over_a_batch_do_not_overflow_in_half_precision() -> None:
    layers, mask = torch.randn(32, 2, 25, 256, generator=torch.Generator().manual_seed(0)), torch.ones(32, 25) > 0
    mix = ScalarMix(2, layer_normalization="batch")
    torch.testing.assert_close(mix.half()(layers.half(), mask).float(), mix.float()(layers, mask), rtol=0.01, atol=0.01)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_mixes_layers_of_another_type(dtype: torch.dtype) -> None:
    layers, mask = torch.randn(1, 2, 3, 4, generator=torch.Generator().manual_seed(0)), torch.ones(1, 3) > 0
    mixed = ScalarMix(2).to(dtype)(layers, mask)
    assert mixed.dtype == dtype
    torch.testing.assert_close(mixed.float(), layers.mean(dim=1), rtol=0.01, atol=0.01)


def test_a_batch_of_only_padding_is_zero(batch: tuple[Tensor, Tensor]) -> None:
    layers, mask = batch
    for normalization in ("none", "batch", "token"):
        mixed = ScalarMix(4, layer_normalization=normalization).double()(layers, torch.zeros_like(mask))
        assert (mixed == 0).all()


@pytest.mark.parametrize(
    ("settings", "learned"),
    [
        ({}, [True, True]),
        ({"learned_weights": False}, [False, True]),
        ({"learned_gamma": False}, [True, False]),
        ({"learned_weights": False, "learned_gamma": False}, [False, False]),
    ],
)
def test_what_is_learned(batch: tuple[Tensor, Tensor], settings: dict[str, Any], learned: list[bool]) -> None:
    mix = ScalarMix(4, **settings).double()
    mixed = mix(*batch)
    torch.testing.assert_close(mixed, _by_hand(*batch, (0, 1, 2, 3), [0.0] * 4, 1.0, "none"))
    if any(learned):
        mixed.sum().backward()
    assert [parameter.requires_grad for parameter in (mix.weights, mix.gamma)] == learned
    assert [parameter.grad is not None for parameter in (mix.weights, mix.gamma)] == learned


@pytest.mark.parametrize(
    "arguments",
    [{"layers": ()}, {"layers": (0, 4)}, {"layers": (-1,)}, {"layers": (1, 1)}, {"initial_weights": [0.0]}],
)
def test_impossible_settings(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"got .*; expected"):
        ScalarMix(4, **arguments)


def test_another_number_of_layers(batch: tuple[Tensor, Tensor]) -> None:
    with pytest.raises(ValueError, match="got 4 of them; expected 3"):
        ScalarMix(3)(*batch)
