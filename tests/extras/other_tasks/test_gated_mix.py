"""A gated mix by hand, and runs with one: what they train, record, resume, begin from, pack and show."""

import copy
import json
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from elmo_tasks.elmo.scalar_mix import LayerNormalization, ScalarMix
from elmo_tasks.extras.compare.plots import RunCurves, plot_runs
from elmo_tasks.extras.other_tasks.gated_mix import GatedMix
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


def test_a_packed_run_is_served_without_weights_of_layers(run: Path, tmp_path: Path) -> None:
    archive(run, tmp_path / "run.tar.gz")
    path = load_run(run).config.validation_data_path
    assert evaluate(tmp_path / "run.tar.gz", path) == evaluate(run, path)
    (served,) = load_runs([str(tmp_path / "run.tar.gz")], batch_tokens=256).values()
    assert served.about["mixes"] is None
    assert served.about["config"]["model"]["embedder"]["elmo"]["mix"]["type"] == "gated"


@pytest.mark.parametrize("hidden_size", [None, 5])
@pytest.mark.parametrize("kind", ["none", "batch", "token"])
@pytest.mark.parametrize("chosen", [(0, 1, 2, 3), (3, 0)], ids=str)
def test_a_gate_begins_as_the_scalar_mix_with_the_weights_of_its_bias(
    batch: tuple[Tensor, Tensor], chosen: tuple[int, ...], kind: str, hidden_size: int | None
) -> None:
    normalization = cast(LayerNormalization, kind)
    w = [0.3 * layer - 0.4 for layer in chosen]
    scalar = ScalarMix(4, chosen, w, gamma=1.7, layer_normalization=normalization)
    gated = GatedMix(6, hidden_size, 4, chosen, layer_normalization=normalization)
    torch.testing.assert_close(gated.weights, torch.zeros(len(chosen)))
    missing = gated.load_state_dict(scalar.state_dict(), strict=False).missing_keys
    assert missing
    assert all(name.startswith("gate.") for name in missing)
    assert torch.equal(gated(*batch), scalar(*batch))
    next(reversed([*gated.gate.parameters()])).data[0, 0] = 1.0
    assert not torch.allclose(gated(*batch), scalar(*batch))


@pytest.mark.parametrize("hidden_size", [None, 5])
def test_a_gate_weighs_each_token_by_its_layers(batch: tuple[Tensor, Tensor], hidden_size: int | None) -> None:
    layers, mask = batch
    mix = GatedMix(6, hidden_size, 4, layers=(1, 3), gamma=0.7).double().eval()
    assert mix.mean_weights() is None
    generator = torch.Generator().manual_seed(1)
    for parameter in mix.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    mixed, shares = mix(layers, mask), []
    gate = dict(mix.gate.named_parameters())
    last = gate[f"{len(mix.gate) - 1}.weight"]
    for b, t in mask.nonzero().tolist():
        state = torch.cat([layers[b, 1, t], layers[b, 3, t]])
        if hidden_size is not None:
            state = torch.tanh(gate["0.weight"] @ state + gate["0.bias"])
        shares.append(torch.softmax(last @ state + mix.weights, dim=0))
        expected = mix.gamma * (shares[-1][0] * layers[b, 1, t] + shares[-1][1] * layers[b, 3, t])
        torch.testing.assert_close(mixed[b, t], expected)
    assert not mixed[~mask].any()
    assert torch.stack(shares).std(dim=0).min() > 0.01
    mean = mix.mean_weights()
    assert mean is not None
    torch.testing.assert_close(mean, torch.stack(shares).mean(dim=0))
    mix.train()(layers, mask).sum().backward()
    assert mix.mean_weights() is None  # of other parameters than the next ones
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in mix.parameters())
