"""Parsing JSON: values, and problems with their line and column."""

from __future__ import annotations

import pytest

from elmo_tasks.errors import DataError
from elmo_tasks.files import parse_json


def test_a_value() -> None:
    text = r'{"a": ["\ud83d\ude00", "\\ud83d", "\u00e9\n", 1.5]}'
    assert parse_json(text, "some.json", "JSON") == {"a": ["\N{GRINNING FACE}", r"\ud83d", "é\n", 1.5]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1', "Expecting ',' delimiter at column 8; wanted a number"),
        pytest.param("1" * 5000, "a whole number has too many digits; wanted a number", id="many digits"),
        pytest.param("[" * 100_000, "lists or objects are nested too deeply; wanted a number", id="deep nesting"),
        (r'["\ud83d"]', r"\ud83d at column 3 is half of a surrogate pair; wanted both halves"),
        (r'["\\\uDE00 "]', r"\uDE00 at column 5 is half of a surrogate pair"),
        (r'["\ud83d\ud83d\ude00"]', r"\ud83d at column 3 is half of a surrogate pair"),
        (r'{"\ude00": "\ud83d\ude00"}', r"\ude00 at column 3 is half of a surrogate pair"),
    ],
)
def test_what_is_wrong_with_a_line(text: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_json(text, "some.json", "a number", 7)
    assert str(caught.value).startswith(f"some.json:7: {problem}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a":\n "b" 1}', ":2: Expecting ',' delimiter at column 6"),
        ('{"a":\n "b\\ud83d"}', r":2: \ud83d at column 4 is half of a surrogate pair"),
        pytest.param("[" + "1" * 5000, ": a whole number has too many digits", id="many digits"),
    ],
)
def test_lines_of_a_whole_file_are_counted(text: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_json(text, "some.json", "JSON")
    assert str(caught.value).startswith(f"some.json{problem}")
