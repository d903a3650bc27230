"""The tables of `compare` and `errors`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import elmo_tasks.extras.compare.comparison
from elmo_tasks import cli
from elmo_tasks.extras.compare.comparison import Comparison, Difference, SystemScore
from elmo_tasks.extras.compare.significance import Interval, SeedDifference
from elmo_tasks.tasks import Tagging
from tests.prediction_files import write

Printed = Callable[[], tuple[str, list[list[str]]]]
Compared = Callable[..., tuple[str, list[list[str]]]]

ONE = SystemScore("one", 90.126, Interval(85, 95), [90.126], [])
SEEDED = SystemScore("two", 91.5, Interval(86.25, 96), [91, 92], [1, 2])
DIFFERENCE = Difference(
    name="two",
    against="one",
    difference=1.374,
    interval=Interval(-0.5, 3.25),
    p_values={"randomization": 0.03125},
    corrected={},
    seeds=None,
    better=5,
    worse=3,
    equal=2,
)
FIRST_COLUMNS = ["system", "difference", "95 % interval"]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch, printed: Printed) -> Compared:
    """A function that gives what `compare` prints of a comparison with these parts."""

    def show(**parts: Any) -> tuple[str, list[list[str]]]:
        settings = {"task": Tagging(), "metric": "f1", "num_examples": 10, "num_units": 10, "resamples": 50, "seed": 1}
        comparison = Comparison(**{**settings, "systems": [ONE], "differences": [], **parts})
        monkeypatch.setattr(elmo_tasks.extras.compare.comparison, "compare", Mock(return_value=comparison))
        assert cli.main(["compare", "runs/one"]) == 0
        return printed()

    return show


def test_one_system_is_a_row_with_its_interval(compared: Compared) -> None:
    text, rows = compared()
    assert text.startswith("f1, 10 examples\n")
    assert rows == [["system", "f1", "95 % interval"], ["one", "90.13", "85.00 to 95.00"]]


def test_the_scores_of_seeds_have_a_column_where_there_are_any(compared: Compared) -> None:
    text, rows = compared(systems=[ONE, SEEDED], num_units=4)
    assert text.startswith("f1, 10 examples, drawn as 4 units\n")
    assert rows == [
        ["system", "f1", "95 % interval", "of each seed"],
        ["one", "90.13", "85.00 to 95.00", "90.13"],
        ["two", "91.50", "86.25 to 96.00", "91.00 92.00"],
    ]


def test_differences_have_a_column_for_each_test(compared: Compared) -> None:
    text, rows = compared(systems=[ONE, SEEDED], differences=[DIFFERENCE])
    assert "difference to one; two-sided p-values, 50 resamples\n" in text
    columns = [*FIRST_COLUMNS, "p (randomization)", "better", "worse", "equal"]
    assert rows[3:] == [columns, ["two", "+1.37", "-0.50 to 3.25", "0.0312", "5", "3", "2"]]

    seeds = SeedDifference(mean=-1.25, interval=Interval(-3, 0.5), p_value=0.25, paired=True)
    seeded = dataclasses.replace(
        DIFFERENCE,
        p_values={**DIFFERENCE.p_values, "seeds": 0.25},
        corrected={"seeds": 0.5},
        seeds=seeds,
    )
    other = dataclasses.replace(seeded, name="three", seeds=dataclasses.replace(seeds, mean=2.0, paired=False))
    text, rows = compared(systems=[ONE, SEEDED], differences=[DIFFERENCE, seeded, other])
    assert "corrected by Holm" not in text  # the first is not
    text, rows = compared(systems=[ONE, SEEDED], differences=[seeded, other, DIFFERENCE])
    assert "difference to one; two-sided p-values, corrected by Holm, 50 resamples\n" in text
    columns[4:4] = ["p (seeds)"]
    assert rows[3:] == [
        columns,
        ["two", "+1.37", "-0.50 to 3.25", "", "0.5000", "5", "3", "2"],
        ["three", "+1.37", "-0.50 to 3.25", "", "0.5000", "5", "3", "2"],
        ["two", "+1.37", "-0.50 to 3.25", "0.0312", "", "5", "3", "2"],
    ]


def test_the_tables_of_a_report_with_many_labels(tmp_path: Path, printed: Printed) -> None:
    labels = [f"label{number:02}" for number in range(14)]
    pairs = [({"tokens": ["a"], "label": label}, {"label": label}) for label in labels]
    assert cli.main(["errors", str(write(tmp_path / "a.jsonl", pairs))]) == 0
    text, rows = printed()
    titles = ["14 examples", "labels", "labels, gold (rows) and predicted (columns)"]
    assert [line for line in text.splitlines() if line in titles] == titles
    assert rows[:5] == [["metric", "value"], ["accuracy", "100.00"], ["", "number"], ["right", "14"], ["wrong", "0"]]
    assert [row[0] for row in rows[5:]] == ["", *labels[:11], "other"]
    assert rows[-1] == ["other", *"·" * 11, "3"]


def test_numbers_have_no_kinds_of_errors(tmp_path: Path, printed: Printed) -> None:
    path = write(tmp_path / "a.jsonl", [({"tokens": ["a"], "score": 1.0}, {"score": 2.0})])
    assert cli.main(["errors", str(path)]) == 0
    _, rows = printed()
    assert {row[0] for row in rows} == {"metric", "pearson", "mse", "spearman"}
