"""A biLM behind its layer store.

# B batch, T tokens of the longest sentence, L LSTM layers, P features of one direction, D = 2P features of a layer
# N tokens of all sentences, F = P + L D features that are stored of a token
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from elmo_tasks.config import Config
from elmo_tasks.elmo.layer_key import TORCH_TYPES, LayerKey, Storage
from elmo_tasks.elmo.layer_store import LayerStore
from elmo_tasks.elmo.layers import LayerOutput, LayerSource
from elmo_tasks.errors import CacheError
from elmo_tasks.text.tokens import batches_of_like_lengths

logger = logging.getLogger(__name__)

_PART_BYTES = 1 << 26  # of the output for a part, padding included: some ten seconds of computation


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


class CachedLayers:
    """Gives layers as a biLM does, and runs the biLM only for sentences that the store does not have.

    `fill` stores a data set's layers in advance. Sentences that come later, as in prediction, are not stored.

    Arguments:
        build_source: makes the biLM. It is called for the first missing sentence; with a full store, never.
        store: the store of this biLM.
    """

    def __init__(self, build_source: Callable[[], LayerSource], store: LayerStore) -> None:
        self.store = store
        self.num_layers = store.key.num_layers
        self.output_size = store.key.output_size
        self._build_source = build_source
        self._source: LayerSource | None = None

    def fill(
        self, sentences: Sequence[Sequence[str]], progress: Callable[[int, int], object] = lambda done, total: None
    ) -> None:
        """Computes and stores the layers of all sentences that are not there yet.

        The biLM gets sentences in large parts, the longest first. Each part is stored as soon as it is computed, so a
        killed process loses at most one.

        Arguments:
            sentences: in any order, with any repetitions.
            progress: called after each part with the number of tokens computed so far and in total.

        Raises:
            CacheError: there is not enough room, the store cannot be written, or a value is beyond its range.
        """
        with self.store.filling(sentences) as missing:
            done, total = 0, sum(map(len, missing))
            most = _PART_BYTES // self.store.key.token_bytes
            for rows in batches_of_like_lengths([len(tokens) for tokens in missing], max_padded=most):
                part = [missing[row] for row in rows]
                vectors = _stored_features(self._compute(part), self.store.key)
                self.store.write(part, vectors)
                done += len(vectors)
                progress(done, total)

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        """The layers of tokenized sentences of any length and in any order, empty ones included.

        Arguments:
            sentences: B lists of tokens.

        Returns:
            layers (B, L+1, T, D) float32 and mask (B, T), in the main memory.
        """
        output, missing = self.store.read(sentences)
        if missing:
            computed = self._compute([sentences[row] for row in missing]).to("cpu")
            if len(missing) == len(sentences):
                return computed
            output.layers[missing, :, : computed.layers.shape[2]] = computed.layers
        return output

    def source(self) -> LayerSource:
        """What computes layers; made when it is first needed."""
        if self._source is None:
            logger.debug("the layer store lacks sentences: loading the biLM")
            self._source = self._build_source()
        return self._source

    @torch.no_grad()
    def _compute(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        return self.source().layers(sentences)


def _stored_features(output: LayerOutput, key: LayerKey) -> Tensor:
    """The features (N, F) of all tokens, in main memory."""
    exact = output.layers.transpose(1, 2)[output.mask].flatten(1)[:, key.omitted :]  # (N, F)
    stored = exact.to(TORCH_TYPES[key.storage])
    if key.storage == "float16" and not stored.isfinite().all():
        raise CacheError(
            f"the layers hold values up to {exact.abs().max().item():g}, beyond float16's 65504; store them "
            "as float32 (layer_cache.storage: 'float32') or turn the layer cache off (layer_cache: null)"
        )
    return stored.cpu()
