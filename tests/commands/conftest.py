"""What tests of printed tables share."""

from collections.abc import Callable

import pytest

Cells = list[list[str]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], tuple[str, Cells]]:
    """A function that gives what was printed since its last call: the text, and the cells of its tables, by row."""

    def read() -> tuple[str, Cells]:
        text = capsys.readouterr().out
        rows = [line.replace("┃", "│").strip("│\n") for line in text.splitlines() if line[:1] in ("│", "┃")]
        return text, [[cell.strip() for cell in row.split("│")] for row in rows]

    return read
