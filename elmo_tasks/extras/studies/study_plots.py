"""The plots of a study: scores by share of the training data, and weights of the layers."""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.extras.compare.plots import RunCurves, draw_mixes, legend_label
from elmo_tasks.extras.studies.study_runs import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 11.0  # inches
_BASELINE, _COLORS = "0.6", ("C0", "C1", "C2", "C3", "C4", "C5", "C6", "C8", "C9")


@dataclasses.dataclass(frozen=True)
class Family:
    """Arms that are compared with each other: those with the same baseline and metric, and it.

    Arguments:
        title: what their names have in common.
        arms: the rest of each name, with the arm's summaries by share, the largest share last.
    """

    title: str
    arms: dict[str, list[Summary]]

    def colors(self) -> dict[str, str]:
        """The colour of each arm; that of what the others are compared with is grey."""
        baselines = [name for name, parts in self.arms.items() if parts[-1].arm.baseline is None]
        greys = baselines if len(baselines) < len(self.arms) else []
        rest = [name for name in self.arms if name not in greys]
        colors = {name: _COLORS[number % len(_COLORS)] for number, name in enumerate(rest)}
        return {name: colors.get(name, _BASELINE) for name in self.arms}


def families(summaries: Sequence[Summary]) -> list[Family]:
    """The families of a study, in its order."""
    followed = {each.arm.baseline for each in summaries}
    found: dict[tuple[str, str, str], dict[str, list[Summary]]] = {}
    for each in summaries:
        head = each.arm.baseline or (each.arm.name if each.arm.name in followed else "")
        found.setdefault((each.arm.group, head, each.metric), {}).setdefault(each.arm.name, []).append(each)
    result = []
    for (group, *_), arms in found.items():
        prefix = common_start(list(arms))
        ordered = {name[len(prefix) :]: sorted(parts, key=lambda part: part.share) for name, parts in arms.items()}
        result.append(Family(prefix.rstrip(",: ") or group, ordered))
    return result


def common_start(names: Sequence[str]) -> str:
    """What several names begin with, up to a comma or colon and a space; empty for a single name."""
    first, *others = names
    ends = [match.end() for match in re.finditer("[,:] ", first)] if others else []
    return first[: max((end for end in ends if all(name.startswith(first[:end]) for name in others)), default=0)]


def draw_shares(summaries: Sequence[Summary]) -> Figure | None:
    """The score with each share of the training data, a panel for each family; None if no arm has several shares."""
    from matplotlib.figure import Figure

    shown = [each for each in families(summaries) if any(len(parts) > 1 for parts in each.arms.values())]
    if not shown:
        return None
    columns = 2 if len(shown) < 3 else 3
    rows = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(_WIDTH, 3.2 * rows), layout="constrained")
    panels = iter(figure.subplots(rows, columns, squeeze=False).flat)
    for family, axes in zip(shown, panels, strict=False):
        for name, color in family.colors().items():
            parts = family.arms[name]
            axes.errorbar(
                [100 * part.share for part in parts],
                [part.mean for part in parts],
                yerr=[part.std or 0.0 for part in parts],
                color=color, marker="o", markersize=4, capsize=3, label=legend_label(name),
            )  # fmt: skip
        axes.set_xscale("log")
        shares = sorted({100 * part.share for parts in family.arms.values() for part in parts})
        axes.set_xticks(shares, [f"{share:g} %" for share in shares])
        axes.minorticks_off()
        axes.set_xlabel("share of the training data")
        axes.set_ylabel(next(iter(family.arms.values()))[-1].metric)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        axes.set_title(family.title)
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
