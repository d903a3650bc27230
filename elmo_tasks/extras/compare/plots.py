"""Pictures of runs: their curves, and the learned weights of mixed layers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from elmo_tasks.errors import ElmoTasksError, RunError
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.json_files import Number, read_json, read_records
from elmo_tasks.runs.archive import open_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".svg", ".png", ".pdf")


class _Record(pydantic.BaseModel):
    """The part of a line of `metrics.jsonl` that is drawn."""

    epoch: int
    training: dict[str, Number]
    validation: dict[str, Number]
    elmo: dict[str, Any]
    transformer: dict[str, Any] = {}
    best: bool


@dataclasses.dataclass(frozen=True)
class RunCurves:
    """What a run recorded about its training.

    Arguments:
        name: the name of its folder or archive.
        metric: the name of its validation metric.
        records: one for each evaluation, as in `metrics.jsonl`.
    """

    name: str
    metric: str
    records: Sequence[dict[str, Any]]

    @classmethod
    def read(cls, path: str | Path) -> RunCurves:
        """The curves of a run, from its folder or archive; raises `RunError` if it has not finished an epoch,
        or is not the run of a task model.
        """
        folder = open_run(path)
        config = read_json(folder.config, dict[str, Any], "the config of a run")
        metric = config.get("trainer", {}).get("validation_metric")
        if metric is None:
            raise RunError(f"{path}: the run of a biLM; expected that of a task model")
        found = folder.records.is_file()
        records = list(read_records(folder.records, _Record, "the record of an epoch")) if found else []
        if not records:
            raise RunError(f"{path}: no epoch has finished, so there is nothing to draw")
        return cls(
            Path(path).resolve().name.removesuffix(".tar.gz"),
            str(metric).lstrip("+-"),
            [each.model_dump() for each in records],
        )

    def best(self) -> dict[str, Any]:
        """The record of the best epoch, or the last one if no epoch is the best."""
        return next((record for record in reversed(self.records) if record["best"]), self.records[-1])

    def mixes(self) -> dict[str, dict[str, Any]]:
        """The mixes of layers in the best epoch: ELMo's `input` and `output`, and that of the `transformer`."""
        best = self.best()
        return best["elmo"] | ({"transformer": best["transformer"]} if best.get("transformer") else {})


def check_format(path: str | Path) -> None:
    """Raises `ElmoTasksError` if the ending of a picture's file is not one of `FORMATS`."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ElmoTasksError(f"{path}: the ending is {suffix!r}; expected {', '.join(FORMATS)}")


def plot_runs(path: str | Path, runs: Sequence[RunCurves]) -> None:
    """Draws runs and writes the picture: the loss and the validation metric, if there is one, after each epoch, and the
    weights of the layers of the biLM and of a transformer in the best epoch, as in figure 2 of Peters et al. (2018).

    Arguments:
        path: the file to write, replaced if it exists. Its ending chooses the format; see `check_format`.
    """
    from matplotlib.figure import Figure

    mixes = [
        (name if len(runs) == 1 else f"{run.name}, {name}", mix) for run in runs for name, mix in run.mixes().items()
    ]
    heights = [4.2, *([0.8 + 0.5 * len(mixes)] if mixes else [])]
    figure = Figure(figsize=(10, sum(heights)), layout="constrained")
    scored = [run for run in runs if run.records[-1]["validation"]]
    rows: list[Any] = [["losses", "metric" if scored else "losses"], *([["mixes", "mixes"]] if mixes else [])]
    axes = figure.subplot_mosaic(rows, height_ratios=heights)
    for number, run in enumerate(runs):
        epochs = [record["epoch"] for record in run.records]
        for part, style in (("training", "-"), ("validation", "--")):
            losses = [record[part]["loss"] for record in run.records if record[part]]
            if losses:  # otherwise, there is no validation data
                label = part if len(runs) == 1 else f"{run.name}, {part}"
                axes["losses"].plot(epochs, losses, style, color=f"C{number}", marker=".", label=label)
    _finish_curves(axes["losses"], "loss")
    if scored:
        _draw_metric(axes["metric"], scored)
    if mixes:
        draw_mixes(axes["mixes"], mixes)
    save_figure(figure, path)


def save_figure(figure: Figure, path: str | Path) -> None:
    """Writes a picture, atomically. The ending of the file is the format. The same picture gives the same file.

    A `$` in a text is this character, and not the border of a formula: texts are names of labels, runs and metrics.
    """
    import matplotlib
    from matplotlib.text import Text

    suffix = Path(path).suffix.lower()
    for text in figure.findobj(Text):
        text.set_parse_math(False)
    # Without a date, and with this salt for the names of shapes. Some ticks get their texts only here.
    settings: Any = {"svg.hashsalt": "elmo-tasks", "text.parse_math": False}
    with atomic_write(path) as stream, matplotlib.rc_context(settings):
        figure.savefig(stream, format=suffix[1:], dpi=150, metadata={"Date": None} if suffix == ".svg" else None)


def _draw_metric(axes: Axes, runs: Sequence[RunCurves]) -> None:
    for number, run in enumerate(runs):
        epochs = [record["epoch"] for record in run.records]
        values = [record["validation"][run.metric] for record in run.records]
        best = run.best()
        value = best["validation"][run.metric]
        axes.plot(epochs, values, color=f"C{number}", marker=".", label=f"{run.name}, best: {value:.2f}")
        axes.plot(best["epoch"], value, "*", color=f"C{number}", markersize=14)
    _finish_curves(axes, f"validation {', '.join(dict.fromkeys(run.metric for run in runs))}")


def _finish_curves(axes: Axes, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_title(title)
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")


def draw_mixes(axes: Axes, mixes: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """A heat map of mixes as `metrics.jsonl` has them, each with its label.

    It has a row for each mix and a column for each layer, 0 being that of the tokens. A layer that a mix leaves out has
    no number.
    """
    columns = sorted({layer for _, mix in mixes for layer in mix["layers"]})
    weights = [dict(zip(mix["layers"], mix["weights"], strict=True)) for _, mix in mixes]
    shares = [[each.get(layer, 0.0) for layer in columns] for each in weights]
    # Cells as shapes, not as an image: pages of a browser may not hold images.
    edges = [[number - 0.5 for number in range(count + 1)] for count in (len(columns), len(mixes))]
    axes.pcolormesh(*edges, shares, cmap="Blues", vmin=0, vmax=1)
    axes.invert_yaxis()
    axes.set_aspect("auto")
    for row, each in enumerate(weights):
        for column, layer in enumerate(columns):
            text = f"{each[layer]:.2f}" if layer in each else ""
            color = "white" if shares[row][column] > 0.6 else "black"
            axes.text(column, row, text, ha="center", va="center", color=color, fontsize="medium")
    axes.set_xticks(range(len(columns)), [f"layer {layer}" if layer else "tokens" for layer in columns])
    axes.set_yticks(range(len(mixes)), [f"{label}\ngamma {mix['gamma']:.2f}" for label, mix in mixes])
    axes.set_title("weights of the layers")
