"""Span F1 of semantic roles: the official scorer's verdicts, joined pieces."""

import json
from pathlib import Path

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.metrics.srl import SrlF1, arguments_of_tags


def score(predicted: str, gold: str) -> dict[str, float]:
    metric = SrlF1()
    metric.update([{"tags": predicted.split()}], [{"tags": gold.split()}])
    return metric.compute()


@pytest.mark.parametrize("tag", ["", "V", "B-", "U-A0", "(V*)"])
def test_what_is_not_a_tag_is_named(tag: str) -> None:
    with pytest.raises(ElmoTasksError, match="is not a tag of IOB2"):
        arguments_of_tags(["O", tag])


@pytest.mark.parametrize(
    ("tags", "arguments"),
    [
        ("", []),
        ("B-A0 I-A0 B-A0 O", [("A0", [(0, 1)]), ("A0", [(2, 2)])]),
        ("I-A0 I-A1 O", [("A0", [(0, 0)]), ("A1", [(1, 1)])]),  # an I- that continues nothing begins a span
        ("B-A0 B-V B-C-A0 I-C-A0", [("A0", [(0, 0), (2, 3)]), ("V", [(1, 1)])]),
        ("B-A0 B-A0 B-C-A0", [("A0", [(0, 0)]), ("A0", [(1, 1), (2, 2)])]),  # of the last one
        ("B-C-A0 B-C-A0", [("A0", [(0, 0), (1, 1)])]),  # of none
        ("B-C-A0 B-A0 B-C-A1", [("A0", [(0, 0)]), ("A0", [(1, 1)]), ("A1", [(2, 2)])]),
        ("B-A0 B-R-A0 B-C-R-A0", [("A0", [(0, 0)]), ("R-A0", [(1, 1), (2, 2)])]),
    ],
)
def test_pieces_are_joined(tags: str, arguments: list[tuple[str, list[tuple[int, int]]]]) -> None:
    assert arguments_of_tags(tags.split()) == [(role, tuple(pieces)) for role, pieces in arguments]


def test_perfect_propositions_and_numbers_counted_by_hand() -> None:
    metric = SrlF1()
    pairs = [("B-A0 B-V O", "B-A0 B-V O"), ("B-A0 O B-A1", "B-A0 B-V B-A2"), ("B-A0 B-V B-C-A0", "B-A0 B-V O")]
    metric.update(*([{"tags": tags.split()} for tags in side] for side in zip(*pairs, strict=True)))
    scores = metric.compute()
    assert (scores["precision"], scores["recall"], scores["f1"]) == pytest.approx((50, 50, 50))
    assert scores["perfect"] == pytest.approx(100 / 3)


def test_the_predicate_counts_nowhere_but_in_its_own_row() -> None:
    scores = score("B-A0 B-V O O", "B-A0 O B-V B-C-V")
    assert (scores["f1"], scores["perfect"], scores["f1/V"]) == (100, 100, 0)
    assert "f1/C-V" not in scores


def test_srl_eval_s_verdict_is_reproduced_to_the_printed_digit(data_folder: Path) -> None:
    folder = data_folder / "scorer_cases"
    expected = json.loads((folder / "srl_expected.json").read_text())
    cases = [json.loads(line) for line in (folder / "srl_cases.jsonl").read_text().splitlines()]
    metric = SrlF1()
    metric.update([{"tags": case["predicted"]} for case in cases], [{"tags": case["gold"]} for case in cases])
    scores = metric.compute()
    assert {name for name in scores if name.startswith("f1")} == {f"f1{ending}" for ending in map(_ending, expected)}
    for name, values in expected.items():
        for key in ("precision", "recall", "f1"):
            assert f"{scores[key + _ending(name)]:.2f}" == f"{values[key]:.2f}"


def _ending(name: str) -> str:
    """What follows the names of the scores of one row of srl-eval.pl's table."""
    return "" if name == "Overall" else f"/{name}"
