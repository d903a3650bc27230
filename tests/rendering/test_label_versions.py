from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import datasets
import pytest

from elmo_tasks.metrics import Accuracy
from elmo_tasks.rendering import describe_versions
from elmo_tasks.rendering.drawing import Mark, MarkedText, Rows
from elmo_tasks.tasks import Classification, Coreference, Reading, SemanticRoles, Tagging, Task, TextPairs


def test_only_tags_that_differ_are_marked() -> None:
    example = {"tokens": ["Ann", "left", "."], "tags": ["NNP", "VBD", "."]}
    drawing = describe_versions(Tagging(), example, {"one": {"tags": ["NNP", "NN", "."]}})
    assert drawing == [
        MarkedText("Ann left .", [Mark(4, 8, "VBD")], title="gold"),
        MarkedText("Ann left .", [Mark(4, 8, "NN")], title="one"),
    ]


def test_versions_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        describe_versions(Tagging(), {"tokens": ["Ann", "left"], "tags": ["NNP", "VBD"]}, {"one": {"tags": ["NNP"]}})


@pytest.mark.parametrize("task", [Tagging("IOB2"), SemanticRoles()])
def test_all_spans_of_each_version_are_marked(task: Task) -> None:
    example = {"tokens": ["Ann", "Lee", "left"], "tags": ["B-A0", "I-A0", "O"], "predicate": 2}
    drawing = describe_versions(task, example, {"one": {"tags": ["B-A0", "O", "B-V"]}})
    assert drawing == [
        MarkedText("Ann Lee left", [Mark(0, 7, "A0")], title="gold"),
        MarkedText("Ann Lee left", [Mark(0, 3, "A0"), Mark(8, 12, "V")], title="one"),
    ]


def test_labels_stand_below_their_texts() -> None:
    labels = Rows([("gold", "good"), ("one", "bad")])
    example = {"tokens": ["not", "bad"], "label": "good"}
    assert describe_versions(Classification(), example, {"one": {"label": "bad"}}) == [
        MarkedText("not bad", title="text"),
        labels,
    ]
    pair = {"premise": ["It", "rains"], "hypothesis": ["It", "is", "dry"], "label": "good"}
    assert describe_versions(TextPairs(), pair, {"one": {"label": "bad"}}) == [
        MarkedText("It rains", title="premise"),
        MarkedText("It is dry", title="hypothesis"),
        labels,
    ]


def test_the_first_gold_answer_is_marked_and_every_other_one_is_listed() -> None:
    example = {
        **{"question": "Where?", "passage": "In the Bay.", "answers": ["Bay", "the Bay", "Bay"]},
        **{"token_starts": [0, 3, 7, 10], "token_ends": [2, 6, 10, 11], "answer_spans": [[2, 2], [1, 2], [2, 2]]},
    }
    drawing = describe_versions(Reading(), example, {"one": {"answer": "the Bay."}, "two": {"answer": None}})
    assert drawing == [
        MarkedText("Where?", title="question"),
        MarkedText("In the Bay.", [Mark(7, 10, "gold")], title="passage"),
        Rows([("gold", "Bay | the Bay"), ("one", "the Bay."), ("two", "(no answer)")]),
    ]


@dataclasses.dataclass(frozen=True)
class Ranks(Task):
    """A task that nothing is known about."""

    features = datasets.Features({"ranks": [datasets.Value("string")]})

    def labels(self, example: Mapping[str, Any]) -> Mapping[str, Iterable[str]]:
        return {}

    def collate(self, *arguments: Any) -> Any:
        raise NotImplementedError

    def build_metric(self) -> Accuracy:
        return Accuracy("ranks")


def test_other_tasks_get_their_texts_and_what_is_compared() -> None:
    drawing = describe_versions(Ranks(), {"tokens": ["zwei", "drei"], "ranks": ["ö"]}, {"one": {"ranks": [1, 2]}})
    assert drawing == [Rows([("", "zwei drei"), ("gold", '["ö"]'), ("one", "[1, 2]")])]


@dataclasses.dataclass(frozen=True)
class OwnClassification(Classification):
    pass


def test_own_tasks_are_shown_like_their_base() -> None:
    example, predictions = {"tokens": ["not", "bad"], "label": "good"}, {"one": {"label": "bad"}}
    shown = [describe_versions(task, example, predictions) for task in (OwnClassification(), Classification())]
    assert shown[0] == shown[1]


def test_chains_that_all_versions_have_are_left_out() -> None:
    sentences = [["Ann", "saw", "Bo", "."], ["She", "left", "him", "."]]
    ann, bo = [[0, 0], [4, 4]], [[2, 2], [6, 6]]
    example = {"sentences": sentences, "clusters": [ann, bo]}
    drawing = describe_versions(Coreference(), example, {"one": {"clusters": [[*bo[:1], [4, 4]], ann]}})
    assert drawing == [Rows([("gold", "Bo [2] → him [6]"), ("one", "Bo [2] → She [4]")])]


def test_chains_are_in_the_order_of_the_text() -> None:
    """Those of a version come from a set, whose order is that of their hashes."""
    tokens = [f"word{index}" for index in range(60)]
    clusters = [[[start, start], [start + 30, start + 30]] for start in range(30)]
    example = {"sentences": [tokens], "clusters": clusters}
    (rows,) = describe_versions(Coreference(), example, {"one": {"clusters": []}})
    assert isinstance(rows, Rows)
    assert [chain.split()[0] for _, chain in rows.items] == tokens[:30]
