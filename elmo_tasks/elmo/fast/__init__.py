"""The fast path of a frozen biLM: the same layers as `BiLM.layers`, several times as fast."""

from elmo_tasks.elmo.fast.bilm import FastBiLM
from elmo_tasks.elmo.fast.products import Precision

__all__ = ["FastBiLM", "Precision"]
