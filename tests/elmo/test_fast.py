from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import pytest
import torch
from torch import Tensor

from elmo_tasks.elmo import PUBLISHED_OPTIONS, BiLM, BiLMOptions, random_bilm
from elmo_tasks.elmo.embed import embed_file
from elmo_tasks.elmo.fast import FastBiLM, Precision, products
from elmo_tasks.elmo.fast.recurrence import LstmProducts
from elmo_tasks.elmo.layers import LayerOutput
from elmo_tasks.elmo.lstm import LstmState

CLOSE = {"rtol": 0.0, "atol": 5e-5}
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8")
RELATIVE_ERRORS: dict[Precision, float] = {"float32": 1e-6, "bfloat16": 0.02, "int8": 0.1}


@pytest.fixture
def plain_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if torch had none of the faster ways."""
    monkeypatch.setattr(products, "_FASTEST", products._PLAIN)


def made_up_sentences(number: int, seed: int = 0) -> list[list[str]]:
    """Sentences of 0 to 60 words of 1 to 60 bytes, some of them beyond ASCII, the shorter ones more frequent."""
    generator = random.Random(seed)
    words = ["".join(generator.choices("abcdefgé漢", k=min(generator.randint(1, 24), 20))) for _ in range(200)]
    words += ["x" * length for length in (40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 60)]
    return [generator.choices(words, k=min(int(generator.expovariate(0.07)), 60)) for _ in range(number)]


def assert_same(found: LayerOutput, expected: LayerOutput) -> None:
    torch.testing.assert_close(found.layers, expected.layers, **CLOSE)
    assert torch.equal(found.mask, expected.mask)


def relative_error(found: LayerOutput, expected: LayerOutput) -> float:
    return float((found.layers - expected.layers).norm() / expected.layers.norm())


@pytest.mark.parametrize("num_sentences", [1, 2, 5, 70])
def test_same_layers_as_the_plain_path(bilm: BiLM, num_sentences: int) -> None:
    sentences = made_up_sentences(num_sentences, seed=num_sentences)
    assert_same(FastBiLM(bilm).layers(sentences), bilm.plain_layers(sentences))


def test_a_repeated_sentence_is_computed_once(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[int] = []
    run = LstmProducts.run

    def counting(layer: LstmProducts, inputs: Tensor, batch_sizes: Sequence[int], state: LstmState) -> Tensor:
        computed.append(len(inputs))
        return run(layer, inputs, batch_sizes, state)

    monkeypatch.setattr(LstmProducts, "run", counting)
    sentences = [["a", "b"], ["c"], ["a", "b"], [], ["a", "b"], []]
    fast, expected = FastBiLM(bilm), bilm.plain_layers(sentences)
    first = fast.layers(sentences)
    assert_same(first, expected)
    assert set(computed) == {5}  # three tokens and the border of each of the two sentences
    first.layers.zero_()
    computed.clear()
    assert_same(fast.layers([*sentences[:2], []] * 3), bilm.plain_layers([*sentences[:2], []] * 3))  # the same three
    assert_same(fast.layers([sentences[number] for number in (0, 1, 3)]), bilm.plain_layers([["a", "b"], ["c"], []]))
    assert not computed
    assert_same(fast.layers([["c"], ["a", "b"], []]), bilm.plain_layers([["c"], ["a", "b"], []]))
    assert_same(fast.layers([["d"]] * 2), bilm.plain_layers([["d"]] * 2))
    assert_same(fast.layers([["e"]] * 2), bilm.plain_layers([["e"]] * 2))  # another one
    assert set(computed) == {5, 2}


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("lstm", {"projection_dim": 12}),
        ("lstm", {"cell_clip": None, "proj_clip": None}),
        ("lstm", {"use_skip_connections": False, "n_layers": 3}),
        ("char_cnn", {"activation": "tanh", "n_highway": 0}),
        ("char_cnn", {"max_characters_per_token": 7}),
        ("char_cnn", {"filters": ((1, 3), (2, 3))}),
    ],
)
def test_every_kind_of_architecture(options: BiLMOptions, part: str, changes: dict[str, object]) -> None:
    changed = options.model_copy(update={part: getattr(options, part).model_copy(update=changes)})
    bilm = random_bilm(changed, seed=5, scale=1.2)
    sentences = made_up_sentences(12)
    assert_same(FastBiLM(bilm).layers(sentences), bilm.plain_layers(sentences))


@pytest.mark.slow
@pytest.mark.parametrize("clip", [3.0, 0.5])
@pytest.mark.parametrize("size", PUBLISHED_OPTIONS)
def test_published_sizes(size: str, clip: float) -> None:
    """With the published clips, and with some that bite."""
    published = PUBLISHED_OPTIONS[size]
    lstm = published.lstm.model_copy(update={"cell_clip": clip, "proj_clip": clip})
    bilm = random_bilm(published.model_copy(update={"lstm": lstm}))
    sentences = made_up_sentences(40)
    expected = bilm.plain_layers(sentences)
    assert clip == 3.0 or (expected.layers[:, 1].abs() == clip).any()
    assert_same(FastBiLM(bilm).layers(sentences), expected)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_accuracy_of_each_precision(bilm: BiLM, precision: Precision) -> None:
    sentences = made_up_sentences(30)
    error = relative_error(FastBiLM(bilm, precision).layers(sentences), bilm.plain_layers(sentences))
    assert error < RELATIVE_ERRORS[precision]
    assert precision == "float32" or error > RELATIVE_ERRORS["float32"]


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_the_token_layer_is_rounded_like_the_others(bilm: BiLM, precision: Precision) -> None:
    sentences = made_up_sentences(30)
    found, expected = (each.layers(sentences).layers for each in (FastBiLM(bilm, precision), bilm))
    assert float((found - expected)[:, 0].norm() / expected[:, 0].norm()) > 1e-5


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.usefixtures("plain_products")
def test_without_any_faster_product(bilm: BiLM, precision: Precision) -> None:
    sentences = made_up_sentences(30)
    error = relative_error(FastBiLM(bilm, precision).layers(sentences), bilm.plain_layers(sentences))
    assert error < RELATIVE_ERRORS[precision]


def test_two_threads_give_what_one_gives(bilm: BiLM) -> None:
    sentences = made_up_sentences(30)
    expected = bilm.plain_layers(sentences)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert_same(FastBiLM(bilm).layers(sentences), expected)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_several_callers_at_once(bilm: BiLM) -> None:
    fast = FastBiLM(bilm)
    texts = [made_up_sentences(12, seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(fast.layers, texts * 5))
    for number, output in enumerate(found):
        assert_same(output, bilm.plain_layers(texts[number % 4]))


@pytest.mark.parametrize("threads", [1, 2])
def test_callers_in_and_out_of_inference_mode_take_turns(bilm: BiLM, threads: int) -> None:
    sentences, others = made_up_sentences(8), made_up_sentences(8, seed=1)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        fast = FastBiLM(bilm)
        with torch.inference_mode():
            assert_same(fast.layers(sentences), bilm.plain_layers(sentences))
        output = fast.layers([*sentences, *others])
    finally:
        torch.set_num_threads(before)
    assert_same(output, bilm.plain_layers([*sentences, *others]))
    weight = torch.ones((), requires_grad=True)
    (weight * output.layers).sum().backward()  # not possible with tensors of inference mode
    assert weight.grad is not None


def test_a_sentence_alone_batched_and_in_any_order(bilm: BiLM) -> None:
    sentences = made_up_sentences(20)
    fast = FastBiLM(bilm, token_budget=40)
    rows = list(range(len(sentences)))
    random.Random(1).shuffle(rows)
    batched = fast.layers([sentences[row] for row in rows]).layers
    for place, row in enumerate(rows):
        alone = fast.layers([sentences[row]]).layers[0]
        torch.testing.assert_close(batched[place, :, : len(sentences[row])], alone, **CLOSE)
        assert (batched[place, :, len(sentences[row]) :] == 0).all()


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_company_changes_no_rounding(bilm: BiLM, precision: Precision) -> None:
    """Far less than the rounding's own error: an outlier in one sentence must not coarsen another's steps."""
    sentences = made_up_sentences(12)
    fast = FastBiLM(bilm, precision)
    together = fast.layers(sentences).layers
    for row, tokens in enumerate(sentences):
        alone = fast.layers([tokens]).layers[0]
        torch.testing.assert_close(together[row, :, : len(tokens)], alone, rtol=0.0, atol=2e-3)


@pytest.mark.parametrize("token_budget", [1, 7, 10_000])
def test_any_token_budget(bilm: BiLM, token_budget: int) -> None:
    sentences = made_up_sentences(25)
    assert_same(FastBiLM(bilm, token_budget=token_budget).layers(sentences), bilm.plain_layers(sentences))


@pytest.mark.parametrize("cached_words", [1, 3, 1000])
def test_any_number_of_cached_words(bilm: BiLM, cached_words: int) -> None:
    fast = FastBiLM(bilm, cached_words=cached_words)
    for seed in range(3):
        sentences = made_up_sentences(6, seed)
        assert_same(fast.layers(sentences), bilm.plain_layers(sentences))


def test_nothing_to_compute(bilm: BiLM) -> None:
    fast = FastBiLM(bilm)
    for sentences in ([], [[]], [[], []]):
        assert_same(fast.layers(sentences), bilm.plain_layers(sentences))


@pytest.mark.parametrize("chunk_length", [1, 4, 13, 500])
@pytest.mark.parametrize("length", [0, 1, 12, 13])
def test_layers_in_chunks(bilm: BiLM, chunk_length: int, length: int) -> None:
    tokens = [f"word{number % 5}" for number in range(length)]
    expected = bilm.plain_layers([tokens]).layers[0]
    found = torch.full_like(expected, torch.nan)
    for chunk in FastBiLM(bilm).layers_in_chunks(tokens, chunk_length):
        assert 0 < chunk.layers.shape[1] <= chunk_length
        found[:, chunk.tokens, chunk.features] = chunk.layers
    torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.usefixtures("plain_products")
def test_chunks_under_autocast_are_the_same(bilm: BiLM, precision: Precision) -> None:
    tokens = ["short", "words", "and", "x" * 48]
    fast, other = FastBiLM(bilm, precision), FastBiLM(bilm, precision)
    expected = [chunk.layers for chunk in fast.layers_in_chunks(tokens, 3)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = [chunk.layers for chunk in other.layers_in_chunks(tokens, 3)]
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


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


def test_embedding_a_file(bilm: BiLM, bilm_files: tuple[Path, Path], tmp_path: Path) -> None:
    sentences = made_up_sentences(15)
    text = tmp_path / "text.txt"
    text.write_text("".join(" ".join(tokens) + "\n" for tokens in sentences), encoding="utf-8")
    fast = FastBiLM(BiLM.load(*bilm_files))
    for max_tokens in (10, 1000):
        assert embed_file(text, tmp_path / "vectors.hdf5", fast, max_tokens=max_tokens, show_progress=False) == 15
        with h5py.File(tmp_path / "vectors.hdf5") as file:
            for row, tokens in enumerate(sentences):
                expected = bilm.plain_layers([tokens]).layers[0]
                torch.testing.assert_close(torch.from_numpy(file[str(row)][...]), expected, **CLOSE)


def test_layers_can_be_mixed_with_a_gradient(bilm: BiLM) -> None:
    weights = torch.ones(3, 1, 1, requires_grad=True)
    (FastBiLM(bilm).layers([["a", "b"]]).layers * weights).sum().backward()
    assert weights.grad is not None


def test_refuses_what_it_would_get_wrong(bilm: BiLM, options: BiLMOptions) -> None:
    with pytest.raises(ValueError, match="carries state"):
        FastBiLM(BiLM(options, stateful=True))
    with pytest.raises(ValueError, match="frozen"):
        FastBiLM(bilm.requires_grad_(True))
    bilm.requires_grad_(False)
    for numbers in ({"token_budget": 0}, {"cached_words": 0}):
        with pytest.raises(ValueError, match="expected at least 1"):
            FastBiLM(bilm, **numbers)
    for each in (bilm, FastBiLM(bilm)):
        with pytest.raises(ValueError, match="chunks of 0 tokens"):
            next(iter(each.layers_in_chunks(["a"], 0)))
    with pytest.raises(ValueError, match=r"weights in torch.float64; expected float32 \(bilm.float\(\)\)"):
        FastBiLM(bilm.double())


def test_refuses_a_bilm_of_which_one_weight_is_trained(bilm: BiLM) -> None:
    bilm.directions[1].layers[0].bias.requires_grad_(True)
    with pytest.raises(ValueError, match="frozen"):
        FastBiLM(bilm)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_on_a_gpu(bilm: BiLM, precision: Precision) -> None:
    sentences = made_up_sentences(30)
    expected = bilm.plain_layers(sentences)
    fast = FastBiLM(bilm.to("cuda"), precision)
    for _ in range(2):
        assert relative_error(fast.layers(sentences).to("cpu"), expected) < max(1e-5, RELATIVE_ERRORS[precision])
    with pytest.raises(ValueError, match="int8"):
        FastBiLM(bilm, "int8")
