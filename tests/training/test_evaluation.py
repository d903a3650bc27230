import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from elmo_tasks.tasks.tagging import Tagging
from elmo_tasks.training.evaluation import ordered_lines, pairs_to


def test_pairs_have_what_the_task_and_its_metric_read_or_everything() -> None:
    example = {"tokens": ["a"], "tags": ["O"], "document": 0, "sentence": 1, "file": 2}
    prediction = {"tags": ["O"], "probabilities": [0.5]}
    found: list[tuple[int, Any]] = []
    pairs_to(lambda row, value: found.append((row, value)))(3, example, prediction)
    task = Tagging("BIOUL")
    pairs_to(lambda row, value: found.append((row, value)), task)(4, example, prediction)
    kept = {name: example[name] for name in task.features}
    assert "file" not in kept
    assert found == [
        (3, {"example": example, "prediction": prediction}),
        (4, {"example": kept, "prediction": {"tags": ["O"]}}),
    ]


def test_lines_come_out_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "lines.jsonl"
    with ordered_lines(path) as write:
        for number in (3, 0, 2, 1):
            write(number, {"number": number, "text": "ä" * number})
        assert not path.exists()
    text = path.read_text(encoding="utf-8")
    assert "ä" in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines == [{"number": number, "text": "ä" * number} for number in range(4)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_lines_can_be_written_to_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        text = reader.submit(pipe.read_text)
        with ordered_lines(pipe) as write:
            assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
            write(1, "b")
            write(0, "a")
        assert text.result(10) == '"a"\n"b"\n'


def test_lines_can_be_written_to_an_open_file_whose_folder_is_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with `--predictions /dev/stdout >> FILE`."""
    path = tmp_path / "lines.jsonl"
    path.write_text("earlier\n")
    folders = Mock(wraps=tempfile.TemporaryFile)
    monkeypatch.setattr(tempfile, "TemporaryFile", folders)
    with path.open("a") as stream, ordered_lines(f"/dev/fd/{stream.fileno()}") as write:
        write(0, "a")
    assert folders.call_args.kwargs["dir"] is None
    assert path.read_text() == 'earlier\n"a"\n'


def test_an_error_leaves_no_lines(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), ordered_lines(tmp_path / "lines.jsonl") as write:
        write(0, 1 / 0)
    assert not list(tmp_path.iterdir())
    with ordered_lines(None) as write:
        write(0, "nothing")
