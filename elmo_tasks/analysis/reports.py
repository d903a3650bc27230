"""The report of a study: tables, plots and commands, as Markdown and as one page of HTML."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Protocol

from elmo_tasks import __version__
from elmo_tasks.analysis.plots import save_figure
from elmo_tasks.analysis.study_plots import common_start, draw_curves, draw_scores, draw_shares, draw_weights
from elmo_tasks.analysis.study_runs import Result, StudyRecord, read_study
from elmo_tasks.analysis.study_summaries import Summary, summarize
from elmo_tasks.atomic import atomic_write
from elmo_tasks.rendering.html import END, page_start

_NOTES = (
    "± is the standard deviation over the seeds. The error reduction is relative to the arm's baseline, which is grey "
    "in the plots. p (seeds) is the two-sided p-value of Welch's t-test over the seeds, which knows nothing of the "
    "predictions: with few seeds it is rough. Minutes are those of training and evaluation, the mean of a run."
)
_STYLE = """
body { max-width: 75rem; counter-reset: none; }
section { padding-left: 0; }
section::before { content: none; }
h2 { font-size: 1rem; color: var(--ink); letter-spacing: 0; }
p { line-height: 1.5; }
.numbers { width: 100%; margin: .6rem 0; }
.numbers th, .numbers td { height: auto; padding: .25rem .6rem; border: 0; border-bottom: 1px solid var(--line);
  text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.numbers thead th { writing-mode: horizontal-tb; transform: none; color: var(--faint); }
.numbers :is(th, td):first-child { text-align: left; }
figure { margin: .6rem 0; padding: .6rem; border-radius: .4rem; background: #fff; }
figure svg { width: 100%; height: auto; }
pre { overflow-x: auto; font-size: .8rem; line-height: 1.4; }
footer { color: var(--faint); font-size: .8rem; }
"""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of text under a title. The first column is text, the others are numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        lines = [self.columns, ["---", *["---:"] * (len(self.columns) - 1)]]
        cells = [[cell.replace("|", "\\|") for cell in row] for row in (*lines, *self.rows)]
        return "\n".join(f"| {' | '.join(row)} |" for row in cells)

    def html(self) -> str:
        head = "".join(f"<th>{escape(column)}</th>" for column in self.columns)
        rows = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self.rows]
        body = "\n".join(f"<tr>{row}</tr>" for row in rows)
        return f'<div class="scroll"><table class="numbers">\n<thead><tr>{head}</tr></thead>\n{body}\n</table></div>'


@dataclasses.dataclass(frozen=True)
class Picture:
    """A plot in a file.

    Arguments:
        text: what it shows.
    """

    title: str
    text: str
    path: Path


class Described(Protocol):
    """What a report is about: a study, or a search."""

    @property
    def title(self) -> str: ...

    @property
    def text(self) -> str: ...


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
    pictures, commands = _pictures(summaries, folder), _commands(record, folder, results)
    return write_pages(folder, record.config, _tables(summaries), _NOTES, pictures, commands)


def write_pages(
    folder: Path, config: Described, tables: Sequence[Table], notes: str, pictures: Sequence[Picture], commands: str
) -> list[Path]:
    """Writes `report.md` and `report.html`; `notes` explain the tables. Returns the two files."""
    files = {
        "report.md": _markdown(config, tables, notes, pictures, commands, folder),
        "report.html": _html(config, tables, notes, pictures, commands),
    }
    for name, text in files.items():
        with atomic_write(folder / name) as stream:
            stream.write(text.encode())
    return [folder / name for name in files]


def _tables(summaries: Sequence[Summary]) -> list[Table]:
    """A table for each group."""
    groups = dict.fromkeys(each.arm.group for each in summaries)
    return [_table(group, [each for each in summaries if each.arm.group == group]) for group in groups]


def _table(title: str, summaries: Sequence[Summary]) -> Table:
    """Columns in which no arm has anything are left out, and what all names begin with is in the title."""
    start, rows = common_start(list(dict.fromkeys(each.arm.name for each in summaries))), []
    for each in summaries:
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
                **{
                    name: "" if p is None else f"{p:.3f}" if p >= 0.001 else "< 0.001"
                    for name, p in each.p_values().items()
                },
                "minutes": f"{each.minutes:.1f}",
                "the paper": "" if each.arm.paper is None else f"{each.arm.paper:g}",
                "its error reduction": _percent(each.paper_error_reduction()),
            }
        )
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    if all(each.share == 1 for each in summaries):
        columns.remove("data")
    if start.startswith(title):
        title = start.rstrip(",: ")
    return Table(title, columns, [[row[name] for name in columns] for row in rows])


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _pictures(summaries: Sequence[Summary], folder: Path) -> list[Picture]:
    """Draws all plots that the study has data for, into the folder `plots`."""
    paper = " A diamond is the paper's score." if any(each.arm.paper is not None for each in summaries) else ""
    drawn = {
        "scores": ("Scores", f"Means with standard deviations; a dot for each seed.{paper}", draw_scores(summaries)),
        "shares": ("Scores by training data", "Means with standard deviations.", draw_shares(summaries)),
        "curves": ("Learning curves", "Means over the seeds, and their range.", draw_curves(summaries, folder)),
        "weights": ("Weights of the biLM's layers", "In the best epoch, means over the seeds.",
                    draw_weights(summaries, folder)),
    }  # fmt: skip
    (folder / "plots").mkdir(exist_ok=True)
    pictures = []
    for name, (title, text, figure) in drawn.items():
        path = folder / "plots" / f"{name}.svg"
        path.unlink(missing_ok=True)
        if figure is not None:
            save_figure(figure, path)
            pictures.append(Picture(title, text, path))
    return pictures


def _commands(record: StudyRecord, folder: Path, results: Sequence[Result]) -> str:
    """The commands that made the report, and one that trains a run of each arm by hand."""
    lines = [record.command, shlex.join(["elmo-tasks", "report", str(folder)]), ""]
    lines.append("# one run of each arm by itself:")
    first: dict[tuple[str, float], Result] = {}
    for result in results:
        first.setdefault((result.arm, result.share), result)
    for result in first.values():
        words = ["elmo-tasks", "train", result.config, *(word for each in result.changes for word in ("--set", each))]
        words += [word for name, value in record.config.variables.items() for word in ("--ext-var", f"{name}={value}")]
        lines.append(shlex.join(words))
    return "\n".join(lines)


def _markdown(
    config: Described, tables: Sequence[Table], notes: str, pictures: Sequence[Picture], commands: str, folder: Path
) -> str:
    parts = [f"# {config.title}", config.text]
    parts += [part for table in tables for part in (f"## {table.title}" if table.title else "", table.markdown())]
    parts.append(notes)
    for picture in pictures:
        parts += [f"## {picture.title}", f"![{picture.title}]({picture.path.relative_to(folder).as_posix()})"]
        parts.append(picture.text)
    parts += ["## Commands", f"```\n{commands}\n```", f"Written by elmo-tasks {__version__}."]
    return "\n\n".join(part for part in parts if part) + "\n"


def _html(config: Described, tables: Sequence[Table], notes: str, pictures: Sequence[Picture], commands: str) -> str:
    heading = [f"<p>{escape(config.text)}</p>\n"] if config.text else []
    tables_html = [f"{f'<h2>{escape(table.title)}</h2>' if table.title else ''}\n{table.html()}\n" for table in tables]
    sections = [f"{''.join(tables_html)}<p>{escape(notes)}</p>"]
    sections += [
        f"<h2>{escape(each.title)}</h2>\n<p>{escape(each.text)}</p>\n<figure>{_inline_svg(each)}</figure>"
        for each in pictures
    ]
    sections.append(f"<h2>Commands</h2>\n<pre>{escape(commands)}</pre>")
    body = "".join(f"<section>\n{section}\n</section>\n" for section in sections)
    footer = f"<footer>Written by elmo-tasks {escape(__version__)}.</footer>\n"
    return "".join([page_start(config.title, _STYLE), *heading, body, footer, END])


def _inline_svg(picture: Picture) -> str:
    """The picture as an element of a page, without the head of its file, and with a name for screen readers."""
    text = picture.path.read_text(encoding="utf-8")
    svg = text[text.index("<svg") :]
    return re.sub("^<svg ", f'<svg role="img" aria-label="{escape(picture.title)}" ', svg)
