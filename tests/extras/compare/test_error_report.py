"""Reports of errors: the parts add up to what the scorers count, on random cases and on the official scorers'."""

import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import cli
from elmo_tasks.errors import DataError
from elmo_tasks.extras.compare.error_report import (
    UNANSWERABLE,
    ErrorReport,
    LabelledSpan,
    WorstExample,
    align,
    answer_kind,
    errors,
    side_by_side,
)
from elmo_tasks.extras.compare.systems import read_predictions
from elmo_tasks.rendering.drawing import Drawing, Mark, MarkedText, Rows
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.tasks import (
    Classification,
    Coreference,
    MultiLabel,
    Reading,
    Regression,
    SemanticRoles,
    Tagging,
    Task,
    TextPairs,
)
from tests.prediction_files import CASES, write

NAMES = ("Tagging", "parts of speech", "Classification", "TextPairs", "Reading", "SemanticRoles", "Coreference")
TAGS = {"Tagging": ("A", "B"), "SemanticRoles": ("A0", "C-A0", "R-A0", "V", "C-V")}


def sums_of(path: Path) -> list[float]:
    found = read_predictions(path)
    metric = found.task.build_metric()
    metric.update(found.predictions, found.examples)
    return list(metric.sums())


def check_sums(report: ErrorReport, path: Path) -> None:
    """The kinds of errors add up to what the metric counts."""
    sums, kinds = sums_of(path), report.kinds
    if report.counted == "spans":
        correct, found, gold = sums[:3]
        assert kinds["right"] == correct
        assert sum(kinds.values()) - kinds["missed"] == found
        assert sum(kinds.values()) - kinds["spurious"] == gold
    elif report.counted == "mentions":
        right, gold, _, found = sums[:4]
        assert (kinds["right"], kinds["right"] + kinds["missed"]) == (right, gold)
        assert kinds["right"] + kinds["spurious"] == found
    else:
        assert kinds["right"] == sums[0]
        assert sum(kinds.values()) == sums[-1]


@pytest.mark.parametrize("name", NAMES)
def test_the_report_of_every_task(
    name: str, write_case: Callable[[str, Sequence[bool]], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_case(name, [True, False, True, False, True])
    report = errors(path, num_examples=1)
    check_sums(report, path)
    assert report.num_examples == 5
    (worst,) = report.worst
    assert worst.loss > 0
    assert cli.main(["errors", str(path), "--examples", "1"]) == 0
    shown = capsys.readouterr().out
    assert {"gold:", "predicted:", "right"} <= {*shown.split()}
    assert ("gold (rows) and predicted (columns)" in shown) == bool(report.confusion)
    assert bool(report.confusion) == (name not in ("Reading", "Coreference"))
    assert cli.main(["errors", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kinds"] == report.kinds
    assert cli.main(["errors", str(path), "other.txt"]) == 2
    assert "predictions include their data; expected no other.txt" in capsys.readouterr().err


@pytest.mark.parametrize("name", TAGS)
@pytest.mark.parametrize("seed", range(5))
def test_random_spans_add_up(name: str, seed: int, tmp_path: Path) -> None:
    generator = random.Random(seed)
    tags = ["O", *(f"{letter}-{label}" for letter in "BI" for label in TAGS[name])]
    pairs = []
    for row in range(20):
        gold, predicted = ([*generator.choices(tags, k=8), "O"] for _ in range(2))
        example: dict[str, Any] = {"tokens": [f"w{index}" for index in range(9)], "tags": gold}
        if name == "SemanticRoles":
            example |= {"predicate": 0, "sentence": row}
        pairs.append((example, {"tags": predicted}))
    check_sums(errors(path := write(tmp_path / "a.jsonl", pairs)), path)


@pytest.mark.parametrize("seed", range(10))
def test_random_clusters_add_up(seed: int, tmp_path: Path) -> None:
    """Among them mentions in two gold clusters, and mentions that the response repeats."""
    generator = random.Random(seed)

    def clusters() -> list[list[list[int]]]:
        return [
            [[start, start + generator.randint(0, 1)] for start in sorted(generator.sample(range(14), k=size))]
            for size in generator.choices(range(5), k=5)
        ]

    document = {"sentences": [["He", "saw", "Ann"]] * 5}
    pairs = [({**document, "clusters": clusters()}, {"clusters": clusters()}) for _ in range(4)]
    check_sums(errors(path := write(tmp_path / "a.jsonl", pairs)), path)


def spans(text: str) -> set[LabelledSpan]:
    """`A0-1` is a span A of the tokens 0 and 1."""
    return {LabelledSpan(each[0], ((int(each[1]), int(each[3])),)) for each in text.split()}


@pytest.mark.parametrize(
    ("found", "gold", "kinds"),
    [
        ("A0-1 B3-3", "A0-1 B3-3", ["right", "right"]),
        ("A0-1", "B0-1", ["type"]),
        ("A0-2", "A0-1", ["boundary"]),
        ("A0-2", "B0-1", ["both"]),
        ("A0-1", "A3-4", ["missed", "spurious"]),
        ("A0-4", "A0-0 A2-4", ["boundary", "missed"]),  # to the one with more common tokens
        ("A0-1 A2-4", "B0-1 A0-4", ["type", "boundary"]),  # the same tokens come first
        ("A0-1", "A0-1 B1-2", ["right", "missed"]),
        ("", "", []),
    ],
)
def test_kinds_of_spans(found: str, gold: str, kinds: list[str]) -> None:
    assert [kind for kind, _, _ in align(spans(found), spans(gold))] == kinds


def test_spans_with_the_most_common_tokens_are_aligned() -> None:
    (_, _, other), missed = align(spans("A0-4"), spans("A0-0 A2-4"))
    assert {other} == spans("A2-4")
    assert missed == ("missed", None, *spans("A0-0"))


def test_spans_that_are_left_are_told_in_order() -> None:
    left = [LabelledSpan("A", ((index, index),)) for index in range(6)]
    assert list(align(set(), {*left})) == [("missed", None, each) for each in left]
    assert list(align({*left}, set())) == [("spurious", each, None) for each in left]


def test_pieces_decide_whether_a_place_is_the_same() -> None:
    one, other = LabelledSpan("A", ((0, 2),)), LabelledSpan("A", ((0, 0), (1, 2)))
    assert [kind for kind, _, _ in align({one}, {other})] == ["boundary"]


MILLS = ["red mill", "big red mill"]


@pytest.mark.parametrize(
    ("answer", "gold", "kind"),
    [
        ("The red mill.", MILLS, "right"),
        ("a red mill there", MILLS, "too long"),
        ("mill", MILLS, "too short"),
        ("mill wheel", MILLS, "overlapping"),
        ("blue", MILLS, "elsewhere"),
        ("the", MILLS, "elsewhere"),
        (None, MILLS, "no answer"),
        ("", MILLS, "no answer"),
        ("", [], "right"),
        ("red mill", [], "not answerable"),
        ("blue", ["the"], "elsewhere"),  # a gold answer without words is in no other
        ("an", ["the"], "right"),
    ],
)
def test_kinds_of_answers(answer: str | None, gold: list[str], kind: str) -> None:
    assert answer_kind(answer, gold) == kind


def test_the_report_of_a_run_is_that_of_its_predictions(
    short_run: Path, settings: dict[str, Any], tmp_path: Path
) -> None:
    report = errors(short_run)
    metrics = evaluate(short_run, settings["test_data_path"], predictions=(path := tmp_path / "a.jsonl"))
    metrics.pop("loss")
    assert report.scores == metrics
    check_sums(report, path)
    read = errors(path)
    for one, other in zip(report.worst, read.worst, strict=True):
        number = int(other.place.removeprefix(f"{path}:"))
        line = json.loads(path.read_text().splitlines()[number - 1])["example"]["line"]
        assert one == dataclasses.replace(other, place=f"{settings['test_data_path']}:{line}")
    assert report == dataclasses.replace(read, worst=report.worst)


def test_a_mention_outside_of_its_document_is_refused(tmp_path: Path) -> None:
    example = {"sentences": [["He", "left"]], "clusters": [[[0, 0], [1, 1]]]}
    path = write(tmp_path / "a.jsonl", [(example, {"clusters": [[[0, 0], [1, 2]]]})])
    problem = r"a.jsonl, predictions: example 0: the mention \[1, 2\]; expected \[first, last token\] in a document"
    with pytest.raises(DataError, match=problem):
        errors(path)


def test_split_and_merged_clusters_are_counted(tmp_path: Path) -> None:
    def clusters(*groups: list[int]) -> list[list[list[int]]]:
        return [[[token, token] for token in group] for group in groups]

    example = {"sentences": [["it"] * 9], "clusters": clusters([0, 1, 2], [3], [4, 5], [7, 8])}
    path = write(tmp_path / "a.jsonl", [(example, {"clusters": clusters([0, 1], [2, 4], [5, 6], [7, 8])})] * 2)
    assert errors(path).kinds == {
        "right": 14, "missed": 2, "missed singletons": 2, "spurious": 2, "split clusters": 4, "merged clusters": 2
    }  # fmt: skip


def test_the_worst_examples_are_those_that_cost_the_most(tmp_path: Path) -> None:
    labels = [({"tokens": [f"w{row}"], "label": "a"}, {"label": "b" if row % 2 else "a"}) for row in range(90)]
    worst = errors(write(tmp_path / "a.jsonl", labels)).worst
    assert [each.example["tokens"] for each in worst] == [[f"w{row}"] for row in range(1, 41, 2)]  # 20 that are equal
    assert [each.loss for each in worst] == pytest.approx([100 / 90] * 20)
    golds = [["X", "Y"], ["X", "Y"], ["X", "Y", "Z"], ["X", "Y"]]
    predicted = [["X", "Z"], ["X", "Y"], ["Y", "X", "X"], ["Y", "X"]]
    pairs = [({"tokens": gold, "tags": gold}, {"tags": tags}) for gold, tags in zip(golds, predicted, strict=True)]
    report = errors(write(tmp_path / "b.jsonl", pairs), num_examples=10)
    assert [round(each.loss * 9 / 100) for each in report.worst] == [3, 2, 1]
    assert [each.prediction["tags"] for each in report.worst] == [predicted[row] for row in (2, 3, 0)]
    assert (report.kinds, report.counted) == ({"right": 3, "wrong": 6}, "labels")
    assert errors(tmp_path / "b.jsonl", num_examples=0).worst == []


def test_labels_of_sets_are_right_missing_or_extra(tmp_path: Path) -> None:
    pairs = [({"tokens": ["a"], "labels": ["A", "B", "C"]}, {"labels": ["A"]})]
    assert errors(write(tmp_path / "a.jsonl", pairs)).kinds == {"right": 1, "missing": 2, "extra": 0}


def test_only_data_with_unanswerable_questions_count_answers_to_them(
    write_case: Callable[[str, Sequence[bool]], Path], tmp_path: Path
) -> None:
    example, prediction, _ = CASES["Reading"]
    without = write(
        tmp_path / "b.jsonl", [(example, prediction), ({**example, "answers": [], "answer_spans": []}, prediction)]
    )
    assert UNANSWERABLE not in errors(write_case("Reading", [True])).kinds
    assert errors(without).kinds[UNANSWERABLE] == 1


def drawn(task: Task, example: dict[str, Any], prediction: dict[str, Any]) -> Drawing:
    return side_by_side(task, WorstExample(1.0, example, prediction))


def test_only_tags_that_differ_are_marked() -> None:
    example = {"tokens": ["Ann", "left", "."], "tags": ["NNP", "VBD", "."]}
    assert drawn(Tagging(), example, {"tags": ["NNP", "NN", "."]}) == [
        MarkedText("Ann left .", [Mark(4, 8, "VBD")], title="gold"),
        MarkedText("Ann left .", [Mark(4, 8, "NN")], title="predicted"),
    ]


@pytest.mark.parametrize("task", [Tagging("IOB2"), SemanticRoles()])
def test_all_spans_of_both_versions_are_marked(task: Task) -> None:
    example = {"tokens": ["Ann", "Lee", "left"], "tags": ["B-A0", "I-A0", "O"], "predicate": 2}
    assert drawn(task, example, {"tags": ["B-A0", "O", "B-V"]}) == [
        MarkedText("Ann Lee left", [Mark(0, 7, "A0")], title="gold"),
        MarkedText("Ann Lee left", [Mark(0, 3, "A0"), Mark(8, 12, "V")], title="predicted"),
    ]


READING = {
    **{"question_tokens": ["Where", "?"], "passage": "In the Bay.", "answers": ["Bay", "the Bay", "Bay"]},
    **{"token_starts": [0, 3, 7, 10], "token_ends": [2, 6, 10, 11], "answer_spans": [[2, 2], [1, 2], [2, 2]]},
}


@pytest.mark.parametrize(
    ("task", "example", "prediction", "rows"),
    [
        (Classification(), {"tokens": ["not", "bad"], "label": "good"}, {"label": "bad"}, ["not bad", "good", "bad"]),
        (MultiLabel(), {"tokens": ["hm"], "labels": ["a", "b"]}, {"labels": []}, ["hm", "a, b", "none"]),
        (Regression(), {"tokens": ["hm"], "score": 1 / 3}, {"score": 2.0}, ["hm", "0.333333", "2"]),
        (TextPairs(), {"premise": ["It", "rains"], "hypothesis": ["It", "is"], "label": "good"}, {"label": "bad"},
         ["It rains", "It is", "good", "bad"]),
        (Reading(), READING, {"answer": None}, ["Where ?", "In the Bay .", "Bay | the Bay", "(no answer)"]),
    ],
)  # fmt: skip
def test_labels_stand_below_their_texts(
    task: Task, example: dict[str, Any], prediction: dict[str, Any], rows: list[str]
) -> None:
    names = [*[""] * (len(rows) - 2), "gold", "predicted"]
    assert drawn(task, example, prediction) == [Rows(list(zip(names, rows, strict=True)))]


def test_chains_that_both_versions_have_are_left_out_and_others_are_in_the_order_of_the_text() -> None:
    sentences = [["Ann", "saw", "Bo", "."], ["She", "left", "him", "."]]
    ann, bo = [[0, 0], [4, 4]], [[2, 2], [6, 6]]
    example = {"sentences": sentences, "clusters": [ann, bo]}
    found = drawn(Coreference(), example, {"clusters": [[*bo[:1], [4, 4]], ann]})
    assert found == [Rows([("gold", "Bo [2] → him [6]"), ("predicted", "Bo [2] → She [4]")])]
    tokens = [f"word{index}" for index in range(60)]
    clusters = [[[start, start], [start + 30, start + 30]] for start in range(30)]
    (rows,) = drawn(Coreference(), {"sentences": [tokens], "clusters": clusters}, {"clusters": []})
    assert isinstance(rows, Rows)
    assert [chain.split()[0] for _, chain in rows.items] == tokens[:30]
