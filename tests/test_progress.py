"""When there is a progress bar."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize("columns", [80, 90, 132])
@pytest.mark.parametrize("total", [140, 14_000])
def test_a_narrow_terminal_has_room_for_the_bar_and_the_note(
    columns: int, total: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    with progress_bar() as bar:
        task = bar.add_task("steps", total=total, note="epoch 13/25, best 66.67, loss 0.1234")
        bar.update(task, advance=total // 2, refresh=True)
    line = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err).replace("\r", "\n").strip().split("\n")[-1]
    assert len(line.rstrip()) <= columns
    assert len(re.findall("[━╸╺]", line)) == 10
    assert all(text in line for text in (f"{total // 2}/{total}", "to go:", "epoch 13/25, best 66.67"))


def test_bars_are_visible_unless_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert not progress_bar().disable
