"""What the conversion of a head gives, and the conversion of its encoders, feed-forward layers and maxout layers.

Each kind of AllenNLP's models has a function that completes a `Head`, and raises a `MigrationError` for what this
project does not have.

# D features of the first layer's input, H features of a layer's output
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Params, Untrained, Weights

_TORCH = {"lstm": "stacked_bilstm", "gru": "stacked_bigru"}
_HIGHWAY = {"alternating_lstm": "alternating_lstm", "stacked_bidirectional_lstm": "stacked_highway_bilstm"}
_NOT_USED = (
    "input_size", "dropout", "recurrent_dropout_probability", "layer_dropout_probability", "use_input_projection_bias",
)  # fmt: skip

Converted = tuple[dict[str, Any], dict[str, Tensor]]


def convert_encoder(params: Params, weights: Weights, columns: Tensor) -> Converted:
    """An encoder's config as JSON values, and its tensors by their names in our encoder (without `encoder.`).

    Arguments:
        params, weights: the encoder's parts of the config and of the tensors, which have the wrapper's `_module.`.
        columns: (D,) int64: for each input feature of our encoder the one of AllenNLP's.

    Raises:
        MigrationError: this project has no such encoder, or the tensors do not fit the config.
    """
    params.expect("type", *_TORCH, *_HIGHWAY, "pass_through")
    name = params.get("type")
    params.expect("stateful", False, None)
    if name in _TORCH:
        return _torch_layers(params, weights.part("_module."), columns, _TORCH[name])
    if name in _HIGHWAY:
        return _augmented_layers(params, weights.part("_module."), columns, name)
    params.ignore("input_dim")
    if not torch.equal(columns, torch.arange(len(columns))):
        raise MigrationError(f"config.json: {params.path('type')}: pass_through only reads one embedder")
    return {"type": name}, {}


def recurrent_names(num_layers: int, bidirectional: bool) -> Iterator[tuple[int, str, str]]:
    """The layer, the name and the suffix, which together name each tensor of `torch.nn.LSTM` and `torch.nn.GRU`."""
    for layer in range(num_layers):
        for suffix in ("", "_reverse")[: 1 + bidirectional]:
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                yield layer, name, suffix


def _torch_layers(params: Params, weights: Weights, columns: Tensor, name: str) -> Converted:
    """`torch.nn.LSTM` and `torch.nn.GRU`, whose layers are modules of their own here."""
    params.expect("bias", True, default=True)
    params.expect("proj_size", 0, default=0)
    params.ignore("batch_first")
    bidirectional = bool(params.get("bidirectional", False))
    size, num_layers = params.number("hidden_size"), params.number("num_layers", 1)
    tensors: dict[str, Tensor] = {}
    for layer, parameter, suffix in recurrent_names(num_layers, bidirectional):
        key = f"{parameter}_l{layer}{suffix}"
        if layer == 0 and parameter == "weight_ih":
            tensor = weights.take(key, None, len(columns))[:, columns]
        else:
            tensor = weights.take(key)
        tensors[f"layers.{layer}.{parameter}_l0{suffix}"] = tensor
    config = {"type": name, "hidden_sizes": [size] * num_layers, "bidirectional": bidirectional}
    if num_layers > 1:  # AllenNLP's is between the layers; ours is also on the input of the lowest
        config["dropout"] = params.number("dropout", 0.0)
    params.ignore(*_NOT_USED)
    return config, tensors


def _augmented_layers(params: Params, weights: Weights, columns: Tensor, name: str) -> Converted:
    """AllenNLP's `AugmentedLstm`s, in alternating directions or two to a layer."""
    size, num_layers = params.number("hidden_size"), params.number("num_layers")
    dropout = params.number("recurrent_dropout_probability", 0.0)
    has_bias = name == "alternating_lstm" and params.get("use_input_projection_bias", True)
    params.ignore(*_NOT_USED)
    params.expect("use_highway", True, default=True)
    directions = ("forward_", "backward_") if name == "stacked_bidirectional_lstm" else ("",)
    tensors: dict[str, Tensor] = {}
    for layer in range(num_layers):
        for direction in directions:
            part = weights.part(f"{direction}layer_{layer}.")
            if "input_linearity.weight" not in part:  # since 1.0
                part = part.part("cell.")
            for key, tensor in _highway_layer(part, size, columns if layer == 0 else None):
                tensors[f"{direction}layers.{layer}.{key}"] = tensor
    if not isinstance(weights, Untrained):
        has_bias = any(key.endswith("highway_bias") for key in tensors)
    config = {"type": _HIGHWAY[name], "hidden_size": size, "num_layers": num_layers, "dropout": dropout}
    return config | ({"highway_bias": True} if has_bias else {}), tensors


def _highway_layer(weights: Weights, size: int, columns: Tensor | None) -> Iterator[tuple[str, Tensor]]:
    """Gates there: input, forget, candidate, output, highway; here the candidate is the second."""
    inputs = weights.take("input_linearity.weight", 6 * size, None if columns is None else len(columns))
    bias = weights.take("state_linearity.bias", 5 * size)
    yield "input_weight", _gates(inputs if columns is None else inputs[:, columns], size)
    yield "recurrent_weight", _gates(weights.take("state_linearity.weight", 5 * size, size), size)
    input_bias = weights.take_optional("input_linearity.bias")
    if input_bias is not None:
        gates, highway = input_bias.split([5 * size, size])
        bias = bias + gates
        yield "highway_bias", highway.clone()
    yield "bias", _gates(bias, size)


def _gates(tensor: Tensor, size: int) -> Tensor:
    enter, forget, candidate, *others = tensor.split(size)
    return torch.cat([enter, candidate, forget, *others])


@dataclasses.dataclass(frozen=True)
class Layer:
    """A linear layer and what follows it."""

    weight: Tensor  # (H, D), with maxout (pieces * H, D)
    bias: Tensor  # (H,), with maxout (pieces * H,)
    activation: str  # AllenNLP's name, or maxout
    dropout: float = 0.0
    pieces: int = 1  # linear functions per output of maxout


def read_layers(params: Params, weights: Weights) -> list[Layer]:
    """The layers of a `FeedForward` or, if it has `pool_sizes`, of a `Maxout`, the lowest first."""
    count = params.number("num_layers")
    if "pool_sizes" in params:
        pieces, sizes = _each(params, "pool_sizes", count), _each(params, "output_dims", count)
        activations = ["maxout"] * count
    else:
        pieces, sizes = [1] * count, _each(params, "hidden_dims", count)
        activations = _each(params, "activations", count)
    dropouts = _each(params, "dropout", count, 0.0)
    input_size = params.number("input_dim")
    layers = []
    for number, (size, piece, activation, dropout) in enumerate(zip(sizes, pieces, activations, dropouts, strict=True)):
        layer = weights.part(f"_linear_layers.{number}.")
        weight, bias = layer.take("weight", piece * size, input_size), layer.take("bias", piece * size)
        name = activation.get("type") if isinstance(activation, dict) else activation
        layers.append(Layer(weight, bias, str(name), dropout, piece))
        input_size = size
    return layers


def _each(params: Params, key: str, count: int, *default: Any) -> list[Any]:
    """A value for each layer; a single one holds for all."""
    value = params.get(key, *default)
    values = value if isinstance(value, list) else [value] * count
    if len(values) != count:
        raise MigrationError(f"config.json: {params.path(key)} has {len(values)} values for {count} layers")
    return values


def linear_layer(weights: Weights, activation: str = "linear", size: int | None = None) -> Layer:
    """A layer whose number of outputs is `size`, if that is known."""
    weight = weights.take("weight", size, None)
    return Layer(weight, weights.take("bias", len(weight)), activation)


def with_columns(layers: Sequence[Layer], columns: Tensor) -> list[Layer]:
    """The layers for inputs in another order: feature n of them is feature `columns[n]` of AllenNLP's."""
    first, *rest = layers
    return [dataclasses.replace(first, weight=first.weight[:, columns]), *rest]


def feed_forward(layers: Sequence[Layer], path: str) -> Converted:
    """The config of our `FeedForward` with these layers, which are at a path, and its tensors.

    Dropout and activation are the same for all layers here: the highest dropout, and no other activation.
    """
    kinds = {(layer.activation, layer.pieces) for layer in layers}
    activation, pieces = next(iter(kinds))
    if len(kinds) > 1 or activation not in ("relu", "tanh", "maxout"):
        found = ", ".join(sorted({layer.activation for layer in layers}))
        raise MigrationError(f"config.json: {path}: {found}; expected relu, tanh or maxout, the same for all layers")
    config: dict[str, Any] = {
        "hidden_sizes": [len(layer.bias) // pieces for layer in layers],
        "activation": activation,
        "dropout": max(layer.dropout for layer in layers),
    }
    tensors: dict[str, Tensor] = {}
    for number, layer in enumerate(layers):
        tensors |= {f"layers.{number}.weight": layer.weight, f"layers.{number}.bias": layer.bias}
    return config | ({"pieces": pieces} if activation == "maxout" else {}), tensors


class Head:
    """A head of AllenNLP's, and ours that is put together from its converted parts.

    Arguments:
        params: the whole config of the archive.
        weights: all tensors but those of the embedder, which have been taken. A head takes all that are left, or
            ignores them knowingly: an import with tensors that nobody has taken is refused.
        vocabulary: the labels.
        columns: (D,) int64: for each feature of our embedder's output the one of AllenNLP's, whose embedder
            concatenates its parts in another order. Columns of matrices that read the embedder's output are permuted:
            `matrix[:, columns]`.

    Attributes:
        model, reader: the parts of the archive's config.
        config: our `model` config as JSON values, without the `embedder`.
        tensors: our state dict without the embedder's part, by the names in our model.
        labels: our vocabulary's labels, in the order of the model's outputs: `{"tags": ("O", ...)}`; empty without.
        label_names: the archive's names of labels that have other names here.
        dataset_reader: our reader's config as JSON values.
        notes: what differs from AllenNLP, a line each.
    """

    def __init__(self, params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> None:
        self.model, self.reader = params.part("model"), params.part("dataset_reader")
        self.weights = weights
        self.vocabulary = vocabulary
        self.columns = columns
        self.config: dict[str, Any] = {}
        self.tensors: dict[str, Tensor] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        self.label_names: dict[str, str] = {}
        self.dataset_reader: dict[str, Any] = {}
        self.notes: list[str] = []

    def own_labels(self) -> tuple[str, ...]:
        """The labels, of the namespace that the model names."""
        return self.vocabulary.labels(self.model.get("label_namespace", "labels"))

    def add(self, name: str, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Adds a part, by its name in our model, whose last part is the key in the config, with its own tensors."""
        self.config[name.rpartition(".")[2]] = config
        self.tensors |= {f"{name}.{tensor}": values for tensor, values in tensors.items()}

    def add_linear(self, name: str, theirs: str, *shape: int | None) -> None:
        """Adds a linear layer, by its names in both models; raises a `MigrationError` if its shape differs."""
        layer = self.weights.part(theirs)
        self.tensors |= {f"{name}.weight": layer.take("weight", *shape), f"{name}.bias": layer.take("bias", shape[0])}

    def add_encoder(
        self, name: str, key: str, columns: Tensor | None = None, tensors: str | None = None, **settings: Any
    ) -> None:
        """Adds an encoder.

        Arguments:
            name: in our model.
            key: in AllenNLP's config.
            columns: see `convert_encoder`; the same order by default.
            tensors: how their names begin; by default, with the key after an underscore.
            settings: others of its config.
        """
        params = self.model.part(key)
        if columns is None:
            columns = torch.arange(params.number("input_size"))
        config, converted = convert_encoder(params, self.weights.part(tensors or f"_{key}."), columns)
        self.add(name, config | settings, converted)

    def layers(self, key: str, tensors: str | None = None) -> list[Layer]:
        """The feed-forward layers at a key of AllenNLP's config; `tensors` as for `add_encoder`."""
        return read_layers(self.model.part(key), self.weights.part(tensors or f"_{key}."))

    def add_layers(self, name: str, layers: Sequence[Layer], key: str) -> None:
        """Adds feed-forward layers; `key` says where they are, for messages."""
        self.add(name, *feed_forward(layers, self.model.path(key)))

    def add_output(self, layers: Sequence[Layer], *keys: str) -> None:
        """Adds the layers of the output. The last one, whose outputs are the scores of the labels, is linear.

        Arguments:
            keys: where the layers and the last one are, for messages.
        """
        *output, scores = layers
        if output:
            self.add_layers("output", output, keys[0])
        if scores.activation != "linear":
            path = self.model.path(keys[-1])
            raise MigrationError(f"config.json: {path}: the last activation is {scores.activation}; expected linear")
        self.tensors |= {"scores.weight": scores.weight, "scores.bias": scores.bias}

    def note_reader(self, ours: str, *names: str) -> None:
        """Notes it if the archive's reader is none of the `names`, whose files our reader reads."""
        name = self.reader.get("type", None)
        if name not in names:
            self.notes.append(f"there is no reader {str(name)[:80]!r} here; data are read as by {ours!r}")

    def tokenizer_settings(self, most_ends: int = 0) -> dict[str, Any]:
        """The settings of our reader for the tokenizer of the archive's reader; notes what differs.

        AllenNLP's may add at most `most_ends` tokens to the end of a text.
        """
        reader, tokenizer = self.reader, self.reader.part("tokenizer")
        reader.expect("segment_sentences", False, default=False)
        for name in ("word_filter", "word_stemmer"):
            tokenizer.part(name).expect("type", None, "pass_through")
        splitter = tokenizer.part("word_splitter") if "word_splitter" in tokenizer else tokenizer
        splitter.expect("type", "spacy", "just_spaces", "whitespace", "word", "pretrained_transformer", None)
        if tokenizer.get("type", None) == "pretrained_transformer":
            tokenizer.ignore("model_name", "add_special_tokens")
        settings = {"tokenizer": "whitespace"} if splitter.get("type", None) in ("just_spaces", "whitespace") else {}
        ends = tokenizer.get("end_tokens", None) or []
        if tokenizer.get("start_tokens", None) or len(ends) > most_ends:
            path = tokenizer.path("end_tokens")
            raise MigrationError(f"config.json: {path}: expected at most {most_ends} tokens, at the end")
        for part, key in ((reader, "max_sequence_length"), (tokenizer, "max_length")):
            if key in part:
                self.notes.append(f"{part.path(key)} is {part.get(key)}: longer texts are not cut here")
        return {**settings, **({"end_token": ends[0]} if ends else {})}
