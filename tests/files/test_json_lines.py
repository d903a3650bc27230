"""JSON lines files that grow with a run."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import RunError, WriteError
from elmo_tasks.files.json_lines import append_line, keep_lines, read_record


def test_keep_lines_cuts_what_came_later(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"epoch": 1}\n{"epoch": 2}\n{"epo')
    keep_lines(path, 1)
    assert path.read_text() == '{"epoch": 1}\n'
    with pytest.raises(RunError, match=r"metrics\.jsonl: 1 lines; expected the records of 2 evaluations; --force"):
        keep_lines(path, 2)


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
    tmp_path: Path, room: Callable[[int], AbstractContextManager[None]]
) -> None:
    path = tmp_path / "metrics.jsonl"
    append_line(path, {"epoch": 1})
    with room(path.stat().st_size + 10), pytest.raises(WriteError, match=r"metrics\.jsonl: cannot be written"):
        append_line(path, {"epoch": 2, "text": "a" * 100})
    append_line(path, {"epoch": 3})
    assert path.read_text() == '{"epoch": 1}\n{"epoch": 3}\n'
