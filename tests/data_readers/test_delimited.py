"""Tables: quotes that are never closed, first lines that are wrong, and rows that can be skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmo_tasks.errors import DataError
from tests.data_readers.readers import STARS, TABLE, TEXTS, read, read_text, write


def test_the_name_of_a_file_chooses_its_delimiter_each_time(tmp_path: Path) -> None:
    text, settings = "label\ttext, other\n1\ta, b\n", TEXTS | {"columns": {"text": -1, "label": 0}}
    assert read(write(tmp_path / "data.csv", text), settings)[0]["tokens"] == ["b"]
    assert read(write(tmp_path / "data.tsv", text), settings)[0]["tokens"] == ["a", ",", "b"]


def test_a_bad_row_or_sentence_can_be_skipped(tmp_path: Path) -> None:
    assert len(read_text(tmp_path, "review,stars\nGood,5\nBad\nFine,4\n", STARS | {"on_error": "skip"})) == 2
    examples = read_text(tmp_path, "a\tO\nb\n\nc\tO\n", TABLE | {"on_error": "skip"})
    assert [example["tokens"] for example in examples] == [["c"]]


@pytest.mark.parametrize("rest", ["", 'Odd,"2\n'])  # the open quote reaches to the end of the file, or to the next one
def test_an_open_quote_costs_its_own_row_only(tmp_path: Path, rest: str) -> None:
    rows = "".join(f"Good {number},5\n" for number in range(9))
    text = f'review,stars\n{rows}"Bad,1\n{rows}{rest}{rows}"Two\nlines",3\n'
    with pytest.raises(DataError, match=r"data.csv:11: not a row .*, in a cell in quotes that goes on to line \d\d"):
        read_text(tmp_path, text, STARS)
    examples = read_text(tmp_path, text, STARS | {"on_error": "skip"})
    expected = [*(["Good", str(number)] for _ in range(3) for number in range(9)), ["Two", "lines"]]
    assert [example["tokens"] for example in examples] == expected


def test_a_first_line_that_is_wrong_does_not_set_the_number_of_columns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {**TEXTS, "header": False, "columns": {"text": 0, "label": 1}, "on_error": "skip"}
    assert len(read_text(tmp_path, "My reviews\nGood.,1\nBad.,0\n", settings)) == 2
    assert "data.csv:1: 1 column(s); expected at least 2: 'My reviews'" in caplog.text
