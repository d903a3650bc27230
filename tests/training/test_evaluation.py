from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.experiment import Data, ExperimentConfig, build_model
from elmo_tasks.metrics import Metric
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.evaluation import evaluate, ordered_lines


def test_predictions_go_to_metric_and_sink_batch_by_batch(config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(config_file, ExperimentConfig)
    data = Data.read(config)
    vocabulary = data.vocabulary(config)
    model = build_model(config, vocabulary, pretrained=True).train()
    loader = BatchLoader(config.evaluation_loader(), data.held_out[0], data.evaluation_reader.task, vocabulary)
    metric, sizes = model.task.build_metric(), []
    update = type(metric).update

    def noting(self: Metric, predictions: Any, examples: Any) -> None:
        sizes.append(len(predictions))
        update(metric, predictions, examples)
        update(self, predictions, examples)  # type: ignore[arg-type]

    rows: list[int] = []
    monkeypatch.setattr(type(metric), "update", noting)
    accelerator = config.trainer.accelerator()
    found = evaluate(model, loader, accelerator, lambda row, example, prediction: rows.append(row))
    assert sizes == [len(batch) for batch in loader.plan(0)]
    assert len(sizes) > 1
    assert rows == [row for batch in loader.plan(0) for row in batch]
    assert {**metric.compute(), "loss": found["loss"]} == found
    assert model.training
    assert evaluate(model, loader, accelerator) == found
    assert not loader.config.shuffle
    model.eval()
    loader.config = loader.config.model_copy(update={"batch_size": 1})
    assert evaluate(model, loader, accelerator)["loss"] == pytest.approx(found["loss"], rel=1e-5)
    assert not model.training


def test_lines_come_out_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "new" / "lines.jsonl"
    with ordered_lines(path) as write:
        for number in (3, 0, 2, 1):
            write(number, {"number": number, "text": "ä" * number})
        assert not path.exists()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines == [{"number": number, "text": "ä" * number} for number in range(4)]


def test_an_error_leaves_no_lines(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), ordered_lines(tmp_path / "lines.jsonl") as write:
        write(0, 1 / 0)
    assert not list(tmp_path.iterdir())
    with ordered_lines(None) as write:
        write(0, "nothing")
