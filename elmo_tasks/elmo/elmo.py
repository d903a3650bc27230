"""ELMo for users of AllenNLP: the same arguments and the same returned keys.

# B batch, T tokens, C characters per token (50), P features of one direction, D = 2P features of a layer
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import torch
import xxhash
from torch import Tensor, nn

from elmo_tasks.elmo.bilm import BiLM, LayerOutput, with_borders
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM
from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.elmo.fast import FastBiLM, can_be_fast
from elmo_tasks.elmo.scalar_mix import ScalarMix


class ElmoOutput(TypedDict):
    """The result of `Elmo`."""

    elmo_representations: list[Tensor]  # each (B, T, D), or (..., T, D) as the inputs
    mask: Tensor  # (B, T) bool, or (..., T)


class Elmo(nn.Module):
    """Computes one or more ELMo representations of sentences given as character ids.

    Source: `allennlp.modules.elmo.Elmo`. Departures:

    - it is stateless unless `stateful` is set;
    - it follows `use_skip_connections`, while AllenNLP refuses models without them;
    - padding is zero after layer normalization too;
    - padding before a real token is refused, while AllenNLP reads it as a token and drops one at the end;
    - `word_inputs` can be given without `inputs`.

    `load_state_dict` also takes a state dict of AllenNLP's `Elmo`, also where it is a part of another model's. The
    vectors of a cached vocabulary are then computed anew, and not read. `scalar_mix_0`, ... and `_scalar_mixes` are the
    mixes under AllenNLP's names.

    While the biLM is frozen and stateless, a `FastBiLM` computes its layers, unless sentence borders are needed
    (`keep_sentence_boundaries`, `do_layer_norm`) or `word_inputs` are given. It has a copy of the weights, which is
    made again when their content has changed, in whatever way.

    Arguments:
        options_file: path or address of the options.json; or the folder of a biLM, or another name of it (see
            `BiLM.load`), if there is no `weight_file`. The default is the biLM in the package.
        weight_file: path or address of the HDF5 weights.
        num_output_representations: the number of mixes, each with separate weights.
        requires_grad: whether the biLM is trained too.
        do_layer_norm: whether each layer is normalized over the batch before it is mixed.
        dropout: probability of dropping a feature of a representation in training.
        vocab_to_cache: tokens whose vectors are computed now and kept, also while the biLM is trained; the first stands
            for padding. `word_inputs` are indices into this list.
        keep_sentence_boundaries: whether sentence borders stay in the output, which is then T+2 long.
        scalar_mix_parameters: fixed weights, before the softmax; by default they are learned.
        module: a biLM that is already loaded. The two files must then be None; `requires_grad` and `stateful` are
            ignored.
        stateful: whether each row of a batch starts from the state in which its last sentence ended, as in AllenNLP.

    Raises:
        WeightsError: a file is missing or damaged, or the two do not fit together.
        ValueError: `module` is given and also a file, or only `weight_file` is given.
    """

    def __init__(
        self,
        options_file: str | Path | None = None,
        weight_file: str | Path | None = None,
        num_output_representations: int = 1,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: Sequence[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: Sequence[float] | None = None,
        module: BiLM | None = None,
        stateful: bool = False,
    ) -> None:
        """Loads the biLM and makes the mixes; the class describes the arguments."""
        super().__init__()
        if module is not None:
            if options_file is not None or weight_file is not None:
                raise ValueError("got module and also options_file or weight_file; expected one or the other")
            self.bilm = module
        elif options_file is None and weight_file is not None:
            raise ValueError("got weight_file without options_file; expected both")
        else:
            self.bilm = BiLM.load(options_file or DEFAULT_BILM, weight_file, stateful, requires_grad)
        self._fast: FastBiLM | None = None
        self._copied: object = None  # the state of the weights that `_fast` has
        self.keep_sentence_boundaries = keep_sentence_boundaries
        # As in AllenNLP, the sentence borders count in the layer normalization.
        self._mixes_borders = keep_sentence_boundaries or do_layer_norm
        self.dropout = nn.Dropout(dropout)
        learned = scalar_mix_parameters is None
        self.scalar_mixes = nn.ModuleList(
            ScalarMix(
                self.bilm.num_layers,
                initial_weights=scalar_mix_parameters,
                learned_weights=learned,
                learned_gamma=learned,
                layer_normalization="batch" if do_layer_norm else "none",
            )
            for _ in range(num_output_representations)
        )
        self.register_buffer("_cached_vectors", None, persistent=False)
        self._cached_words = None if vocab_to_cache is None else [BEGIN_SENTENCE, END_SENTENCE, *vocab_to_cache]
        if vocab_to_cache is not None:
            _fill_cache(self)
            self.register_load_state_dict_post_hook(_fill_cache)

    @property
    def _scalar_mixes(self) -> list[nn.Module]:
        """The mixes, as AllenNLP calls them."""
        return list(self.scalar_mixes)

    def __getattr__(self, name: str) -> Any:
        """Also finds the mixes as `scalar_mix_0`, ..., AllenNLP's names."""
        number = name.removeprefix("scalar_mix_")
        if number != name and number.isdecimal() and int(number) < len(self.scalar_mixes):
            return self.scalar_mixes[int(number)]
        if name == "_elmo_lstm":
            raise AttributeError(
                "Elmo has no _elmo_lstm here; use its bilm: bilm(character_ids).layers is (B, L+1, T+2, D)"
            )
        return super().__getattr__(name)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *arguments: Any) -> None:
        """What `load_state_dict` calls: it also takes tensors under AllenNLP's names."""
        renamed = {f"scalar_mix_{number}.": f"scalar_mixes.{number}." for number in range(len(self.scalar_mixes))}
        for theirs, ours in {"_elmo_lstm.": "bilm.", **renamed}.items():
            for name in [name for name in state_dict if name.startswith(prefix + theirs)]:
                state_dict[prefix + ours + name.removeprefix(prefix + theirs)] = state_dict.pop(name)
        if self._cached_words is not None:
            state_dict.pop(f"{prefix}bilm._word_embedding.weight", None)
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    def get_output_dim(self) -> int:
        """The features D of a representation."""
        return self.bilm.output_size

    def forward(self, inputs: Tensor | None, word_inputs: Tensor | None = None) -> ElmoOutput:
        """Computes the representations.

        Arguments:
            inputs: (B, T, C) or (..., T, C) int64, as from `batch_to_ids`; not used if `word_inputs` is given, unless
                one of its words is not in the cached vocabulary. Then characters are read, as in AllenNLP.
            word_inputs: (B, T) or (..., T) int64, indices into `vocab_to_cache`, 0 is padding.

        Raises:
            ValueError: both inputs are None; or `word_inputs` is given without `vocab_to_cache`, or has a word that is
                not cached while `inputs` is None.
            TypeError: `inputs` is not a tensor.
        """
        if word_inputs is not None:
            if self._cached_vectors is None:
                raise ValueError("got word_inputs without a cached vocabulary; expected vocab_to_cache")
            num_words = len(self._cached_vectors) - 2
            if bool((unknown := (word_inputs < 0) | (word_inputs >= num_words)).any()):
                if inputs is None:
                    position = tuple(unknown.nonzero()[0].tolist())
                    raise ValueError(
                        f"word_inputs{list(position)} is {word_inputs[position].item()}, but the cached vocabulary has "
                        f"the words 0 to {num_words - 1}; expected one of them, or inputs, the characters of all words"
                    )
                word_inputs = None
        if word_inputs is not None:
            outer = word_inputs.shape[:-1]
            words = word_inputs.reshape(math.prod(outer), word_inputs.shape[-1])
            known = words > 0  # (B, T)
            output = self.bilm.contextualize(self._cached_vectors, with_borders(words + 2, known), known.sum(dim=1))
        elif inputs is None:
            raise ValueError("inputs and word_inputs are both None; expected one of them")
        elif not isinstance(inputs, Tensor):
            raise TypeError(
                f"inputs is a {type(inputs).__name__}; expected character ids, as from batch_to_ids(sentences)"
            )
        else:
            outer = inputs.shape[:-2]
            ids = inputs.reshape(math.prod(outer), *inputs.shape[-2:])
            output = self.bilm(ids) if self._mixes_borders else self._layers_of_ids(ids)
        mixed = [mix(output.layers, output.mask) for mix in self.scalar_mixes]  # each (B, T, D) or (B, T+2, D)
        mask = output.mask
        if not self.keep_sentence_boundaries and (self._mixes_borders or word_inputs is not None):
            mask = mask[:, 2:]
            mixed = [vectors[:, 1:-1].masked_fill(~mask[..., None], 0.0) for vectors in mixed]  # each (B, T, D)
        return {
            "elmo_representations": [self.dropout(vectors).reshape(*outer, *vectors.shape[1:]) for vectors in mixed],
            "mask": mask.reshape(*outer, mask.shape[-1]),
        }

    def _layers_of_ids(self, character_ids: Tensor) -> LayerOutput:
        """What `BiLM.layers_of_ids` computes, with `FastBiLM` if the biLM is frozen."""
        if not can_be_fast(self.bilm):
            self._fast = None
        else:
            state = _state_of(self.bilm)
            if self._fast is None or self._copied != state:
                self._fast, self._copied = FastBiLM(self.bilm), state
        if self._fast is not None and self._fast.reads(character_ids):
            return self._fast.layers_of_ids(character_ids)
        return self.bilm.layers_of_ids(character_ids)

    def __getstate__(self) -> dict[str, Any]:
        """For copies: without the copy of the weights, which is made again."""
        return {**self.__dict__, "_fast": None}


@torch.no_grad()
def _fill_cache(elmo: Elmo, _: object = None) -> None:
    """Computes the vectors of the cached vocabulary with the weights as they are now."""
    assert elmo._cached_words is not None
    elmo._cached_vectors = elmo.bilm.token_vectors(elmo._cached_words)


def _state_of(bilm: BiLM) -> tuple[object, ...]:
    """What differs if a weight has changed, also through `.data`, or has moved to another device.

    In the main memory it is a hash of all weights: a hundredth of a second for 100 MB. Elsewhere it is the sums of
    their bits, which stay the same if values only change places.
    """
    weights = [each.detach() for each in bilm.parameters()]
    device = weights[0].device
    if device.type == "cpu":
        digest = xxhash.xxh3_64()
        for each in weights:
            digest.update(each.contiguous().numpy().data)
        return device, digest.intdigest()
    return device, *torch.stack([each.view(torch.int32).sum() for each in weights]).tolist()
