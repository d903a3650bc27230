from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from elmo_tasks.config import load_config
from elmo_tasks.errors import ConfigError, ElmoTasksError
from elmo_tasks.experiment import ExperimentConfig, build_model, train
from elmo_tasks.runs import RunFolder, read_state
from elmo_tasks.text.vocabulary import Vocabulary
from elmo_tasks.training.random_state import random_state, seed_everything, set_random_state
from elmo_tasks.training.trainer import Trainer


def make_trainer(config_file: Path, folder: Path, *overrides: str) -> Trainer:
    """A trainer on the experiment's data, its model freshly made."""
    config = load_config(config_file, ExperimentConfig, overrides)
    seed_everything(1)
    reader = config.dataset_reader.build()
    data = reader.read(config.train_data_path)
    vocabulary: Vocabulary = config.vocabulary.build(reader.task, data, [], config.model.embedder.pretrained_words())
    model = build_model(config, vocabulary, pretrained=True)
    training = config.data_loader.build(data, reader.task, vocabulary, seed=1)
    held_out = reader.read(config.validation_data_path)
    validation = config.evaluation_loader().build(held_out, reader.task, vocabulary)
    folder.mkdir(exist_ok=True)
    return Trainer(config.trainer, model, training, validation, RunFolder(folder), config.trainer.accelerator())


NO_DROPOUT = (
    "model.dropout=0",
    "model.encoder.dropout=0",
    "model.embedder.elmo.dropout=0",
    "model.embedder.words.unknown_probability=0",
)


def test_accumulated_batches_make_the_step_of_one_large_batch(config_file: Path, tmp_path: Path) -> None:
    # Without noise and shuffling the batches of 4 are the halves of those of 8.
    settings = (*NO_DROPOUT, "data_loader.shuffle=false", "trainer.optimizer.type=sgd")
    large = make_trainer(config_file, tmp_path / "large", *settings, "data_loader.batch_size=8")
    small = make_trainer(
        config_file,
        tmp_path / "small",
        *settings,
        "data_loader.batch_size=4",
        "trainer.num_gradient_accumulation_steps=2",
    )
    for one, two in zip(large.training.steps(0), small.training.steps(0, 2), strict=True):
        assert large.step(one) == pytest.approx(small.step(two), abs=1e-5)
    for expected, parameter in zip(large.parameters, small.parameters, strict=True):
        torch.testing.assert_close(parameter, expected, atol=1e-5, rtol=1e-4)


def test_clipping_limits_the_gradients(config_file: Path, tmp_path: Path) -> None:
    trainer = make_trainer(config_file, tmp_path / "run", "trainer.grad_norm=0.01", "trainer.grad_clipping=0.001")
    trainer.step(next(trainer.training.steps(0)))
    gradients = [parameter.grad for parameter in trainer.parameters if parameter.grad is not None]
    assert max(gradient.abs().max().item() for gradient in gradients) <= 0.001001
    assert math.sqrt(sum(gradient.square().sum().item() for gradient in gradients)) <= 0.0101


def test_regularizer_is_lambda_times_the_squares_of_the_mix(config_file: Path, tmp_path: Path) -> None:
    trainer = make_trainer(config_file, tmp_path / "run", "trainer.regularizers.0.l1=0.5")
    (name,) = [name for name in trainer.names if name.endswith("mixes.input.weights")]
    with torch.no_grad():
        trainer.parameters[trainer.names.index(name)].copy_(torch.tensor([1.0, -2.0, 3.0]))
    assert trainer._penalty().item() == pytest.approx(0.1 * 14 + 0.5 * 6)


def test_learns_and_leaves_the_best_epoch_in_model_and_folder(config_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    trainer = make_trainer(config_file, folder, "trainer.num_epochs=4")
    best = trainer.train()
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert records[-1]["training"]["loss"] < 0.8 * records[0]["training"]["loss"]
    assert best["validation"]["f1"] == max(record["validation"]["f1"] for record in records)
    assert records[best["epoch"] - 1] == best
    assert sum(best["elmo"]["input"]["weights"]) == pytest.approx(1.0)
    saved = safetensors.torch.load_file(folder / "model.safetensors")
    for name, parameter in zip(trainer.names, trainer.parameters, strict=True):
        assert saved[name].equal(parameter)
    assert list((folder / "tensorboard").iterdir())


def test_patience_ends_a_run_that_gets_no_better(config_file: Path, tmp_path: Path) -> None:
    # The loss of a model that unlearns grows from the first epoch on.
    trainer = make_trainer(
        config_file,
        tmp_path / "run",
        "trainer.num_epochs=20",
        "trainer.patience=2",
        "trainer.validation_metric=+loss",
        "trainer.moving_average=null",
    )
    assert trainer.train()["epoch"] == 1
    assert trainer.progress.epoch == 3


def test_average_is_what_is_evaluated_and_saved(config_file: Path, tmp_path: Path) -> None:
    trainer = make_trainer(config_file, tmp_path / "run", "trainer.num_epochs=1")
    trainer.train()
    assert trainer.average is not None
    saved = safetensors.torch.load_file(tmp_path / "run" / "model.safetensors")
    state = read_state(tmp_path / "run" / "training.pt")
    averages = state["average"]["averages"]
    for name, average, parameter in zip(trainer.names, averages, state["parameters"], strict=True):
        assert saved[name].equal(average)
        assert not average.equal(parameter)


def test_loss_that_is_not_finite_ends_the_run(config_file: Path, tmp_path: Path) -> None:
    trainer = make_trainer(config_file, tmp_path / "run")
    with torch.no_grad():
        trainer.parameters[-1].fill_(math.nan)
    with pytest.raises(ElmoTasksError, match="the loss is nan at step 1"):
        trainer.train()


def test_unknown_metric_names_the_known(config_file: Path, tmp_path: Path) -> None:
    for metric in ("f2", "f2/PER"):  # before the first step
        with pytest.raises(
            ConfigError, match=rf"no metric '{metric}'; there are accuracy, f1, loss, precision, recall"
        ):
            make_trainer(config_file, tmp_path / "run", f"trainer.validation_metric=+{metric}")
    trainer = make_trainer(config_file, tmp_path / "run", "trainer.validation_metric=+f1/ROCK", "trainer.num_epochs=1")
    with pytest.raises(ConfigError, match=r"no metric 'f1/ROCK'; there are .*f1/PER"):  # only the data tells
        trainer.train()


def test_bfloat16_trains(config_file: Path, tmp_path: Path) -> None:
    trainer = make_trainer(config_file, tmp_path / "run", "trainer.precision=bfloat16", "trainer.num_epochs=2")
    seen: list[torch.dtype] = []
    trainer.model.encoder.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    trainer.train()
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert records[1]["training"]["loss"] < records[0]["training"]["loss"]
    assert torch.bfloat16 in seen
    assert all(parameter.dtype == torch.float32 for parameter in trainer.parameters)


def test_random_state_goes_round() -> None:
    seed_everything(5)
    state = random_state()
    first = torch.rand(3)
    set_random_state(state)
    assert torch.rand(3).equal(first)


def without_seconds(path: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        del record["training"]["seconds"]
    return records


def test_stopped_between_steps_and_resumed_is_the_same_run(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception takes the place of a kill, at a step after the last saved state; see also test_processes.py."""
    overrides = ("trainer.checkpoint_every_steps=4",)
    train(config_file, tmp_path / "whole", overrides=overrides)
    step = Trainer.step

    def failing(self: Trainer, parts: Any) -> float:
        if self.progress.step == 10:
            raise KeyboardInterrupt
        return step(self, parts)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", failing)
        with pytest.raises(KeyboardInterrupt):
            train(config_file, tmp_path / "parts", overrides=overrides)
    assert read_state(tmp_path / "parts" / "training.pt")["progress"]["step_in_epoch"] == 1
    train(config_file, tmp_path / "parts", overrides=overrides, resume=True)
    for name in ("model.safetensors", "frozen.safetensors", "vocabulary.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    parts, whole = (without_seconds(tmp_path / name / "metrics.jsonl") for name in ("parts", "whole"))
    assert parts == whole


def test_cached_layers_give_the_losses_of_computed_ones(config_file: Path, tmp_path: Path) -> None:
    def losses(name: str, cache: str) -> list[float]:
        folder = tmp_path / name
        train(config_file, folder, overrides=(f"model.embedder.elmo.layer_cache={cache}", "trainer.num_epochs=2"))
        return [record["training"]["loss"] for record in without_seconds(folder / "metrics.jsonl")]

    computed = losses("computed", "null")
    assert losses("exact", '{"storage": "float32"}') == computed
    assert losses("half", '{"storage": "float16"}') == pytest.approx(computed, rel=1e-3)
