from __future__ import annotations

import itertools
from typing import Any

import datasets
import pydantic
import pytest

from elmo_tasks.data_readers.reader import PLACE_FEATURES
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.tasks import Coreference, Reading, Tagging
from elmo_tasks.training.data_splits import Fold, TrainShare

TASK = Tagging(None)


def data(positions: list[tuple[int, int | None]], documents: list[int | None] | None = None) -> datasets.Dataset:
    """Sentences of one word, its row; each begins at a position (file and line) and is from a document."""
    rows = [
        {
            "tokens": [str(row)],
            "tags": ["X"],
            "document": documents[row] if documents else None,
            "sentence": None,
            "file": file,
            "line": line,
        }
        for row, (file, line) in enumerate(positions)
    ]
    return datasets.Dataset.from_list(rows, features=datasets.Features({**TASK.features, **PLACE_FEATURES}))


def rows(part: datasets.Dataset) -> list[int]:
    return [int(each["tokens"][0]) for each in part]


LINES = data([(0, line) for line in range(1000)])


def test_a_smaller_share_lies_within_a_larger_one_in_the_order_of_the_file() -> None:
    shares = (0.001, 0.01, 0.1, 0.35, 1.0)
    taken = [rows(TrainShare(share=share).take(LINES)) for share in shares]
    assert [len(part) for part in taken] == [1, 10, 100, 350, 1000]
    for smaller, larger in itertools.pairwise(taken):
        assert set(smaller) <= set(larger)
        assert larger == sorted(larger)


def test_sample_and_folds_depend_on_their_seed_which_is_1_by_default() -> None:
    one, again, other = (rows(TrainShare(share=0.1, **seed).take(LINES)) for seed in ({}, {"seed": 1}, {"seed": 2}))
    assert one == again != other
    assert 20 < sum(row < 500 for row in one) < 80  # from all of the file
    few = data([(0, line) for line in range(30)])
    folds = [Fold(number=1, of=3, **seed).split(few, few, TASK)[1] for seed in ({}, {"seed": 1}, {"seed": 2})]
    assert rows(folds[0]) == rows(folds[1]) != rows(folds[2])


def test_what_begins_in_the_same_line_stays_together() -> None:
    phrases = data([(file, line) for file in range(2) for line in range(10) for _ in range(5)])
    for share in (0.05, 0.5):
        taken = rows(TrainShare(share=share).take(phrases))
        assert len(taken) == 100 * share
        assert {row // 5 * 5 + number for row in taken for number in range(5)} == set(taken)
    unplaced = data([(0, None)] * 10)  # each example is a unit of its own
    assert len(rows(TrainShare(share=0.3).take(unplaced))) == 3


def test_folds_are_a_partition_and_whole_documents() -> None:
    documents: list[int | None] = [row // 4 for row in range(40)]
    whole = data([(0, row) for row in range(40)], documents)
    held_out = []
    for number in (1, 2, 3):
        training, fold = Fold(number=number, of=3).split(whole, whole, TASK)
        assert sorted(rows(training) + rows(fold)) == list(range(40))
        assert {documents[row] for row in rows(training)}.isdisjoint(documents[row] for row in rows(fold))
        assert len(rows(fold)) in (12, 16)
        held_out += rows(fold)
    assert sorted(held_out) == list(range(40))


def test_as_many_documents_as_folds_stay_whole() -> None:
    whole = data([(0, row) for row in range(12)], [row // 4 for row in range(12)])
    folds = [rows(Fold(number=number, of=3).split(whole, whole, TASK)[1]) for number in (1, 2, 3)]
    assert sorted(folds) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


@pytest.mark.parametrize("documents", [None, [0] * 12], ids=["unknown", "only one"])
def test_without_enough_documents_examples_are_split(documents: list[int | None] | None) -> None:
    whole = data([(0, row // 2) for row in range(12)], documents)
    _, fold = Fold(number=2, of=3).split(whole, whole, TASK)
    assert len(fold) == 4
    assert {row // 2 * 2 for row in rows(fold)} | {row // 2 * 2 + 1 for row in rows(fold)} == set(rows(fold))


def test_the_held_out_part_may_be_read_in_another_way() -> None:
    phrases, sentences = data([(0, row // 5) for row in range(50)]), data([(0, row) for row in range(10)])
    training, fold = Fold(number=1, of=2).split(phrases, sentences, TASK)
    assert len(fold) == 5
    assert {row // 5 for row in rows(training)} == set(range(10)) - set(rows(fold))


def test_what_a_document_is() -> None:
    example: dict[str, Any] = {"document": "wb/1", "passage": "A text."}
    assert Coreference().document(example) == "wb/1"
    assert Reading().document(example) == "A text."
    assert TASK.document({"tokens": ["a"]}) is None


def test_mistakes() -> None:
    with pytest.raises(pydantic.ValidationError, match="there is no fold 4 of 3; expected a number from 1 to 3"):
        Fold(number=4, of=3)
    few = data([(0, 1), (0, 2)])
    with pytest.raises(ElmoTasksError, match="2 examples to split; expected at least 3"):
        Fold(number=1, of=3).split(few, few, TASK)
