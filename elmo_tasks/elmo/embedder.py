"""ELMo as a part of a task's model: a biLM, frozen or not, and the mixes of its layers that the task learns.

# B batch, T tokens of the longest sentence, D features
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal, Protocol

import pydantic
import torch
from pydantic import Field

from elmo_tasks import hooks
from elmo_tasks.config import Config, ModelPath
from elmo_tasks.elmo.bilm import BiLM, LayerOutput
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.elmo.fast import FastBiLM, Precision, load_frozen
from elmo_tasks.elmo.frozen_layers import FrozenLayers, LayerCacheConfig, LayerProvider, LayerSource
from elmo_tasks.elmo.layer_store import LayerStore
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.elmo.scalar_mix import LayerNormalization, ScalarMix
from elmo_tasks.errors import ConfigError

MixName = Literal["input", "output"]


class ElmoConfig(Config):
    """ELMo of a pretrained biLM."""

    bilm: ModelPath | None = Field(
        None,
        description="Folder of the biLM's *options.json and *weights.hdf5, its zip archive, 'default', the biLM of "
        "the package, 'hub:ORG/NAME[@REVISION]', or the address of an archive, 'https://...#sha256=...'.",
    )
    options: ModelPath | None = Field(
        None, description="Instead of 'bilm': path or address of the biLM's options.json."
    )
    weights: ModelPath | None = Field(
        None, description="Instead of 'bilm': path or address of the biLM's HDF5 weights."
    )
    mixes: Annotated[tuple[MixName, ...], Field(min_length=1, max_length=2)] = Field(
        ("input",), description="Where the head adds ELMo; each place has a separate mix."
    )
    layers: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] | None = Field(
        None, description="The layers that are mixed, 0 being the token layer; null for all."
    )
    layer_weights: tuple[Annotated[float, Field(gt=0)], ...] | None = Field(
        None, description="Fixed weights of the mixed layers, which are scaled to sum 1; null to learn them."
    )
    mix: None = Field(None, description="Always null; runs of development versions have this key.")
    gamma: float = Field(1.0, description="The factor gamma of a mix, or where it starts.")
    learned_gamma: bool = Field(True, description="Whether gamma is learned.")
    layer_normalization: LayerNormalization = Field(
        "none", description="Before mixing: none, over a layer's real values in the batch (as published), or a token's."
    )
    dropout: Annotated[float, Field(ge=0, lt=1)] = Field(0.5, description="Dropout of each mix.")
    requires_grad: bool = Field(
        False, description="Trains the biLM with the task, without a cache; its parameters are `embedder.elmo.bilm...`."
    )
    precision: Precision = Field(
        "float32",
        description="Of the biLM's products; docs/speed.md says what the faster ones change. A biLM that is being "
        "trained computes in float32.",
    )
    layer_cache: LayerCacheConfig | None = Field(
        default_factory=lambda earlier: None if earlier.get("requires_grad") else LayerCacheConfig(),
        description="Keeps the layers of a frozen biLM on disk, by default; null computes them each time.",
    )
    stateful: bool = Field(
        False, description="Carry LSTM state between batches, as bilm-tf and AllenNLP do: in float32, without a cache."
    )

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> ElmoConfig:
        folder_or_files = (self.bilm is None) != (self.options is None)
        both_files_or_none = (self.options is None) == (self.weights is None)
        if not (folder_or_files and both_files_or_none):
            raise ValueError("expected either 'bilm' or both 'options' and 'weights'")
        if len(set(self.mixes)) < len(self.mixes):
            raise ValueError(f"mixes: got {self.mixes}; expected each place once")
        if self.layers is not None and len(set(self.layers)) < len(self.layers):
            raise ValueError(f"layers: got {self.layers}; expected each layer once")
        if None not in (self.layers, self.layer_weights) and len(self.layers or ()) != len(self.layer_weights or ()):
            raise ValueError(
                f"layer_weights: got {self.layer_weights}; expected one for each of the layers {self.layers}"
            )
        if self.requires_grad and self.layer_cache is not None:
            raise ValueError("layer_cache: the layers of a biLM that is trained change (requires_grad); expected null")
        if self.requires_grad and self.stateful:
            raise ValueError(
                "stateful: no state can be carried while the biLM is trained (requires_grad); expected false"
            )
        return self

    def files(self, *, local_only: bool = False) -> BiLMFiles:
        """The biLM's files; `local_only` never downloads anything.

        Raises:
            WeightsError: the folder `bilm` does not hold exactly one biLM.
        """
        return BiLMFiles.chosen(self.bilm, self.options, self.weights, local_only=local_only)

    def build(self, pretrained: bool = True) -> FrozenLayers:
        """Makes the mixes. A frozen biLM is loaded for the first sentence that the cache does not have.

        Arguments:
            pretrained: read the weights of a biLM that is to be trained; otherwise the tensors of a run replace them,
                and it stays frozen.

        Raises:
            WeightsError: the biLM's files are missing, or its options are wrong.
            ConfigError: the biLM does not have these layers.
        """
        files = self.files()
        options = BiLMOptions.load(files.options)
        mixes = {str(name): self._build_mix(options.num_layers) for name in self.mixes}
        own: BiLM | None = None  # a part of the model
        if self.requires_grad and pretrained:
            own = BiLM.load(files.options, files.weights, requires_grad=True)
        elif self.requires_grad:
            own = BiLM(options).requires_grad_(False)

        provider = ElmoLayers(self, files, options, own)
        return FrozenLayers(provider, options.output_size, mixes, self.dropout)

    def _build_mix(self, num_layers: int) -> ScalarMix:
        layers = self.layers if self.layers is not None else tuple(range(num_layers))
        if max(layers) >= num_layers:
            raise ConfigError(f"elmo.layers: got {max(layers)}; the biLM has 0 to {num_layers - 1}")
        if self.layer_weights is not None and len(self.layer_weights) != len(layers):
            raise ConfigError(
                f"elmo.layer_weights: got {len(self.layer_weights)}; expected {len(layers)}, one for each mixed layer"
            )
        # The softmax of logarithms gives the weights, scaled to sum 1.
        logarithms = None if self.layer_weights is None else [math.log(weight) for weight in self.layer_weights]
        return ScalarMix(
            num_layers,
            layers,
            initial_weights=logarithms,
            learned_weights=logarithms is None,
            gamma=self.gamma,
            learned_gamma=self.learned_gamma,
            layer_normalization=self.layer_normalization,
        )


class TextCheck(Protocol):
    """What sees the texts that a biLM reads, and may warn."""

    def see(self, texts: Iterable[Sequence[str]]) -> None: ...


def text_checks(files: BiLMFiles) -> list[TextCheck]:
    """The checks of the texts that a biLM reads, which extras may add."""
    return [check(files) for check in hooks.everything("text_check")]


class ElmoLayers(LayerProvider):
    """The layers of a biLM.

    Arguments:
        config: how they are computed, and whether they are kept.
        files: the biLM's.
        options: the biLM's.
        bilm: the biLM, if its weights are a part of the model. If they are to be trained, it computes the layers
            itself, also in evaluation.
    """

    def __init__(self, config: ElmoConfig, files: BiLMFiles, options: BiLMOptions, bilm: BiLM | None = None) -> None:
        self.bilm = bilm
        self._learning = bilm if bilm and any(parameter.requires_grad for parameter in bilm.parameters()) else None
        self._config = config
        self._files = files
        self._options = options
        self._checks = text_checks(files)

    def load(self, device: torch.device) -> LayerSource:
        if self.bilm is not None:
            return FastBiLM(self.bilm, self._config.precision)
        if self._config.stateful:
            return BiLM.load(self._files.options, self._files.weights, stateful=True).to(device)
        return load_frozen(self._files, self._config.precision, device)

    def open_store(self) -> LayerStore | None:
        config, options = self._config, self._options
        if config.layer_cache is None or config.stateful:
            return None
        fingerprint = self._files.fingerprint()
        return config.layer_cache.build(fingerprint, config.precision, options.num_layers, options.output_size)

    def layers(self, sentences: Sequence[Sequence[str]], device: torch.device) -> LayerOutput:
        for check in self._checks:
            check.see(sentences)
        if self._learning:
            # `FastBiLM` keeps vectors from batch to batch, which a resumed run would compute in other batches.
            return self._learning.layers(sentences)
        return super().layers(sentences, device)

    def fill(
        self,
        sentences: Sequence[Sequence[str]],
        device: torch.device,
        progress: Callable[[int, int], object] = lambda done, total: None,
    ) -> None:
        self._checks = []  # the data of a training is checked by itself
        super().fill(sentences, device, progress)
