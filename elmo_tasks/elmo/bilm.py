"""The bidirectional language model whose layers are ELMo.

# B batch, T tokens of the longest sentence, S = T + 2 with sentence borders, C characters per token, U distinct tokens,
# L LSTM layers, P features of one direction, D = 2P features of a layer
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from elmo_tasks import hooks
from elmo_tasks.elmo import weights as weights_file
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE, check_sentences, tokens_to_ids
from elmo_tasks.elmo.lstm import LstmStack, LstmState, run_both_directions
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.elmo.token_encoder import TokenEncoder
from elmo_tasks.modules.devices import release_memory, shapes_only
from elmo_tasks.text.tokens import TensorRecord, mask_of_lengths

_BEGIN_ROW, _END_ROW = 0, 1  # the sentence borders' rows in every table of token vectors


@dataclasses.dataclass(frozen=True)
class LayerOutput(TensorRecord):
    """All layers of a batch: the token layer (doubled to D features), then LSTM layers 1 to L; zero at padding."""

    layers: Tensor  # (B, L+1, T, D)
    mask: Tensor  # (B, T) bool, True where a token is real


class BiLM(nn.Module):
    """A character-based bidirectional language model, without its softmax.

    Source: Peters et al. 2018, section 3, in the exact form of bilm-tf. One departure: unless `stateful` is set, each
    sentence starts from a state of zeros, so that its vectors depend only on the sentence.

    `load_state_dict` also takes the state dicts that extras know, such as that of AllenNLP's `_ElmoBiLm`.

    It computes with torch's usual operations, also where weights are trained. `FastBiLM` computes the layers of a
    frozen one several times as fast, from a copy of the weights.

    Arguments:
        options: the architecture.
        stateful: start each row of a batch from the state in which the row's last sentence ended, as bilm-tf's
            `BidirectionalLanguageModelGraph` and AllenNLP's `_EncoderBase` do. A smaller batch uses and updates only
            the first rows. No gradient flows through the state. `reset_state` forgets it.
    """

    def __init__(self, options: BiLMOptions, stateful: bool = False) -> None:
        """See the class. `BiLM.load` reads a trained one."""
        super().__init__()
        self.options = options
        self.stateful = stateful
        self.num_layers = options.num_layers
        self.output_size = options.output_size
        encoder: type[TokenEncoder] = TokenEncoder
        if options.lexicon:
            encoder = hooks.required("token_encoder", "lexicon", "a biLM of ELMoForManyLangs")
        self.token_encoder = encoder(options)
        directions = nn.ModuleList(LstmStack(options.lstm) for _ in range(2))
        self.directions = cast("Sequence[LstmStack]", directions)  # a ModuleList has no type for its items
        self._carried: list[Tensor] = []  # (2L, B, P), (2L, B, H): each layer's state in both directions

    @classmethod
    def load(
        cls,
        options: str | Path = DEFAULT_BILM,
        weights: str | Path | None = None,
        stateful: bool = False,
        requires_grad: bool = False,
    ) -> BiLM:
        """Reads a biLM in the layout of bilm-tf and AllenNLP: by default, the one in the package.

        Arguments:
            options: the folder with the biLM's *options.json and *weights.hdf5, `default`, or another name of a biLM,
                such as `hub:ORG/NAME`; if `weights` is given, the path or the address of the options.json.
            weights: path or address of the HDF5 file, float32 or float16.
            stateful: see the class.
            requires_grad: whether its weights are to be trained; they are frozen by default.

        Raises:
            WeightsError: the folder or a file is missing, a file is damaged, or the two do not fit together.
        """
        named = (str(options), None, None) if weights is None else (None, str(options), str(weights))
        files = BiLMFiles.chosen(*named)
        settings = BiLMOptions.load(files.options)
        with shapes_only():  # does not draw random weights, which the file's would replace
            bilm = cls(settings, stateful=stateful)
        weights_file.check_weights(files.weights, bilm.token_encoder, bilm.directions)
        # As `to_empty`, which would import SymPy in half a second.
        bilm._apply(lambda tensor: torch.empty(tensor.shape, dtype=tensor.dtype))
        weights_file.read_weights(files.weights, bilm.token_encoder, bilm.directions)
        release_memory()  # before `FastBiLM` copies the weights
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

        The result is without sentence borders. Each distinct token goes through the character convolutions once.

        Arguments:
            sentences: B lists of tokens.

        Raises:
            TypeError: a sentence is a string, or a token is not.
        """
        check_sentences(sentences)
        rows: dict[str, int] = {BEGIN_SENTENCE: _BEGIN_ROW, END_SENTENCE: _END_ROW}
        padded_length = max(map(len, sentences), default=0) + 2
        index = torch.zeros(len(sentences), padded_length, dtype=torch.int64)  # (B, S)
        for row, tokens in zip(index, sentences, strict=True):
            numbers = [rows.setdefault(token, len(rows)) for token in tokens]
            row[: len(tokens) + 2] = torch.tensor([_BEGIN_ROW, *numbers, _END_ROW])
        lengths = torch.tensor([len(tokens) for tokens in sentences], dtype=torch.int64)
        table = self.token_vectors(list(rows))
        return without_borders(self.contextualize(table, index.to(table.device), lengths.to(table.device)))

    def layers_of_ids(self, character_ids: Tensor) -> LayerOutput:
        """Like `layers`, of sentences given as character ids.

        Arguments:
            character_ids: (B, T, C) int64 as `batch_to_ids` makes them, without sentence borders.

        Raises:
            ValueError: padding comes before a real token.
        """
        return without_borders(self(character_ids))

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
        return self.token_encoder.of_tokens(tokens)

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
        if batch == 0:
            nothing = table.new_zeros(0, self.num_layers, padded_length, self.output_size)
            return LayerOutput(nothing, mask_of_lengths(lengths, padded_length))
        layers, final = run_both_directions(self.directions, table, index, lengths + 2, self._initial_states(batch))
        self._keep_states(final)
        return LayerOutput(layers.transpose(1, 2), mask_of_lengths(lengths + 2, padded_length))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *arguments: Any) -> None:
        """What `load_state_dict` calls: it also takes tensors under the names of other projects."""
        for rename in hooks.everything("bilm_names"):
            rename(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def _initial_states(self, rows: int) -> tuple[list[LstmState], list[LstmState]]:
        """Where the layers of each direction start in each row: at zero, or where the row's last sentence ended."""
        states = [state for stack in self.directions for state in stack.initial_states(rows)]
        if self._carried:
            zeros = [torch.stack(parts) for parts in zip(*states, strict=True)]  # (2L, B, P), (2L, B, H)
            hidden, cells = (
                torch.cat([known[:, :rows].to(new), new[:, known.shape[1] :]], dim=1)
                for known, new in zip(self._carried, zeros, strict=True)
            )
            states = list(zip(hidden, cells, strict=True))
        depth = self.options.lstm.n_layers
        return states[:depth], states[depth:]

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
    lengths = check_padding(mask)
    bordered = nn.functional.pad(index, (1, 1), value=_BEGIN_ROW)  # (B, T+2)
    return bordered.scatter(1, lengths[:, None] + 1, _END_ROW)


def check_padding(mask: Tensor) -> Tensor:
    """The lengths (B,) of sentences; raises `ValueError` unless all padding comes after the last token."""
    lengths = mask.sum(dim=1)
    if not torch.equal(mask, mask_of_lengths(lengths, mask.shape[1])):
        raise ValueError("a sentence has padding before a real token; expected all padding after its last token")
    return lengths


def without_borders(output: LayerOutput) -> LayerOutput:
    """Removes the sentence borders: (B, L+1, T+2, D), (B, T+2) -> (B, L+1, T, D), (B, T)."""
    mask = output.mask[:, 2:]
    layers = output.layers[:, :, 1:-1]
    return LayerOutput(layers.masked_fill(~mask[:, None, :, None], 0.0), mask)
