from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.metrics import Metric
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.model_building import build_model
from elmo_tasks.tasks.tagging import Tagging
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.evaluation import evaluate, ordered_lines, pairs_to
from elmo_tasks.training.processes import start_accelerator


def test_predictions_go_to_metric_and_sink_batch_by_batch(
    config_file: Path, monkeypatch: pytest.MonkeyPatch, terminal: Callable[[], str]
) -> None:
    config = load_config(config_file, ExperimentConfig)
    data = Data.read(config)
    vocabulary = data.vocabulary(config)
    model = build_model(config, vocabulary, pretrained=True).train()
    loader = BatchLoader(
        config.evaluation_loader(), data.held_out["validation"], data.evaluation_reader.task, vocabulary
    )
    metric, sizes = model.task.build_metric(), []
    update = type(metric).update

    def noting(self: Metric, predictions: Any, examples: Any) -> None:
        sizes.append(len(predictions))
        update(metric, predictions, examples)
        update(self, predictions, examples)

    rows: list[int] = []
    probabilities: list[int] = []

    def sink(row: int, example: dict[str, Any], prediction: dict[str, Any]) -> None:
        rows.append(row)
        probabilities.append(len(prediction["probabilities"]) - len(example["tokens"]))

    monkeypatch.setattr(type(metric), "update", noting)
    accelerator = start_accelerator(config.trainer)
    found = evaluate(model, loader, accelerator, sink)
    assert re.search(rf"evaluation .* {len(loader.data)}/{len(loader.data)} ", terminal())
    assert sizes == [len(batch) for batch in loader.plan(0)]
    assert len(sizes) > 1
    assert rows == [row for batch in loader.plan(0) for row in batch]
    assert not any(probabilities)
    assert {**metric.compute(), "loss": found["loss"]} == found
    assert model.training
    assert evaluate(model, loader, accelerator) == found
    assert not loader.config.shuffle
    one, other, both = (
        evaluate(model, BatchLoader(loader.config, loader.data.select(chosen), model.task, vocabulary), accelerator)
        for chosen in ([0], [1], [0, 1])
    )
    assert (one["loss"] + other["loss"]) / 2 == pytest.approx(both["loss"], rel=1e-5)
    model.eval()
    loader.config = loader.config.model_copy(update={"batch_size": 1})
    assert evaluate(model, loader, accelerator)["loss"] == pytest.approx(found["loss"], rel=1e-5)
    assert not model.training


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
