"""The pages of a report: titles, tables, plots and examples, as Markdown and as one page of HTML."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Protocol

from elmo_tasks import __version__
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.rendering.drawing import Drawing
from elmo_tasks.rendering.html import END, Sections, page_start

_ERRORS = (
    "Counted as the task's scorer counts. The tables that compare arms have means over the seeds, with the number of "
    "items in brackets. The page report.html also shows the worst examples of an arm's first run."
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
h3 { margin: .8rem 0 0; font-size: .8rem; font-weight: 600; }
summary { cursor: pointer; }
details > section { margin-left: 1rem; }
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


@dataclasses.dataclass(frozen=True)
class Details:
    """Tables that the page opens on a click, and examples that only the page has."""

    title: str
    tables: Sequence[Table]
    examples: Sequence[Drawing] = ()

    def markdown(self) -> str:
        tables = [f"{table.title}\n\n{table.markdown()}" for table in self.tables]
        return "\n\n".join([f"### {self.title}", *tables]) if tables else ""

    def html(self) -> str:
        tables = [f"<h3>{escape(table.title)}</h3>\n{table.html()}\n" for table in self.tables]
        sections = Sections()
        examples = ["<h3>the worst examples</h3>\n", *map(sections.section, self.examples)] if self.examples else []
        summary = f"<summary>{escape(self.title)}</summary>"
        return f"<details>{summary}\n{''.join([*tables, *examples])}</details>\n"


class Subject(Protocol):
    """What a report is about: a study, or a search."""

    @property
    def title(self) -> str: ...

    @property
    def text(self) -> str: ...


@dataclasses.dataclass(frozen=True)
class Report:
    """What a report has, in its order.

    Arguments:
        notes: explain the tables.
        errors: what systems get wrong.
        commands: those that made the results.
    """

    about: Subject
    tables: Sequence[Table]
    notes: str
    pictures: Sequence[Picture]
    commands: str
    errors: Sequence[Details] = ()

    def write(self, folder: Path) -> list[Path]:
        """Writes `report.md` and `report.html`; returns the two files."""
        files = {"report.md": self._markdown(folder), "report.html": self._html()}
        for name, text in files.items():
            with atomic_write(folder / name) as stream:
                stream.write(text.encode())
        return [folder / name for name in files]

    def _markdown(self, folder: Path) -> str:
        parts = [f"# {self.about.title}", self.about.text]
        for table in self.tables:
            parts += [f"## {table.title}" if table.title else "", table.markdown()]
        parts.append(self.notes)
        for picture in self.pictures:
            parts += [f"## {picture.title}", f"![{picture.title}]({picture.path.relative_to(folder).as_posix()})"]
            parts.append(picture.text)
        if self.errors:
            parts += ["## Errors", _ERRORS, *(each.markdown() for each in self.errors)]
        parts += ["## Commands", f"```\n{self.commands}\n```", f"Written by elmo-tasks {__version__}."]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _html(self) -> str:
        heading = [_paragraph(self.about.text)]
        tables = [f"{f'<h2>{escape(each.title)}</h2>' if each.title else ''}\n{each.html()}\n" for each in self.tables]
        sections = [f"{''.join(tables)}<p>{escape(self.notes)}</p>"]
        sections += [
            f"<h2>{escape(each.title)}</h2>\n{_paragraph(each.text)}<figure>{_inline_svg(each)}</figure>"
            for each in self.pictures
        ]
        if self.errors:
            sections.append(f"<h2>Errors</h2>\n<p>{_ERRORS}</p>\n{''.join(each.html() for each in self.errors)}")
        sections.append(f"<h2>Commands</h2>\n<pre>{escape(self.commands)}</pre>")
        body = "".join(f"<section>\n{section}\n</section>\n" for section in sections)
        footer = f"<footer>Written by elmo-tasks {escape(__version__)}.</footer>\n"
        return "".join([page_start(self.about.title, _STYLE), *heading, body, footer, END])


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>\n" if text else ""


def _inline_svg(picture: Picture) -> str:
    """The picture as an element of a page, without the head of its file, and with a name for screen readers."""
    text = picture.path.read_text(encoding="utf-8")
    svg = text[text.index("<svg") :]
    return re.sub("^<svg ", f'<svg role="img" aria-label="{escape(picture.title)}" ', svg)
