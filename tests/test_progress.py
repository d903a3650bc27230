"""When there is a progress bar."""

from __future__ import annotations

import sys

import pytest

from elmo_tasks.progress import progress_bar


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("visible", [False, True])
def test_a_bar_is_drawn_on_a_terminal_where_it_is_wanted(
    terminal: bool, visible: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with progress_bar(visible=visible) as bar:
        bar.update(bar.add_task("reading", total=8, note="so far"), advance=3, refresh=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert all((text in captured.err) == (terminal and visible) for text in ("reading", "3/8", "so far", "to go:"))
    if terminal and visible:
        assert captured.err.endswith("\x1b[2K")  # at the end, its line is empty again


def test_bars_are_visible_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert not progress_bar().disable
