"""Results on a terminal, in colour where it has any."""

from __future__ import annotations

import functools

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

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

_SHADES = ("#fff3d9", "#ffe2ae", "#ffcf80", "#ffbb55", "#ffa62b")
_SHADES_AGAINST = ("#e3eefc", "#c3dbf9", "#9fc5f5", "#79adf0", "#5596ea")
_SHOWN_SHARE = 0.05  # the least share of a token that is printed without colours
_BAR_WIDTH = 30  # of the longest bar, on a terminal that is wide enough
# Texts can hold control characters, with which a terminal could be made to do things. Each becomes one visible one.
_VISIBLE = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


class Terminal:
    """Prints drawings on a console. A label keeps its colour from one drawing to the next.

    Without colours, as with NO_COLOR or on a plain terminal, marks have brackets, `[Ann PER] left`, and tokens with a
    share of the explanation have this share, `Ann (80 %) left`.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self._has_colors = bool(self.console.color_system) and not self.console.no_color
        self._colors = Colors()

    def show(self, drawing: Drawing) -> None:
        """Prints a drawing and a blank line."""
        for figure in drawing:
            if not isinstance(figure, HeatMap):
                self.console.print(self._render(figure))
        self.console.print()

    @functools.singledispatchmethod
    def _render(self, figure: Figure) -> RenderableType:
        raise NotImplementedError(type(figure).__name__)

    @_render.register
    def _(self, figure: MarkedText) -> RenderableType:
        line = _titled(figure.title)
        opened: list[str] = []  # the styles of the marks around this position
        for piece in nested_pieces(figure.text, [(mark.start, mark.end) for mark in figure.marks]):
            if piece.kind == "text":
                line.append(_clean(piece.text), opened[-1] if opened else "")
                continue
            label = figure.marks[piece.span].label
            if piece.kind == "open":
                opened.append(f"{INK} on {PALETTE[self._colors[label]]}")
                line.append("" if self._has_colors else "[", opened[-1])
            else:
                end = f" {_clean(label)} " if self._has_colors else f" {_clean(label)}]"
                line.append(end, f"bold {opened.pop()}")
        return line

    @_render.register
    def _(self, figure: ShadedText) -> RenderableType:
        text = Text(_clean(figure.text))
        for (start, end), share in zip(figure.offsets, figure.shares(), strict=True):
            if shade := round(share * len(_SHADES)):
                text.stylize(f"{INK} on {_SHADES[shade - 1]}", start, end)
        return text

    @_render.register
    def _(self, figure: SignedText) -> RenderableType:
        line = _titled(figure.title)
        for (token, share), darkness in zip(figure.tokens, figure.darkness(), strict=True):
            shade = round(abs(darkness) * len(_SHADES))
            style = f"{INK} on {(_SHADES if share > 0 else _SHADES_AGAINST)[shade - 1]}" if shade else ""
            number = f" ({100 * share:.0f} %)" if not self._has_colors and abs(share) >= _SHOWN_SHARE else ""
            line.append(f"{_clean(token)}{number}", style).append(" ")
        return line

    @_render.register
    def _(self, figure: Bars) -> RenderableType:
        width = min(_BAR_WIDTH, self.console.width // 3)
        table = Table.grid(padding=(0, 1))
        table.add_column(max_width=max(4, self.console.width - width - 10), no_wrap=True)
        table.add_column()
        table.add_column(justify="right")
        for number, (name, share) in enumerate(figure.shares):
            is_chosen = number in figure.chosen
            bar = Text("█" * round(share * width), "green" if is_chosen else "")
            table.add_row(Text(_clean(name), "bold" if is_chosen else ""), bar, percent(share))
        return table

    @_render.register
    def _(self, figure: Rows) -> RenderableType:
        return Group(*(_titled(name) + Text(_clean(value)) for name, value in figure.items))


def _titled(title: str) -> Text:
    return Text().append(f"{_clean(title)}: ", "dim") if title else Text()


def _clean(text: str) -> str:
    return text.translate(_VISIBLE)
