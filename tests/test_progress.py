"""When there is a progress bar."""

import logging
import queue
import re
import sys
from collections.abc import Iterator

import pytest

from elmo_tasks import progress
from elmo_tasks.progress import at_work, progress_bar


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


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[queue.Queue[str]]:
    """What is logged of the progress, without waiting ten seconds for it."""
    found: queue.Queue[str] = queue.Queue()
    handler = logging.Handler()
    handler.emit = lambda record: found.put(record.getMessage())  # type: ignore[method-assign]
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    progress.logger.addHandler(handler)
    monkeypatch.setattr(progress.logger, "propagate", False)
    progress.logger.setLevel(logging.INFO)
    yield found
    progress.logger.removeHandler(handler)
    progress.logger.setLevel(logging.NOTSET)


def test_a_log_says_now_and_then_how_far_a_computation_is(lines: queue.Queue[str]) -> None:
    with progress_bar() as bar:
        task = bar.add_task("steps", total=14_000, note="epoch 2")
        bar.update(task, completed=1_234)
        assert lines.get(timeout=60) == "steps: 1,234 of 14,000 (epoch 2), after 0:00:00"
        with progress_bar() as inner:  # such as the evaluation after an epoch
            inner.add_task("evaluation", total=None, note="")
            while not (line := lines.get(timeout=60)).startswith("evaluation"):
                pass
            assert line == "evaluation: 0, after 0:00:00"
            assert lines.get(timeout=60).startswith("evaluation")
        while lines.get(timeout=60).startswith("evaluation"):
            pass
    while not lines.empty():
        assert lines.get().startswith("steps")


def test_what_has_no_bar_says_that_it_is_at_work(lines: queue.Queue[str]) -> None:
    with at_work("compare"):
        assert lines.get(timeout=60) == "compare: at work for 0:00:00"


def test_the_time_to_go_is_estimated_from_all_that_was_done(
    lines: queue.Queue[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results come in batches: 1000 every ten seconds, each batch at once."""
    with progress_bar() as bar:
        task = bar.add_task("inputs", total=10_000, note="")
        (shown,) = bar.tasks
        monkeypatch.setattr(type(shown), "elapsed", property(lambda each: each.completed / 100))
        assert lines.get(timeout=60) == "inputs: 0 of 10,000, after 0:00:00"
        for _ in range(2000):
            bar.advance(task)
        while "2,000" not in (line := lines.get(timeout=60)):
            pass
        assert line == "inputs: 2,000 of 10,000, after 0:00:20, to go: 0:01:20"
