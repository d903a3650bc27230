"""Nearest neighbours and similarities of words: compared with brute force, and the senses of the default biLM."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

import elmo_tasks
from elmo_tasks.elmo import BiLM
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.probes import neighbors
from elmo_tasks.extras.probes.neighbors import nearest_tokens, nearest_words
from elmo_tasks.extras.raw_text import TokenInContext
from elmo_tasks.modules import word_vectors
from elmo_tasks.modules.word_vectors import WordVectorFile

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
@pytest.mark.parametrize("at_once", [1, 512])
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


ONE, OTHER = ["the", "dog", "saw", "the", "Dog"], ["a", "dog", "barked"]


@pytest.fixture
def static(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Word vectors with both forms of a word, and one of the other."""
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "vectors.txt"
    path.write_text("dog 1 0\nDog 0.6 0.8\nthe 3 4\n", encoding="utf-8")
    return path


def test_all_occurrences_are_compared_in_each_layer(bilm: BiLM, static: Path) -> None:
    found = elmo_tasks.similarity("DOG", ["the dog saw the Dog", OTHER], bilm=bilm, static=static)
    assert [(list(each.sentence), each.index) for each in found.occurrences] == [(ONE, 1), (ONE, 4), (OTHER, 1)]
    one, other = elmo_tasks.embed([ONE, OTHER], bilm=bilm)
    vectors = [one[:, 1], one[:, 4], other[:, 1]]
    for row, left in enumerate(vectors):
        for column, right in enumerate(vectors):
            cosines = functional.cosine_similarity(left, right, dim=-1)
            torch.testing.assert_close(found.layers[:, row, column], cosines, rtol=0, atol=1e-5)
    assert found.static is not None
    torch.testing.assert_close(found.static, torch.tensor([[1, 0.6, 1], [0.6, 1, 0.6], [1, 0.6, 1]]))


def test_a_word_without_a_vector_has_no_static_similarity(bilm: BiLM, static: Path) -> None:
    assert elmo_tasks.similarity("a", ["a", "A a"], bilm=bilm, static=static).static is None
    in_lower_case = elmo_tasks.similarity("THE", ["THE dog", "the cat"], bilm=bilm, static=static).static
    assert in_lower_case is not None
    torch.testing.assert_close(in_lower_case, torch.ones(2, 2))
    assert elmo_tasks.similarity("the", ["the dog", "the cat"], bilm=bilm).static is None


def test_what_cannot_be_compared_is_named(bilm: BiLM) -> None:
    with pytest.raises(ElmoTasksError, match=r"'cat' is not in 'a dog'; expected a token of each sentence"):
        elmo_tasks.similarity("cat", ["a cat", "a dog"], bilm=bilm)
    with pytest.raises(ElmoTasksError, match=r"'dog' occurs once; expected two sentences with it, or more"):
        elmo_tasks.similarity("dog", "a dog", bilm=bilm)
    with pytest.raises(TypeError, match="has the token 3; expected strings"):
        elmo_tasks.similarity("dog", [["dog", 3]], bilm=bilm)  # type: ignore[list-item]


def test_the_nearest_words_are_those_of_the_cosine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_vectors, "_BATCH_ROWS", 2)
    (tmp_path / "vectors.txt").write_text("nil 0 0\nDog 3 4\ncat 6 8.2\ncar -1 -1\ndog 1 1\n")
    file = WordVectorFile(tmp_path / "vectors.txt")
    assert [word for word, _ in nearest_words(file, "Dog", 2)] == ["cat", "dog"]
    found = dict(nearest_words(file, "CAT", 9))  # in lower case
    assert list(found) == ["Dog", "dog", "nil", "car"]
    assert found["dog"] == pytest.approx(14.2 / np.sqrt(2 * (36 + 8.2**2)))
    assert found["nil"] == 0
    with pytest.raises(ElmoTasksError, match=r"vectors\.txt: has no vector for 'Cow'; expected a word in the file"):
        nearest_words(file, "Cow", 1)
