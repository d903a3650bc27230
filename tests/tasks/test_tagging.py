from __future__ import annotations

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.metrics import Accuracy, CoreferenceScores, SpanF1, SquadScores, SrlF1
from elmo_tasks.tasks import Classification, Coreference, Reading, SemanticRoles, Tagging, TextPairs

BIOUL = Tagging("BIOUL")


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
