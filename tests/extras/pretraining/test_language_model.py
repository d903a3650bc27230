import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.elmo.options import VOCABULARY_FILE
from elmo_tasks.errors import WeightsError
from elmo_tasks.extras.pretraining import language_model
from elmo_tasks.extras.pretraining.language_model import SOFTMAX_FILE, LanguageModel
from elmo_tasks.extras.pretraining.softmax import OutputVocabulary
from elmo_tasks.extras.pretraining.windows import NO_TARGET, Window, WordsByLength
from tests.random_bilm import random_bilm

CELLS, SIZE, FILTERS = 128, 32, 128  # of `TINY_OPTIONS`
AS_MANY_FILTERS = TINY_OPTIONS.char_cnn.model_copy(update={"filters": ((1, 16), (2, 16))})
OPTIONS = TINY_OPTIONS.model_copy(update={"char_cnn": AS_MANY_FILTERS})  # as features, and so without a projection
TOKENS = ["the", "old", "mill", "burns"]


def make_model(dropout: float) -> LanguageModel:
    torch.manual_seed(2)
    return LanguageModel(random_bilm(OPTIONS, seed=4), OutputVocabulary(TOKENS), dropout)


def make_window(model: LanguageModel) -> Window:
    """The sentence's slots: both directions begin at their border and read up to the last token."""
    distinct = [BEGIN_SENTENCE, END_SENTENCE, *TOKENS]
    read = torch.tensor([[0, 2, 3, 4, 5], [1, 5, 4, 3, 2]]).unsqueeze(2)  # (2, T, 1)
    words = [model.vocabulary.numbers(row) for row in ([*TOKENS, END_SENTENCE], [*TOKENS[::-1], BEGIN_SENTENCE])]
    by_length, places = WordsByLength.of(distinct, 50)
    return Window(by_length, torch.from_numpy(places)[read], torch.tensor(words).unsqueeze(2))


def inputs_and_outputs_of_dropout(model: LanguageModel) -> list[tuple[Tensor, Tensor]]:
    """What dropout reads and gives: inputs of the first layer, of the second, of the softmax; forward, backward."""
    calls: list[tuple[Tensor, Tensor]] = []
    handle = model.dropout.register_forward_hook(lambda _, inputs, output: calls.append((inputs[0], output)))
    model(make_window(model), model.initial_states(1))
    handle.remove()
    return calls


@pytest.mark.parametrize("tokens_at_once", [2, 512])
def test_losses_are_those_of_the_biLMs_top_layer(tokens_at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "TOKENS_AT_ONCE", tokens_at_once)
    model = make_model(dropout=0.0).eval()
    window = make_window(model)
    window.targets[:, 0] = NO_TARGET  # at the border's slot, which is not one of the biLM's tokens
    losses = model(window, model.initial_states(1))[:2]
    layers = model.bilm.layers([TOKENS]).layers[0, -1]  # (T, D)
    for direction, found in enumerate(losses):
        hidden = layers[:, SIZE * direction : SIZE * (direction + 1)]  # (T, P)
        hidden = hidden.flip(0) if direction else hidden
        logits = hidden @ model.softmax_weight.t() + model.softmax_bias
        targets = window.targets[direction, 1:, 0]
        expected = nn.functional.cross_entropy(logits, targets, reduction="sum")
        torch.testing.assert_close(found, expected, check_dtype=False)


def test_products_can_be_in_bfloat16() -> None:
    model = make_model(dropout=0.0)
    exact, rounded = (model.vectors(make_window(model), dtype)[0] for dtype in (torch.float32, torch.bfloat16))
    assert rounded.dtype == torch.float32
    assert 0 < (rounded - exact).norm() < 0.02 * exact.norm()


def test_embeddings_of_bytes_that_hardly_any_word_has_start_at_zero() -> None:
    words = [f"word{number}" for number in range(14_989)] + ["né", "né-e", "n'é", "Łan", "日", "日本", "%"]
    embedding = LanguageModel.untrained(TINY_OPTIONS, OutputVocabulary(words)).bilm.token_encoder.embedding.weight
    is_zero = (embedding == 0).all(1)
    common, rare = "word0123456789é%".encode(), "Ł日本x".encode()  # é: 3 of 14,999 words; Ł: 1; x: none
    assert not is_zero[[byte + 1 for byte in common]].any()
    assert is_zero[[byte + 1 for byte in rare]].all()
    assert not is_zero[-5:].any()  # the borders of sentences and words, and the padding of words


def test_weights_start_as_in_bilm_tf() -> None:
    torch.manual_seed(1)
    model = LanguageModel.untrained(TINY_OPTIONS, OutputVocabulary(TOKENS))
    encoder = model.bilm.token_encoder
    assert (encoder.embedding.weight[0] == 0).all()
    assert 0.9 < encoder.embedding.weight.abs().max() <= 1
    for convolution in encoder.convolutions:
        assert 0.03 < convolution.weight.abs().max() <= 0.05
        assert (convolution.get_parameter("bias") == 0).all()
    (highway,) = encoder.highways
    assert (highway.carry.bias == -2).all()  # most of the inputs pass
    assert (highway.transform.bias == 0).all()
    assert encoder.projection is not None
    assert (encoder.projection.bias == 0).all()
    for linear in (highway.carry, highway.transform, encoder.projection):
        assert linear.weight.std().item() == pytest.approx(1 / math.sqrt(FILTERS), rel=0.15)
    assert model.softmax_weight.std().item() == pytest.approx(1 / math.sqrt(SIZE), rel=0.15)
    assert (model.softmax_bias == 0).all()
    for stack in model.bilm.directions:
        for lstm in stack.layers:
            assert lstm.projection_weight is not None
            for weight, sizes in (
                (lstm.input_weight, 4 * CELLS + SIZE + SIZE),
                (lstm.recurrent_weight, 4 * CELLS + SIZE + SIZE),
                (lstm.projection_weight, CELLS + SIZE),
            ):
                bound = math.sqrt(6 / sizes)  # Glorot's
                assert -bound <= weight.min() < -0.99 * bound
                assert 0.99 * bound < weight.max() <= bound
            assert (lstm.bias == 0).all()


@pytest.mark.parametrize("missing", [VOCABULARY_FILE, SOFTMAX_FILE])
def test_a_softmax_without_its_vocabulary_is_none(missing: str, tmp_path: Path) -> None:
    make_model(0.0).save(tmp_path)
    assert LanguageModel.is_in_folder(tmp_path)
    (tmp_path / missing).unlink()
    assert not LanguageModel.is_in_folder(tmp_path)
    with pytest.raises(WeightsError, match=r"expected vocabulary\.txt and softmax\.safetensors in addition"):
        LanguageModel.load(tmp_path)


def test_skip_connections_carry_on_what_dropout_has_left() -> None:
    model = make_model(dropout=0.5).train()
    with torch.no_grad():
        for stack in model.bilm.directions:
            for parameter in stack.layers[1].parameters():
                parameter.zero_()  # so that only the skip connection is left of the layer
    calls = inputs_and_outputs_of_dropout(model)
    for second_layer, softmax in zip(calls[2:4], calls[4:6], strict=True):
        assert softmax[0].equal(second_layer[1])
        assert not second_layer[1].equal(second_layer[0])


@pytest.mark.parametrize("settings", [{}, {"half_precision": True}])
def test_files_are_exact_unless_half_precision_is_asked_for(settings: dict[str, bool], tmp_path: Path) -> None:
    model = make_model(0.0)
    model.save(tmp_path, **settings)
    loaded = LanguageModel.load(tmp_path).state_dict()
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(loaded[name], tensor, atol=1e-3 if settings else 0, rtol=0)
    assert loaded["softmax_weight"].equal(model.softmax_weight) is not bool(settings)


def test_there_is_no_dropout_unless_it_is_asked_for(tmp_path: Path) -> None:
    make_model(0.5).save(tmp_path)
    untrained = LanguageModel.untrained(OPTIONS, OutputVocabulary(TOKENS))
    plain = LanguageModel(random_bilm(OPTIONS, seed=4), OutputVocabulary(TOKENS))
    for model in (LanguageModel.load(tmp_path), untrained, plain):
        assert all(after.equal(before) for before, after in inputs_and_outputs_of_dropout(model.train()))
    model = LanguageModel.load(tmp_path, 0.5).train()
    assert not any(after.equal(before) for before, after in inputs_and_outputs_of_dropout(model))


def test_a_softmax_of_other_sizes_is_refused(tmp_path: Path) -> None:
    make_model(0.0).save(tmp_path)
    with (tmp_path / VOCABULARY_FILE).open("a") as file:
        file.write("boat\n")
    with pytest.raises(
        WeightsError, match=r"softmax\.safetensors: holds .*7.*; expected .*8, 32.*, from the vocabulary"
    ):
        LanguageModel.load(tmp_path)


def test_an_interrupted_save_leaves_the_old_files_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped_half_way(target: Path, tensors: object) -> None:
        target.write_bytes(b"half of it")
        raise KeyboardInterrupt

    make_model(0.0).save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(language_model, "write_tensors", stopped_half_way)
    with pytest.raises(KeyboardInterrupt):
        make_model(0.0).save(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
