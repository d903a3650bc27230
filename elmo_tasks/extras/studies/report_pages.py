"""The pages of a report: Markdown and, made from it, one page of HTML, which also has the plots."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from markdown_it import MarkdownIt

from elmo_tasks import __version__
from elmo_tasks.extras.html.html import END, page_start
from elmo_tasks.files.atomic import atomic_write

_STYLE = """
body { max-width: 75rem; }
body > :is(h2, h3) { margin: 1.6rem 0 .3rem; font-size: 1rem; color: var(--ink); letter-spacing: 0; }
body > h3 { font-size: .8rem; }
body > p { line-height: 1.5; }
body > table { display: block; overflow-x: auto; margin: .6rem 0; }
body > table :is(th, td) { height: auto; padding: .25rem .6rem; border: 0; border-bottom: 1px solid var(--line);
  white-space: nowrap; font-variant-numeric: tabular-nums; }
body > table thead th { writing-mode: horizontal-tb; transform: none; color: var(--faint); }
svg { width: 100%; height: auto; border-radius: .4rem; background: #fff; }
pre { overflow-x: auto; font-size: .8rem; line-height: 1.4; }
"""


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


def picture(title: str, path: Path) -> str:
    """A plot in the folder `plots` of a report, as Markdown."""
    return f"![{title}](plots/{path.name})"


def write_pages(folder: Path, title: str, parts: Sequence[str], commands: str) -> list[Path]:
    """Writes `report.md` and `report.html`; returns the two files.

    Arguments:
        parts: what stands between the title and the commands, as Markdown. Empty parts are left out.
        commands: those that made the results.
    """
    findings = "\n\n".join(filter(None, parts))
    end = f"## Commands\n\n```\n{commands}\n```\n\nWritten by elmo-tasks {__version__}.\n"
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")  # what looks like HTML is text
    html = re.sub(
        r'<img src="(plots/\w+\.svg)" alt="([^"]*)"[^>]*>',
        lambda found: _inline_svg(folder / found[1], found[2]),
        markdown.render(findings),
    )
    files = {
        "report.md": f"# {title}\n\n{findings}\n\n{end}",
        "report.html": "".join([page_start(title, _STYLE), html, markdown.render(end), END]),
    }
    for name, text in files.items():
        with atomic_write(folder / name) as stream:
            stream.write(text.encode())
    return [folder / name for name in files]


def _inline_svg(path: Path, name: str) -> str:
    """A picture as an element of a page, without the head of its file, and with a name for screen readers."""
    text = path.read_text(encoding="utf-8")
    return re.sub("^<svg ", f'<svg role="img" aria-label="{name}" ', text[text.index("<svg") :])
