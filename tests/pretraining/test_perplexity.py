from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
import torch

from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.pretraining import perplexity
from elmo_tasks.pretraining.corpus import CorpusPart
from elmo_tasks.pretraining.language_model import LanguageModel
from elmo_tasks.pretraining.output_vocabulary import OutputVocabulary
from elmo_tasks.pretraining.perplexity import evaluate_perplexity, unigram_perplexity
from elmo_tasks.pretraining.windows import SlotReader

TYPES = ["a", "b", "rare"]
VOCABULARY = OutputVocabulary(TYPES[:2])


def reader(*sentences: tuple[int, ...]) -> SlotReader:
    """Slots of sentences, all of one document."""
    tokens = np.array([token for sentence in sentences for token in sentence], dtype=np.uint32)
    borders = np.cumsum([0, *map(len, sentences)])
    return SlotReader(CorpusPart(tokens, borders, np.array([0, len(sentences)])), TYPES, VOCABULARY, 50)


TEXT = reader((0, 1, 0), (2,), (0,), (1, 2, 0, 0))


def test_unigrams_by_hand() -> None:
    # Counts in training, plus one: a 3, b 2, </S> 2, <S> 1, <UNK> 1. Held out are b and </S>.
    assert unigram_perplexity(reader((0, 0, 1)), reader((1,)), 5) == pytest.approx(9 / 2)


def make_model(dropout: float = 0.0) -> LanguageModel:
    torch.manual_seed(3)
    return LanguageModel.untrained(TINY_OPTIONS, VOCABULARY, dropout)


@pytest.mark.parametrize("slots", [4, 4096])
def test_of_a_model_that_knows_only_frequencies_by_hand(slots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perplexity, "_SLOTS_AT_ONCE", slots)
    model = make_model()
    probabilities = [1 / 16, 1 / 4, 1 / 8, 1 / 2, 1 / 16]  # of <S>, </S>, <UNK>, a, b
    with torch.no_grad():
        model.softmax_weight.zero_()
        model.softmax_bias.copy_(torch.tensor(probabilities).log())
    # In bits: five times a 1, twice b 4, twice <UNK> 3, and four borders, forward 2 and backward 4.
    assert evaluate_perplexity(model, TEXT, visible=False) == pytest.approx(
        {
            "forward": 2 ** ((5 * 1 + 2 * 4 + 2 * 3 + 4 * 2) / 13),
            "backward": 2 ** ((5 * 1 + 2 * 4 + 2 * 3 + 4 * 4) / 13),
            "mean": 2 ** ((5 * 1 + 2 * 4 + 2 * 3 + 4 * 3) / 13),
            "unknown_percent": 200 / 13,
            "targets": 13,
        }
    )


@pytest.mark.parametrize("training", [True, False])
def test_it_is_measured_without_dropout_which_training_then_goes_on_with(training: bool) -> None:
    model = make_model(dropout=0.5).train(training)
    found = evaluate_perplexity(model, TEXT)
    assert model.training is training
    assert found == evaluate_perplexity(make_model().eval(), TEXT)


def test_a_model_that_has_lost_its_way_has_an_infinite_one() -> None:
    model = make_model()
    with torch.no_grad():
        model.softmax_bias[3] = -1e5
    found = evaluate_perplexity(model, TEXT)
    assert found["forward"] == found["mean"] == math.inf


def test_a_terminal_shows_how_many_words_are_done(terminal: Callable[[], str]) -> None:
    evaluate_perplexity(make_model(), TEXT)
    assert re.search(r"perplexity .* 13/13 ", terminal())
    evaluate_perplexity(make_model(), TEXT, visible=False)
    assert terminal() == ""
