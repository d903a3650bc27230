"""Mixes of the layers of a frozen network, as a part of a task's model: what ELMo and a transformer share.

# B batch, T tokens of the longest sentence, D features
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from elmo_tasks.elmo.cached_layers import CachedLayers
from elmo_tasks.elmo.dropout import Dropout
from elmo_tasks.elmo.layer_store import LayerStore
from elmo_tasks.elmo.layers import LayerOutput, LayerSource
from elmo_tasks.elmo.scalar_mix import ScalarMix
from elmo_tasks.progress import progress_bar


class MixedLayers(nn.Module):
    """One or more mixes of a network's layers, with dropout. Its parameters are those of the mixes.

    Source: Peters et al. 2018, section 3.3.

    Arguments:
        build_source: makes the object that computes the layers on a device; called at the first use there.
        output_size: D.
        mixes: the mixes by name. The network runs once for all of them.
        dropout: probability of dropping a feature of a mix in training.
    """

    def __init__(
        self,
        build_source: Callable[[torch.device], LayerSource],
        output_size: int,
        mixes: Mapping[str, ScalarMix],
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.mixes = nn.ModuleDict(mixes)
        self.dropout = Dropout(dropout)
        self._build_source = build_source
        self._sources: dict[torch.device, LayerSource] = {}

    @property
    def store(self) -> LayerStore | None:
        """The cache that `prepare` fills, if there is one."""
        source = self._source()
        return source.store if isinstance(source, CachedLayers) else None

    def prepare(self, texts: Sequence[Sequence[str]]) -> None:
        """Computes the layers of sentences that will be needed more than once, if there is a cache to keep them.

        Raises:
            CacheError: the cache's bound or the disk is too small for them.
        """
        source = self._source()
        if isinstance(source, CachedLayers):
            with progress_bar() as bar:
                task = bar.add_task("frozen layers", total=None, note="tokens")
                source.fill(texts, lambda done, total: bar.update(task, completed=done, total=total))

    def forward(self, texts: Sequence[Sequence[str]]) -> dict[str, Tensor]:
        """Embeds tokenized sentences.

        Arguments:
            texts: B lists of tokens.

        Returns:
            (B, T, D) for each mix, by its name; zero at padding.
        """
        with torch.autocast(self._device().type, enabled=False):  # also while the network is built
            output = self._compute(texts)
        return {name: self.dropout(mix(output.layers, output.mask)) for name, mix in self.mixes.items()}

    def __getstate__(self) -> dict[str, Any]:
        """For copies: without what computes the layers, which is made again."""
        return {**self.__dict__, "_sources": {}}

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        self._sources = {}  # they may have copies of the old weights

    @torch.no_grad()
    def _compute(self, texts: Sequence[Sequence[str]]) -> LayerOutput:
        return self._source().layers(texts).to(self._device())

    def _device(self) -> torch.device:
        return next(self.mixes.parameters()).device

    def _make_source(self, device: torch.device) -> LayerSource:
        return self._build_source(device)

    def _source(self) -> LayerSource:
        device = self._device()
        if device not in self._sources:
            self._sources = {device: self._make_source(device)}
        return self._sources[device]
