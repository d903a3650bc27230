import json
import shutil
from pathlib import Path
from typing import Any

import pydantic
import pytest
import torch
from torch import Tensor

from elmo_tasks.models.embedder import EmbedderConfig
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary

transformers = pytest.importorskip("transformers")

from tokenizers import processors  # noqa: E402

from elmo_tasks.elmo.frozen_layers import LayerCacheConfig  # noqa: E402
from elmo_tasks.errors import ConfigError, RunError, WeightsError  # noqa: E402
from elmo_tasks.extras.transformers.transformer import FrozenTransformer, TransformerConfig  # noqa: E402
from elmo_tasks.extras.transformers.transformer_files import TransformerFiles  # noqa: E402
from elmo_tasks.runs import load, train  # noqa: E402
from elmo_tasks.runs.evaluate import evaluate  # noqa: E402
from tests.extras.transformers.tiny_bert import (  # noqa: E402
    PIECES,
    POSITIONS,
    TEXTS,
    frozen,
    library_states,
    save_bert,
    states,
)
from tests.fake_hub import FakeHub  # noqa: E402


def test_pooling_of_pieces(bert: Path) -> None:
    pieces = ["the", "ma", "##ry", "##n", "##e", "[UNK]", "went"]
    expected = states(bert, pieces)  # (L+1, pieces, D)
    first, mean = (frozen(bert, pooling).layers(TEXTS).layers[3] for pooling in ("first", "mean"))  # (L+1, T, D)
    torch.testing.assert_close(first[:, :4], expected[:, [0, 1, 5, 6]])
    torch.testing.assert_close(mean[:, [0, 2, 3]], expected[:, [0, 5, 6]])
    torch.testing.assert_close(mean[:, 1], expected[:, 1:5].mean(dim=1))
    assert not first[:, 1].allclose(mean[:, 1], atol=1e-3)


def test_shapes_padding_and_neighbours(bert: Path) -> None:
    source = frozen(bert)
    output = source.layers(TEXTS)
    assert output.layers.shape == (4, 3, 5, 8)
    assert output.mask.sum(dim=1).tolist() == [5, 1, 0, 4]
    assert (output.layers.transpose(1, 2)[~output.mask] == 0).all()
    for row, tokens in enumerate(TEXTS):
        alone = source.layers([tokens])
        torch.testing.assert_close(output.layers[row, :, : len(tokens)], alone.layers[0], atol=1e-5, rtol=1e-5)
    assert source.layers([]).layers.shape == (0, 3, 0, 8)
    assert source.layers([[]]).layers.shape == (1, 3, 0, 8)


def test_a_word_without_pieces_is_zero_and_moves_no_other(bert: Path) -> None:
    source = frozen(bert)
    plain, odd = source.layers([["Mary", "went"]]).layers[0], source.layers([["Mary", "\u200d", "went"]]).layers[0]
    assert (odd[:, 1] == 0).all()
    torch.testing.assert_close(odd[:, [0, 2]], plain)
    assert (source.layers([["\u200d"]]).layers == 0).all()
    torch.testing.assert_close(source.layers([["\ud800"]]).layers, source.layers([["?"]]).layers)


def test_windows_of_long_texts(bert: Path) -> None:
    """Each window has ten pieces and begins five after the one before."""
    words = ["the", "went", "to", ".", "Boeing"] * 5  # 30 pieces
    found = frozen(bert).layers([words]).layers[0]
    pieces = ["the", "went", "to", ".", "boe", "##ing"] * 5
    windows = {begin: states(bert, pieces[begin : begin + 10]) for begin in (0, 5, 10, 15, 20)}

    def expected(piece: int) -> Tensor:
        ends = {0: 7, 5: 12, 10: 17, 15: 22, 20: 30}  # of what is used of a window: the middle of the next overlap
        begin = next(begin for begin, end in ends.items() if piece < end)
        return windows[begin][:, piece - begin]

    piece = 0
    for word, token in enumerate(words):
        width = 2 if token == "Boeing" else 1
        mean = torch.stack([expected(piece + each) for each in range(width)]).mean(dim=0)
        torch.testing.assert_close(found[:, word], mean)
        piece += width


def test_a_text_that_fits_is_read_at_once(bert: Path) -> None:
    words = ["the", "went", "to", ".", "Mary", "to", "Boeing", "."]  # ten pieces, as many as there is room for
    pieces = ["the", "went", "to", ".", "ma", "##ry", "to", "boe", "##ing", "."]
    expected = states(bert, pieces)[:, [0, 1, 2, 3, 4, 6, 7, 9]]
    torch.testing.assert_close(frozen(bert, "first").layers([words]).layers[0], expected)


def test_roberta_counts_positions_from_behind_the_padding(bert: Path, tmp_path: Path) -> None:
    config = transformers.RobertaConfig(
        vocab_size=len(PIECES), hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=POSITIONS + 1, pad_token_id=0,
    )  # fmt: skip
    transformers.RobertaModel(config).save_pretrained(tmp_path)
    shutil.copy(bert / "tokenizer.json", tmp_path)
    source, words = frozen(tmp_path, layers=(1,)), ["the", "went", "to", "."] * 9
    assert source.layers([words, words[:5]]).layers.isfinite().all()
    ids = torch.tensor([[PIECES.index(piece) for piece in ["[CLS]", *words[:10], "[SEP]"]]])  # as many as fit
    with torch.no_grad():
        expected = transformers.RobertaModel.from_pretrained(tmp_path).eval()(ids).last_hidden_state[:, 1:-1]
    torch.testing.assert_close(source.layers([words[:10]]).layers[:, 0], expected)


@pytest.mark.parametrize(("named", "expected"), [(13, 13), (None, 0)])
def test_the_padding_is_the_models_own(bert: Path, named: int | None, expected: int) -> None:
    model, tokenizer = TransformerFiles(bert).load()
    model.config.pad_token_id = named
    seen: list[Tensor] = []
    model.register_forward_pre_hook(lambda _, __, given: seen.append(given["input_ids"]), with_kwargs=True)
    FrozenTransformer(model, tokenizer, (0,), "first").layers([["went", "to"], ["went"]])
    assert seen[0].tolist() == [[2, 8, 9, 3], [2, 8, 3, expected]]


def test_a_tokenizer_without_special_pieces(bert: Path) -> None:
    model, tokenizer = TransformerFiles(bert).load()
    tokenizer.post_processor = processors.Sequence([])
    found = FrozenTransformer(model, tokenizer, (2,), "first").layers([[], ["went", "to"]]).layers
    assert found.shape == (2, 1, 2, 8)
    torch.testing.assert_close(found[1, 0], library_states(bert, ["went", "to"])[2])


def test_windows_are_read_in_batches_of_a_bounded_size(bert: Path) -> None:
    model, tokenizer = TransformerFiles(bert).load()
    shapes: list[tuple[int, ...]] = []
    model.register_forward_pre_hook(
        lambda _, __, named: shapes.append(tuple(named["input_ids"].shape)), with_kwargs=True
    )
    FrozenTransformer(model, tokenizer, (0,), "first").layers([["went"]] * 400)
    assert shapes == [(170, 3), (170, 3), (60, 3)]  # 512 pieces at most, [CLS] and [SEP] included


def test_a_window_needs_room_for_two_pieces(tmp_path: Path) -> None:
    folder = save_bert(tmp_path / "bert", max_position_embeddings=4)
    words = ["the", "went", "to"]
    found = frozen(folder, layers=(2,)).layers([words]).layers[0, 0]
    torch.testing.assert_close(found[0], states(folder, words[:2])[2, 0])
    torch.testing.assert_close(found[2], states(folder, words[1:])[2, 1])
    files = TransformerFiles(folder)
    for window, parts in ((3, [["the"], ["went"], ["to"]]), (99, [words[:2], words[2:]])):  # which do not overlap
        read = FrozenTransformer(*files.load(), (2,), "first", window=window).layers([words]).layers[0, 0]
        torch.testing.assert_close(read, torch.cat([states(folder, part)[2] for part in parts]))
    with pytest.raises(WeightsError, match="too few positions"):
        FrozenTransformer(*files.load(), (2,), "first", window=2)
    with pytest.raises(
        WeightsError, match=r"config\.json: too few positions for the special pieces of tokenizer\.json"
    ):
        frozen(save_bert(tmp_path / "small", max_position_embeddings=3))


def test_the_mix_learns_and_the_transformer_does_not(bert: Path) -> None:
    embedder = TransformerConfig(model=str(bert), layer_cache=None, dropout=0.0).build()
    assert [name for name, _ in embedder.named_parameters()] == ["mixes.input.weights", "mixes.input.gamma"]
    layers = frozen(bert).layers(TEXTS).layers
    torch.testing.assert_close(embedder(TEXTS)["input"], layers.mean(dim=1))
    embedder(TEXTS)["input"].sum().backward()
    assert all(parameter.grad is not None for parameter in embedder.parameters())
    last = TransformerConfig(model=str(bert), layers=(-1,), layer_cache=None, dropout=0.0).build()
    torch.testing.assert_close(last(TEXTS)["input"], layers[:, 2])
    assert last.layer_numbers == (2,)
    first = TransformerConfig(model=str(bert), layers=(-3,), layer_cache=None, dropout=0.0).build()
    torch.testing.assert_close(first(TEXTS)["input"], layers[:, 0])
    pair = TransformerConfig(model=str(bert), layers=(0, 2), layer_cache=None).build()
    learned = [
        [name for name, parameter in each.named_parameters() if parameter.requires_grad] for each in (last, pair)
    ]
    assert learned == [["mixes.input.gamma"], ["mixes.input.weights", "mixes.input.gamma"]]  # one has nothing to weigh
    twice = TransformerConfig(model=str(bert), gamma=2.0, layer_cache=None, dropout=0.0).build()
    torch.testing.assert_close(twice(TEXTS)["input"], 2 * layers.mean(dim=1))
    model, _ = TransformerFiles(bert).load()
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_stored_layers_are_the_computed_ones(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(**settings: Any) -> Any:
        return TransformerConfig(model=str(bert), layers=(0, 2), dropout=0.0, **settings).build()

    half, exact = LayerCacheConfig(), LayerCacheConfig(storage="float32")
    computed = build(layer_cache=None)(TEXTS)["input"]
    for cache in (half, exact):
        build(layer_cache=cache).prepare(TEXTS)
    monkeypatch.setattr(TransformerFiles, "load", lambda self: pytest.fail("computed again"))
    torch.testing.assert_close(build(layer_cache=half)(TEXTS)["input"], computed, atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(build(layer_cache=exact)(TEXTS)["input"], computed, atol=1e-5, rtol=1e-5)
    for other in ({"pooling": "first"}, {"window": 3}, {"prefix_space": False}):
        with pytest.raises(pytest.fail.Exception, match="computed again"):  # another store
            build(layer_cache=exact, **other)(TEXTS)


def test_the_embedder_puts_its_stored_layers_after_the_words(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformer = {"model": str(bert), "pooling": "first"}
    config = EmbedderConfig.model_validate({"words": {"size": 3}, "transformer": transformer})
    vocabulary = Vocabulary(words=(*SPECIAL, "went"), num_trained_words=3, characters=(*SPECIAL,), labels={})
    config.build(vocabulary).prepare(TEXTS)
    monkeypatch.setattr(TransformerFiles, "load", lambda self: pytest.fail("computed again"))
    embedder = config.build(vocabulary).eval()
    embedded = embedder(vocabulary.index_tokens(TEXTS))
    assert embedder.output_size == 11
    assert embedded.inputs.shape == (4, 5, 11)
    assert embedder.transformer is not None
    torch.testing.assert_close(embedded.inputs[..., 3:], embedder.transformer(TEXTS)["input"])
    assert embedder.transformer_weights() == {"layers": [0, 1, 2], "weights": [pytest.approx(1 / 3)] * 3, "gamma": 1.0}


@pytest.mark.parametrize(
    ("layers", "message"),
    [((3,), "got 3; .* has 0 to 2"), ((0, -4), "got -4; .* has 0 to 2"), ((2, -1), "named twice")],
)
def test_layers_that_the_transformer_lacks(layers: tuple[int, ...], message: str, bert: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        TransformerConfig(model=str(bert), layers=layers).build()


def test_impossible_settings(bert: Path) -> None:
    with pytest.raises(pydantic.ValidationError, match="expected each layer once"):
        TransformerConfig(model=str(bert), layers=(1, 1))
    with pytest.raises(WeightsError, match=r"gone: no such folder; .*hub:NAME"):
        TransformerConfig(model="gone").build()


# Runs


INPUTS: list[dict[str, Any]] = [{"text": "Mary went to Boeing. She met Collins Group."}, {"tokens": ["Mary", "slept"]}]


@pytest.fixture(scope="module")
def trained(settings: dict[str, Any], bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose tagger reads word vectors and the transformer; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    shutil.copytree(bert, folder / "bert")
    train.train(config_of(settings, folder / "bert"), folder / "run")
    return folder


def config_of(settings: dict[str, Any], model: Path) -> dict[str, Any]:
    changed = json.loads(json.dumps(settings))
    embedder = {"words": changed["model"]["embedder"]["words"], "transformer": {"model": str(model), "dropout": 0.1}}
    changed["model"]["embedder"] = embedder
    changed["trainer"]["num_epochs"] = 2
    return changed


def test_a_run_refers_to_its_transformer(trained: Path, settings: dict[str, Any]) -> None:
    from elmo_tasks.files.tensor_files import read_tensors

    run = trained / "run"
    reference = json.loads((run / "transformer.json").read_text())
    fingerprint = TransformerFiles(trained / "bert").fingerprint()
    assert reference == {"model": str((trained / "bert").resolve()), "fingerprint": fingerprint}
    names = {*read_tensors(run / "frozen.safetensors"), *read_tensors(run / "model.safetensors")}
    assert {name for name in names if "transformer" in name} == {
        "embedder.transformer.mixes.input.gamma",
        "embedder.transformer.mixes.input.weights",
    }
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["best"]["transformer"]["layers"] == [0, 1, 2]
    assert metrics["best"]["transformer"]["gamma"] != 1.0
    found = evaluate(run, settings["test_data_path"])
    assert found == pytest.approx(metrics["test"], abs=1e-4)
    assert load.load_predictor(run)(INPUTS)[-1]["tokens"] == ["Mary", "slept"]


def test_a_strangers_run_does_not_ask_the_hub(trained: Path, tmp_path: Path, hub: FakeHub) -> None:
    hub.add("a-stranger/model", trained / "bert")
    run = shutil.copytree(trained / "run", tmp_path / "run")
    (run / "transformer.json").write_text(json.dumps({"model": "hub:a-stranger/model", "fingerprint": "0" * 64}))
    with pytest.raises(RunError, match=r"hub:a-stranger/model: not downloaded to this machine yet"):
        load.load_run(run)
