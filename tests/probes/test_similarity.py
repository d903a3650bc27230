"""Similarities of a word between sentences: compared with the vectors of `embed`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional

import elmo_tasks
from elmo_tasks.elmo import BiLM
from elmo_tasks.errors import ElmoTasksError

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
