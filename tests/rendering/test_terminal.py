import io
import re
from typing import Any

import pytest
from rich.console import Console

from elmo_tasks.rendering.drawing import Bars, Drawing, Figure, HeatMap, Mark, MarkedText, Rows, ShadedText, SignedText
from elmo_tasks.rendering.terminal import Terminal

ANN = MarkedText("Ann left [red]Bo[/red].", [Mark(0, 3, "PER"), Mark(14, 16, "PER")], title="text")
NESTED = MarkedText("her boat", [Mark(0, 3, "0"), Mark(0, 8, "1")])


def shown(*drawings: Drawing, width: int = 60, styles: bool = False, **settings: Any) -> str:
    """What a terminal of a fixed width shows."""
    settings = {"color_system": "truecolor", **settings}
    console = Console(file=io.StringIO(), record=True, force_terminal=True, width=width, **settings)
    terminal = Terminal(console)
    for drawing in drawings:
        terminal.show(drawing)
    return console.export_text(styles=styles)


def test_marks_have_their_label_and_markup_is_text() -> None:
    assert shown([ANN]) == "text: Ann PER  left [red]Bo PER [/red].\n\n"
    assert shown([NESTED]) == "her 0  boat 1 \n\n"


def test_a_label_keeps_its_color() -> None:
    def background(text: str, label: str) -> str:
        """The escape sequence that begins the style of a label."""
        return text[: text.index(f" {label} ")].rpartition("\x1b[1;")[2]

    first, second, third = shown(
        [MarkedText("a b", [Mark(0, 1, "X"), Mark(2, 3, "Y")])],
        [MarkedText("c", [Mark(0, 1, "Y")])],
        [MarkedText("d", [Mark(0, 1, "X")])],
        styles=True,
    ).split("\n\n")[:3]
    assert background(first, "X") == background(third, "X") != background(first, "Y") == background(second, "Y")


def test_marks_have_brackets_without_colors() -> None:
    for settings in ({"no_color": True}, {"color_system": None}):
        assert shown([ANN, NESTED], **settings) == "text: [Ann PER] left [red][Bo PER][/red].\n[[her 0] boat 1]\n\n"


def test_control_characters_become_visible() -> None:
    drawing: Drawing = [
        MarkedText("a\x1b[31mb\x9bc\r\x1f\x7f\x9f\n\td", [Mark(0, 1, "\x1bX")]),
        MarkedText("~10\u00a0km"),
        Bars([("\x1b", 1.0)]),
        Rows([("\x1b", "\x07")]),
    ]
    assert not {"\x1b", "\x9b", "\r", "\x1f", "\x7f", "\x9f", "\x07"} & set(shown(drawing))
    assert "b\N{REPLACEMENT CHARACTER}c" in shown(drawing)
    assert "~10\u00a0km\n" in shown(drawing)


def test_without_a_console_it_prints_on_standard_output_and_colors_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal
    Terminal().show([MarkedText("10 'km' True http://a.b")])
    assert capsys.readouterr().out == "10 'km' True http://a.b\n\n"


def test_bars_and_long_names_fit_the_width() -> None:
    bars = Bars([("a long name " * 20, 0.5), ("short", 0.25)])
    for width, lengths in ((90, [15, 8]), (30, [5, 2])):
        lines = shown([bars], width=width).splitlines()
        assert all(len(line.rstrip()) <= width for line in lines)
        assert [line.count("█") for line in lines] == [*lengths, 0]
        assert "…" in lines[0]
        assert lines[1].split()[-2:] == ["25.0", "%"]


def test_bars_are_aligned_with_their_names_and_shares() -> None:
    bars = Bars([("yes", 0.5), ("a longish name", 0.09), ("no", 1.0)])
    assert shown([bars], width=32).splitlines()[:3] == [
        "yes          █████       50.0 %",
        "a longish n… █            9.0 %",
        "no           ██████████ >99.9 %",
    ]
    assert "█" * 30 + " >99.9 %" in shown([bars], width=200)
    assert "█" * 31 not in shown([bars], width=200)


def test_the_first_bar_stands_out() -> None:
    first, second = shown([Bars([("yes", 0.5), ("no", 0.5)])], styles=True).splitlines()[:2]
    assert "\x1b[1myes" in first
    assert "\x1b[32m█" in first
    assert "\x1b[" not in second


def test_attention_is_shaded() -> None:
    part = ShadedText("not bad", [(0, 3), (4, 7)], [0.9, 0.05])
    assert shown([part]) == "not bad\n\n"
    styled = shown([part], styles=True)
    assert styled.count("48;2;") == 1
    assert styled.startswith("\x1b[")
    weights = [0.1, 0.2, 0.3, 0.4, 0.5]
    spans = [(start, start + 1) for start in range(5)]
    reds = re.findall(r"48;2;255;(\d+);", shown([ShadedText("abcde", spans, weights)], styles=True))
    assert [int(red) for red in reds] == sorted({int(red) for red in reds}, reverse=True)  # ever darker
    assert len(reds) == 5


def test_tokens_without_a_weight_are_refused() -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        shown([ShadedText("not bad", [(0, 3), (4, 7)], [0.9])])


def test_text_wraps_at_words_and_heat_maps_are_left_out() -> None:
    heat_map: Figure = HeatMap(["a"], ["b"], [[1.0]])
    assert shown([MarkedText("one two three"), heat_map], width=8) == "one two \nthree\n\n"


def test_tokens_for_and_against_have_their_own_colors_or_their_shares() -> None:
    part = SignedText([("not", -0.6), ("\x1bbad", 0.3), (";", 0.05), (".", 0.049)], title="negative")
    styled = shown([part], styles=True)
    assert re.findall(r"48;2;(\d+;\d+;\d+)", styled) == ["85;150;234", "255;226;174"]
    plain = shown([part], color_system=None)
    assert plain == "negative: not (-60 %) \N{REPLACEMENT CHARACTER}bad (30 %) ; (5 %) . \n\n"
    assert shown([SignedText([("a", 0.0)], title="x")]) == "x: a \n\n"
