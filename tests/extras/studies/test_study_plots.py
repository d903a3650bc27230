"""The plots of a study: what each one shows of the summaries, read from its axes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

from elmo_tasks.extras.studies.reports import draw_shares, draw_weights
from elmo_tasks.extras.studies.study import Arm
from elmo_tasks.extras.studies.study_runs import Result, Summary
from tests.plotted import points
from tests.prediction_files import write_run


def summary(
    name: str, scores: Sequence[float], share: float = 1.0, folders: str = "", metric: str = "f1", **settings: Any
) -> Summary:
    """An arm with a run for each score. `folders`: of the runs, a letter each; `settings`: of the arm."""
    common: dict[str, Any] = {"arm": name, "config": "x.json", "changes": [], "share": share, "split": "test"}
    common |= {"metric": metric, "higher_is_better": True, "seconds": 1.0, "metrics": {}}
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
    found = panels(draw_shares([*several, *other, *error, summary("alone", [1], group="i")]))
    assert [(axes.get_title(), axes.get_ylabel(), labels(axes)) for axes in found] == [
        ("g", "test f1", ["one"]), ("h", "test f1", ["two"]), ("h", "test mse", ["three"])
    ]  # fmt: skip


def test_the_error_bars_of_shares_are_standard_deviations() -> None:
    tenth, half = summary("one", [50, 60], 0.1), summary("one", [70], 0.5)
    figure = draw_shares([half, tenth, summary("other", [1], 0.5), summary("alone", [1], group="g")])
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
    (axes,) = panels(draw_weights([one, part, none, summary("two", [1], folders="c")], tmp_path))
    (cells,) = (each for each in axes.collections if isinstance(each, QuadMesh))
    shares = np.asarray(cells.get_array()).reshape(3, 3)
    assert shares.tolist() == [pytest.approx([0.3, 0.7, 0]), [1, 0, 0], [0.5, 0.25, 0.25]]
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "one, input\ngamma 1.50", "one, output\ngamma 1.00", "two, input\ngamma 1.00"
    ]  # fmt: skip
    assert axes.get_title() == ""  # the report has one
    assert draw_weights([none], tmp_path) is None
