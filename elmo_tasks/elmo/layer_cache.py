"""The layers of a frozen biLM on disk: computed once for a data set, read in every later epoch and every later run.

# B batch, T tokens of the longest sentence, L LSTM layers, P features of one direction, D = 2P features of a layer
# N tokens of all sentences, F = P + L D features that are stored of a token
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, NamedTuple, Protocol

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from elmo_tasks.config import Config
from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.elmo.layer_cache_folders import (
    LayerCacheKey,
    human_size,
    mark_used,
    sole_writer,
    total_bytes,
    write_about,
)
from elmo_tasks.elmo.layer_segments import (
    SENTENCE_BYTES,
    TORCH_TYPES,
    SegmentTable,
    Storage,
    sentence_keys,
    write_segment,
)
from elmo_tasks.errors import CacheError

logger = logging.getLogger(__name__)

_SEGMENT_BYTES = 1 << 26  # some ten seconds of computation, which a killed process loses


class LayerSource(Protocol):
    """What computes layers: a biLM in any of its forms."""

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput: ...


class LayerCacheConfig(Config):
    """The cache of a frozen biLM's layers."""

    storage: Storage = Field(
        "float16", description="Stored numbers; with float32 the vectors are the computed ones bit for bit."
    )
    max_gigabytes: Annotated[float, Field(gt=0)] = Field(
        20.0, description="Bound of all cached layers on this disk together, in 10^9 bytes."
    )

    def build(self, fingerprint: str, precision: str, num_layers: int, output_size: int) -> LayerCache:
        """Opens the cache of a biLM; see `LayerCacheKey`."""
        key = LayerCacheKey(fingerprint, precision, num_layers, output_size, self.storage)
        return LayerCache(key, self.max_gigabytes)


class Need(NamedTuple):
    """What some sentences would add to a cache."""

    sentences: int
    tokens: int
    bytes: int

    def __str__(self) -> str:
        return f"{human_size(self.bytes)} for {self.sentences:,} distinct sentences of {self.tokens:,} tokens"


class LayerCache:
    """Layers of sentences on disk, read through memory-mapping.

    Any number of processes may read, while one at a time fills: others that want to fill wait for it, and compute what
    it has not. Copies, such as those of worker processes, open the cache anew.

    Arguments:
        key: whose layers, in what form.
        max_gigabytes: bound of all cached layers together, of other keys too, in 10^9 bytes.
    """

    def __init__(self, key: LayerCacheKey, max_gigabytes: float = 20.0) -> None:
        self.key = key
        self.max_gigabytes = max_gigabytes
        self.folder = key.folder
        self._table = SegmentTable({}).with_new(self.folder)
        mark_used(key)

    def __reduce__(self) -> tuple[type[LayerCache], tuple[LayerCacheKey, float]]:
        return LayerCache, (self.key, self.max_gigabytes)

    def estimate(self, sentences: Sequence[Sequence[str]]) -> Need:
        """What `fill` would add."""
        keys, lengths = sentence_keys(sentences), _lengths(sentences)
        return self._need(lengths[self._missing(keys, lengths)])

    def fill(
        self,
        sentences: Sequence[Sequence[str]],
        source: LayerSource,
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        """Computes and stores the layers of all sentences that are not there yet.

        Sentences go to the source in large parts, the longest first. A part is stored as soon as it is computed, so
        that a killed process loses one part and the next goes on from there.

        Arguments:
            sentences: in any order, with any repetitions.
            source: computes layers; not looked at where nothing is missing.
            progress: told, after each part, how many tokens are computed and how many there are to compute.

        Raises:
            CacheError: there is not enough room, or a value is beyond the range of the storage.
        """
        keys, lengths = sentence_keys(sentences), _lengths(sentences)
        rows = self._missing(keys, lengths)
        if not len(rows):
            return
        self._check_room(self._need(lengths[rows]))
        self.folder.mkdir(parents=True, exist_ok=True)
        with sole_writer(self.folder):
            rows = self._missing(keys, lengths)  # fewer, if another process has filled meanwhile
            if not len(rows):
                return
            need = self._need(lengths[rows])
            logger.info("layer cache: %s to compute, kept in %s", need, self.folder)
            write_about(self.key)
            done = 0
            for part in _parts(rows, lengths, self.key.token_bytes):
                vectors = self._compute([sentences[row] for row in part.tolist()], lengths[part], source)
                write_segment(self.folder, keys[part], lengths[part], vectors)
                done += len(vectors)
                if progress is not None:
                    progress(done, need.tokens)
            self._table = self._table.with_new(self.folder)

    def read(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        """The layers of sentences that are all there, as float32 in the main memory.

        Raises:
            KeyError: a sentence is not there.
        """
        output, missing = self.read_available(sentences)
        if missing:
            text = " ".join(sentences[missing[0]])
            raise KeyError(f"{len(missing)} of {len(sentences)} sentences are not in the layer cache, such as {text!r}")
        return output

    def read_available(self, sentences: Sequence[Sequence[str]]) -> tuple[LayerOutput, list[int]]:
        """The layers of those sentences that are there, and which of the sentences are not.

        Returns:
            layers (B, L+1, T, D), float32 in the main memory, zero for missing sentences, and mask (B, T);
            the rows of the missing sentences, empty ones never among them.
        """
        keys, lengths = sentence_keys(sentences), _lengths(sentences)
        table, found, places = self._find(keys, lengths)
        longest = int(lengths.max(initial=0))
        half, size = self.key.output_size // 2, self.key.output_size
        # A token's stored features are its layers one behind the other but for the token layer's first half, which is
        # equal to the second: a single copy a sentence, converting as it goes.
        layers = torch.zeros(len(sentences), longest, half + self.key.features)  # (B, T, P+F)
        for row in np.flatnonzero(found).tolist():
            layers[row, : lengths[row], half:] = table.vectors(places[row])
        layers[..., :half] = layers[..., half:size]
        layers = layers.unflatten(-1, (self.key.num_layers, size)).transpose(1, 2)  # (B, L+1, T, D)
        mask = torch.arange(longest)[None, :] < torch.from_numpy(lengths)[:, None]  # (B, T)
        return LayerOutput(layers, mask), np.flatnonzero(~found & (lengths > 0)).tolist()

    def _find(self, keys: np.ndarray, lengths: np.ndarray) -> tuple[SegmentTable, np.ndarray, np.ndarray]:
        """Looks sentences up, also in what other processes have stored since: the table, found (B,), places (B,)."""
        found, places = self._table.find(keys)
        if not np.all(found | (lengths == 0)):
            self._table = self._table.with_new(self.folder)
            found, places = self._table.find(keys)
        return self._table, found, places

    def _missing(self, keys: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The rows of the distinct sentences that are not there, the longest first."""
        _, found, _ = self._find(keys, lengths)
        rows = np.flatnonzero(~found & (lengths > 0))
        rows = rows[np.unique(keys[rows], return_index=True)[1]]
        return rows[np.argsort(-lengths[rows], kind="stable")]

    def _need(self, lengths: np.ndarray) -> Need:
        tokens = int(lengths.sum())
        return Need(len(lengths), tokens, tokens * self.key.token_bytes + len(lengths) * SENTENCE_BYTES)

    def _check_room(self, need: Need) -> None:
        used = total_bytes()
        bound = round(self.max_gigabytes * 1e9)
        if used + need.bytes > bound:
            raise CacheError(
                f"the layer cache needs {need}, and {human_size(used)} are taken already, which together is more than "
                f"its bound of {human_size(bound)}. Raise max_gigabytes (now {self.max_gigabytes:g}), make room with "
                "`elmo-tasks cache clear`, or turn the layer cache off (layer_cache: null): the biLM is then run in "
                "every epoch"
            )
        existing = next(folder for folder in (self.folder, *self.folder.parents) if folder.exists())
        free = shutil.disk_usage(existing).free
        if need.bytes > free:
            raise CacheError(
                f"the layer cache needs {need}, but the disk of {existing} has only {human_size(free)} left. Make room "
                "there, set ELMO_TASKS_CACHE to a folder of another disk, or turn the layer cache off "
                "(layer_cache: null): the biLM is then run in every epoch"
            )

    @torch.no_grad()
    def _compute(self, sentences: Sequence[Sequence[str]], lengths: np.ndarray, source: LayerSource) -> Tensor:
        """The features (N, F) that are stored of sentences, in the main memory."""
        output = source.layers(sentences)
        self._check_output(output, lengths)
        half = self.key.output_size // 2
        token_layer = output.layers[:, 0][output.mask]  # (N, D)
        if not torch.equal(token_layer[:, :half], token_layer[:, half:]):
            raise ValueError("the halves of the token layer differ; wanted the same features for both directions")
        lstm_layers = output.layers[:, 1:].transpose(1, 2)[output.mask]  # (N, L, D)
        exact = torch.cat([token_layer[:, :half], lstm_layers.flatten(1)], dim=1)  # (N, F)
        stored = exact.to(TORCH_TYPES[self.key.storage])
        if self.key.storage == "float16" and not stored.isfinite().all():
            raise CacheError(
                f"the biLM's layers hold values up to {exact.abs().max().item():g}, beyond float16's 65504; store them "
                "as float32 (layer_cache.storage: 'float32') or turn the layer cache off (layer_cache: null)"
            )
        return stored.cpu()

    def _check_output(self, output: LayerOutput, lengths: np.ndarray) -> None:
        """Nothing wrong must get into the cache, where it would stay."""
        batch, longest = len(lengths), int(lengths.max())
        wanted = (batch, self.key.num_layers, longest, self.key.output_size)
        if output.layers.shape != wanted:
            raise ValueError(f"the biLM's layers have the shape {tuple(output.layers.shape)}; wanted {wanted}")
        if output.mask.sum(dim=1).tolist() != lengths.tolist():
            raise ValueError("the mask of the biLM's layers does not have the sentences' lengths")


def _lengths(sentences: Sequence[Sequence[str]]) -> np.ndarray:
    return np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))


def _parts(rows: np.ndarray, lengths: np.ndarray, token_bytes: int) -> Iterator[np.ndarray]:
    """Cuts rows, the longest sentence first, into parts of which the source's padded output keeps a bounded size."""
    start = 0
    while start < len(rows):
        count = max(1, _SEGMENT_BYTES // (int(lengths[rows[start]]) * token_bytes))
        yield rows[start : start + count]
        start += count
