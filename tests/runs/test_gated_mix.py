"""Runs with a gated mix: what they train, record, resume, begin from, pack and show."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.extras.compare.plots import RunCurves, plot_runs
from elmo_tasks.extras.server.served_runs import load_runs
from elmo_tasks.files.tensor_files import read_tensors
from elmo_tasks.runs.archive import archive
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.runs.load import load_run
from elmo_tasks.runs.train import train

PLACE = "embedder.elmo.mixes.input"
EVEN = ['trainer.learning_rate_scheduler={"type": "constant"}']


@pytest.fixture(scope="module")
def gated(settings: dict[str, Any]) -> dict[str, Any]:
    values = copy.deepcopy(settings)
    values["model"]["embedder"]["elmo"]["mix"] = {"type": "gated", "hidden_size": 4}
    values["trainer"]["regularizers"].append({"parameters": "mixes.*gate", "l2": 0.01})
    return values


@pytest.fixture(scope="module")
def run(gated: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two epochs. Not to be changed."""
    folder = tmp_path_factory.mktemp("gated") / "run"
    train(gated, folder, overrides=["trainer.num_epochs=2", *EVEN])
    return folder


def _mixes(run: Path) -> list[Any]:
    return [json.loads(line)["elmo"] for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_gate_is_trained_and_mean_weights_are_recorded_and_drawn(run: Path, tmp_path: Path) -> None:
    tensors = read_tensors(run / "model.safetensors")
    assert tensors[f"{PLACE}.gate.2.weight"].any()
    curves = RunCurves.read(run)
    (mix,) = curves.mixes().values()
    assert sum(mix["weights"]) == pytest.approx(1, abs=1e-5)
    assert mix["weights"] != pytest.approx(tensors[f"{PLACE}.weights"].softmax(0).tolist(), abs=1e-4)
    assert load_run(run).model.embedder.mix_weights() == {}
    plot_runs(tmp_path / "plot.png", [curves])
    assert (tmp_path / "plot.png").is_file()


def test_a_run_resumes_bit_for_bit(gated: dict[str, Any], run: Path, tmp_path: Path) -> None:
    train(gated, tmp_path / "run", overrides=["trainer.num_epochs=1", *EVEN])
    train(gated, tmp_path / "run", overrides=["trainer.num_epochs=2", *EVEN], resume=True)
    expected, found = (read_tensors(each / "model.safetensors") for each in (run, tmp_path / "run"))
    assert all(tensor.equal(found[name]) for name, tensor in expected.items())
    assert _mixes(tmp_path / "run") == _mixes(run)


def test_it_begins_as_the_scalar_mix_that_it_starts_from(
    gated: dict[str, Any], short_run: Path, tmp_path: Path
) -> None:
    still = ["trainer.num_epochs=1", 'trainer.optimizer={"type": "sgd", "lr": 1e-30}', *EVEN]
    train(gated, tmp_path / "run", overrides=still, from_run=short_run)
    origin = json.loads((tmp_path / "run" / "origin.json").read_text(encoding="utf-8"))
    gate = {f"{PLACE}.gate.{name}": "not in the run" for name in ("0.weight", "0.bias", "2.weight")}
    assert origin["not_taken"] == gate
    path = load_run(short_run).config.validation_data_path
    assert evaluate(tmp_path / "run", path) == evaluate(short_run, path)


def test_a_packed_run_is_served_without_weights_of_layers(run: Path, tmp_path: Path) -> None:
    archive(run, tmp_path / "run.tar.gz")
    path = load_run(run).config.validation_data_path
    assert evaluate(tmp_path / "run.tar.gz", path) == evaluate(run, path)
    (served,) = load_runs([str(tmp_path / "run.tar.gz")], batch_tokens=256).values()
    assert served.about["mixes"] is None
    assert served.about["config"]["model"]["embedder"]["elmo"]["mix"]["type"] == "gated"
