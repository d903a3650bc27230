"""ELMo, usable by itself: from a biLM's weights to vectors of tokens. For AllenNLP's users: `Elmo`, `batch_to_ids`."""

from elmo_tasks.elmo.bilm import BiLM, LayerOutput
from elmo_tasks.elmo.characters import batch_to_ids
from elmo_tasks.elmo.elmo import Elmo
from elmo_tasks.elmo.embedder import ElmoConfig
from elmo_tasks.elmo.fast import FastBiLM
from elmo_tasks.elmo.options import PUBLISHED_OPTIONS, TINY_OPTIONS, BiLMOptions
from elmo_tasks.elmo.scalar_mix import ScalarMix

__all__ = [
    "PUBLISHED_OPTIONS",
    "TINY_OPTIONS",
    "BiLM",
    "BiLMOptions",
    "Elmo",
    "ElmoConfig",
    "FastBiLM",
    "LayerOutput",
    "ScalarMix",
    "batch_to_ids",
]
