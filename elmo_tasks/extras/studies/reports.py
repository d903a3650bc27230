"""The report of a study: tables, plots and commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from elmo_tasks.extras.compare.plots import save_figure
from elmo_tasks.extras.studies.report_pages import Table, picture, write_pages
from elmo_tasks.extras.studies.study import train_command
from elmo_tasks.extras.studies.study_findings import Findings, analyze
from elmo_tasks.extras.studies.study_plots import common_start, draw_shares, draw_weights
from elmo_tasks.extras.studies.study_runs import Result, StudyRecord, Summary, read_study, summarize

_NOTES = (
    "± is the standard deviation over the seeds. The error reduction is relative to the arm's baseline, which is grey "
    "in the plots. Minutes are those of training and evaluation, the mean of a run."
)
_EXPECTED = "A score is expected within two standard deviations of the paper's seeds around the paper's score."
_TESTS = {
    "randomization": "by paired approximate randomization over the examples, all seeds together",
    "bootstrap": "by the paired bootstrap over the same",
    "seeds": "by Student's t-test over the seeds, paired if both arms have the same ones and otherwise Welch's, which "
    "knows nothing of the predictions: with few seeds it is rough",
}


def write_report(folder: str | Path) -> list[Path]:
    """Writes the report of a study into its folder: `report.md`, `report.html` and the folder `plots`.

    An earlier report is replaced. Runs that have not finished are left out; the numbers of seeds show it.

    Returns:
        the two files.

    Raises:
        RunError: the folder is not that of a study, or none of its runs has finished.
    """
    folder = Path(folder)
    record, results = read_study(folder)
    summaries = summarize(record, results)
    findings = analyze(summaries, folder)
    parts = [record.config.text]
    for table in _tables(summaries, findings):
        parts += [f"## {table.title}" if table.title else "", table.markdown()]
    parts += [_notes(summaries, findings), *_pictures(summaries, folder)]
    return write_pages(folder, record.config.title, parts, _commands(record, folder, results))


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


def _tables(summaries: Sequence[Summary], findings: Findings) -> list[Table]:
    """A table for each group."""
    groups = dict.fromkeys(each.arm.group for each in summaries)
    return [_table(group, [each for each in summaries if each.arm.group == group], findings) for group in groups]


def _table(title: str, summaries: Sequence[Summary], findings: Findings) -> Table:
    """Columns in which no arm has anything are left out, and what all names begin with is in the title."""
    start, rows = common_start(list(dict.fromkeys(each.arm.name for each in summaries))), []
    for each in summaries:
        p_values = findings.p_values.get((each.arm.name, each.share), {})
        spread = "" if each.std is None else f" ± {each.std:.2f}"
        complete = len(each.results) == each.num_seeds
        rows.append(
            {
                "arm": each.arm.name[len(start) :],
                "data": f"{100 * each.share:g} %",
                "metric": each.metric,
                "score": f"{each.mean:.2f}{spread}",
                "n": f"{len(each.results)}{'' if complete else f' of {each.num_seeds}'}",
                "error reduction": _percent(each.error_reduction()),
                **{f"p ({test})": _p_value(p_values[test]) if test in p_values else "" for test in _TESTS},
                "minutes": f"{each.minutes:.1f}",
                "the paper": "" if each.arm.paper is None else f"{each.arm.paper:g}",
                "expected": each.expected(),
                "its error reduction": _percent(each.paper_error_reduction()),
            }
        )
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    if all(each.share == 1 for each in summaries):
        columns.remove("data")
    if start.startswith(title):
        title = start.rstrip(",: ")
    return Table(title, columns, [[row[name] for name in columns] for row in rows])


def _p_value(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


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
            yield f"## {title}\n\n{picture(title, path)}\n\n{text}"


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
