"""What the conversion of a head gives, and the conversion of its encoders, feed-forward layers and maxout layers.

Each kind of AllenNLP's models has a function here

    def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head

params: the whole config of the archive: `params.part("model")`, `params.part("dataset_reader")`.
weights: all tensors but those of the embedder, which have been taken. A head takes all that are left, or ignores them
    knowingly: an import with tensors that nobody has taken is refused.
vocabulary: the labels.
columns: (D,) int64: for each feature of our embedder's output the one of AllenNLP's, whose embedder concatenates its
    parts in another order. Columns of matrices that read the embedder's output are permuted: `matrix[:, columns]`.

Raises a `MigrationError` for what this project does not have.

# D features of the first layer's input, H features of a layer's output
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import Params, Untrained, Weights

_PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
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


def _torch_layers(params: Params, weights: Weights, columns: Tensor, name: str) -> Converted:
    """`torch.nn.LSTM` and `torch.nn.GRU`, whose layers are modules of their own here."""
    params.expect("bias", True, default=True)
    params.expect("proj_size", 0, default=0)
    params.ignore("batch_first")
    bidirectional = bool(params.get("bidirectional", False))
    size, num_layers = params.number("hidden_size"), params.number("num_layers", 1)
    tensors: dict[str, Tensor] = {}
    for layer in range(num_layers):
        for suffix in ("", "_reverse")[: 1 + bidirectional]:
            for parameter in _PARAMETERS:
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
    params.ignore(*_NOT_USED)
    params.expect("use_highway", True, default=True)
    if name == "stacked_bidirectional_lstm":
        layers = {
            f"{direction}_layer_{layer}.": f"{direction}_layers.{layer}."
            for layer in range(num_layers)
            for direction in ("forward", "backward")
        }
    else:
        layers = {f"layer_{layer}.": f"layers.{layer}." for layer in range(num_layers)}
    tensors: dict[str, Tensor] = {}
    for theirs, ours in layers.items():
        part = weights.part(theirs)
        if "input_linearity.weight" not in part:  # since 1.0
            part = part.part("cell.")
        tensors |= {f"{ours}{key}": tensor for key, tensor in _highway_layer(part, size, columns, theirs)}
    config = {"type": _HIGHWAY[name], "hidden_size": size, "num_layers": num_layers, "dropout": dropout}
    has_bias = any(key.endswith("highway_bias") for key in tensors)
    if isinstance(weights, Untrained):
        has_bias = name == "alternating_lstm" and params.get("use_input_projection_bias", True)
    if has_bias:
        config["highway_bias"] = True
    return config, tensors


def _highway_layer(weights: Weights, size: int, columns: Tensor, layer: str) -> Iterator[tuple[str, Tensor]]:
    """Gates there: input, forget, candidate, output, highway; here the candidate is the second."""
    if layer.endswith("layer_0."):
        inputs = weights.take("input_linearity.weight", 6 * size, len(columns))[:, columns]
    else:
        inputs = weights.take("input_linearity.weight", 6 * size, None)
    bias = weights.take("state_linearity.bias", 5 * size)
    yield "input_weight", _gates(inputs, size)
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
    dropout: float
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


def with_columns(layers: Sequence[Layer], columns: Tensor) -> list[Layer]:
    """The layers for inputs in another order: feature n of them is feature `columns[n]` of AllenNLP's."""
    first, *rest = layers
    return [dataclasses.replace(first, weight=first.weight[:, columns]), *rest]


def feed_forward(layers: Sequence[Layer], path: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
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
    """A head, which is put together from its converted parts.

    Attributes:
        config: our `model` config as JSON values, without the `embedder`.
        tensors: our state dict without the embedder's part, by the names in our model.
        labels: our vocabulary's labels, in the order of the model's outputs: `{"tags": ("O", ...)}`; empty without.
        label_names: the archive's names of labels that have other names here.
        dataset_reader: our reader's config as JSON values; without its `tokenizer`.
        notes: what differs from AllenNLP, a line each.
    """

    def __init__(self, **config: Any) -> None:
        self.config: dict[str, Any] = config
        self.tensors: dict[str, Tensor] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        self.label_names: dict[str, str] = {}
        self.dataset_reader: dict[str, Any] = {}
        self.notes: tuple[str, ...] = ()

    def add(self, name: str, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Adds a part, by its name in our model, whose last part is the key in the config, with its own tensors."""
        self.config[name.rpartition(".")[2]] = config
        self.tensors |= {f"{name}.{tensor}": values for tensor, values in tensors.items()}

    def add_encoder(
        self, name: str, params: Params, weights: Weights, columns: Tensor | None = None, **settings: Any
    ) -> None:
        """Adds an encoder, whose config has more settings. By default, `columns` are in the same order in both."""
        if columns is None:
            columns = torch.arange(params.number("input_size"))
        config, tensors = convert_encoder(params, weights, columns)
        self.add(name, config | settings, tensors)

    def add_layers(self, name: str, layers: Sequence[Layer], path: str) -> None:
        """Adds feed-forward layers; `path` says where they are, for messages."""
        self.add(name, *feed_forward(layers, path))

    def add_scores(self, layer: Layer, path: str) -> None:
        """Adds the linear layer whose outputs are the scores of the labels."""
        if layer.activation != "linear":
            raise MigrationError(f"config.json: {path}: the last activation is {layer.activation}; expected linear")
        self.tensors |= {"scores.weight": layer.weight, "scores.bias": layer.bias}

    def reads(self, dataset_reader: dict[str, Any], notes: Sequence[str] = (), **labels: tuple[str, ...]) -> Head:
        """The head with its reader, its notes and its labels."""
        self.dataset_reader, self.notes, self.labels = dataset_reader, tuple(notes), labels
        return self


def other_reader(params: Params, ours: str, *names: str) -> tuple[str, ...]:
    """A note if the archive's reader is none of the `names`, whose files our reader reads."""
    name = params.part("dataset_reader").get("type", None)
    return () if name in names else (f"there is no reader {str(name)[:80]!r} here; data are read as by {ours!r}",)


def tokenizer_settings(params: Params, most_ends: int = 0) -> tuple[dict[str, Any], list[str]]:
    """The settings of our reader for the tokenizer of the archive's reader, and notes.

    AllenNLP's may add at most `most_ends` tokens to the end of a text.
    """
    reader = params.part("dataset_reader")
    tokenizer = reader.part("tokenizer")
    reader.expect("segment_sentences", False, default=False)
    for part in ("word_filter", "word_stemmer"):
        tokenizer.part(part).expect("type", None, "pass_through")
    splitter = tokenizer.part("word_splitter") if "word_splitter" in tokenizer else tokenizer
    splitter.expect("type", "spacy", "just_spaces", "whitespace", "word", "pretrained_transformer", None)
    if tokenizer.get("type", None) == "pretrained_transformer":
        tokenizer.ignore("model_name", "add_special_tokens")
    settings = {"tokenizer": "whitespace"} if splitter.get("type", None) in ("just_spaces", "whitespace") else {}
    ends = tokenizer.get("end_tokens", None) or []
    if tokenizer.get("start_tokens", None) or len(ends) > most_ends:
        path = tokenizer.path("end_tokens")
        raise MigrationError(f"config.json: {path}: expected at most {most_ends} tokens, at the end")
    limits = (reader, "max_sequence_length"), (tokenizer, "max_length")
    cut = [f"{part.path(key)} is {part.get(key)}: longer texts are not cut here" for part, key in limits if key in part]
    return {**settings, **({"end_token": ends[0]} if ends else {})}, cut
