"""What the conversion of a head gives.

Each kind of AllenNLP's models has a function here

    def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head

params: the whole config of the archive: `params.part("model")`, `params.part("dataset_reader")`.
weights: all tensors but those of the embedder, which have been taken. A head takes all that are left, or ignores them
    knowingly: an import with tensors that nobody has taken is refused.
vocabulary: the labels.
columns: (D,) int64: for each feature of our embedder's output the one of AllenNLP's, whose embedder concatenates its
    parts in another order. Columns of matrices that read the embedder's output are permuted: `matrix[:, columns]`.

Raises a `MigrationError` for what this project does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import Params, Weights
from elmo_tasks.extras.allennlp.layers import Layer, convert_encoder, feed_forward


class Head:
    """A head, which is put together from its converted parts.

    Attributes:
        config: our `model` config as JSON values, without the `embedder`.
        tensors: our state dict without the embedder's part, by the names in our model.
        labels: our vocabulary's labels, in the order of the model's outputs: `{"tags": ("O", ...)}`; empty without.
        dataset_reader: our reader's config as JSON values; without its `tokenizer`.
        notes: what differs from AllenNLP, a line each.
    """

    def __init__(self, **config: Any) -> None:
        self.config: dict[str, Any] = config
        self.tensors: dict[str, Tensor] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
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
