from __future__ import annotations

from pathlib import Path

import pytest

from elmo_tasks.errors import RunError
from elmo_tasks.pretraining.run_files import PretrainingFolder

WRITTEN = (
    *("text.json", "options.json", "weights.hdf5", "vocabulary.txt", "softmax.safetensors"),
    *("log.jsonl", "results.json", "config.json", "versions.json", "training.pt"),
)


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "config.json"])
def test_no_file_of_another_is_overwritten(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(RunError, match=rf"holds {name}, which the run would overwrite"):
        PretrainingFolder(tmp_path).reserve({}, resume=False, force=False)
    assert PretrainingFolder(tmp_path).reserve({}, resume=False, force=True)


def test_a_pretraining_that_was_stopped_while_it_began_can_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "text.json").touch()
    (tmp_path / "versions.json").touch()
    assert PretrainingFolder(tmp_path).reserve({}, resume=True, force=False)


def test_all_its_files_are_removed_and_no_others(tmp_path: Path) -> None:
    for name in (*WRITTEN, "notes.txt"):
        (tmp_path / name).touch()
    PretrainingFolder(tmp_path).clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
