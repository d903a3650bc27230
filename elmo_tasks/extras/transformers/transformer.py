"""A frozen transformer, such as BERT, as a part of a task's model: vectors of words from its layers.

# B sentences, T tokens of the longest one, K layers that are mixed, D features
# W windows of a batch, P word pieces of the longest window
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

import pydantic
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from elmo_tasks.config import LocalPath
from elmo_tasks.elmo import LayerOutput, ScalarMix
from elmo_tasks.elmo.fast.products import build_product
from elmo_tasks.elmo.frozen_layers import FrozenLayers, FrozenLayersConfig, LayerCacheConfig, LayerProvider
from elmo_tasks.elmo.layer_store import LayerStore
from elmo_tasks.errors import ConfigError, WeightsError
from elmo_tasks.extras.transformers.transformer_files import CONFIG, TOKENIZER, TransformerFiles
from elmo_tasks.text.tokens import batches_of_like_lengths, mask_of_lengths, overlapping_windows

Pooling = Literal["first", "mean"]

# Kinds of transformers that only call their linear layers, and do not look into them.
_PLAIN_LINEAR = ("albert", "bert", "distilbert", "electra", "roberta", "xlm-roberta")
_BATCH_PIECES = 1 << 9  # of a batch of windows, padding included; larger ones are slower on a CPU
_LEAST_SHARE = 0.8  # of the longest, of a batch of parts, most of which are full and the last of which is not


class TransformerConfig(FrozenLayersConfig):
    """The vectors of a frozen transformer."""

    type: Literal["transformer"] = "transformer"

    model: LocalPath = Field(
        description="Folder with config.json, model.safetensors and tokenizer.json; or hub:NAME[@REVISION]."
    )
    layers: Annotated[tuple[int, ...], Field(min_length=1)] | None = Field(
        None, description="The layers that are mixed, 0 being the embeddings and -1 the last layer; null for all."
    )
    pooling: Pooling = Field(
        "mean", description="The vector of a word: that of its first word piece, or the mean of all its pieces."
    )
    window: Annotated[int, Field(ge=3)] | None = Field(
        None,
        description="Longer sentences are read in parts of this many pieces, special ones included, as AllenNLP's "
        "max_length; null: in overlapping windows of all of the transformer's positions.",
    )
    prefix_space: bool = Field(
        True,
        description="A word is read as after a space, where word pieces know that, such as RoBERTa's; false: as the "
        "first of its text, which AllenNLP does.",
    )
    gamma: float = Field(1.0, description="The factor gamma of the mix, where it starts.")
    dropout: Annotated[float, Field(ge=0, lt=1)] = Field(0.5, description="Dropout of the mix.")
    layer_cache: LayerCacheConfig | None = Field(
        LayerCacheConfig(), description="Keeps the mixed layers on disk, by default; null computes them each time."
    )

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> TransformerConfig:
        if self.layers is not None and len(set(self.layers)) < len(self.layers):
            raise ValueError(f"layers: got {self.layers}; expected each layer once")
        return self

    def files(self, *, local_only: bool = False) -> TransformerFiles:
        return TransformerFiles.of(self.model, local_only=local_only)

    def build(self) -> TransformerEmbedder:
        """Makes the mix. The transformer is loaded for the first sentence that the cache does not have.

        Raises:
            WeightsError: the files are missing, or not those of an encoder of text.
            ConfigError: the transformer does not have these layers.
            ElmoTasksError: the library is not installed.
        """
        files = self.files()
        config = files.read_config()
        num_layers, size = config.num_hidden_layers + 1, int(config.hidden_size)
        layers = range(num_layers) if self.layers is None else self.layers
        if wrong := [layer for layer in layers if not -num_layers <= layer < num_layers]:
            raise ConfigError(f"transformer.layers: got {wrong[0]}; {self.model} has 0 to {num_layers - 1}")
        chosen = tuple(layer % num_layers for layer in layers)
        if len(set(chosen)) < len(chosen):
            raise ConfigError(f"transformer.layers: got {self.layers}; of {num_layers}, one is named twice")
        mix = ScalarMix(len(chosen), learned_weights=len(chosen) > 1, gamma=self.gamma)
        return TransformerEmbedder(TransformerLayers(self, files, chosen, size), mix, self.dropout)


class TransformerLayers(LayerProvider):
    """The layers of a transformer that are mixed.

    Arguments:
        config: how words are read, and whether their layers are kept.
        files: the transformer's.
        numbers: those of the K layers.
        size: D.
    """

    def __init__(self, config: TransformerConfig, files: TransformerFiles, numbers: Sequence[int], size: int) -> None:
        self.numbers = tuple(numbers)
        self.size = size
        self._config = config
        self._files = files

    def load(self, device: torch.device) -> FrozenTransformer:
        model, tokenizer = self._files.load()
        if not self._config.prefix_space and hasattr(tokenizer.pre_tokenizer, "add_prefix_space"):
            tokenizer.pre_tokenizer.add_prefix_space = False
        return FrozenTransformer(model, tokenizer, self.numbers, self._config.pooling, device, self._config.window)

    def open_store(self) -> LayerStore | None:
        config = self._config
        if config.layer_cache is None:
            return None
        # Only what is mixed is stored: all layers of a large model would take 50 kB for each token.
        kind = f"float32 {config.pooling} {'+'.join(map(str, self.numbers))}"
        if config.window is not None:
            kind += f" window {config.window}"
        if not config.prefix_space:
            kind += " no space"
        fingerprint = self._files.fingerprint()
        return config.layer_cache.build(fingerprint, kind, len(self.numbers), self.size, has_token_layer=False)


class TransformerEmbedder(FrozenLayers):
    """One mix, `input`, of a frozen transformer's layers, with dropout.

    Source: as `FrozenLayers`; Devlin et al. 2019, section 5.3, use BERT in this way.

    Arguments:
        provider: gives the K layers.
        mix: the mix of the K layers.
        dropout: probability of dropping a feature of the mix in training.
    """

    def __init__(self, provider: TransformerLayers, mix: ScalarMix, dropout: float = 0.5) -> None:
        super().__init__(provider, provider.size, {"input": mix}, dropout, provider.numbers)

    def frozen(self) -> FrozenTransformer:
        """The transformer, on the device of the mix; loaded when it is first needed."""
        network = self.provider.network(self.device)
        assert isinstance(network, FrozenTransformer)
        return network

    def read(self, sequences: Sequence[Pieces]) -> tuple[Tensor, Tensor]:
        """The mix of sequences of word pieces, with dropout, (B, P, D), and their mask, (B, P); no cache is used."""
        with torch.autocast(self.device.type, enabled=False):
            output = self.frozen().read(sequences)
        return self.dropout(self.mixes["input"](output.layers, output.mask)), output.mask

    def first_pieces(self, texts: Sequence[Sequence[Sequence[str]]]) -> Tensor:
        """The mix at the first word piece of texts, or of pairs of texts, with dropout: (B, D). No cache is used."""
        transformer = self.frozen()
        return self.read([transformer.text_pieces(*each) for each in texts])[0][:, 0]

    def piece_ids(self, texts: Sequence[Sequence[str]]) -> list[int]:
        """The ids of the word pieces of a text or of a pair of texts, with the special ones."""
        return self.frozen().text_pieces(*texts).ids


@dataclasses.dataclass(frozen=True)
class Pieces:
    """A sequence of word pieces, with the special ones of its text, or of its pair of texts."""

    ids: list[int]
    types: list[int]  # BERT's token types, which say which text a piece is of, or which is the predicate's


@dataclasses.dataclass(frozen=True)
class _Window:
    """A part of a sequence that the transformer reads at once, with the special pieces around it."""

    pieces: Pieces
    used: slice  # the pieces whose vectors are used
    row: int  # of the first of them in the output


class FrozenTransformer:
    """Computes layers of words: a `LayerSource`.

    A sentence's vectors depend on that sentence only. One that is longer than the transformer's positions is read in
    windows of this length that overlap by half, and a piece's vector comes from the window in which it is farther from
    the border, unless a window is given. A word without any piece, such as a zero-width character, has a zero vector.

    Arguments:
        model: the transformer, in evaluation mode; see `TransformerFiles.load`.
        tokenizer: its tokenizer, a `tokenizers.Tokenizer`.
        layers: those that are computed, 0 being the embeddings.
        pooling: see `TransformerConfig`.
        device: where the transformer runs, and where its layers are.
        window: see `TransformerConfig`.

    Attributes:
        tokenizer: its tokenizer.
        special: the pieces that the tokenizer puts before and after a sentence.

    Raises:
        WeightsError: the model has fewer positions than the tokenizer's special pieces need.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        layers: Sequence[int],
        pooling: Pooling,
        device: torch.device | str = "cpu",
        window: int | None = None,
    ) -> None:
        self.output_size = int(model.config.hidden_size)
        self._device = torch.device(device)
        self._model = model.to(device)
        if self._device.type == "cpu" and model.config.model_type in _PLAIN_LINEAR:
            _pack(self._model)
        self.tokenizer = tokenizer
        self._layers = tuple(layers)
        self._is_last_only = self._layers == (model.config.num_hidden_layers,)
        self._pooling = pooling
        self._padding = model.config.pad_token_id or 0
        encoded = tokenizer.encode(["a"], is_pretokenized=True)
        own = [index for index, is_special in enumerate(encoded.special_tokens_mask) if not is_special]
        if not own:
            raise WeightsError(f"{TOKENIZER}: gives no piece for the word 'a'; expected a tokenizer of text")
        self.special = encoded.ids[: own[0]], encoded.ids[own[-1] + 1 :]
        most = int(model.config.max_position_embeddings)
        for name, module in model.named_modules():
            if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
                most -= module.padding_idx + 1  # RoBERTa and its relatives count positions from behind the padding's
        self._is_folded = window is not None
        self._room = min(window or most, most) - sum(map(len, self.special))
        if self._room < 2 - self._is_folded:
            raise WeightsError(f"{CONFIG}: too few positions for the special pieces of {TOKENIZER}")

    @torch.no_grad()
    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        """The chosen layers of tokenized sentences of any length and in any order, empty ones included.

        Arguments:
            sentences: B lists of tokens.

        Returns:
            layers (B, K, T, D) float32 and mask (B, T).
        """
        encoded = [self.tokenizer.encode(_valid(tokens), is_pretokenized=True) for tokens in sentences]
        read = self.read([Pieces(each.ids, [0] * len(each.ids)) for each in encoded]).layers.transpose(1, 2)
        lengths = [len(tokens) for tokens in sentences]
        longest = max(lengths, default=0)
        places: list[tuple[int, int, float]] = []  # of pieces and their words, and the piece's share in the word
        for row, each in enumerate(encoded):
            counts = Counter(each.word_ids)
            for place, (before, word) in enumerate(itertools.pairwise([None, *each.word_ids])):
                if word is not None and (word != before or self._pooling == "mean"):
                    share = 1.0 / counts[word] if self._pooling == "mean" else 1.0
                    places.append((row * read.shape[1] + place, row * longest + word, share))
        table = torch.tensor(places, dtype=torch.float64).view(-1, 3)
        pieces, words = table[:, :2].long().to(self._device).unbind(1)
        shares = table[:, 2].float().to(self._device)
        vectors = read.new_zeros(len(sentences) * longest, *read.shape[2:])  # (B T, K, D)
        vectors.index_add_(0, words, read.flatten(0, 1)[pieces] * shares[:, None, None])
        return self._output(vectors, lengths)

    def text_pieces(self, *texts: Sequence[str]) -> Pieces:
        """The pieces of a text, or of a pair of texts: their tokens with a space between them."""
        encoded = self.tokenizer.encode(*(" ".join(_valid(tokens)) for tokens in texts))
        return Pieces(encoded.ids, encoded.type_ids)

    @torch.no_grad()
    def read(self, sequences: Sequence[Pieces]) -> LayerOutput:
        """The chosen layers of all pieces of sequences of any length, which begin and end with the special pieces.

        Returns:
            layers (B, K, P, D) float32 and mask (B, P), with P for the pieces of the longest sequence.
        """
        lengths = [len(pieces.ids) for pieces in sequences]
        longest = max(lengths, default=0)
        windows = [window for row, pieces in enumerate(sequences) for window in self._windows(pieces, row * longest)]
        vectors = torch.zeros(len(lengths) * longest, len(self._layers), self.output_size, device=self._device)
        sizes, share = [len(window.pieces.ids) for window in windows], _LEAST_SHARE if self._is_folded else 0.0
        for rows in batches_of_like_lengths(sizes, max_padded=_BATCH_PIECES, least_share=share):
            batch = [windows[row] for row in rows]
            ids = pad_sequence([torch.tensor(window.pieces.ids) for window in batch], True, self._padding)
            types = pad_sequence([torch.tensor(window.pieces.types) for window in batch], True)
            mask = mask_of_lengths([len(window.pieces.ids) for window in batch], ids.shape[1]).long()
            inputs = {"input_ids": ids, "attention_mask": mask}
            if types.any():  # not all transformers take them
                inputs["token_type_ids"] = types
            inputs = {name: values.to(self._device) for name, values in inputs.items()}
            output = self._model(**inputs, output_hidden_states=not self._is_last_only)
            states = {self._layers[0]: output.last_hidden_state} if self._is_last_only else output.hidden_states
            layers = torch.stack([states[layer] for layer in self._layers], dim=2)  # (W, P, K, D)
            for window, found in zip(batch, layers, strict=True):
                used = found[window.used]
                vectors[window.row : window.row + len(used)] = used
        return self._output(vectors, lengths)

    def _output(self, vectors: Tensor, lengths: Sequence[int]) -> LayerOutput:
        """The vectors (B T, K, D) of sequences, by sequence."""
        layers = vectors.view(len(lengths), max(lengths, default=0), *vectors.shape[1:]).transpose(1, 2)  # (B, K, T, D)
        return LayerOutput(layers, mask_of_lengths(lengths, layers.shape[2]).to(self._device))

    def _windows(self, pieces: Pieces, first_row: int) -> Iterator[_Window]:
        """The windows of a sequence whose first piece has this row in the output."""
        if not pieces.ids:
            return
        before, after = map(len, self.special)
        length = len(pieces.ids) - before - after
        if self._is_folded:
            starts = range(0, max(1, length), self._room)
            parts = [slice(start, min(start + self._room, length)) for start in starts]
            cuts: Iterable[tuple[slice, slice]] = zip(parts, parts, strict=True)
        else:
            cuts = overlapping_windows(length, self._room)
        for read, used in cuts:
            first = 0 if used.start == 0 else before + used.start
            end = before + used.stop + (after if used.stop == length else 0)
            ids, types = (
                [*values[:before], *values[before + read.start : before + read.stop], *values[before + length :]]
                for values in (pieces.ids, pieces.types)
            )
            if self._is_folded:  # AllenNLP's parts have special pieces like those of a single text
                types = [0] * before + types[before : len(types) - after] + [0] * after
            yield _Window(Pieces(ids, types), slice(first - read.start, end - read.start), first_row + first)


def _valid(tokens: Sequence[str]) -> list[str]:
    """The tokens in UTF-8: halves of surrogate pairs are "?"."""
    return [token.encode("utf-8", "replace").decode() for token in tokens]


class _Packed(nn.Module):
    """A linear layer with a fixed matrix, packed for the processor."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self._product = build_product(layer.weight, layer.bias, "float32")

    def forward(self, inputs: Tensor) -> Tensor:
        return self._product(inputs.flatten(0, -2)).view(*inputs.shape[:-1], -1)


def _pack(model: nn.Module) -> None:
    """Makes a frozen model twice as fast on a CPU."""
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear:
                setattr(module, name, _Packed(child))
