"""Results as a single page of HTML. It needs no other file and no network, and runs no scripts."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from html import escape
from pathlib import Path

from elmo_tasks.commands.console import binary_output
from elmo_tasks.rendering.drawing import (
    INK,
    PALETTE,
    Bars,
    Colors,
    Drawing,
    Figure,
    HeatMap,
    MarkedText,
    Rows,
    ShadedText,
    SignedText,
    nested_pieces,
    percent,
)

_CLASSES = "\n".join(f".c{number} {{ background: {color}; }}" for number, color in enumerate(PALETTE))
_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8").replace("INK", INK) + _CLASSES
END = "</body>\n</html>\n"


def page_start(title: str) -> str:
    """The beginning of a page. What follows is written by `Sections`, and `END` is its end."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{_STYLE}
</style>
</head>
<body>
{f"<h1>{escape(title)}</h1>" if title else ""}
"""


@contextlib.contextmanager
def open_page(path: str, title: str, note: Callable[[], str]) -> Iterator[Callable[[Drawing], object]]:
    """Yields a function that adds a section to a page, which appears when it is complete.

    Arguments:
        note: says at the end why the page ends there, if there are more results.
    """
    sections = Sections()
    with binary_output(path) as stream:
        stream.write(page_start(title).encode())
        yield lambda drawing: stream.write(sections.section(drawing).encode())
        if why := note():
            stream.write(f"<p><b>The results end here:</b> {escape(why)}</p>\n".encode())
        stream.write(END.encode())


@dataclasses.dataclass(frozen=True)
class Page:
    """A page of HTML. A notebook shows it below the cell whose value it is."""

    html: str

    def _repr_html_(self) -> str:
        """A frame of its own, so that the page's style does not reach the notebook. It grows to the page's height."""
        grow = "this.style.height = this.contentDocument.documentElement.scrollHeight + 'px'"
        style = "width: 100%; height: 20em; border: 0"
        return f'<iframe srcdoc="{escape(self.html)}" onload="{grow}" style="{style}"></iframe>'


def page_of(drawings: Iterable[Drawing]) -> Page:
    """A page without a title, with a section for each drawing."""
    sections = Sections()
    return Page("".join([page_start(""), *map(sections.section, drawings), END]))


class Sections:
    """Writes drawings as sections of a page. A label keeps its colour from one section to the next."""

    def __init__(self) -> None:
        self._colors = Colors()

    def section(self, drawing: Drawing) -> str:
        parts = []
        for figure in drawing:
            title = "" if isinstance(figure, Rows) else figure.title
            parts.append((f"<h2>{escape(title)}</h2>\n" if title else "") + self._write(figure))
        return "<section>\n" + "\n".join(parts) + "\n</section>\n"

    @functools.singledispatchmethod
    def _write(self, figure: Figure) -> str:
        raise NotImplementedError(type(figure).__name__)

    @_write.register
    def _(self, figure: MarkedText) -> str:
        written = []
        for piece in nested_pieces(figure.text, [(mark.start, mark.end) for mark in figure.marks]):
            if piece.kind == "text":
                written.append(escape(piece.text))
                continue
            mark = figure.marks[piece.span]
            if piece.kind == "open":
                tip = "" if mark.probability is None else f' title="{escape(percent(mark.probability))}"'
                written.append(f'<mark class="c{self._colors[mark.label]}"{tip}>')
            else:
                written.append(f"<b>{escape(mark.label)}</b></mark>")
        return f"<p>{''.join(written)}</p>"

    @_write.register
    def _(self, figure: ShadedText) -> str:
        written, last = [], 0
        tips = [percent(weight) for weight in figure.weights] if figure.tips is None else figure.tips
        for (start, end), tip, share in zip(figure.offsets, tips, figure.shares(), strict=True):
            shade = f'<span class="heat shaded" style="--share:{share:.2f}" title="{escape(tip)}">'
            written.append(f"{escape(figure.text[last:start])}{shade}{escape(figure.text[start:end])}</span>")
            last = end
        return f"<p>{''.join(written)}{escape(figure.text[last:])}</p>"

    @_write.register
    def _(self, figure: SignedText) -> str:
        written = []
        for (token, share), darkness in zip(figure.tokens, figure.darkness(), strict=True):
            style = f'class="{"heat" if share > 0 else "cold"} shaded" style="--share:{abs(darkness):.2f}"'
            written.append(f'<span {style} title="{escape(percent(share))}">{escape(token)}</span>')
        return f"<p>{' '.join(written)}</p>"

    @_write.register
    def _(self, figure: Bars) -> str:
        lines = []
        for number, (name, share) in enumerate(figure.shares):
            tag = "b" if number in figure.chosen else "span"
            bar = f'<i style="width:{100 * share:.1f}%"></i>'
            lines.append(f"<{tag}>{escape(name)}</{tag}>{bar}<span>{escape(percent(share))}</span>")
        return '<div class="bars">\n' + "\n".join(lines) + "\n</div>"

    @_write.register
    def _(self, figure: HeatMap) -> str:
        head = "".join(f"<th>{escape(column)}</th>" for column in figure.columns)
        lines = [f"<thead><tr><th></th>{head}</tr></thead>"]
        texts = figure.texts or [[""] * len(figure.columns)] * len(figure.rows)
        for name, values, shown in zip(figure.rows, figure.values, texts, strict=True):
            cells = []
            for column, value, text in zip(figure.columns, values, shown, strict=True):
                tip = escape(f"{name} → {column}: {value:.2f}")
                cells.append(f'<td class="heat" style="--share:{value:.2f}" title="{tip}">{escape(text)}</td>')
            lines.append(f"<tr><th>{escape(name)}</th>{''.join(cells)}</tr>")
        return '<div class="scroll"><table>\n' + "\n".join(lines) + "\n</table></div>"

    @_write.register
    def _(self, figure: Rows) -> str:
        return "\n".join(f"<h2>{escape(name)}</h2>\n<p>{escape(value)}</p>" for name, value in figure.items)
