"""AllenNLP's text field embedders: word vectors, characters, ELMo and transformers.

# D features of the embedder's output, V words, E features of a word or a character, K layers of a biLM
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elmo_tasks.elmo import BiLM, BiLMOptions
from elmo_tasks.elmo.options import PUBLISHED_OPTIONS, CharacterCnnOptions, CharacterEmbeddingOptions, LstmOptions
from elmo_tasks.errors import MigrationError, one_line, some_of
from elmo_tasks.extras.allennlp.archive import PADDING, UNKNOWN, Archive, Params, Untrained, Weights
from elmo_tasks.extras.allennlp.heads.head import recurrent_names
from elmo_tasks.extras.allennlp.transformer import add_transformer, convert_transformer
from elmo_tasks.extras.transformers.transformer_files import TransformerFiles
from elmo_tasks.extras.weights.allennlp_names import bilm_tensors
from elmo_tasks.extras.weights.commands import PUBLISHED
from elmo_tasks.modules.devices import shapes_only
from elmo_tasks.text.vocabulary import BEGIN_WORD, BYTES, END_WORD, SPECIAL, Vocabulary

WriteTransformer = Callable[[Any, Weights], TransformerFiles]

_PARTS = ("words", "characters", "elmo", "transformer")  # in the order of our embedder's output
_TYPES = {
    "embedding": "words",
    "character_encoding": "characters",
    "elmo_token_embedder": "elmo",
    "pretrained_transformer_mismatched": "transformer",
    "pretrained_transformer": "transformer",
}
_INDEXERS = {"words": "single_id", "characters": "characters", "elmo": "elmo_characters"}
_ACTIVATIONS = {"relu": "relu", "tanh": "tanh", "linear": "none"}
_MASKED_CNN = (1, 2, 1)  # the version from which padding of characters does not count


@dataclasses.dataclass
class ConvertedEmbedder:
    """An embedder's config and tensors here, and what belongs to them, collected while the parts are converted."""

    params: Params
    archive: Archive
    write_transformer: WriteTransformer
    config: dict[str, Any] = dataclasses.field(default_factory=dict)  # without the biLM's location
    tensors: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    columns: Tensor = dataclasses.field(default_factory=lambda: torch.arange(0))  # (D,): of our features, AllenNLP's
    words: tuple[str, ...] = SPECIAL
    characters: tuple[str, ...] = SPECIAL
    vocabulary_config: dict[str, Any] = dataclasses.field(default_factory=dict)  # how training would make it
    bilm: BiLM | None = None
    transformer: TransformerFiles | None = None  # in a temporary folder
    notes: list[str] = dataclasses.field(default_factory=list)

    def vocabulary(self, labels: Mapping[str, tuple[str, ...]]) -> Vocabulary:
        """The vocabulary of the embedder and of these labels."""
        settings = self.vocabulary_config
        return Vocabulary(
            words=self.words,
            num_trained_words=len(self.words),
            characters=self.characters,
            labels=dict(labels),
            lowercase_words=settings.get("lowercase_words", False),
            byte_characters=settings.get("byte_characters", False),
        )


def convert_embedder(
    params: Params, weights: Weights, archive: Archive, write_transformer: WriteTransformer
) -> ConvertedEmbedder:
    """The text field embedder of a model and, of a classifier that keeps it separately, its ELMo.

    A model of semantic roles with BERT has no text field embedder; its BERT is the transformer.

    Arguments:
        params, weights: the whole config, and all tensors of the model.
        archive: has the vocabulary, AllenNLP's version and the biLM's options, if they are known; otherwise what its
            tensors do not say is as published.
        write_transformer: see `elmo_tasks.extras.allennlp.transformer.write_transformer`.

    Raises:
        MigrationError: this project has no such embedder, or the tensors do not fit the config.
    """
    model = params.part("model")
    result = ConvertedEmbedder(params, archive, write_transformer)
    if "bert_model" in model:
        named = model.get("bert_model")
        named = params.part("dataset_reader").get("bert_model_name") if isinstance(named, dict) else named
        config = {"dropout": model.number("embedding_dropout", 0.0)}
        size = add_transformer(result, named, weights.part("bert_model."), config, torch.zeros(1), torch.ones(1))
        result.columns = torch.arange(size)
        return result
    prefix = "text_field_embedder."
    prefix = prefix if weights.part(prefix).names() else f"_{prefix}"  # a private attribute of some models
    keys: dict[str, str] = {}  # of each part: its key in AllenNLP's embedder
    sizes: dict[str, int] = {}
    field = model.part("text_field_embedder")
    field.expect("type", None, "basic")
    field.ignore("allow_unmatched_keys")
    field.expect("embedder_to_indexer_map", None)
    inner = field.part("token_embedders") if "token_embedders" in field else field  # until 0.5 they were not in it
    for key in inner.keys():  # noqa: SIM118 - not a dict
        if key in ("type", "allow_unmatched_keys", "embedder_to_indexer_map", "token_embedders"):
            continue
        embedder = inner.part(key)
        embedder.expect("type", *_TYPES, default="embedding")
        kind = _TYPES[embedder.get("type", "embedding")]
        if kind in keys:
            problem = f"{key!r} is the second of its type; expected one"
            raise MigrationError(f"config.json: {embedder.path('type')}: {problem}")
        part = weights.part(f"{prefix}token_embedder_{key}.")
        indexer = _indexer(params, key, _INDEXERS.get(kind) or embedder.get("type"))
        keys[kind], sizes[kind] = key, _CONVERSIONS[kind](result, embedder, part, indexer)
    order = sorted(keys, key=lambda kind: keys[kind])
    # The biattentive classifier appends its ELMo to its embedder's output.
    if "elmo" in model and "elmo" not in keys:
        keys_of_mixes = {"input": "use_input_elmo", "output": "use_integrator_output_elmo"}
        mixes = [mix for mix, key in keys_of_mixes.items() if model.get(key, False)]
        size = _elmo_mixes(result, model.part("elmo"), weights.part("_elmo."), mixes)
        if "input" in mixes:
            order, sizes["elmo"] = [*order, "elmo"], size
    if isinstance(weights, Untrained):
        return result  # without columns, since nothing is reordered
    blocks = torch.arange(sum(sizes.values())).split([sizes[part] for part in order])
    indices = dict(zip(order, blocks, strict=True))
    result.columns = torch.cat([indices[part] for part in _PARTS if part in indices])
    return result


def _indexer(params: Params, key: str, name: str) -> Params:
    """The token indexer of an embedder, which has this type."""
    reader = params.part("dataset_reader")
    names = [name for name in reader.keys() if name.endswith("token_indexers")]  # noqa: SIM118 - not a dict
    indexer = reader.part(names[0]).part(key) if names else Params({})
    indexer.expect("type", name, default=name)
    for other in ("start_tokens", "end_tokens", "tokens_to_add"):
        indexer.expect(other, None, [], {})
    indexer.ignore("namespace", "token_min_padding_length", "model_name")
    return indexer


def _table(params: Params, weights: Weights, least: int) -> Tensor:
    """The weight (V, E) of an `Embedding`, multiplied with its projection if it has one.

    V is at least `least`: since 1.0 a table of characters may have as many rows as there are words.
    """
    params.ignore("num_embeddings", "pretrained_file", "trainable", "sparse", "vocab_namespace", "padding_index")
    params.ignore("type", "norm_type", "scale_grad_by_freq")
    params.expect("max_norm", None)
    table = weights.take("weight", None, params.number("embedding_dim", None))
    if len(table) < least:
        raise MigrationError(f"weights.th: {weights.prefix}weight has {len(table)} rows for {least} names")
    if params.get("projection_dim", None):
        projection = weights.take("_projection.weight", params.number("projection_dim"), table.shape[1])
        table = functional.linear(table.float(), projection, weights.take("_projection.bias", len(projection)))
    return table


def _reordered(table: Tensor, rows: list[int | None]) -> Tensor:
    """Rows of a table; None is a row of zeros. A table whose other rows stay where they are is changed, not copied."""
    if rows == [None, *range(1, len(table))]:
        table[0] = 0
        return table
    indices = torch.tensor([0 if row is None else row for row in rows])
    is_zero = torch.tensor([row is None for row in rows])
    return table.index_select(0, indices).masked_fill_(is_zero.unsqueeze(1), 0)


def _named_rows(names: tuple[str, ...]) -> tuple[tuple[str, ...], list[int | None]]:
    """Our names for a namespace, and for each of its rows that of AllenNLP's table; the padding's is zero."""
    row_of = {name: row for row, name in enumerate(names)}
    unknown = row_of.pop(UNKNOWN, None)
    row_of.pop(PADDING, None)
    return (*SPECIAL, *row_of), [None, unknown, *row_of.values()]


def _words(result: ConvertedEmbedder, params: Params, weights: Weights, indexer: Params) -> int:
    indexer.expect("feature_name", None, "text")
    names = result.archive.vocabulary.labels(indexer.get("namespace", "tokens"))
    result.words, rows = _named_rows(names)
    table = _table(params, weights, len(names))
    trainable = bool(params.get("trainable", True))
    result.tensors["words.trained"] = _reordered(table, rows)
    result.tensors["words.fixed"] = table.new_zeros(0, table.shape[1])
    config = result.config["words"] = {"size": table.shape[1], "trainable": trainable}
    if isinstance(weights, Untrained):
        config |= {"size": params.number("embedding_dim"), "vectors": params.get("pretrained_file", None)}
        if "projection_dim" in params:
            path = params.path("projection_dim")
            result.notes.append(f"{path}: not available; words have all features of their vectors")
    result.vocabulary_config["lowercase_words"] = bool(indexer.get("lowercase_tokens", False))
    return table.shape[1]


def _characters(result: ConvertedEmbedder, params: Params, weights: Weights, indexer: Params) -> int:
    embedding, encoder = params.part("embedding"), params.part("encoder")
    tokenizer = indexer.part("character_tokenizer")
    tokenizer.expect("type", None, "character")
    tokenizer.expect("lowercase_characters", False, None)
    part = weights.part("_embedding._module.")
    rows: list[int | None]
    if tokenizer.get("byte_encoding", None) is not None:
        tokenizer.expect("byte_encoding", "utf-8", "utf8")
        rows = [None, None, *range(1, 257)]  # of AllenNLP's table: a byte has the row after its number
        result.characters = (*SPECIAL, *BYTES)
        for name, key, row in ((BEGIN_WORD, "start_tokens", 259), (END_WORD, "end_tokens", 260)):
            tokenizer.expect(key, [row], [], None)
            if tokenizer.get(key, None):
                rows.append(row)
                result.characters += (name,)
        result.vocabulary_config |= {"byte_characters": True, "border_characters": BEGIN_WORD in result.characters}
        table = _table(embedding, part, 1)
        rows = [row if row is not None and row < len(table) else None for row in rows]  # unused ones may be missing
    else:
        for key in ("start_tokens", "end_tokens"):
            tokenizer.expect(key, [], None)
        names = result.archive.vocabulary.labels(indexer.get("namespace", "token_characters"))
        result.characters, rows = _named_rows(names)
        table = _table(embedding, part, len(names))
    result.tensors["characters.embedding.weight"] = _reordered(table, rows)
    encoder.expect("type", "cnn", "lstm")
    convert = {"cnn": _character_cnn, "lstm": _character_lstm}[encoder.get("type")]
    config, tensors = convert(result, encoder, weights.part("_encoder._module."), indexer, table.shape[1])
    result.config["characters"] = {"embedding_size": table.shape[1], **config}
    if "dropout" in params:  # AllenNLP's is on the output for a word, and here on the features of its characters
        result.config["characters"]["dropout"] = params.number("dropout")
    result.tensors |= {f"characters.{name}": tensor for name, tensor in tensors.items()}
    return int(config["filters"] if "filters" in config else config["hidden_size"] * (1 + config["bidirectional"]))


def _character_cnn(
    result: ConvertedEmbedder, params: Params, weights: Weights, indexer: Params, size: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    params.ignore("embedding_dim")
    params.expect("output_dim", None, 0)
    widths = params.get("ngram_filter_sizes", [2, 3, 4, 5])
    if not isinstance(widths, list) or len(widths) != 1:
        raise MigrationError(
            f"config.json: {params.path('ngram_filter_sizes')} is {str(widths)[:80]}; expected filters of one width"
        )
    params.expect("conv_layer_activation", *_ACTIVATIONS, None)
    activation = params.get("conv_layer_activation", None) or "relu"
    kernel = weights.take("conv_layer_0.weight", params.number("num_filters"), size, widths[0])
    config: dict[str, Any] = {"filters": len(kernel), "width": widths[0], "activation": _ACTIVATIONS[activation]}
    least = indexer.get("min_padding_length", 0)
    # Padding does not count: by the version or, in archives without one, by the config's layout of 1.0.
    version = result.archive.version
    if version is None:
        is_masked = "data_loader" in result.params
    else:
        is_masked = tuple(int(part) for part in version.split(".")[:3] if part.isdecimal()) >= _MASKED_CNN
    if is_masked:
        config["padding"] = "none"
        if version is None:
            config["token_min_padding_length"] = least  # so that the note's setting is enough
            result.notes.append(
                "the archive does not say its version: characters are read as AllenNLP has done since 1.2.1; for an "
                "archive of 1.0.0 to 1.2.0, which padded them, set model.embedder.characters.padding=right"
            )
    else:
        config |= {"padding": "right", "token_min_padding_length": least}
        result.notes.append(
            "a word's characters are padded to the longest word of its sentence, as AllenNLP did before 1.2.1 "
            "(model.embedder.characters.padding: none is as later versions)"
        )
    tensors = {"convolution.weight": kernel, "convolution.bias": weights.take("conv_layer_0.bias")}
    return config, tensors


def _character_lstm(
    result: ConvertedEmbedder, params: Params, weights: Weights, indexer: Params, size: int
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    indexer.ignore("min_padding_length")
    params.ignore("input_size", "dropout")
    params.expect("bias", True, default=True)
    layers, bidirectional = params.number("num_layers", 1), bool(params.get("bidirectional", False))
    size = params.number("hidden_size")
    config = {"type": "lstm", "hidden_size": size, "num_layers": layers, "bidirectional": bidirectional}
    names = [f"{name}_l{layer}{suffix}" for layer, name, suffix in recurrent_names(layers, bidirectional)]
    return config, {f"lstm.{name}": weights.take(f"_module.{name}") for name in names}


def _elmo_mixes(result: ConvertedEmbedder, params: Params, weights: Weights, mixes: list[str]) -> int:
    """ELMo with a mix for each use; their weights are learned, also where AllenNLP's config fixes them."""
    params.ignore("options_file", "weight_file", "vocab_to_cache", "namespace_to_cache")
    params.ignore("num_output_representations", "type", "scalar_mix_parameters", "requires_grad")
    params.expect("do_layer_norm", False, default=False)
    params.expect("projection_dim", None, 0)
    result.config["elmo"] = {"mixes": mixes, "dropout": params.number("dropout", 0.5)}
    if isinstance(weights, Untrained):
        options, file = PUBLISHED["original"]  # as in AllenNLP
        result.config["elmo"] |= {
            "options": params.get("options_file", options),
            "weights": params.get("weight_file", file),
            "requires_grad": bool(params.get("requires_grad", False)),
        }
        return 0
    bilm = _convert_bilm(weights.part("_elmo_lstm."), result.archive.bilm_options)
    if result.archive.bilm_options is None:
        result.notes.append("the biLM's clips and skip connections are those of the published models")
    for number, mix in enumerate(mixes):
        part = weights.part(f"scalar_mix_{number}.")
        parameters = [part.take(f"scalar_parameters.{layer}", 1) for layer in range(bilm.num_layers)]
        result.tensors[f"elmo.mixes.{mix}.weights"] = torch.cat(parameters)
        result.tensors[f"elmo.mixes.{mix}.gamma"] = part.take("gamma", 1).squeeze(0)
    result.bilm = bilm
    return bilm.output_size


def _convert_bilm(weights: Weights, options: BiLMOptions | None) -> BiLM:
    """The biLM of an `_ElmoBiLm`, frozen. It takes no more memory than its tensors.

    `options` give what the tensors do not say (clips, skip connections, the activation); None: as published.
    """
    weights.take_optional("_word_embedding.weight")  # vectors of a cached vocabulary, which are computed anew
    names = weights.names()
    tensors: dict[str, Tensor] = {}
    for name in names:  # one after the other, so that their memory is free again
        tensors |= bilm_tensors({name: weights.take(name)})
    given = options or PUBLISHED_OPTIONS["original"]
    try:
        with shapes_only():
            bilm = BiLM(_bilm_options(tensors, given))
        bilm.load_state_dict(tensors, assign=True)
    except (LookupError, RuntimeError, ValueError) as error:
        shown = some_of([weights.prefix + name for name in names]) or f"nothing under {weights.prefix}"
        raise MigrationError(f"weights.th: not the tensors of a biLM ({one_line(error)}): {shown}") from None
    return bilm.requires_grad_(False).eval()


def _bilm_options(tensors: dict[str, Tensor], given: BiLMOptions) -> BiLMOptions:
    """The options of a biLM with these tensors, by our names; the rest is as given."""

    def shapes(pattern: str) -> list[torch.Size]:
        """Of the tensors whose names have a number in them, in the order of the numbers."""
        found = {int(match[1]): tensor.shape for name, tensor in tensors.items() if (match := re.match(pattern, name))}
        return [shape for _, shape in sorted(found.items())]

    layers = shapes(r"directions\.0\.layers\.(\d+)\.input_weight")
    kernels = shapes(r"token_encoder\.convolutions\.(\d+)\.weight")
    return BiLMOptions(
        lstm=LstmOptions(
            dim=layers[0][0] // 4,
            projection_dim=layers[0][1],
            n_layers=len(layers),
            **given.lstm.model_dump(include={"cell_clip", "proj_clip", "use_skip_connections"}),
        ),
        char_cnn=CharacterCnnOptions(
            embedding=CharacterEmbeddingOptions(dim=tensors["token_encoder.embedding.weight"].shape[1]),
            filters=tuple((width, number) for number, _, width in kernels),
            n_highway=len(shapes(r"token_encoder\.highways\.(\d+)\.transform\.weight")),
            n_characters=262,
            **given.char_cnn.model_dump(include={"activation", "max_characters_per_token"}),
        ),
    )


_CONVERSIONS = {
    "words": _words,
    "characters": _characters,
    "elmo": lambda result, params, weights, _: _elmo_mixes(result, params, weights.part("_elmo."), ["input"]),
    "transformer": convert_transformer,
}
