from __future__ import annotations

from typing import Any

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.metrics import Accuracy, CoreferenceScores, SpanF1, SquadScores, SrlF1
from elmo_tasks.tasks import Classification, Coreference, Reading, SemanticRoles, Tagging, TextPairs
from elmo_tasks.text.vocabulary import Vocabulary, VocabularyConfig

BIOUL = Tagging("BIOUL")
EXAMPLES: list[dict[str, Any]] = [
    {
        "tokens": ["Mary", "Oak", "visited", "New", "Fenwick", "Delta"],
        "tags": ["B-PER", "L-PER", "O", "B-LOC", "L-LOC", "U-LOC"],
    },
    {"tokens": ["Rain"], "tags": ["O"]},
    {"tokens": ["The", "Fenwickian", "Cup"], "tags": ["O", "U-MISC", "U-MISC"]},
]


def build(task: Tagging, *tags: str) -> Vocabulary:
    examples = [{"tokens": ["Rain"] * len(tags), "tags": list(tags)}] if tags else EXAMPLES
    return VocabularyConfig().build(task, examples, [])


def test_a_label_makes_all_its_tags_known() -> None:
    labels = ("LOC", "MISC", "PER")
    assert build(BIOUL).labels == {
        "tags": (*(f"{prefix}-{label}" for prefix in "BIL" for label in labels), "O", "U-LOC", "U-MISC", "U-PER")
    }
    assert build(Tagging("IOB2"), "B-LOC").labels == {"tags": ("B-LOC", "I-LOC", "O")}


def test_tags_that_are_not_spans_and_those_of_single_tokens_are_known_as_they_are_seen() -> None:
    assert build(Tagging(), "VERB", "NUM", "VERB").labels == {"tags": ("NUM", "VERB")}
    assert build(Tagging("IOB2", single_tokens=True), "O", "B-V").labels == {"tags": ("B-V", "O")}


def test_collate() -> None:
    vocabulary = build(BIOUL)
    batch = BIOUL.collate(EXAMPLES, vocabulary)
    assert batch.examples is EXAMPLES
    assert batch.tokens.texts == [example["tokens"] for example in EXAMPLES]
    assert [BIOUL.length(example) for example in EXAMPLES] == batch.tokens.mask.sum(1).tolist() == [6, 1, 3]
    assert batch.tags is not None
    for row, example in zip(batch.tags.tolist(), EXAMPLES, strict=True):
        length = len(example["tags"])
        assert [vocabulary.labels["tags"][tag] for tag in row[:length]] == example["tags"]
        assert row[length:] == [0] * (6 - length)


def test_confusion_tables_compare_labels_of_spans_and_whole_tags() -> None:
    record = {"tags": ["B-PER", "L-PER", "O"]}
    assert BIOUL.compared_labels(record) == ["PER", "PER", "O"]
    assert Tagging().compared_labels(record) == ["B-PER", "L-PER", "O"]
    assert SemanticRoles().compared_labels({"tags": ["B-V", "B-ARG1", "I-ARG1"]}) == ["V", "ARG1", "ARG1"]
    assert (
        list(Classification().compared_labels({"label": "x"}))
        == list(TextPairs().compared_labels({"label": "x"}))
        == ["x"]
    )
    for task in (Reading(), Coreference()):
        with pytest.raises(ElmoTasksError, match=rf"predicts labels or tags, not {type(task).__name__}"):
            task.compared_labels({})


def test_collate_parts_of_speech() -> None:
    vocabulary = build(Tagging(), "PART", "SYM", "VERB")
    batch = Tagging().collate([{"tokens": ["to", "go"], "tags": ["PART", "VERB"]}], vocabulary)
    assert batch.tags is not None
    assert batch.tags.tolist() == [[0, 2]]
    with pytest.raises(ElmoTasksError, match="the label 'X' is not among the tags"):
        Tagging().collate([{"tokens": ["a"], "tags": ["X"]}], vocabulary)


def test_collate_without_tags() -> None:
    batch = BIOUL.collate([{"tokens": ["Rain"]}, {"tokens": ["Oslo", "sleeps"]}], build(BIOUL))
    assert batch.tags is None
    assert batch.to("cpu").tags is None
    assert len(batch) == 2
    assert BIOUL.collate([EXAMPLES[1], {"tokens": ["Rain"]}], build(BIOUL)).tags is None  # nor if some have tags


def test_the_metric_of_each_task() -> None:
    metrics = {
        BIOUL: SpanF1,
        Tagging(): Accuracy,
        Classification(): Accuracy,
        TextPairs(): Accuracy,
        Reading(): SquadScores,
        SemanticRoles(): SrlF1,
        Coreference(): CoreferenceScores,
    }
    assert {task: type(task.build_metric()) for task in metrics} == metrics
