"""JSON files that are read with a type: how large they may be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from elmo_tasks.errors import RunError, WeightsError
from elmo_tasks.json_files import read_json


def test_a_file_over_the_limit_is_refused_unless_the_environment_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "numbers.json"
    path.write_text("[1, 2, 3]")
    assert read_json(path, list[int], "numbers", most=9) == [1, 2, 3]
    with pytest.raises(WeightsError, match=re.escape(f"{path}: 9 bytes; wanted numbers, at most 8 bytes; ")):
        read_json(path, list[int], "numbers", most=8, error=WeightsError)
    monkeypatch.setenv("ELMO_TASKS_LIMITS", "2")
    assert read_json(path, list[int], "numbers", most=8) == [1, 2, 3]
    with pytest.raises(RunError, match=r"at most 8 bytes; .*ELMO_TASKS_LIMITS=10"):
        read_json(path, list[int], "numbers", most=4)
