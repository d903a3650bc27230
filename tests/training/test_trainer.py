import json
import logging
import math
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from elmo_tasks.errors import ConfigError, ElmoTasksError
from elmo_tasks.files.tensor_files import read_state
from elmo_tasks.runs import train as train_module
from elmo_tasks.runs.train import train
from elmo_tasks.training.trainer import Trainer
from tests.training.trainers import GRADUALLY, NO_DROPOUT, make_trainer


@pytest.fixture
def trainers(monkeypatch: pytest.MonkeyPatch) -> list[Trainer]:
    """The trainers that `train.train` makes during a test."""
    made: list[Trainer] = []

    def make(*arguments: Any, **options: Any) -> Trainer:
        made.append(Trainer(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(train_module, "Trainer", make)
    return made


@pytest.mark.parametrize(("whole", "part"), [(8, 4), (50, 30)], ids=["halves", "parts of 30 and 20"])
def test_accumulated_batches_make_the_step_of_one_large_batch(
    config_file: Path, tmp_path: Path, whole: int, part: int
) -> None:
    # Without noise and shuffling the small batches are the parts of the large ones.
    settings = (*NO_DROPOUT, "data_loader.shuffle=false", "trainer.optimizer.type=sgd")
    large, large_batches = make_trainer(config_file, tmp_path / "large", *settings, f"data_loader.batch_size={whole}")
    small, small_batches = make_trainer(
        config_file,
        tmp_path / "small",
        *settings,
        f"data_loader.batch_size={part}",
        "trainer.num_gradient_accumulation_steps=2",
    )
    for one, two in zip(large_batches.steps(0), small_batches.steps(0, 2), strict=True):
        assert large.step(one) == pytest.approx(small.step(two), abs=1e-5)
    for expected, parameter in zip(large.parameters.values(), small.parameters.values(), strict=True):
        torch.testing.assert_close(parameter, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("norm", "bound"), [(None, 0.003), (0.02, None), (0.01, 0.001)])
def test_gradients_are_scaled_to_their_norm_and_then_clipped(
    config_file: Path, tmp_path: Path, norm: float | None, bound: float | None
) -> None:
    gradients = []
    limits = (f"trainer.grad_norm={json.dumps(norm)}", f"trainer.grad_clipping={json.dumps(bound)}")
    for name, settings in (("free", ("trainer.grad_norm=null",)), ("clipped", limits)):
        trainer, training = make_trainer(
            config_file, tmp_path / name, *NO_DROPOUT, "data_loader.shuffle=false", *settings
        )
        trainer.step(next(training.steps(0)))
        gradients.append([parameter.grad for parameter in trainer.parameters.values()])
    free, clipped = gradients
    free_norm = math.sqrt(sum(gradient.square().sum().item() for gradient in free))
    assert free_norm > 0.02
    for exact, found in zip(free, clipped, strict=True):
        expected = exact if norm is None else exact * (norm / free_norm)
        expected = expected if bound is None else expected.clamp(-bound, bound)
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-7)
    assert any((exact < -0.003).any() for exact in free)
    assert any((exact > 0.003).any() for exact in free)


@pytest.mark.parametrize(
    ("penalties", "size", "batches_per_step"),
    [({"l2": 0.1}, 1.4, 2), ({"l1": 0.1}, 0.6, 1), ({"l1": 0.5, "l2": 0.1}, 4.4, 1), ({}, 0.0, 1)],
)
def test_the_penalty_is_added_to_the_loss_once_in_each_step(
    config_file: Path, tmp_path: Path, penalties: dict[str, float], size: float, batches_per_step: int
) -> None:
    losses, gradients = [], []
    for name, entries in (("without", []), ("with", [{"parameters": "mixes.*weights", **penalties}])):
        settings = (*NO_DROPOUT, "trainer.grad_norm=null", f"trainer.regularizers={json.dumps(entries)}")
        trainer, training = make_trainer(config_file, tmp_path / name, *settings)
        (mix,) = [each for key, each in trainer.parameters.items() if key.endswith("mixes.input.weights")]
        with torch.no_grad():
            mix.copy_(torch.tensor([1.0, -2.0, 3.0]))
        losses.append(trainer.step(next(training.steps(0, batches_per_step))))
        assert mix.grad is not None
        gradients.append(mix.grad.clone())
    assert losses[1] - losses[0] == pytest.approx(size, abs=1e-4)
    l1, l2 = (penalties.get(name, 0.0) for name in ("l1", "l2"))
    expected = l2 * torch.tensor([2.0, -4.0, 6.0]) + l1 * torch.tensor([1.0, -1.0, 1.0])
    torch.testing.assert_close(gradients[1] - gradients[0], expected, atol=1e-5, rtol=1e-4)


def test_average_is_what_is_evaluated_and_saved(config_file: Path, tmp_path: Path, trainers: list[Trainer]) -> None:
    train(config_file, tmp_path / "run", overrides=["trainer.num_epochs=1"])
    assert trainers[0].average is not None
    saved = safetensors.torch.load_file(tmp_path / "run" / "model.safetensors")
    state = read_state(tmp_path / "run" / "training.pt")
    averages = state["average"]["averages"]
    for name, average, parameter in zip(trainers[0].parameters, averages, state["parameters"], strict=True):
        assert saved[name].equal(average)
        assert not average.equal(parameter)


def test_loss_that_is_not_finite_ends_the_run(config_file: Path, tmp_path: Path) -> None:
    trainer, training = make_trainer(config_file, tmp_path / "run")
    with torch.no_grad():
        list(trainer.parameters.values())[-1].fill_(math.nan)
    with pytest.raises(ElmoTasksError, match="the loss is nan at step 1"):
        trainer.step(next(training.steps(0)))


def test_a_metric_of_a_label_that_the_data_lacks(config_file: Path, tmp_path: Path) -> None:
    overrides = ("trainer.validation_metric=+f1/ROCK", "trainer.num_epochs=1")
    with pytest.raises(ConfigError, match=r"no metric 'f1/ROCK'; there are .*f1/PER"):  # which labels: in the data
        train(config_file, tmp_path / "run", overrides=overrides)


def test_what_is_frozen_at_first_is_trained_from_its_epoch_on(
    config_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "elmo_tasks.training.trainer_config"):
        trainer, training = make_trainer(
            config_file, tmp_path / "run", *GRADUALLY, "trainer.learning_rate_scheduler={}"
        )
    number = len([name for name in trainer.parameters if ".layers.1." in name and "bilm" in name])
    assert caplog.messages[0] == f"{number} parameter tensors are trained from epoch 2 on"
    first = dict.fromkeys(trainer.parameters, 1)
    for name in first:
        if "bilm" in name:
            first[name] = 2 if ".layers.1." in name else 3 if ".layers.0." in name else 4
        elif "characters" in name:
            first[name] = 4
    assert set(first.values()) == {1, 2, 3, 4}
    for epoch in (1, 2, 3, 4):
        before = {name: parameter.detach().clone() for name, parameter in trainer.parameters.items()}
        trainer.progress.epoch = epoch - 1
        for batches in training.steps(epoch - 1):
            trainer.step(batches)
        for name, parameter in trainer.parameters.items():
            assert parameter.equal(before[name]) == (first[name] > epoch), (name, epoch)
    assert not trainer.objective.model.embedder.elmo.bilm.token_encoder.embedding.weight[0].any()


@pytest.mark.parametrize(
    ("unfreeze", "message"),
    [
        ('[{"parameters": "bilm", "epoch": 2}]', "trainer.unfreeze: 'bilm' matches no parameter; the model's are "),
        ('[{"parameters": ".", "epoch": 2}]', "trainer.unfreeze: no parameter is trained in epoch 1"),
    ],
)
def test_impossible_unfreezing(config_file: Path, tmp_path: Path, unfreeze: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_trainer(config_file, tmp_path / "run", f"trainer.unfreeze={unfreeze}")
