"""The report of a study: tables, tests of significance, plots and commands, as Markdown.

The tests over the examples use the predictions that the runs have stored, so no model runs again.
"""

from __future__ import annotations

import dataclasses
import math
import shlex
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks import __version__
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.compare.comparison import Comparison, compare_predictions, corrected
from elmo_tasks.extras.compare.plots import RunCurves, draw_mixes, save_figure
from elmo_tasks.extras.compare.significance import seed_difference
from elmo_tasks.extras.compare.systems import Predictions, System, read_predictions
from elmo_tasks.extras.studies.study import train_command
from elmo_tasks.extras.studies.study_runs import Result, StudyRecord, Summary, read_study, summarize
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.runs.folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 11.0  # of a plot, in inches
_NOTES = (
    "± is the standard deviation over the seeds. The error reduction is relative to the arm's baseline. Minutes are "
    "those of training and evaluation, the mean of a run."
)
_EXPECTED = "A score is expected within two standard deviations of the paper's seeds around the paper's score."
_TESTS = {
    "randomization": "by paired approximate randomization over the examples, all seeds together",
    "seeds": "by Student's t-test over the seeds, paired if both arms have the same ones and otherwise Welch's, which "
    "knows nothing of the predictions: with few seeds it is rough",
}

ArmAtShare = tuple[str, float]  # the name of an arm, and the share of the data


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of text under a title. The first column is text, the others are numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """Without the title."""
        lines = [self.columns, ["---", *["---:"] * (len(self.columns) - 1)]]
        cells = [[cell.replace("|", "\\|") for cell in row] for row in (*lines, *self.rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in cells)


@dataclasses.dataclass(frozen=True)
class Findings:
    """The result of `analyze`.

    Arguments:
        p_values: two-sided, by test, of each arm against its baseline at the same share; with Holm's correction over
            all arms that have this baseline.
        problems: why tests over the examples are missing.
    """

    p_values: dict[ArmAtShare, dict[str, float]]
    problems: list[str]


def write_report(folder: str | Path) -> Path:
    """Writes the report of a study into its folder: `report.md` and the folder `plots`. Returns the file.

    An earlier report is replaced. Runs that have not finished are left out; the numbers of seeds show it.

    Raises:
        RunError: the folder is not that of a study, or none of its runs has finished.
    """
    folder = Path(folder)
    record, results = read_study(folder)
    summaries = summarize(record, results)
    findings = analyze(summaries, folder)
    parts = [f"# {record.config.title}", record.config.text]
    for group in dict.fromkeys(each.arm.group for each in summaries):
        table = _table(group, [each for each in summaries if each.arm.group == group], findings)
        parts += [f"## {table.title}" if table.title else "", table.markdown()]
    parts += [_notes(summaries, findings), *_pictures(summaries, folder)]
    parts += [f"## Commands\n\n```\n{_commands(record, folder, results)}\n```"]
    parts += [f"Written by elmo-tasks {__version__}.\n"]
    with atomic_write(folder / "report.md") as stream:
        stream.write("\n\n".join(filter(None, parts)).encode())
    return folder / "report.md"


def _notes(summaries: Sequence[Summary], findings: Findings) -> str:
    """What the tables show, which test each p-value comes from, and what is missing."""
    tests = [test for test in _TESTS if any(test in each for each in findings.p_values.values())]
    parts = [_NOTES, _EXPECTED] if any(each.expected() for each in summaries) else [_NOTES]
    if tests:
        explained = "; ".join(f"p ({test}) {_TESTS[test]}" for test in tests)
        parts.append(
            "Two-sided p-values of the difference to the baseline with the same share of data, with Holm's correction "
            f"where several arms have this baseline: {explained}."
        )
    if findings.problems:
        parts.append(f"No tests over the examples where these were in the way: {'; '.join(findings.problems)}.")
    return " ".join(parts)


def _table(title: str, summaries: Sequence[Summary], findings: Findings) -> Table:
    """Columns in which no arm has anything are left out."""
    rows = []
    for each in summaries:
        p_values, reduction = findings.p_values.get((each.arm.name, each.share), {}), each.error_reduction()
        spread = "" if each.std is None else f" ± {each.std:.2f}"
        complete = len(each.results) == each.num_seeds
        rows.append(
            {
                "arm": each.arm.name,
                "data": f"{100 * each.share:g} %",
                "metric": each.metric,
                "score": f"{each.mean:.2f}{spread}",
                "n": f"{len(each.results)}{'' if complete else f' of {each.num_seeds}'}",
                "error reduction": "" if reduction is None else f"{100 * reduction:.0f} %",
                **{f"p ({test})": _p_value(p_values[test]) if test in p_values else "" for test in _TESTS},
                "minutes": f"{each.minutes:.1f}",
                "the paper": "" if each.arm.paper is None else f"{each.arm.paper:g}",
                "expected": each.expected(),
            }
        )
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    if all(each.share == 1 for each in summaries):
        columns.remove("data")
    return Table(title, columns, [[row[name] for name in columns] for row in rows])


def _p_value(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _pictures(summaries: Sequence[Summary], folder: Path) -> Iterator[str]:
    """Draws all plots that the study has data for, into the folder `plots`; yields their Markdown."""
    drawn = {
        "shares": ("Scores by training data", "Means with standard deviations.", draw_shares(summaries)),
        "weights": ("Weights of the layers", "Of the biLM or a transformer, in the best epoch, means over the seeds.",
                    draw_weights(summaries, folder)),
    }  # fmt: skip
    for name, (title, text, figure) in drawn.items():
        path = folder / "plots" / f"{name}.svg"
        path.unlink(missing_ok=True)
        if figure is not None:
            save_figure(figure, path)
            yield f"## {title}\n\n![{title}](plots/{path.name})\n\n{text}"


def _commands(record: StudyRecord, folder: Path, results: Sequence[Result]) -> str:
    """The commands that made the report, and one that trains a run of each arm by hand."""
    first = {(each.arm, each.share): each for each in reversed(results)}
    variables = record.config.variables | record.variables
    trainings = [
        train_command(each.config, each.changes, variables, record.packages)
        for each in results
        if first[each.arm, each.share] is each
    ]
    report = shlex.join(["elmo-tasks", "report", str(folder)])
    return "\n".join([record.command, report, "", "# one run of each arm by itself:", *trainings])


def analyze(summaries: Sequence[Summary], folder: Path) -> Findings:
    """Tests the arms of a study in a folder against their baselines."""
    found, missing = Findings({}, []), list[str]()
    sets = [arms for arms in _compared(summaries) if len(arms) > 1]
    for arms in sets:
        head, *others = arms
        having = [each for each in arms if all(file.is_file() for file in _predictions(each, folder))]
        missing += [each.arm.name for each in arms if each not in having]
        p_values = {each.arm.name: _over_seeds(head, each) for each in others}
        try:
            if len(having) > 1 and having[0] is head:
                for each in _compare(having, folder).differences:
                    p_values[each.name]["randomization"] = each.p_values["randomization"]
        except ElmoTasksError as error:
            found.problems.append(str(error))
        for name, tests in zip(p_values, corrected([*p_values.values()]), strict=True):
            found.p_values[name, head.share] = tests
    if missing:
        every = {each.arm.name for arms in sets for each in arms}
        arms_missing = "any arm" if {*missing} == every else "; ".join(dict.fromkeys(missing))
        found.problems.insert(0, f"not all runs of {arms_missing} have stored their predictions")
    return found


def _compared(summaries: Sequence[Summary]) -> list[list[Summary]]:
    """The arms in sets, at the same share of the data: a baseline, and all that are compared with it."""
    sets: dict[ArmAtShare, list[Summary]] = {}
    for each in summaries:
        head = each.baseline or each
        members = sets.setdefault((head.arm.name, each.share), [head])
        if each.baseline:
            members.append(each)
    return list(sets.values())


def _predictions(summary: Summary, folder: Path) -> list[Path]:
    """The files with the predictions of an arm's runs."""
    return [RunFolder(folder / each.folder).predictions_for(each.split) for each in summary.results]


def _over_seeds(head: Summary, other: Summary) -> dict[str, float]:
    same = [each.seed for each in head.results] == [each.seed for each in other.results]
    found = seed_difference(head.scores, other.scores, paired=same)
    return {} if found is None or found.p_value is None else {"seeds": found.p_value}


def _compare(arms: Sequence[Summary], folder: Path) -> Comparison:
    """Compares arms with the first one; raises `ElmoTasksError` if the predictions cannot be compared."""

    def models(arm: Summary) -> Iterator[Predictions]:
        """One after the other, because those of thousands of passages are large."""
        return map(read_predictions, _predictions(arm, folder))

    systems = [(System(each.arm.name, (), [result.seed for result in each.results]), models(each)) for each in arms]
    return compare_predictions(systems, metric=arms[0].results[0].metric)


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
                marker="o", markersize=4, capsize=3, label=name,
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
