"""The plots of a study: scores by share of the training data, and weights of the layers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.extras.compare.plots import RunCurves, draw_mixes, legend_label
from elmo_tasks.extras.studies.study_runs import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 11.0  # inches


def draw_shares(summaries: Sequence[Summary]) -> Figure | None:
    """The score with each share of the training data, a panel for each group; None if no arm has several shares."""
    from matplotlib.figure import Figure

    groups: dict[tuple[str, str], dict[str, list[Summary]]] = {}
    for each in sorted(summaries, key=lambda each: each.share):
        groups.setdefault((each.arm.group, each.metric), {}).setdefault(each.arm.name, []).append(each)
    shown = [(*key, arms) for key, arms in groups.items() if any(len(parts) > 1 for parts in arms.values())]
    if not shown:
        return None
    columns = 2 if len(shown) < 3 else 3
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(_WIDTH, 3.2 * rows), layout="constrained")
    panels = iter(figure.subplots(rows, columns, squeeze=False).flat)
    for (group, metric, arms), axes in zip(shown, panels, strict=False):
        for name, parts in arms.items():
            axes.errorbar(
                [100 * part.share for part in parts],
                [part.mean for part in parts],
                yerr=[part.std or 0.0 for part in parts],
                marker="o", markersize=4, capsize=3, label=legend_label(name),
            )  # fmt: skip
        axes.set_xscale("log")
        shares = sorted({100 * part.share for parts in arms.values() for part in parts})
        axes.set_xticks(shares, [f"{share:g} %" for share in shares])
        axes.minorticks_off()
        axes.set_xlabel("share of the training data")
        axes.set_ylabel(metric)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        axes.set_title(group)
    for unused in panels:
        unused.set_axis_off()
    return figure


def draw_weights(summaries: Sequence[Summary], folder: Path) -> Figure | None:
    """The weights of the layers in each mix, in the best epoch, the mean of the seeds; None without any."""
    from matplotlib.figure import Figure

    largest = {each.arm.name: each for each in sorted(summaries, key=lambda each: each.share)}
    mixes: list[tuple[str, dict[str, Any]]] = []
    for each in (largest[name] for name in dict.fromkeys(part.arm.name for part in summaries)):
        of_runs = [RunCurves.read(folder / result.folder).mixes() for result in each.results]
        for name in of_runs[0]:
            mixes.append((f"{each.arm.name}, {name}", _mean_mix([run[name] for run in of_runs])))
    if not mixes:
        return None
    figure = Figure(figsize=(_WIDTH, 1 + 0.45 * len(mixes)), layout="constrained")
    axes = figure.subplots()
    draw_mixes(axes, mixes)
    axes.set_aspect("auto")
    axes.set_title("")  # the report has one
    return figure


def _mean_mix(mixes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    weights = [statistics.fmean(each) for each in zip(*(mix["weights"] for mix in mixes), strict=True)]
    return {**mixes[0], "weights": weights, "gamma": statistics.fmean(mix["gamma"] for mix in mixes)}
