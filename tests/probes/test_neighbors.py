"""Nearest neighbours of tokens: compared with brute force, and the word senses that the default biLM separates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.probes import neighbors
from elmo_tasks.probes.neighbors import nearest_tokens
from elmo_tasks.text.token_in_context import TokenInContext, find_token

POOL = [
    ["the", "cat", "saw", "the", "dog"],
    ["a", "dog", "barked"],
    ["nobody", "came"],
    [],
    ["the", "dog", "and", "the", "other", "Dog", "slept"],
]
QUERY = TokenInContext(("a", "dog", "slept"), 1)


def brute_force(bilm: BiLM, *, same_word: bool) -> list[list[tuple[float, str]]]:
    expected = bilm.layers([QUERY.sentence]).layers[0, :, QUERY.index]
    found: list[list[tuple[float, str]]] = [[] for _ in expected]
    for sentence in POOL:
        for index, word in enumerate(sentence):
            if same_word and word.lower() != "dog":
                continue
            vectors = bilm.layers([sentence]).layers[0, :, index]
            marked = TokenInContext(tuple(sentence), index).marked()
            for layer, value in enumerate(functional.cosine_similarity(vectors, expected, dim=-1).tolist()):
                found[layer].append((value, marked))
    return [sorted(layer, reverse=True) for layer in found]


@pytest.mark.parametrize("same_word", [False, True], ids=["any word", "same word"])
@pytest.mark.parametrize("at_once", [1, 2, 512])
def test_neighbours_are_those_of_brute_force(
    bilm: BiLM, same_word: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbors, "_SENTENCES_AT_ONCE", at_once)
    layers = nearest_tokens(bilm, QUERY, POOL, count=4, same_word=same_word)
    for layer, expected in zip(layers, brute_force(bilm, same_word=same_word), strict=True):
        assert len(layer) == 4
        similarities = [neighbor.similarity for neighbor in layer]
        np.testing.assert_allclose(similarities, [value for value, _ in expected[:4]], atol=1e-5)
        # Equal vectors, as those of one word on layer 0, may come in any order.
        for neighbor in layer:
            values = {marked: value for value, marked in expected}
            assert values[neighbor.token.marked()] == pytest.approx(neighbor.similarity, abs=1e-5)


def test_the_querys_own_sentence_is_skipped(bilm: BiLM) -> None:
    layers = nearest_tokens(bilm, QUERY, [*POOL, list(QUERY.sentence)], count=20)
    assert all(neighbor.token.sentence != QUERY.sentence for layer in layers for neighbor in layer)


def test_what_cannot_be_found_is_named(bilm: BiLM) -> None:
    with pytest.raises(ElmoTasksError, match=r"no other sentence with the word 'dog'"):
        nearest_tokens(bilm, QUERY, [["nobody"]], same_word=True)
    with pytest.raises(ElmoTasksError, match=r"the pool has no other sentence; expected tokens to compare with"):
        nearest_tokens(bilm, QUERY, [QUERY.sentence])


def test_the_default_bilm_separates_senses() -> None:
    """For 20 words with two senses in two sentences each: cosines within a sense against those across, on layer 2."""
    senses = json.loads(Path(__file__).with_name("senses.json").read_text(encoding="utf-8"))
    files = BiLMFiles.in_folder("default")
    bilm = BiLM.load(files.options, files.weights)
    apart = 0
    for word, sentences in senses.items():
        tokens = [find_token(sentence.split(), word) for sense in sentences for sentence in sense]
        layers = [bilm.layers([token.sentence]).layers[0, 2, token.index] for token in tokens]
        cosines = functional.cosine_similarity(torch.stack(layers)[:, None], torch.stack(layers)[None], dim=-1)
        within = (cosines[0, 1] + cosines[2, 3]) / 2
        across = cosines[:2, 2:].mean()
        apart += bool(within > across)
    assert len(senses) == 20
    assert apart >= 15
