import copy
import functools
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_tasks.elmo import BiLM, BiLMOptions
from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.elmo.fast import FastBiLM, Precision, products
from elmo_tasks.elmo.options import LstmOptions
from tests.random_bilm import random_bilm

CLOSE: dict[str, Any] = {"rtol": 0.0, "atol": 5e-5}
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8")
RELATIVE_ERRORS: dict[Precision, float] = {"float32": 1e-6, "bfloat16": 0.02, "int8": 0.1}


@pytest.fixture
def plain_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if torch had none of the faster ways."""
    monkeypatch.setattr(products, "_FASTER", dict.fromkeys(PRECISIONS, ()))


def made_up_sentences(number: int, seed: int = 0) -> list[list[str]]:
    """Sentences of 0 to 60 words of 1 to 60 bytes, some of them beyond ASCII, the shorter ones more frequent."""
    generator = random.Random(seed)
    words = ["".join(generator.choices("abcdefgé漢", k=min(generator.randint(1, 24), 20))) for _ in range(200)]
    words += ["x" * length for length in (40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 60)]
    return [generator.choices(words, k=min(int(generator.expovariate(0.07)), 60)) for _ in range(number)]


def assert_same(found: LayerOutput, expected: LayerOutput) -> None:
    torch.testing.assert_close(found.layers, expected.layers, **CLOSE)
    assert torch.equal(found.mask, expected.mask)


def relative_error(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("only_plain", [False, True])
def test_accuracy_of_each_precision(
    bilm: BiLM, precision: Precision, only_plain: bool, request: pytest.FixtureRequest
) -> None:
    if only_plain:
        request.getfixturevalue("plain_products")
    sentences = made_up_sentences(30)
    found, expected = FastBiLM(bilm, precision).layers(sentences).layers, bilm.layers(sentences).layers
    assert relative_error(found, expected) < RELATIVE_ERRORS[precision]
    if precision != "float32":  # the token layer is rounded like the others
        assert relative_error(found, expected) > RELATIVE_ERRORS["float32"]
        assert relative_error(found[:, 0], expected[:, 0]) > 1e-5


def test_a_consumed_bilm_gives_the_same_layers_and_has_no_weights_left(bilm: BiLM) -> None:
    sentences, kept = made_up_sentences(8), FastBiLM(bilm)
    consumed = copy.deepcopy(bilm)
    found = FastBiLM(consumed, consume=True).layers(sentences)
    assert torch.equal(found.layers, kept.layers(sentences).layers)
    assert not list(consumed.parameters())


def test_several_callers_at_once(bilm: BiLM) -> None:
    fast = FastBiLM(bilm, cached_words=100)
    texts = [made_up_sentences(12, seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(fast.layers, texts * 3))
    for number, output in enumerate(found):
        assert_same(output, bilm.layers(texts[number % 4]))


@pytest.mark.parametrize("threads", [1, 2])
def test_callers_in_and_out_of_inference_mode_take_turns(bilm: BiLM, threads: int) -> None:
    sentences, others = made_up_sentences(8), made_up_sentences(8, seed=1)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        fast = FastBiLM(bilm)
        with torch.inference_mode():
            assert_same(fast.layers(sentences), bilm.layers(sentences))
        output = fast.layers([*sentences, *others])
    finally:
        torch.set_num_threads(before)
    assert_same(output, bilm.layers([*sentences, *others]))
    weight = torch.ones((), requires_grad=True)
    (weight * output.layers).sum().backward()  # not possible with tensors of inference mode
    assert weight.grad is not None


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_company_changes_no_rounding(bilm: BiLM, precision: Precision) -> None:
    """Far less than the rounding's own error: an outlier in one sentence must not coarsen another's steps."""
    sentences = made_up_sentences(12)
    fast = FastBiLM(bilm, precision)
    together = fast.layers(sentences).layers
    for row, tokens in enumerate(sentences):
        alone = fast.layers([tokens]).layers[0]
        torch.testing.assert_close(together[row, :, : len(tokens)], alone, rtol=0.0, atol=2e-3)


@pytest.mark.parametrize(
    "bounds",
    [{}, {"token_budget": 1}, {"token_budget": 7}, {"cached_words": 3}],
    ids=str,
)
def test_same_layers_as_the_plain_path_with_any_bounds(bilm: BiLM, bounds: dict[str, Any]) -> None:
    """Other architectures, also those of published sizes: `test_against_numpy`."""
    fast = FastBiLM(bilm, **bounds)
    odd: list[list[list[str]]] = [[], [[]], [[], []]]
    for sentences in (*(made_up_sentences(number, seed=number) for number in (40, 7, 1)), *odd):
        assert_same(fast.layers(sentences), bilm.layers(sentences))


@pytest.mark.parametrize(("skips", "size"), [(True, 32), (False, 64)])
def test_sentences_of_any_length_with_weights_of_half_precision(options: BiLMOptions, skips: bool, size: int) -> None:
    """As those of the biLM in the package, for which there are other products. 64 cells are not projected to 64."""
    lstm = LstmOptions(
        dim=64, projection_dim=size, n_layers=2, cell_clip=0.8, proj_clip=0.9, use_skip_connections=skips
    )
    bilm = random_bilm(options.model_copy(update={"lstm": lstm}), seed=3, scale=1.2).half().float()
    fast = FastBiLM(bilm)
    words = ["In", "den", "Wäldern", "sind", "Dinge", "x" * 48]
    sentences = [[words[(length + step) % 6] for step in range(length)] for length in (1, 2, 40, 1500)]
    together = fast.layers(sentences)
    assert_same(together, bilm.layers(sentences))
    for layers, tokens in zip(together.layers, sentences, strict=True):
        torch.testing.assert_close(fast.layers([tokens]).layers[0], layers[:, : len(tokens)], **CLOSE)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.usefixtures("plain_products")
def test_later_changes_of_the_weights_do_not_reach_it(bilm: BiLM, precision: Precision) -> None:
    sentences = [["short", "x" * 48]]
    expected = FastBiLM(bilm, precision).layers(sentences)
    fast = FastBiLM(bilm, precision)
    with torch.no_grad():
        for weight in bilm.parameters():
            weight.zero_()
    assert_same(fast.layers(sentences), expected)


def test_refuses_what_it_would_get_wrong(bilm: BiLM, options: BiLMOptions) -> None:
    with pytest.raises(ValueError, match="stateless"):
        FastBiLM(BiLM(options, stateful=True))
    for trained in (bilm, bilm.directions[1].layers[0].bias):  # one weight is enough
        trained.requires_grad_(True)
        with pytest.raises(ValueError, match="frozen"):
            FastBiLM(bilm)
        bilm.requires_grad_(False)
    for build in (functools.partial(FastBiLM, token_budget=0), functools.partial(FastBiLM, cached_words=0)):
        with pytest.raises(ValueError, match="expected at least 1"):
            build(bilm)
    with pytest.raises(ValueError, match=r"in float32 \(float\(\)\)"):
        FastBiLM(bilm.double())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_on_a_gpu(bilm: BiLM, precision: Precision) -> None:
    sentences = made_up_sentences(30)
    expected = bilm.layers(sentences).layers
    fast = FastBiLM(bilm.to("cuda"), precision)
    for _ in range(2):
        assert relative_error(fast.layers(sentences).layers.cpu(), expected) < max(1e-5, RELATIVE_ERRORS[precision])
    with pytest.raises(ValueError, match="int8"):
        FastBiLM(bilm, "int8")
