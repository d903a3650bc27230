"""The fast path of a frozen biLM: the same layers as `BiLM.layers`, several times as fast."""

from elmo_tasks.elmo.fast.bilm import FastBiLM, can_be_fast, forget_words, load_frozen
from elmo_tasks.elmo.fast.products import Precision

__all__ = ["FastBiLM", "Precision", "can_be_fast", "forget_words", "load_frozen"]
