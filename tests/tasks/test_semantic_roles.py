from __future__ import annotations

from typing import Any

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.tasks import SemanticRoles
from elmo_tasks.text.vocabulary import Vocabulary, VocabularyConfig

TASK = SemanticRoles()
EXAMPLES: list[dict[str, Any]] = [
    {
        "tokens": ["Mary", "gave", "up", "deep", "diving"],
        "predicate": 1,
        "tags": ["B-ARG0", "B-V", "I-V", "B-ARG1", "I-ARG1"],
    },
    {
        "tokens": ["Mary", "gave", "up", "deep", "diving"],
        "predicate": 4,
        "tags": ["O", "O", "O", "B-ARGM-MNR", "B-V"],
    },
    {"tokens": ["Oaks", "grow"], "predicate": 1, "tags": ["B-C-ARG1", "B-V"]},
]


@pytest.fixture
def vocabulary() -> Vocabulary:
    return VocabularyConfig().build(TASK, EXAMPLES, [])


def test_a_label_makes_both_its_tags_known(vocabulary: Vocabulary) -> None:
    labels = ("ARG0", "ARG1", "ARGM-MNR", "C-ARG1", "V")
    assert vocabulary.labels == {"tags": (*(f"{letter}-{label}" for letter in "BI" for label in labels), "O")}


def test_collate(vocabulary: Vocabulary) -> None:
    batch = TASK.collate(EXAMPLES, vocabulary)
    assert batch.examples is EXAMPLES
    assert batch.tokens.texts == [example["tokens"] for example in EXAMPLES]
    assert batch.predicates.tolist() == [1, 4, 1]
    assert [TASK.length(example) for example in EXAMPLES] == batch.tokens.mask.sum(1).tolist() == [5, 5, 2]
    assert batch.tags is not None
    for row, example in zip(batch.tags.tolist(), EXAMPLES, strict=True):
        length = len(example["tags"])
        assert [vocabulary.labels["tags"][tag] for tag in row[:length]] == example["tags"]
        assert row[length:] == [0] * (5 - length)


def test_collate_for_prediction(vocabulary: Vocabulary) -> None:
    batch = TASK.collate([{"tokens": ["Oaks", "grow"], "predicate": 1}], vocabulary)
    assert batch.to("cpu").tags is None
    assert batch.predicates.tolist() == [1]
    assert TASK.collate([EXAMPLES[2], {"tokens": ["Grow"], "predicate": 0}], vocabulary).tags is None


@pytest.mark.parametrize("predicate", [-1, 2])
def test_a_predicate_outside_of_its_sentence(vocabulary: Vocabulary, predicate: int) -> None:
    with pytest.raises(ElmoTasksError, match=rf"no token {predicate} in a sentence of 2 tokens"):
        TASK.collate([{"tokens": ["Oaks", "grow"], "predicate": predicate}], vocabulary)
