"""AllenNLP's text field embedders part by part: names, rows, settings and what is said about them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Archive, Params, Weights
from elmo_tasks.extras.allennlp.embedder import ConvertedEmbedder, convert_embedder
from elmo_tasks.extras.allennlp.transformer import write_transformer
from elmo_tasks.text import vocabulary
from elmo_tasks.text.vocabulary import BEGIN_WORD, SPECIAL
from tests.extras.allennlp.archives import OPTIONS, bilm, elmo_tensors

START = "text_field_embedder.token_embedder_"
NOWHERE = functools.partial(write_transformer, None, Path())


def archive(version: str | None) -> Archive:
    return Archive(Path(), {}, version, AllenNlpVocabulary(NAMES), {}, OPTIONS)


NAMES = {
    "tokens": ("@@PADDING@@", "dog", "@@UNKNOWN@@", "cat"),
    "token_characters": ("@@PADDING@@", "@@UNKNOWN@@", "d", "o"),
    "of_my_own": ("@@PADDING@@", "@@UNKNOWN@@", "b", "c"),
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
    lstm = nn.LSTM(2, 3, 2, bidirectional=True)
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
    settings = {
        "trainable": False, "num_embeddings": 4, "pretrained_file": "x", "sparse": True, "vocab_namespace": "x",
        "padding_index": 0, "norm_type": 2.0, "scale_grad_by_freq": False,
    }  # fmt: skip
    indexer = {"type": "single_id", "lowercase_tokens": True, "token_min_padding_length": 1, "feature_name": "text"}
    other = convert(
        {"tokens": WORDS["tokens"] | settings}, {"tokens": indexer}, type="basic", allow_unmatched_keys=True
    )
    for result, has_settings in ((convert(WORDS), False), (other, True)):
        found = result.vocabulary({})
        assert (found.words, found.num_trained_words) == ((*SPECIAL, "dog", "cat"), 4)
        assert (found.lowercase_words, found.byte_characters) == (has_settings, False)
        assert result.tensors["words.trained"].tolist() == [[0, 0], [14, 15], [12, 13], [16, 17]]
        assert result.tensors["words.fixed"].shape == (0, 2)
        assert result.config == {"words": {"size": 2, "trainable": not has_settings}}
        assert result.vocabulary_config == {"lowercase_words": has_settings}
        assert (result.columns.tolist(), result.bilm, result.notes) == ([0, 1], None, [])
    own = convert({**WORDS, **characters(CNN)}, indexed(namespace="of_my_own")).vocabulary({})
    assert own.words == own.characters == (*SPECIAL, "b", "c")


@pytest.mark.parametrize(
    ("version", "settings", "expected"),
    [
        ("0.9.0", {"conv_layer_activation": "tanh"}, {"padding": "right", "activation": "tanh"}),
        ("1.2.0", {"conv_layer_activation": None, "output_dim": 0}, {"padding": "right", "activation": "relu"}),
        ("1.2.1", {"conv_layer_activation": "linear"}, {"padding": "none", "activation": "none"}),
        ("1.10.0", {"conv_layer_activation": "relu"}, {"padding": "none", "activation": "relu"}),
    ],
)
def test_characters_in_a_convolution(version: str, settings: dict[str, Any], expected: dict[str, Any]) -> None:
    """Padding of characters counts before 1.2.1."""
    least = {} if "output_dim" in settings else {"min_padding_length": 5}
    indexer = {"type": "characters", **least, "unread": 1}
    result = convert(characters({**CNN, **settings}, dropout=0.2), {"characters": indexer}, version=version)
    is_padded = expected["padding"] == "right"
    padding = {"token_min_padding_length": 5 if least else 0} if is_padded else {}
    common = {"embedding_size": 2, "filters": 3, "width": 2, "dropout": 0.2}
    assert result.config == {"characters": {**common, **padding, **expected}}
    assert result.vocabulary({}).characters == (*SPECIAL, "d", "o")
    assert result.tensors["characters.embedding.weight"].tolist() == [[0, 0], [2, 3], [4, 5], [6, 7]]
    assert result.columns.tolist() == [0, 1, 2]
    assert ["longest word" in note for note in result.notes] == [True] * is_padded


@pytest.mark.parametrize("both", [False, True])
def test_characters_in_an_lstm(both: bool) -> None:
    settings = {"num_layers": 2, "bidirectional": True, "bias": True, "dropout": 0.1} if both else {}
    result = convert(characters({**LSTM, **settings}), {"characters": {"min_padding_length": 3}})
    expected = {"type": "lstm", "hidden_size": 3, "num_layers": 1 + both, "bidirectional": both}
    assert result.config == {"characters": {"embedding_size": 2, **expected}}
    names = nn.LSTM(2, 3, 1 + both, bidirectional=both).state_dict()
    assert {name for name in result.tensors if ".lstm." in name} == {f"characters.lstm.{name}" for name in names}
    assert (len(result.columns), result.notes) == (3 * (1 + both), [])


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
    found = result.vocabulary({})
    assert found.characters == (*SPECIAL, *vocabulary.BYTES, BEGIN_WORD)
    assert found.byte_characters
    assert result.vocabulary_config == {"byte_characters": True, "border_characters": True}
    without = convert(characters(CNN), {"characters": BYTES}, given=tensors(rows))
    assert not without.vocabulary_config["border_characters"]
    assert without.vocabulary({}).characters == (*SPECIAL, *vocabulary.BYTES)


@pytest.mark.parametrize("mixes", [("input",), ("output",), ("input", "output")])
def test_an_elmo_beside_the_embedder_is_only_part_of_its_output_as_input(mixes: tuple[str, ...]) -> None:
    """That of the biattentive classifier, in the embedder's conversion."""
    uses = {"input": "use_input_elmo", "output": "use_integrator_output_elmo"}
    given = {name: tensor for name, tensor in tensors().items() if "elmo" not in name}
    given |= {f"_elmo.{name}": tensor for name, tensor in elmo_tensors(bilm(), mixes=len(mixes)).items()}
    parts = {**WORDS, **characters(CNN)}
    dropout = {"dropout": 0.3} if len(mixes) == 2 else {}
    model = {"text_field_embedder": {"token_embedders": parts}, "elmo": {"type": "elmo", **dropout}}
    params = Params({"model": model | {uses[mix]: True for mix in mixes}})
    result = convert_embedder(params, Weights(dict(given)), archive("2.8.0"), NOWHERE)
    assert result.config["elmo"] == {"mixes": list(mixes), "dropout": 0.3 if dropout else 0.5}
    # Words, characters and ELMo here; characters, words and, behind the embedder's output, ELMo there.
    elmo = range(5, 5 + bilm().output_size) if "input" in mixes else ()
    assert result.columns.tolist() == [3, 4, 0, 1, 2, *elmo]
    for number, mix in enumerate(mixes):
        assert result.tensors[f"elmo.mixes.{mix}.gamma"] == given[f"_elmo.scalar_mix_{number}.gamma"]
    assert result.notes == []


BORDERS = r"start_tokens is .*; only \[259\] or \[\] or None can"


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
        (characters({**CNN, "conv_layer_activation": "elu"}), {}, "is elu; only relu or tanh or linear or None can"),
        (characters({**CNN, "num_filters": 4}), {}, "is 3 x 2 x 2; by its config it should be 4 x 2 x 2"),
        (characters({**LSTM, "bias": False}), {}, "bias is False; only True can"),
        (characters(CNN), indexed(character_tokenizer={"type": "x"}), "type is x; only None or character can"),
        (characters(CNN), indexed(character_tokenizer={"lowercase_characters": True}), "lowercase_characters is True"),
        (characters(CNN), indexed(character_tokenizer={"start_tokens": ["^"]}), r"'\^'\]; only \[\] or None can"),
        (characters(CNN), indexed(character_tokenizer={"byte_encoding": "latin-1"}), "latin-1; only utf-8 or utf8 can"),
        *(
            (characters(CNN), indexed(character_tokenizer={"byte_encoding": "utf8", "start_tokens": wrong}), BORDERS)
            for wrong in ([259, 260], ["a"], 259)
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
    for key, expected in (("type", "None or basic"), ("embedder_to_indexer_map", "None")):
        with pytest.raises(MigrationError, match=rf"text_field_embedder\.{key} is x; only {expected} can"):
            convert(WORDS, None, **{key: "x"})  # type: ignore[arg-type]
