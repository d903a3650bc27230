"""A biLM behind its layer cache.

# B batch, T tokens of the longest sentence, L LSTM layers, D features of a layer
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import torch

from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.elmo.layer_cache import LayerCache, LayerSource

logger = logging.getLogger(__name__)


class CachedLayers:
    """Gives layers as a biLM does, and runs the biLM only for sentences that the cache does not hold.

    `fill` stores a data set's layers beforehand. Sentences that come up later, as in prediction, are computed and not
    stored.

    Arguments:
        build_source: makes the biLM. It is called when the first missing sentence comes up, so that with a full cache
            no weights are loaded.
        cache: the cache of this very biLM.
    """

    def __init__(self, build_source: Callable[[], LayerSource], cache: LayerCache) -> None:
        self.cache = cache
        self.num_layers = cache.key.num_layers
        self.output_size = cache.key.output_size
        self._source = _LazySource(build_source)

    def fill(self, sentences: Sequence[Sequence[str]], progress: Callable[[int, int], object] | None = None) -> None:
        """Stores the layers of all sentences; see `LayerCache.fill`."""
        self.cache.fill(sentences, self._source, progress)

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        """The layers of tokenized sentences of any length and in any order, empty ones included.

        Arguments:
            sentences: B lists of tokens.

        Returns:
            layers (B, L+1, T, D) float32 and mask (B, T), in the main memory.
        """
        output, missing = self.cache.read_available(sentences)
        if missing:
            computed = self._source.layers([sentences[row] for row in missing]).layers.to(output.layers)
            output.layers[missing, :, : computed.shape[2]] = computed
        return output


class _LazySource:
    """A biLM that is made when it is first run."""

    def __init__(self, build: Callable[[], LayerSource]) -> None:
        self._build = build
        self._built: LayerSource | None = None

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        if self._built is None:
            logger.debug("the layer cache lacks sentences: loading the biLM")
            self._built = self._build()
        with torch.no_grad():
            return self._built.layers(sentences)
