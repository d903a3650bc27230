"""AllenNLP's text field embedders part by part: names, rows, settings and what is said about them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Archive, Params, Weights
from elmo_tasks.extras.allennlp.embedder import ConvertedEmbedder, convert_embedder
from elmo_tasks.extras.allennlp.transformer import write_transformer
from elmo_tasks.text.vocabulary import BEGIN_WORD, END_WORD, SPECIAL
from tests.extras.allennlp.archives import OPTIONS, bilm, elmo_tensors

START = "text_field_embedder.token_embedder_"
NOWHERE = functools.partial(write_transformer, None, Path())


def archive(version: str | None) -> Archive:
    return Archive(Path(), {}, version, AllenNlpVocabulary(NAMES), {}, OPTIONS)


NAMES = {
    "tokens": ("@@PADDING@@", "dog", "@@UNKNOWN@@", "cat"),
    "token_characters": ("@@PADDING@@", "@@UNKNOWN@@", "d", "o"),
    "of_my_own": ("@@PADDING@@", "@@UNKNOWN@@", "bird"),
}
WORDS: dict[str, Any] = {"tokens": {"type": "embedding", "embedding_dim": 2}}
CNN: dict[str, Any] = {"type": "cnn", "embedding_dim": 2, "num_filters": 3, "ngram_filter_sizes": [2]}
LSTM: dict[str, Any] = {"type": "lstm", "input_size": 2, "hidden_size": 3}
ELMO: dict[str, Any] = {"elmo": {"type": "elmo_token_embedder", "options_file": "x", "weight_file": "y"}}
BYTES: dict[str, Any] = {"character_tokenizer": {"type": "character", "byte_encoding": "utf-8"}}


def characters(encoder: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {
        "characters": {"type": "character_encoding", "embedding": {"embedding_dim": 2}, "encoder": encoder, **settings}
    }


def tensors(rows: int = 4) -> dict[str, Tensor]:
    """The tensors of all parts; a conversion takes those that it needs."""
    encoder = f"{START}characters._encoder._module."
    named = {
        f"{START}tokens.weight": torch.arange(10.0, 18.0).view(4, 2),
        f"{START}tokens._projection.weight": torch.tensor([[1.0, 10.0]]),
        f"{START}tokens._projection.bias": torch.tensor([100.0]),
        f"{START}characters._embedding._module.weight": torch.arange(2.0 * rows).view(rows, 2),
        f"{encoder}conv_layer_0.weight": torch.zeros(3, 2, 2),
        f"{encoder}conv_layer_0.bias": torch.zeros(3),
        **{f"{START}elmo._elmo.{name}": tensor for name, tensor in elmo_tensors(bilm()).items()},
    }
    lstm = torch.nn.LSTM(2, 3, 2, bidirectional=True)
    return named | {f"{encoder}_module.{name}": tensor for name, tensor in lstm.state_dict().items()}


def convert(
    parts: dict[str, Any],
    indexers: dict[str, Any] | None = None,
    *,
    given: dict[str, Tensor] | None = None,
    version: str | None = "2.0.0",
    unread: str = "unread",
    **embedder: Any,
) -> ConvertedEmbedder:
    """Converts an embedder with these parts; all keys but `unread` are read."""
    config = {
        "model": {"text_field_embedder": {"token_embedders": parts, **embedder}},
        "dataset_reader": {"token_indexers": indexers or {}},
    }
    params, weights = Params(config), Weights(tensors() if given is None else given)
    result = convert_embedder(params, weights, archive(version), NOWHERE)
    assert [path for path in params.unread() if not path.endswith(unread)] == []
    return result


def test_words_have_their_rows_and_padding_is_zero() -> None:
    result = convert(WORDS)
    assert result.vocabulary({}).words == (*SPECIAL, "dog", "cat")
    assert result.vocabulary({}).num_trained_words == 4
    assert result.tensors["words.trained"].tolist() == [[0, 0], [14, 15], [12, 13], [16, 17]]
    assert result.tensors["words.fixed"].shape == (0, 2)
    assert result.config == {"words": {"size": 2, "trainable": True}}
    assert result.vocabulary_config == {"lowercase_words": False}
    assert (result.vocabulary({}).lowercase_words, result.vocabulary({}).byte_characters) == (False, False)
    assert (result.columns.tolist(), result.bilm, result.notes) == ([0, 1], None, [])


def test_settings_of_words() -> None:
    settings = {
        "trainable": False, "num_embeddings": 4, "pretrained_file": "x", "sparse": True, "vocab_namespace": "x",
        "padding_index": 0, "norm_type": 2.0, "scale_grad_by_freq": False,
    }  # fmt: skip
    indexer = {"type": "single_id", "lowercase_tokens": True, "token_min_padding_length": 1}
    result = convert(
        {"tokens": {**WORDS["tokens"], **settings}}, {"tokens": indexer}, type="basic", allow_unmatched_keys=True
    )
    assert not result.config["words"]["trainable"]
    assert result.vocabulary_config == {"lowercase_words": True}
    assert result.vocabulary({}).lowercase_words


def test_a_projection_of_words_is_multiplied_out() -> None:
    result = convert({"tokens": {**WORDS["tokens"], "projection_dim": 1}})
    assert result.tensors["words.trained"].tolist() == [[0], [264], [242], [286]]
    assert result.config["words"]["size"] == 1


@pytest.mark.parametrize(
    ("version", "settings", "expected", "note"),
    [
        ("0.9.0", {"conv_layer_activation": "tanh"}, {"padding": "right", "activation": "tanh"}, "longest word"),
        ("0.9.0", {"conv_layer_activation": None, "output_dim": 0}, {"activation": "relu"}, "longest word"),
        ("1.3.0", {"conv_layer_activation": "linear"}, {"padding": "none", "activation": "none"}, None),
        ("1.3.0", {"conv_layer_activation": "relu"}, {"padding": "none", "activation": "relu"}, None),
    ],
)
def test_characters_in_a_convolution(
    version: str, settings: dict[str, Any], expected: dict[str, Any], note: str | None
) -> None:
    least = {} if "output_dim" in settings else {"min_padding_length": 5}
    indexer = {"type": "characters", **least, "unread": 1}
    result = convert(characters({**CNN, **settings}, dropout=0.2), {"characters": indexer}, version=version)
    padding = {"padding": "right", "token_min_padding_length": 5 if least else 0} if version == "0.9.0" else {}
    common = {"embedding_size": 2, "filters": 3, "width": 2, "dropout": 0.2}
    assert result.config == {"characters": {**common, **padding, **expected}}
    assert result.vocabulary({}).characters == (*SPECIAL, "d", "o")
    assert result.tensors["characters.embedding.weight"].tolist() == [[0, 0], [2, 3], [4, 5], [6, 7]]
    assert result.columns.tolist() == [0, 1, 2]
    assert [note for note in result.notes if "longest word" in note] == list(result.notes)
    assert len(result.notes) == (note is not None)


@pytest.mark.parametrize(
    ("settings", "suffixes"),
    [
        ({}, ["_l0"]),
        (
            {"num_layers": 2, "bidirectional": True, "bias": True, "dropout": 0.1},
            ["_l0", "_l0_reverse", "_l1", "_l1_reverse"],
        ),
    ],
)
def test_characters_in_an_lstm(settings: dict[str, Any], suffixes: list[str]) -> None:
    result = convert(characters({**LSTM, **settings}), {"characters": {"min_padding_length": 3}})
    both = bool(settings)
    expected = {"type": "lstm", "hidden_size": 3, "num_layers": 1 + both, "bidirectional": both}
    assert result.config == {"characters": {"embedding_size": 2, **expected}}
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    lstm = {name for name in result.tensors if ".lstm." in name}
    assert lstm == {f"characters.lstm.{name}{suffix}" for name in names for suffix in suffixes}
    assert len(result.columns) == 3 * (1 + both)
    assert result.notes == []


@pytest.mark.parametrize(("rows", "last"), [(262, [518, 519]), (100, [0, 0])])
def test_characters_as_bytes(rows: int, last: list[float]) -> None:
    tokenizer = {**BYTES["character_tokenizer"], "start_tokens": [259], "end_tokens": None}
    result = convert(characters(CNN), {"characters": {"character_tokenizer": tokenizer}}, given=tensors(rows))
    embedding = result.tensors["characters.embedding.weight"]
    assert embedding.shape == (2 + 256 + 1, 2)
    assert embedding[:2].tolist() == [[0, 0]] * 2
    assert embedding[2 + ord("A")].tolist() == [2 * 66, 2 * 66 + 1]  # a byte's row follows its number
    assert embedding[2 + 98].tolist() == [198, 199]
    assert embedding[-1].tolist() == last
    assert result.vocabulary({}).characters[-1] == BEGIN_WORD
    assert END_WORD not in result.vocabulary({}).characters
    assert result.vocabulary_config == {"byte_characters": True, "border_characters": True}
    assert result.vocabulary({}).byte_characters
    without = convert(characters(CNN), {"characters": BYTES}, given=tensors(rows))
    assert not without.vocabulary_config["border_characters"]
    assert len(without.vocabulary({}).characters) == 2 + 256


def test_elmo() -> None:
    settings = {"requires_grad": True, "do_layer_norm": False, "projection_dim": None, "num_output_representations": 1}
    result = convert({"elmo": {**ELMO["elmo"], **settings}}, {"elmo": {"type": "elmo_characters"}})
    assert result.config == {"elmo": {"mixes": ["input"], "dropout": 0.5}}
    assert result.bilm is not None
    assert len(result.columns) == result.bilm.output_size
    assert not any(parameter.requires_grad for parameter in result.bilm.parameters())
    assert result.notes == []
    assert result.tensors["elmo.mixes.input.weights"].shape == (result.bilm.num_layers,)
    assert result.tensors["elmo.mixes.input.gamma"].item() == 1.5


@pytest.mark.parametrize("mixes", [("input",), ("output",), ("input", "output")])
def test_an_elmo_beside_the_embedder_is_only_part_of_its_output_as_input(mixes: tuple[str, ...]) -> None:
    """That of the biattentive classifier, in the embedder's conversion."""
    uses = {"input": "use_input_elmo", "output": "use_integrator_output_elmo"}
    given = {name: tensor for name, tensor in tensors().items() if "elmo" not in name}
    given |= {f"_elmo.{name}": tensor for name, tensor in elmo_tensors(bilm(), mixes=len(mixes)).items()}
    parts = {**WORDS, **characters(CNN)}
    model = {"text_field_embedder": {"token_embedders": parts}, "elmo": {"dropout": 0.3}}
    params = Params({"model": model | {uses[mix]: True for mix in mixes}})
    result = convert_embedder(params, Weights(dict(given)), archive("2.8.0"), NOWHERE)
    assert result.config["elmo"] == {"mixes": list(mixes), "dropout": 0.3}
    # Words, characters and ELMo here; characters, words and, behind the embedder's output, ELMo there.
    elmo = range(5, 5 + bilm().output_size) if "input" in mixes else ()
    assert result.columns.tolist() == [3, 4, 0, 1, 2, *elmo]
    for number, mix in enumerate(mixes):
        assert result.tensors[f"elmo.mixes.{mix}.gamma"] == given[f"_elmo.scalar_mix_{number}.gamma"]
    assert result.notes == []


def indexed(**settings: Any) -> dict[str, Any]:
    return dict.fromkeys(("tokens", "characters"), settings)


@pytest.mark.parametrize(
    ("parts", "indexers", "message"),
    [
        (WORDS, indexed(type="characters"), "tokens.type is characters; only single_id can"),
        (WORDS, indexed(feature_name="pos"), "feature_name is pos; only None or text can"),
        (WORDS, indexed(start_tokens=["a"]), r"start_tokens is \['a'\]; only None or \[\] or \{\} can"),
        (WORDS, indexed(end_tokens=["a"]), "end_tokens is"),
        (WORDS, indexed(tokens_to_add={"a": 1}), "tokens_to_add is"),
        ({"tokens": {**WORDS["tokens"], "max_norm": 1.0}}, {}, "max_norm is 1.0; only None can"),
        ({"tokens": {**WORDS["tokens"], "projection_dim": 3}}, {}, "is 1 x 2; by its config it should be 3 x 2"),
        ({"tokens": {**WORDS["tokens"], "embedding_dim": 3}}, {}, "is 4 x 2; by its config it should be any x 3"),
        (characters(CNN), indexed(type="single_id"), "characters.type is single_id; only characters can"),
        (characters({"type": "gru"}), {}, "encoder.type is gru; only cnn or lstm can"),
        (characters({**CNN, "ngram_filter_sizes": 2}), {}, "ngram_filter_sizes is 2; expected filters of one width"),
        (characters({"type": "cnn", "num_filters": 3}), {}, r"ngram_filter_sizes is \[2, 3, 4, 5\]; expected filters"),
        (characters({**CNN, "output_dim": 5}), {}, "output_dim is 5; only None or 0 can"),
        (
            characters({**CNN, "conv_layer_activation": "elu"}),
            {},
            "activation is elu; only relu or tanh or linear or None can",
        ),
        (characters({**CNN, "num_filters": 4}), {}, "is 3 x 2 x 2; by its config it should be 4 x 2 x 2"),
        (characters({**LSTM, "bias": False}), {}, "bias is False; only True can"),
        (characters(CNN), indexed(character_tokenizer={"type": "x"}), "type is x; only None or character can"),
        (characters(CNN), indexed(character_tokenizer={"lowercase_characters": True}), "lowercase_characters is True"),
        (
            characters(CNN),
            indexed(character_tokenizer={"start_tokens": ["^"]}),
            r"start_tokens is \['\^'\]; only \[\] or None can",
        ),
        (characters(CNN), indexed(character_tokenizer={"byte_encoding": "latin-1"}), "latin-1; only utf-8 or utf8 can"),
        *(
            (
                characters(CNN),
                indexed(character_tokenizer={"byte_encoding": "utf8", "start_tokens": wrong}),
                r"start_tokens is .*; only \[259\] or \[\] or None can",
            )
            for wrong in ([259, 260], ["a"], [0], 259)
        ),
        ({"elmo": {**ELMO["elmo"], "projection_dim": 5}}, {}, "projection_dim is 5; only None or 0 can"),
    ],
)
def test_what_is_not_here_is_refused(parts: dict[str, Any], indexers: dict[str, Any], message: str) -> None:
    with pytest.raises(MigrationError, match=message):
        convert(parts, indexers)


def test_tensors_that_are_no_bilm_are_named() -> None:
    lstm = f"{START}elmo._elmo._elmo_lstm."
    for names, shown in (
        (["a", "b", "c", "d"], rf"{lstm}a, {lstm}b, {lstm}c and 1 more$"),
        ([], f"nothing under _{lstm}"),
    ):
        with pytest.raises(MigrationError, match=rf"not the tensors of a biLM .*: {shown}"):
            convert(ELMO, given={lstm + name: torch.zeros(1) for name in names})


def test_a_table_needs_a_row_for_each_name() -> None:
    few = {**tensors(), f"{START}tokens.weight": torch.ones(3, 2)}
    with pytest.raises(MigrationError, match=r"tokens\.weight has 3 rows for 4 names"):
        convert(WORDS, given=few)
    with pytest.raises(MigrationError, match=r"text_field_embedder\.type is x; only None or basic can"):
        convert(WORDS, type="x")
