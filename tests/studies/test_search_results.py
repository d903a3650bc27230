"""What a search has found: its tables, its plot and its commands, on trials that are made up."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import RunError
from elmo_tasks.studies.search_results import (
    SearchRecord,
    SearchResults,
    TrialResult,
    best_trials,
    write_search_report,
)
from elmo_tasks.studies.searches import SearchConfig, expected_best
from tests.plotted import points

SPACE = {"trainer.optimizer.lr": {"low": 0.1, "high": 1}, "model.dropout": {"choices": (0, None, "x")}}


def trial(number: int, score: float | None, state: Any = "finished", **values: Any) -> TrialResult:
    chosen = {"trainer.optimizer.lr": 0.12345678, "model.dropout": None, **values}
    error = "all is lost" if score is None else None
    return TrialResult(
        number=number, state=state, values=chosen, score=score, epochs=number + 2, error=error, folder=f"trial_{number}"
    )


def results(trials: Sequence[TrialResult], *, higher_is_better: bool = True) -> SearchResults:
    config = SearchConfig(title="A search", config="x.json", space=SPACE, trials=3)  # type: ignore[arg-type]
    record = SearchRecord(
        command="elmo-tasks tune s.json", config=config, config_file="x.json", changes=["a.b=1"], packages=["mine"],
        variables={"ONE": "1"}, experiment={}, metric="f1", higher_is_better=higher_is_better,
    )  # fmt: skip
    return SearchResults(record, trials)


def scored(*scores: float) -> list[TrialResult]:
    return [trial(number, score) for number, score in enumerate(scores, start=1)]


def test_the_best_ten_trials_are_in_the_table() -> None:
    trials = [*scored(*range(10, 22)), trial(13, None, "failed"), trial(14, 99.996, "pruned", **{"model.dropout": "x"})]
    table = results(trials).trial_table()
    assert table.title == "The best of 14 trials"
    assert list(table.columns) == ["trial", "lr", "dropout", "state", "epochs", "f1"]
    assert list(table.rows[0]) == ["14", "0.1235", '"x"', "pruned", "16", "100.00"]
    assert list(table.rows[1]) == ["12", "0.1235", "null", "finished", "14", "21.00"]
    assert [row[0] for row in table.rows] == ["14", *(str(number) for number in range(12, 3, -1))]
    lowest = results(trials, higher_is_better=False)
    assert [row[0] for row in lowest.trial_table().rows] == [str(number) for number in range(1, 11)]
    assert (results(trials).best().number, lowest.best().number) == (14, 1)


def test_of_equal_trials_finished_and_then_earlier_ones_come_first() -> None:
    trials = [trial(1, 5.0, "pruned"), trial(2, 5.0), trial(3, 5.0), trial(4, 6.0, "pruned"), trial(5, None, "failed")]
    assert [each.number for each in best_trials(trials, higher_is_better=True)] == [4, 2, 3, 1]
    assert [each.number for each in best_trials(trials, higher_is_better=False)] == [2, 3, 1, 4]


@pytest.mark.parametrize(
    ("num", "counts"),
    [
        (1, [1]), (4, [1, 2, 3, 4]), (10, [1, 2, 3, 5, 10]), (31, [1, 2, 3, 5, 10, 20, 30, 31]),
        (99, [1, 2, 3, 5, 10, 20, 30, 50, 99]),
    ],
)  # fmt: skip
def test_expected_scores_are_told_for_round_numbers_of_trials(num: int, counts: list[int]) -> None:
    scores = [float(7 * number % 10) for number in range(num)]
    found = results([*scored(*scores), trial(num + 1, None, "failed")])
    table = found.expected_table()
    assert table.title == "Expected best validation f1 by the number of trials"
    assert list(table.columns) == ["trials", "with replacement", "without replacement"]
    expected = [
        [str(n), *(f"{expected_best(scores, n, replacement=choice):.2f}" for choice in (True, False))] for n in counts
    ]
    assert [list(row) for row in table.rows] == expected


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_the_plot_has_the_expected_score_of_each_number_of_trials(higher_is_better: bool) -> None:
    scores = [3.0, 1.0, 4.0]
    found = results(scored(*scores), higher_is_better=higher_is_better)
    (axes,) = found.draw_expected().axes
    for line, replacement in zip(axes.lines, (True, False), strict=True):
        values = [
            expected_best(scores, n, higher_is_better=higher_is_better, replacement=replacement) for n in (1, 2, 3)
        ]
        assert points(line) == [[n, value] for n, value in enumerate(values, start=1)]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["with replacement", "without replacement"]
    assert len({line.get_linestyle() for line in axes.lines}) == 2
    assert (axes.get_title(), axes.get_xlabel()) == ("expected best validation f1", "trials")
    assert all(tick == int(tick) for tick in axes.get_xticks())  # there are no half trials


def write(folder: Path, found: SearchResults) -> None:
    (folder / "search.json").write_text(found.record.model_dump_json())
    (folder / "trials.jsonl").write_text("".join(f"{each.model_dump_json()}\n" for each in found.trials))


def test_the_report_has_the_commands_of_the_search_and_of_its_best_trial(tmp_path: Path) -> None:
    write(tmp_path, results([*scored(1.0, 3.0), trial(3, 2.0)]))
    for _ in range(2):  # an earlier report is replaced
        assert write_search_report(tmp_path) == [tmp_path / "report.md", tmp_path / "report.html"]
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# A search\n\n## The best of 3 trials\n\n| trial | lr | dropout |")
    assert "## Expected best validation f1 by the number of trials\n\n| trials |" in text
    assert (
        "## Expected best score\n\n![Expected best score](plots/expected_best.svg)\n\nBy the number of trials" in text
    )
    commands = text.split("```")[1].strip().split("\n")
    assert commands[:2] == ["elmo-tasks tune s.json", f"elmo-tasks report {shlex.quote(str(tmp_path))}"]
    assert shlex.split(commands[-1]) == [
        "elmo-tasks", "train", "x.json", "--set", "a.b=1", "--set", "trainer.optimizer.lr=0.12345678",
        "--set", "model.dropout=null", "--ext-var", "ONE=1", "--include-package", "mine",
    ]  # fmt: skip


def test_a_search_without_a_score_tells_its_last_errors(tmp_path: Path) -> None:
    found = results([trial(number, None, "failed") for number in range(1, 6)])
    write(tmp_path, found)
    with pytest.raises(RunError) as raised:
        SearchResults.read(tmp_path)
    errors = [f"  trial {number}: all is lost" for number in (3, 4, 5)]
    assert str(raised.value) == "\n".join([f"{tmp_path}: no trial has a score", *errors])
    (tmp_path / "trials.jsonl").unlink()
    with pytest.raises(RunError, match=r"no trial has a score$"):
        SearchResults.read(tmp_path)
