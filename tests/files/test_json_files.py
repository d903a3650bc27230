"""JSON as it is written, and JSON files that are read with a type."""

import codecs
import json
import math
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pydantic
import pytest

from elmo_tasks.errors import RunError, WeightsError, WriteError
from elmo_tasks.files.json_files import (
    Number,
    append_line,
    from_json,
    json_text,
    keep_lines,
    read_json,
    read_record,
    write_json,
)


def test_a_file_over_the_limit_is_refused_unless_the_environment_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "numbers.json"
    path.write_text("[1, 2, 3]")
    assert read_json(path, list[int], "numbers", most=9) == [1, 2, 3]
    with pytest.raises(WeightsError, match=re.escape(f"{path}: 9 bytes; expected numbers, at most 8 bytes; ")):
        read_json(path, list[int], "numbers", most=8, error=WeightsError)
    monkeypatch.setenv("ELMO_TASKS_LIMITS", "2")
    assert read_json(path, list[int], "numbers", most=8) == [1, 2, 3]
    with pytest.raises(RunError, match=r"at most 8 bytes; .*ELMO_TASKS_LIMITS=10"):
        read_json(path, list[int], "numbers", most=4)


@pytest.mark.parametrize("count", [1, 5, 6, 8])
def test_at_most_five_problems_are_shown(count: int) -> None:
    with pytest.raises(RunError) as caught:
        from_json(json.dumps({"a": ["x"] * count}).encode(), dict[str, list[int]], "f", "numbers")
    lines = str(caught.value).splitlines()
    assert lines[: min(count, 5)] == [
        f"f: a.{index}: Input should be a valid integer; got 'x'" for index in range(min(count, 5))
    ]
    assert lines[5:] == ([f"f: {count - 5} more problems"] if count > 5 else [])


class Even(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def _even(cls, number: int) -> int:
        if number % 2:
            raise ValueError(f"{number} is odd")
        return number


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"number": 3}', "f: number: 3 is odd"),
        ("{}", "f: the key 'number' is missing; expected an even number"),
        ("3", "f: Input should be an object; got 3; expected an even number"),
        ('{"number": "' + "a" * 78 + '"}', f"f: number: Input should be a valid integer; got '{'a' * 78}'"),
        ('{"number": "' + "a" * 79 + '"}', f"f: number: Input should be a valid integer; got '{'a' * 76}..."),
        ('{\n"number" 3}', "f:2: Invalid JSON: expected `:` at column 10; expected an even number"),
    ],
)
def test_what_is_wrong_with_a_value(content: str, problem: str) -> None:
    with pytest.raises(WeightsError) as caught:
        from_json(content.encode(), Even, Path("f"), "an even number", error=WeightsError)
    assert str(caught.value) == problem


def test_values_that_do_not_come_from_a_file_are_checked_too() -> None:
    with pytest.raises(RunError, match=r"^line 7: Invalid JSON: expected `:` at column 11; expected an even number$"):
        from_json(b'{"number" 3}', Even, "line 7", "an even number")  # text that has no line numbers


def test_what_is_not_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=rf"^{tmp_path}: not a regular file; expected numbers$"):
        read_json(tmp_path, list[int], "numbers")
    with pytest.raises(WeightsError, match=rf"^{tmp_path}/none: no such file; expected numbers$"):
        read_json(tmp_path / "none", list[int], "numbers", error=WeightsError)


def test_numbers_that_json_does_not_have_are_null(tmp_path: Path) -> None:
    value = {"a": math.nan, "b": [1.5, -math.inf, (math.inf, 2)], "NaN": "NaN é"}
    assert json_text(value) == '{"a": null, "b": [1.5, null, [null, 2]], "NaN": "NaN é"}'
    assert json_text("é") == '"é"'
    write_json(tmp_path / "a.json", value)
    append_line(tmp_path / "a.jsonl", value)
    for found in (json.loads((tmp_path / "a.json").read_text()), read_record(tmp_path / "a.jsonl", 1, dict)):
        assert found == {"a": None, "b": [1.5, None, [None, 2]], "NaN": "NaN é"}


def test_a_number_of_a_file_may_be_null() -> None:
    found = from_json(b'{"a": null, "b": 2, "c": 0.5, "d": NaN}', dict[str, int | Number], "f", "numbers")
    assert math.isnan(found["a"])
    assert math.isnan(found["d"])  # as earlier versions wrote it
    assert (found["b"], found["c"]) == (2, 0.5)
    assert isinstance(found["b"], int)
    with pytest.raises(RunError, match=r"b: .*should be a valid number; got 'x'"):
        from_json(b'{"b": "x"}', dict[str, Number], "f", "numbers")


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(codecs.BOM_UTF8 + b"[1]")
    assert read_json(tmp_path / "a.json", list[int], "numbers") == [1]


def test_keep_lines_cuts_what_came_later(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"epoch": 1}\n{"epoch": 2}\n{"epo')
    for _ in range(2):
        keep_lines(path, 1)
        assert path.read_text() == '{"epoch": 1}\n'
    with pytest.raises(RunError, match=r"metrics\.jsonl: 1 lines; expected the records of 2 evaluations; --force"):
        keep_lines(path, 2)
    other = tmp_path / "other.jsonl"
    other.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(RunError, match=r"metrics\.jsonl: is a link; expected a file of the run"):
        keep_lines(path, 1)


def test_a_record_that_is_missing_or_damaged_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    kind = dict[str, Any]
    with pytest.raises(RunError, match=r"metrics\.jsonl: 0 lines; expected line 1"):
        read_record(path, 1, kind)
    path.write_text('{"loss": NaN}\n{"epo')
    assert math.isnan(read_record(path, 1, kind)["loss"])
    with pytest.raises(RunError, match=r"metrics\.jsonl:2: Invalid JSON: .*; expected the record of an evaluation"):
        read_record(path, 2, kind)
    with pytest.raises(RunError, match=r"metrics\.jsonl: 2 lines; expected line 3, the record of an evaluation"):
        read_record(path, 3, kind)


def test_a_record_without_room_leaves_the_earlier_ones_as_they_are(
    tmp_path: Path, room: Callable[[int], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "metrics.jsonl"
    append_line(path, {"epoch": 1})
    with room(path.stat().st_size + 10), pytest.raises(WriteError, match=r"metrics\.jsonl: cannot be written"):
        append_line(path, {"epoch": 2, "text": "a" * 100})
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    append_line(path, {"epoch": 3})
    assert synced == [path.stat().st_ino]  # it outlasts a power cut
    assert path.read_text() == '{"epoch": 1}\n{"epoch": 3}\n'
