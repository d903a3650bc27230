"""The bidirectional language model whose layers are ELMo.

# B batch, T tokens of the longest sentence, S = T + 2 with sentence borders, C characters per token, U distinct tokens,
# L LSTM layers, P features of one direction, D = 2P features of a layer
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from elmo_tasks.elmo import weights as weights_file
from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE, tokens_to_ids
from elmo_tasks.elmo.lstm import LstmStack, LstmState
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.elmo.token_encoder import TokenEncoder
from elmo_tasks.text.tokens import TensorRecord

_BEGIN_ROW, _END_ROW = 0, 1  # the sentence borders' rows in every table of token vectors


@dataclasses.dataclass(frozen=True)
class LayerOutput(TensorRecord):
    """All layers of a batch: the token layer (doubled to D features), then LSTM layers 1 to L; zero at padding."""

    layers: Tensor  # (B, L+1, T, D)
    mask: Tensor  # (B, T) bool, True where a token is real


class LayerSource(Protocol):
    """What computes layers: a biLM in any of its forms."""

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput: ...


@dataclasses.dataclass(frozen=True)
class LayerChunk:
    """All layers of some tokens of one sentence, in one direction."""

    layers: Tensor  # (L+1, tokens, P)
    tokens: slice  # the tokens' places in the sentence
    features: slice  # the direction's half of the D features


class BiLM(nn.Module):
    """A character-based bidirectional language model, without its softmax.

    Source: Peters et al. 2018, section 3, in the exact form of bilm-tf. One departure: unless `stateful` is set, each
    sentence starts from a state of zeros, so that its vectors depend only on the sentence.

    Arguments:
        options: the architecture.
        dropout: probability of dropping a feature of an LSTM layer's input; for training the language model itself.
        stateful: start each row of a batch from the state in which the row's last sentence ended, as bilm-tf's
            `BidirectionalLanguageModelGraph` and AllenNLP's `_EncoderBase` do. A smaller batch uses and updates only
            the first rows. No gradient flows through the state. `reset_state` forgets it.
    """

    def __init__(self, options: BiLMOptions, dropout: float = 0.0, stateful: bool = False) -> None:
        super().__init__()
        self.options = options
        self.stateful = stateful
        self.num_layers = options.num_layers
        self.output_size = options.output_size
        self.token_encoder = TokenEncoder(options)
        directions = nn.ModuleList(LstmStack(options.lstm, dropout) for _ in range(2))
        self.directions = cast("Sequence[LstmStack]", directions)  # a ModuleList has no type for its items
        self._carried: list[Tensor] = []  # (2L, B, P), (2L, B, H): each layer's state in both directions

    @classmethod
    def load(
        cls, options: str | Path, weights: str | Path, stateful: bool = False, requires_grad: bool = False
    ) -> BiLM:
        """Reads a biLM in the layout of bilm-tf and AllenNLP.

        Arguments:
            options: path of the options.json.
            weights: path of the HDF5 file, float32 or float16.
            stateful: see the class.
            requires_grad: whether its weights are to be trained; they are frozen by default.

        Raises:
            WeightsError: a file is missing or damaged, or the two do not fit together.
        """
        settings = BiLMOptions.load(options)
        with torch.device("meta"):  # does not draw random weights, which the file's would replace
            bilm = cls(settings, stateful=stateful)
        bilm.to_empty(device="cpu")
        weights_file.read_weights(weights, bilm.token_encoder, bilm.directions)
        return bilm.requires_grad_(requires_grad).eval()

    def save(self, options: str | Path, weights: str | Path, half_precision: bool = False) -> None:
        """Writes the biLM in the layout that `load`, bilm-tf and AllenNLP read, each file atomically."""
        weights_file.write_weights(weights, self.token_encoder, self.directions, half_precision)
        self.options.save(options)

    def fingerprint(self) -> str:
        """The SHA-256 of the architecture and the current weights, on which the vectors of tokens depend."""
        return weights_file.fingerprint(self.options, self.token_encoder, self.directions)

    def reset_state(self) -> None:
        """Forgets the carried state: the next batch starts at zero."""
        self._carried = []

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        """The layers of tokenized sentences of any length and in any order, empty ones included.

        Each distinct token goes through the character convolutions once. The result is without sentence borders.

        Arguments:
            sentences: B lists of tokens.
        """
        if not sentences:
            nothing = next(self.parameters()).new_zeros(0, self.num_layers, 0, self.output_size)
            return LayerOutput(nothing, torch.zeros(0, 0, dtype=torch.bool, device=nothing.device))
        rows: dict[str, int] = {BEGIN_SENTENCE: _BEGIN_ROW, END_SENTENCE: _END_ROW}
        padded_length = max(map(len, sentences)) + 2
        index = torch.zeros(len(sentences), padded_length, dtype=torch.int64)  # (B, S)
        for place, tokens in zip(index, sentences, strict=True):
            place[: len(tokens) + 2] = torch.tensor(_numbered(tokens, rows))
        lengths = torch.tensor([len(tokens) for tokens in sentences])
        table = self.token_vectors(list(rows))
        return without_borders(self.contextualize(table, index.to(table.device), lengths.to(table.device)))

    def forward(self, character_ids: Tensor) -> LayerOutput:
        """The layers of sentences given as character ids, with those of the sentence borders.

        Arguments:
            character_ids: (B, T, C) int64 as `batch_to_ids` makes them, without sentence borders.

        Returns:
            layers (B, L+1, T+2, D) and mask (B, T+2); see `without_borders`.
        """
        mask = (character_ids > 0).any(dim=-1)  # (B, T)
        distinct, inverse = torch.unique(character_ids[mask], dim=0, return_inverse=True)
        borders = tokens_to_ids([BEGIN_SENTENCE, END_SENTENCE], character_ids.shape[-1]).to(character_ids.device)
        table = self.token_encoder(torch.cat([borders, distinct]))  # (U, P)
        index = torch.zeros_like(mask, dtype=torch.int64)
        index[mask] = inverse + 2
        return self.contextualize(table, with_borders(index, mask), mask.sum(dim=1))

    def token_vectors(self, tokens: Sequence[str]) -> Tensor:
        """The context-independent vectors (U, P) of single tokens; `<S>` and `</S>` are the sentence borders."""
        ids = tokens_to_ids(tokens, self.options.char_cnn.max_characters_per_token)
        return self.token_encoder(ids.to(self.token_encoder.embedding.weight.device))

    def contextualize(self, table: Tensor, index: Tensor, lengths: Tensor) -> LayerOutput:
        """Runs both directions over sentences whose tokens are rows of a table.

        Arguments:
            table: (U, P) token vectors; rows 0 and 1 are the sentence borders.
            index: (B, S) int64, the table's rows of each sentence from border to border, then anything.
            lengths: (B,) tokens of each sentence, borders not counted.

        Returns:
            layers (B, L+1, S, D) and mask (B, S), borders included.
        """
        batch, padded_length = index.shape
        longest_first, order = (lengths + 2).sort(descending=True, stable=True)
        steps = torch.arange(padded_length, device=index.device).expand(batch, -1)  # (B, S)
        halves: list[Tensor] = []
        final: list[LstmState] = []
        for backward, (stack, states) in enumerate(self._directions_with_states(batch)):
            read = longest_first[:, None] - 1 - steps if backward else steps
            packed = pack_padded_sequence(order[:, None] * padded_length + read, longest_first.cpu(), batch_first=True)
            inputs = table[index.flatten()[packed.data]]  # (N, P)
            sorted_states = [(hidden[order], cell[order]) for hidden, cell in states]
            outputs, ends = stack(inputs, packed.batch_sizes.tolist(), sorted_states)
            padded = inputs.new_zeros(batch * padded_length, self.num_layers, self.output_size // 2)
            halves.append(padded.index_copy(0, packed.data, torch.stack([inputs, *outputs], dim=1)))
            original_order = order.argsort()
            final += [(hidden[original_order], cell[original_order]) for hidden, cell in ends]
        self._keep_states(final)
        layers = torch.cat(halves, dim=-1).view(batch, padded_length, self.num_layers, -1).transpose(1, 2)
        return LayerOutput(layers, _mask(lengths + 2, padded_length))  # (B, L+1, S, D), (B, S)

    @torch.no_grad()
    def layers_in_chunks(self, tokens: Sequence[str], chunk_length: int) -> Iterator[LayerChunk]:
        """The layers of one sentence of any length, as in `layers`, in memory that `chunk_length` bounds.

        Each direction reads the sentence in chunks, from its own end, and carries its state from chunk to chunk. No
        gradient is computed.

        Arguments:
            tokens: the sentence's tokens.
            chunk_length: tokens of a chunk.
        """
        rows: dict[str, int] = {BEGIN_SENTENCE: _BEGIN_ROW, END_SENTENCE: _END_ROW}
        index = torch.tensor(_numbered(tokens, rows))  # (S,)
        table = self.token_vectors(list(rows))
        starts = range(0, len(index), chunk_length)
        final: list[LstmState] = []
        half = self.output_size // 2
        for backward, (stack, states) in enumerate(self._directions_with_states(1)):
            for start in reversed(starts) if backward else starts:
                inputs = table[index[start : start + chunk_length].to(table.device)]
                read = inputs.flip(0) if backward else inputs
                outputs, states = stack(read, [1] * len(read), states)
                layers = torch.stack([read, *outputs])  # (L+1, tokens, P)
                # Places in the sentence are one less than in the index, which begins with the border.
                first, last = max(start, 1), min(start + chunk_length, len(tokens) + 1)
                if first < last:
                    layers = layers.flip(1) if backward else layers
                    features = slice(backward * half, (backward + 1) * half)
                    yield LayerChunk(layers[:, first - start : last - start], slice(first - 1, last - 1), features)
            final += states
        self._keep_states(final)

    def _directions_with_states(self, rows: int) -> list[tuple[LstmStack, list[LstmState]]]:
        """Each direction and where its layers start in each row: at zero, or where the row's last sentence ended."""
        states = [state for stack in self.directions for state in stack.initial_states(rows)]
        if self._carried:
            zeros = [torch.stack(parts) for parts in zip(*states, strict=True)]  # (2L, B, P), (2L, B, H)
            hidden, cells = (
                torch.cat([known[:, :rows].to(new), new[:, known.shape[1] :]], dim=1)
                for known, new in zip(self._carried, zeros, strict=True)
            )
            states = list(zip(hidden, cells, strict=True))
        depth = self.options.lstm.n_layers
        return list(zip(self.directions, (states[:depth], states[depth:]), strict=True))

    def _keep_states(self, final: list[LstmState]) -> None:
        if self.stateful:
            new = [torch.stack(parts).detach() for parts in zip(*final, strict=True)]
            self._carried = [
                torch.cat([first, known[:, first.shape[1] :].to(first)], dim=1)
                for first, known in zip(new, self._carried or new, strict=True)
            ]


def with_borders(index: Tensor, mask: Tensor) -> Tensor:
    """Puts the sentence borders' rows around rows of a table of token vectors: (B, T), (B, T) -> (B, T+2).

    Raises:
        ValueError: padding comes before a real token.
    """
    lengths = mask.sum(dim=1)
    if not torch.equal(mask, _mask(lengths, mask.shape[1])):
        raise ValueError("a sentence has padding before a real token; wanted all padding after its last token")
    bordered = nn.functional.pad(index, (1, 1), value=_BEGIN_ROW)  # (B, T+2)
    return bordered.scatter(1, lengths[:, None] + 1, _END_ROW)


def without_borders(output: LayerOutput) -> LayerOutput:
    """Removes the sentence borders: (B, L+1, T+2, D), (B, T+2) -> (B, L+1, T, D), (B, T)."""
    mask = output.mask[:, 2:]
    layers = output.layers[:, :, 1:-1]
    return LayerOutput(layers.masked_fill(~mask[:, None, :, None], 0.0), mask)


def _mask(lengths: Tensor, padded_length: int) -> Tensor:
    return torch.arange(padded_length, device=lengths.device)[None, :] < lengths[:, None]


def _numbered(tokens: Sequence[str], rows: dict[str, int]) -> list[int]:
    """The rows of a sentence's tokens, with borders around them. New tokens get the next rows."""
    return [_BEGIN_ROW, *(rows.setdefault(token, len(rows)) for token in tokens), _END_ROW]
