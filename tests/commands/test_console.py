"""Tables and logs, on a terminal and in files."""

import logging
import re
import sys
from collections.abc import Callable

import pytest

from elmo_tasks.commands.console import print_metrics, print_table, print_training_metrics
from elmo_tasks.progress import set_up_logging

Printed = Callable[[], tuple[str, list[list[str]]]]


def use_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes standard output and error a terminal of 80 columns."""
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")


def test_each_row_of_a_table_in_a_pipe_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("a [title]", ("name", "number"), [["word " * 100, "1"], ["[red]y", "22"]])
    text = capsys.readouterr().out
    assert text.startswith("a [title]\n")
    assert [line for line in text.splitlines() if line[0] == "│"] == [
        f"│ {'word ' * 100} │      1 │",
        f"│ {'[red]y':<500} │     22 │",  # all columns but the first end at the right
    ]


def test_a_table_on_a_terminal_is_not_wider_than_that(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_terminal(monkeypatch)
    print_table("title", ("name", "number"), [["word " * 30, "1"]])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.count("word") for line in lines) == 30


def test_a_log_in_a_file_has_one_line_for_each_message(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("elmo_tasks.anything")
    for _ in range(2):  # the second call replaces what the first has set up
        set_up_logging(logging.INFO)
    logger.info("read %s", "a" * 300)
    logger.debug("not shown")
    logger.warning("[red]odd")
    date = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(rf"{date} INFO read a{{300}}\n{date} WARNING \[red\]odd\n", capsys.readouterr().err)
    set_up_logging(logging.WARNING)
    logger.info("not shown")
    assert capsys.readouterr().err == ""


def test_a_log_on_a_terminal_has_times_without_dates(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_terminal(monkeypatch)
    for level, path in ((logging.INFO, False), (logging.DEBUG, True)):
        set_up_logging(level)
        logging.getLogger("elmo_tasks.anything").info("a message")
        line = capsys.readouterr().err
        assert re.match(r"\d\d:\d\d a message ", line)
        assert ("test_console.py" in line) == path  # for those who look for the code


@pytest.mark.parametrize(
    ("level", "prefix"), [(logging.INFO, ""), (logging.WARNING, "warning: "), (logging.ERROR, "error: ")]
)
def test_a_line_on_a_terminal_is_mostly_its_message(
    level: int, prefix: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_terminal(monkeypatch)
    set_up_logging(logging.INFO)
    text = f"epoch 1: {'a' * (74 - 9 - len(prefix))}"
    logging.getLogger("elmo_tasks.anything").log(level, text)
    assert re.fullmatch(rf"\d\d:\d\d {prefix}{text}\n", capsys.readouterr().err)


def test_a_part_that_lacks_a_metric_has_an_empty_cell(printed: Printed) -> None:
    print_metrics({"f1": 1.0, "f1/PER": 2.0, "support/LOC": 3}, title="data")
    text, rows = printed()
    assert "\ndata, in detail\n" in text
    parts = [["", "f1", "support"], ["PER", "2.00", ""], ["LOC", "", "3"]]
    assert rows == [["metric", "value"], ["f1", "1.00"], *parts]


def test_without_test_data_there_is_only_the_best_epoch(printed: Printed) -> None:
    print_training_metrics({"best": {"epoch": 4, "validation": {"f1": 3.0}}})
    text, rows = printed()
    assert text.startswith("validation, epoch 4\n")
    assert rows == [["metric", "value"], ["f1", "3.00"]]
    print_training_metrics({"best": {"epoch": 4, "validation": {}}})
    assert printed() == ("", [])
