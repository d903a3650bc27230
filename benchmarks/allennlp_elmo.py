"""Runs AllenNLP's `Elmo` from a checkout of AllenNLP, with current versions of its dependencies."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.allennlp_packages import import_allennlp


class AllenNlpElmo:
    """Computes one representation of sentences, without gradients.

    Arguments:
        checkout: the folder that holds AllenNLP's `allennlp` package.
        options: the path of the biLM's options.json.
        weights: the path of its HDF5 weights.
    """

    def __init__(self, checkout: Path, options: Path, weights: Path) -> None:
        self._module = import_allennlp(checkout, "allennlp.modules.elmo")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._elmo = self._module.Elmo(str(options), str(weights), 1, dropout=0.0).eval()

    @torch.no_grad()
    def __call__(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """(B, T, D)"""
        return self._elmo(self._module.batch_to_ids(sentences))["elmo_representations"][0]

    @torch.no_grad()
    def layers(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """(B, L+1, T, D), computed from a fresh state: AllenNLP would carry its state from batch to batch."""
        bilm = self._elmo._elmo_lstm
        bilm._elmo_lstm.reset_states()
        output = bilm(self._module.batch_to_ids(sentences))
        bilm._elmo_lstm.reset_states()
        return torch.stack([layer[:, 1:-1] for layer in output["activations"]], dim=1)
