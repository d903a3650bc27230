"""The layers of a frozen network as a part of a task's model: computed or read from the store, and mixed.

`FrozenLayers` is the module, `LayerProvider` gives it the layers. ELMo is one kind of frozen layers, in
`elmo/embedder.py`, and a transformer is another.

# B batch, T tokens of the longest sentence, L LSTM layers, D = 2P features of a layer, P of one direction
# N tokens of all sentences, F = P + L D features that are stored of a token
"""

from __future__ import annotations

import abc
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Protocol, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from elmo_tasks.config import Config, Part
from elmo_tasks.elmo.bilm import BiLM, LayerOutput
from elmo_tasks.elmo.bilm_files import FrozenFiles
from elmo_tasks.elmo.layer_store import TORCH_TYPES, LayerKey, LayerStore, Storage
from elmo_tasks.elmo.scalar_mix import ScalarMix
from elmo_tasks.errors import CacheError
from elmo_tasks.modules.dropout import Dropout
from elmo_tasks.progress import progress_bar
from elmo_tasks.text.tokens import batches_of_like_lengths

logger = logging.getLogger(__name__)

_PART_BYTES = 1 << 26  # of the output for a part, padding included: some ten seconds of computation


class LayerSource(Protocol):
    """What computes layers: a biLM in any of its forms, or another network."""

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput: ...


class LayerCacheConfig(Config):
    """The cache of a frozen model's layers."""

    storage: Storage = Field(
        "float16", description="Stored numbers; with float32 the vectors are the computed ones bit for bit."
    )
    max_gigabytes: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        20.0, description="Bound of all layers in the cache folder together, in 10^9 bytes."
    )

    def build(
        self, fingerprint: str, precision: str, num_layers: int, output_size: int, has_token_layer: bool = True
    ) -> LayerStore:
        """Opens the store of a model; see `LayerKey`."""
        key = LayerKey(fingerprint, precision, num_layers, output_size, self.storage, has_token_layer)
        return LayerStore(key, self.max_gigabytes)


class FrozenLayersConfig(Part):
    """A frozen network other than a biLM whose layers are mixed. Extras define its types, such as `transformer`."""

    default_type: ClassVar[str | None] = "transformer"

    def files(self, *, local_only: bool = False) -> FrozenFiles:
        """The network's files; `local_only` never downloads anything.

        Raises:
            WeightsError: there is no such network.
        """
        raise NotImplementedError

    def build(self) -> FrozenLayers:
        """Makes the mixes. The network is loaded for the first sentence that the cache does not have."""
        raise NotImplementedError


class LayerProvider(abc.ABC):
    """Gives the layers of sentences: from the store or, where it lacks a sentence, from the network.

    The network is loaded on a device for the first sentence that is missing; with a full store, never. `fill` stores a
    data set's layers in advance. Sentences that come later, as in prediction, are not stored. Copies load the network
    again.

    Attributes:
        bilm: a biLM whose weights are a part of the model; None for any other network.
    """

    bilm: BiLM | None = None
    _network: tuple[torch.device, LayerSource] | None = None

    @abc.abstractmethod
    def load(self, device: torch.device) -> LayerSource:
        """Makes the network on a device."""

    @abc.abstractmethod
    def open_store(self) -> LayerStore | None:
        """The store of this network's layers; None if they are computed each time."""

    @functools.cached_property
    def store(self) -> LayerStore | None:
        """What `open_store` gives, opened at its first use."""
        return self.open_store()

    def layers(self, sentences: Sequence[Sequence[str]], device: torch.device) -> LayerOutput:
        """The layers of tokenized sentences of any length and in any order, empty ones included.

        Arguments:
            sentences: B lists of tokens.
            device: where the network runs, and where the layers are wanted.

        Returns:
            layers (B, L+1, T, D) float32 and mask (B, T).
        """
        with torch.no_grad():
            if self.store is None:
                return self.network(device).layers(sentences).to(device)
            output, missing = self.store.read(sentences)
            if missing:
                computed = self.network(device).layers([sentences[row] for row in missing])
                if len(missing) == len(sentences):
                    return computed.to(device)
                output.layers[missing, :, : computed.layers.shape[2]] = computed.layers.cpu()
            return output.to(device)

    def fill(
        self,
        sentences: Sequence[Sequence[str]],
        device: torch.device,
        progress: Callable[[int, int], object] = lambda done, total: None,
    ) -> None:
        """Computes and stores the layers of all sentences that are not there yet; without a store, does nothing.

        The network gets sentences in large parts, the longest first. Each part is stored as soon as it is computed, so
        a killed process loses at most one.

        Arguments:
            sentences: in any order, with any repetitions.
            device: where the network runs.
            progress: called after each part with the number of tokens computed so far and in total.

        Raises:
            CacheError: there is not enough room, the store cannot be written, or a value is beyond its range.
        """
        if self.store is None:
            return
        with self.store.filling(sentences) as missing, torch.no_grad():
            done, total = 0, sum(map(len, missing))
            most = _PART_BYTES // self.store.key.token_bytes
            for rows in batches_of_like_lengths([len(tokens) for tokens in missing], max_padded=most):
                part = [missing[row] for row in rows]
                vectors = stored_features(self.network(device).layers(part), self.store.key)
                self.store.write(part, vectors)
                done += len(vectors)
                progress(done, total)

    def network(self, device: torch.device) -> LayerSource:
        """What computes layers on a device; loaded when it is first needed there."""
        if self._network is None or self._network[0] != device:
            logger.debug("loading a frozen network on %s", device)
            self._network = device, self.load(device)
        return self._network[1]

    def forget(self) -> None:
        """Forgets the network, so that it is loaded again: it may have a copy of weights that change."""
        self._network = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_network": None}


def stored_features(output: LayerOutput, key: LayerKey) -> Tensor:
    """The features (N, F) of all tokens, in main memory.

    Raises:
        CacheError: a value is beyond the range of the numbers that are stored.
    """
    exact = output.layers.transpose(1, 2)[output.mask].flatten(1)[:, key.omitted :]  # (N, F)
    stored = exact.to(TORCH_TYPES[key.storage])
    if key.storage == "float16" and not stored.isfinite().all():
        raise CacheError(
            f"the layers hold values up to {exact.abs().max().item():g}, beyond float16's 65504; store them "
            "as float32 (layer_cache.storage: 'float32') or turn the layer cache off (layer_cache: null)"
        )
    return stored.cpu()


class FrozenLayers(nn.Module):
    """One or more mixes of a network's layers, with dropout.

    Source: Peters et al. 2018, section 3.3. Its parameters are those of the mixes and, if a biLM is trained with the
    task (section 3.4), of the biLM.

    Arguments:
        provider: gives the layers. They are computed once for all mixes.
        output_size: D.
        mixes: the mixes by name: "input", or "input" and "output".
        dropout: probability of dropping a feature of a mix in training.
        layer_numbers: those of the layers that the provider gives, as the network counts them; by default it gives
            all.
    """

    def __init__(
        self,
        provider: LayerProvider,
        output_size: int,
        mixes: Mapping[str, ScalarMix],
        dropout: float = 0.5,
        layer_numbers: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.provider = provider
        self.output_size = output_size
        self.mixes = nn.ModuleDict(mixes)
        self.dropout = Dropout(dropout)
        self.layer_numbers = layer_numbers
        self.bilm = provider.bilm

    @property
    def device(self) -> torch.device:
        return next(self.mixes.parameters()).device

    def prepare(self, texts: Sequence[Sequence[str]]) -> None:
        """Computes the layers of sentences that will be needed more than once, if there is a cache to keep them.

        Raises:
            CacheError: the cache's bound or the disk is too small for them.
        """
        if self.provider.store is None:
            self.provider.fill(texts, self.device)
            return
        with progress_bar() as bar:
            task = bar.add_task("frozen layers", total=None, note="tokens")
            self.provider.fill(texts, self.device, lambda done, total: bar.update(task, completed=done, total=total))

    def forward(self, texts: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Embeds tokenized sentences.

        Arguments:
            texts: B lists of tokens.

        Returns:
            (B, T, D) for each mix, by its name; zero at padding.
        """
        with torch.autocast(self.device.type, enabled=False):  # also while the network is loaded
            output = self.provider.layers(texts, self.device)
        return {name: self.dropout(mix(output.layers, output.mask)) for name, mix in self.mixes.items()}

    def mix_weights(self) -> dict[str, dict[str, Any]]:
        """For logs: the layers of each mix, their weights and gamma."""
        records: dict[str, dict[str, Any]] = {}
        for name, module in self.mixes.items():
            mix = cast(ScalarMix, module)
            numbers = [self.layer_numbers[layer] if self.layer_numbers else layer for layer in mix.layers]
            weights = mix.normalized_weights().tolist()
            records[name] = {"layers": numbers, "weights": weights, "gamma": mix.gamma.item()}
        return records

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self.provider.forget()
