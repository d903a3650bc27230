"""The report of a study: its numbers and its plots."""

import dataclasses
import json
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from scipy import stats

from elmo_tasks import __version__, cli
from elmo_tasks.extras.compare.comparison import compare_predictions
from elmo_tasks.extras.compare.systems import Predictions, System, read_predictions
from elmo_tasks.extras.studies.reports import Findings, Table, analyze, draw_shares, draw_weights, write_report
from elmo_tasks.extras.studies.study import Arm
from elmo_tasks.extras.studies.study_runs import Result, Summary, read_study, summarize
from elmo_tasks.runs.folder import RunFolder
from tests.plotted import points
from tests.prediction_files import CASES, write, write_run

ARMS: list[dict[str, Any]] = [
    {"name": "NER, baseline", "config": "b.json", "paper": 90.0, "group": "table"},
    {"name": "NER, <ELMo>", "config": "e.json", "baseline": "NER, baseline", "paper": 92.0, "group": "table"},
    {"name": "loss", "config": "l.json", "shares": [1], "group": "other", "seeds": [1]},
]
SCORES = {
    ("NER, baseline", 1.0): [80.0, 81.0, 79.0],
    ("NER, <ELMo>", 1.0): [90.0, 91.0],
    ("NER, baseline", 0.1): [50.0, 52.0, 51.0],
    ("NER, <ELMo>", 0.1): [60.0, 66.0, 63.0],
    ("loss", 1.0): [0.5],
}


def write_study(folder: Path, results: Sequence[dict[str, Any]], record: dict[str, Any] | None = None) -> None:
    """Writes the results of a study and, if it is given, its record."""
    (folder / "results.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in results))
    if record:
        (folder / "study.json").write_text(json.dumps(record))


def read_files(folder: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The results and the record of a study."""
    results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    return results, json.loads((folder / "study.json").read_text())


def findings(folder: Path) -> Findings:
    return analyze(summarize(*read_study(folder)), folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A study of which all but one run has finished."""
    config = {"title": "A <study>", "text": "What it shows.", "seeds": [1, 2, 3], "shares": [0.1, 1.0], "arms": ARMS}
    results: list[dict[str, Any]] = []
    for (arm, share), scores in SCORES.items():
        for seed, score in enumerate(scores, start=1):
            run = tmp_path / f"{len(results)}"
            mix = {"layers": [0, 1], "weights": [0.25 * seed, 1 - 0.25 * seed], "gamma": 0.5}
            write_run(run, [score + 1, score + 2], {"input": mix} if "ELMo" in arm else None)
            higher, metric = arm != "loss", "f1" if arm != "loss" else "loss"
            named = {"arm": arm, "seed": seed, "share": share, "folder": run.name, "config": "x.json"}
            scored = {"score": score, "metric": metric, "split": "test", "higher_is_better": higher}
            measured = {"changes": [f"a.b={seed}"], "metrics": {"test": {metric: score}}, "seconds": 90.0}
            results.append({**named, **scored, **measured})
    write_study(tmp_path, results, {"command": "elmo-tasks study s.jsonnet", "config": config})
    return tmp_path


@pytest.mark.parametrize(
    ("before", "after", "higher_is_better", "share"),
    [([60, 80], [85], True, 0.5), ([80], [75], True, -0.25), ([2, 3], [1.5], False, 0.4), ([100], [99], True, None),
     ([0], [1], False, None), ([99.5], [100], True, 1)],
)  # fmt: skip
def test_the_error_that_is_gone_is_a_share_of_what_the_baseline_has(
    before: list[float], after: list[float], higher_is_better: bool, share: float | None
) -> None:
    baseline, found = (summary("a", scores, higher_is_better=higher_is_better) for scores in (before, after))
    assert baseline.error_reduction() is None
    assert dataclasses.replace(found, baseline=baseline).error_reduction() == share


@pytest.mark.parametrize(
    ("score", "expected"),
    [(92.3, "92.02 to 92.42"), (92.01, "92.02 to 92.42, below"), (92.43, "92.02 to 92.42, above")],
)
def test_a_score_is_compared_with_what_the_seeds_of_the_paper_make_likely(
    folder: Path, score: float, expected: str
) -> None:
    def change(result: dict[str, Any]) -> None:
        result["score"] = score

    arms = [ARMS[0], {**ARMS[1], "paper": 92.22, "paper_std": 0.1}, ARMS[2]]
    rewrite(folder, change, arms=arms)
    write_report(folder)
    lines = (folder / "report.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("| ")]
    place = cells[0].index("expected")
    assert [row[place] for row in cells if row[1] == "NER, <ELMo>"] == [expected, expected]
    assert [row[place] for row in cells if row[1] == "NER, baseline"] == ["", ""]
    assert any("two standard deviations of the paper's seeds" in line for line in lines)


def test_p_values_over_seeds(folder: Path) -> None:
    found = findings(folder)
    welch = stats.ttest_ind([90.0, 91.0], [80.0, 81.0, 79.0], equal_var=False).pvalue
    paired = stats.ttest_rel([60.0, 66.0, 63.0], [50.0, 52.0, 51.0]).pvalue
    assert found.p_values == {
        ("NER, <ELMo>", 0.1): {"seeds": pytest.approx(paired)},
        ("NER, <ELMo>", 1.0): {"seeds": pytest.approx(welch)},
    }
    assert found.problems == ["not all runs of any arm have stored their predictions"]


def test_the_report_has_tables_plots_and_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.md'}\n"
    text = (folder / "report.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0] == "# A <study>"
    assert [line for line in lines if line.startswith("## ")] == [
        "## table", "## other", "## Scores by training data",
        "## Weights of the layers", "## Commands",
    ]  # fmt: skip
    assert "| NER, baseline | 10 % | test f1 | 51.00 ± 1.00 | 3 |  |  | 1.5 | 90 |" in lines
    assert shlex.join(["elmo-tasks", "report", str(folder)]) in lines
    p = stats.ttest_ind([90.0, 91.0], [80.0, 81.0, 79.0], equal_var=False).pvalue
    assert f"| NER, <ELMo> | 100 % | test f1 | 90.50 ± 0.71 | 2 of 3 | 52 % | {p:.3f} | 1.5 | 92 |" in lines
    assert "p (seeds) by Student's t-test" in text
    assert "p (randomization)" not in text
    assert "not all runs of any arm have stored their predictions" in text
    assert "| loss | test loss | 0.50 | 1 | 1.5 |" in lines  # without the columns that nothing fills
    pictures = re.findall(r"!\[.*\]\((.*)\)", text)
    assert pictures == ["plots/shares.svg", "plots/weights.svg"]
    assert all((folder / name).is_file() for name in pictures)
    assert "elmo-tasks study s.jsonnet" in lines
    assert "in the way: not all runs" in text
    assert lines.count("elmo-tasks train x.json --set a.b=1") == 5
    assert lines[-1] == f"Written by elmo-tasks {__version__}."


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object], **settings: Any) -> None:
    """Changes each result of a study, and settings of the study."""
    results, record = read_files(folder)
    for result in results:
        change(result)
    write_study(folder, results, {**record, "config": {**record["config"], **settings}})


def test_the_report_has_bounds_of_small_p_values_and_the_variables_of_the_commands(folder: Path) -> None:
    def change(result: dict[str, Any]) -> None:
        result["score"] = (90 if "ELMo" in result["arm"] else 80) + result["seed"] / 100

    rewrite(folder, change, variables={"ONE": "1", "TWO": "2"})
    results, record = read_files(folder)
    write_study(folder, results, {**record, "variables": {"ONE": "3"}, "packages": ["mine"]})
    write_report(folder)
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "| NER, <ELMo> | 100 % | test f1 | 90.02 ± 0.01 | 2 of 3 | 50 % | < 0.001 | 1.5 |" in text
    assert "error" not in text.partition("## other")[2].partition("| --- |")[0]
    assert (
        text.count("elmo-tasks train x.json --set a.b=1 --ext-var ONE=3 --ext-var TWO=2 --include-package mine\n") == 5
    )


RIGHT = {  # of 40 examples, how many each seed of each arm gets right
    "SST-5, baseline": [20, 22],
    "SST-5, <ELMo>": [34, 37],
    "SST-5, last layer": [24, 21],
}


@pytest.fixture
def predicting(tmp_path: Path) -> Path:
    """A study whose runs have stored predictions."""
    arms = [
        {"name": name, "config": "x.json", "baseline": None if "baseline" in name else "SST-5, baseline"}
        for name in RIGHT
    ]
    config = {"title": "A study", "seeds": [1, 2], "arms": arms}
    example, right, wrong = CASES["Classification"]
    results: list[dict[str, Any]] = []
    for arm, numbers in RIGHT.items():
        for seed, number in enumerate(numbers, start=1):
            run = RunFolder(tmp_path / f"{len(results)}")
            write_run(run.path, [1.0], metric="accuracy", best=1)
            pairs = [({**example, "tokens": example["tokens"][: 1 + row % 4]}, right if row < number else wrong)
                     for row in range(40)]  # fmt: skip
            write(run.predictions_for("validation"), pairs)
            named = {"arm": arm, "seed": seed, "share": 1.0, "folder": run.path.name, "config": "x.json"}
            scored = {"score": 100 * number / 40, "metric": "accuracy", "split": "validation", "higher_is_better": True}
            results.append({**named, **scored, "changes": [], "metrics": {}, "seconds": 1.0})
    write_study(tmp_path, results, {"command": "elmo-tasks study s.jsonnet", "config": config})
    return tmp_path


def files_of(folder: Path, first: int) -> list[Predictions]:
    return [read_predictions(RunFolder(folder / str(first + number)).validation_predictions) for number in range(2)]


def test_the_report_has_the_tests_of_compare(predicting: Path) -> None:
    found = findings(predicting)
    systems = [(System(name, (), [1, 2]), files_of(predicting, 2 * number)) for number, name in enumerate(RIGHT)]
    comparison = compare_predictions(systems)
    assert found.p_values == {(each.name, 1.0): each.corrected for each in comparison.differences}
    assert found.p_values["SST-5, <ELMo>", 1.0].keys() == {"randomization", "seeds"}
    better, equal = (found.p_values[name, 1.0]["randomization"] for name in list(RIGHT)[1:])
    assert better < 0.01 < equal
    assert found.problems == []


def test_the_report_shows_the_tests_over_the_examples(predicting: Path) -> None:
    (predicting / "plots").mkdir()
    (predicting / "plots" / "shares.svg").touch()  # of an earlier report
    write_report(predicting)
    assert list((predicting / "plots").iterdir()) == []
    text = (predicting / "report.md").read_text(encoding="utf-8")
    assert "\n\n| arm |" in text
    assert "p (randomization) by paired approximate randomization" in text
    row = "| arm | metric | score | n | error reduction | p (randomization) | p (seeds) | minutes |"
    assert row in text.splitlines()
    assert "in the way" not in text


def test_an_arm_by_itself_is_not_tested(predicting: Path) -> None:
    RunFolder(predicting / "2").validation_predictions.unlink()  # nothing needs them
    rewrite(predicting, lambda result: None, arms=[{"name": "SST-5, <ELMo>", "config": "x.json"}])
    assert findings(predicting) == Findings({}, [])


def test_arms_with_other_seeds_are_tested_too(predicting: Path) -> None:
    results, _ = read_files(predicting)
    del results[3]  # the second seed of ELMo, which has not finished yet
    write_study(predicting, results)
    found = findings(predicting)
    assert found.problems == []
    assert found.p_values["SST-5, <ELMo>", 1.0].keys() == {"randomization"}
    write_study(predicting, [*results[:2], *[results[2], {**results[2], "seed": 3}] * 2, *results[3:]])
    found = findings(predicting)
    assert found.p_values["SST-5, <ELMo>", 1.0].keys() == {"randomization", "seeds"}


def test_arms_without_predictions_are_left_out_and_so_are_those_with_others(predicting: Path) -> None:
    RunFolder(predicting / "3").validation_predictions.unlink()
    found = findings(predicting)
    assert found.problems == ["not all runs of SST-5, <ELMo> have stored their predictions"]
    assert found.p_values["SST-5, <ELMo>", 1.0].keys() == {"seeds"}
    assert found.p_values["SST-5, last layer", 1.0].keys() == {"seeds", "randomization"}
    last = RunFolder(predicting / "5").validation_predictions
    right = last.read_text().splitlines(keepends=True)
    last.write_text("".join(right[:-1]))
    missing, other = findings(predicting).problems
    assert missing == found.problems[0]
    assert "39 examples, not 40; expected the same examples in the same order" in other
    last.write_text("".join(right))
    RunFolder(predicting / "0").validation_predictions.unlink()  # of the baseline
    assert {test for tests in findings(predicting).p_values.values() for test in tests} == {"seeds"}


@pytest.mark.parametrize(
    ("left", "message"),
    [
        ([], "study.json: no such file; expected the folder of a study"),
        (["study.json"], "no run of the study has finished"),
    ],
)
def test_what_is_no_finished_study_says_so(
    left: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in {"study.json", "results.jsonl"} - {*left}:
        (folder / name).unlink()
    assert cli.main(["report", str(folder)]) == 2
    assert message in capsys.readouterr().err


def test_cells_with_the_border_of_a_column_are_escaped() -> None:
    table = Table("Scores", ("arm", "f1 | em", "n"), [["a|b", "1.00", "<2>"], ["c", "", "3"]]).markdown()
    assert table == "| arm | f1 \\| em | n |\n| --- | ---: | ---: |\n| a\\|b | 1.00 | <2> |\n| c |  | 3 |"


def summary(
    name: str,
    scores: Sequence[float],
    share: float = 1.0,
    folders: str = "",
    metric: str = "f1",
    higher_is_better: bool = True,
    **settings: Any,
) -> Summary:
    """An arm with a run for each score. `folders`: of the runs, a letter each; `settings`: of the arm."""
    common: dict[str, Any] = {"arm": name, "config": "x.json", "changes": [], "share": share, "split": "test"}
    common |= {"metric": metric, "higher_is_better": higher_is_better, "seconds": 1.0, "metrics": {}}
    runs = enumerate(zip(scores, folders or "-" * len(scores), strict=True))
    results = [Result(seed=seed, score=score, folder=folder, **common) for seed, (score, folder) in runs]
    return Summary(Arm(name=name, config="x.json", **settings), share, results, len(scores), None)


def panels(figure: Figure | None) -> list[Axes]:
    """The axes that show something."""
    assert figure is not None
    return [axes for axes in figure.axes if axes.axison]


def labels(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def test_each_group_and_metric_has_a_panel_if_one_has_several_shares() -> None:
    several = [summary("one", [1], share, group="g") for share in (0.1, 0.5)]
    other = [summary("two", [1], share, group="h") for share in (0.1, 0.5)]
    error = [summary("three", [1], share, group="h", metric="mse") for share in (0.1, 0.5)]
    figure = draw_shares([*several, *other, *error, summary("alone", [1], group="i")])
    assert figure is not None
    found = panels(figure)
    assert (len(figure.axes), *figure.get_size_inches()) == (3, 11, pytest.approx(3.2))
    assert [(axes.get_title(), axes.get_ylabel(), labels(axes)) for axes in found] == [
        ("g", "test f1", ["one"]), ("h", "test f1", ["two"]), ("h", "test mse", ["three"])
    ]  # fmt: skip


def test_the_error_bars_of_shares_are_standard_deviations() -> None:
    tenth, half = summary("one", [50, 60], 0.1), summary("one", [70], 0.5)
    figure = draw_shares([half, tenth, summary("other", [1], 0.5), summary("alone", [1], group="g")])
    assert figure is not None
    assert len(figure.axes) == 2  # one is empty, so that the other is not too wide
    assert draw_shares([half, summary("alone", [1], group="g")]) is None  # no arm has several
    (axes,) = panels(figure)
    containers: list[Any] = list(axes.containers)
    one, other = (container.lines for container in containers)
    assert points(one[0]) == [[10, 55], [50, 70]]
    assert points(other[0]) == [[50, 1]]
    low, high = (cap.get_ydata().tolist() for cap in one[1])
    assert low == pytest.approx([55 - 50**0.5, 70])
    assert high == pytest.approx([55 + 50**0.5, 70])
    assert labels(axes) == ["one", "other"]
    assert axes.get_xscale() == "log"
    assert (axes.get_xticks().tolist(), len(axes.get_xticks(minor=True))) == ([10, 50], 0)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["10 %", "50 %"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("share of the training data", "test f1")


def mix(*weights: float, gamma: float = 1.0) -> dict[str, Any]:
    return {"layers": list(range(len(weights))), "weights": weights, "gamma": gamma}


def test_weights_are_means_over_seeds_in_the_best_epoch(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [1, 2, 3], {"input": mix(0.2, 0.8, gamma=1.0), "output": mix(1.0, 0.0)})
    write_run(tmp_path / "b", [1, 2, 3], {"input": mix(0.4, 0.6, gamma=2.0), "output": mix(1.0, 0.0)})
    write_run(tmp_path / "c", [1, 2, 3], {"input": mix(0.5, 0.25, 0.25)})
    write_run(tmp_path / "d", [1, 2, 3], {})
    write_run(tmp_path / "e", [1, 2, 3], {"input": mix(0.1, 0.9)})
    one = summary("one", [1, 1], folders="ab")
    none = summary("none", [1], folders="d")
    part = summary("one", [1], 0.5, folders="e")
    figure = draw_weights([one, part, none, summary("two", [1], folders="c")], tmp_path)
    (axes,) = panels(figure)
    assert axes.figure.get_figure(root=True).get_size_inches().tolist() == pytest.approx([11, 1 + 3 * 0.45])
    (cells,) = (each for each in axes.collections if isinstance(each, QuadMesh))
    shares = np.asarray(cells.get_array()).reshape(3, 3)
    assert shares.tolist() == [pytest.approx([0.3, 0.7, 0]), [1, 0, 0], [0.5, 0.25, 0.25]]
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "one, input\ngamma 1.50", "one, output\ngamma 1.00", "two, input\ngamma 1.00"
    ]  # fmt: skip
    assert axes.get_title() == ""  # the report has one
    assert draw_weights([none], tmp_path) is None
