from __future__ import annotations

import numpy as np
import pytest

from elmo_tasks.pretraining.corpus import CorpusPart
from elmo_tasks.pretraining.output_vocabulary import OutputVocabulary
from elmo_tasks.pretraining.perplexity import unigram_perplexity
from elmo_tasks.pretraining.windows import SlotReader

TYPES = ["a", "b"]


def reader(*tokens: int) -> SlotReader:
    """Slots of one sentence."""
    part = CorpusPart(np.array(tokens, dtype=np.uint32), np.array([0, len(tokens)]), np.array([0, 1]))
    return SlotReader(part, TYPES, OutputVocabulary(TYPES), 50)


def test_unigrams_by_hand() -> None:
    # Counts in training, plus one: a 3, b 2, </S> 2, <S> 1, <UNK> 1. Held out are b and </S>.
    assert unigram_perplexity(reader(0, 0, 1), reader(1), 5) == pytest.approx(9 / 2)
