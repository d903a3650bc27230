"""What only whole processes can show: `kill -9` and resuming, and two processes that share the batches."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_tasks.files.tensor_files import read_state
from tests.stopping import assert_same_run, read_records, run_and_kill, run_as_two, run_here
from tests.training.trainers import NO_DROPOUT


def command(config_file: Path, folder: Path, *arguments: str) -> list[str]:
    return ["-m", "elmo_tasks", "train", str(config_file), "-s", str(folder), *arguments]


@pytest.mark.slow
def test_killed_and_resumed_is_the_same_run_bit_for_bit(config_file: Path, tmp_path: Path) -> None:
    arguments = ("--set=trainer.checkpoint_every_steps=3", "--set=trainer.num_epochs=12")
    run_here(*command(config_file, tmp_path / "whole", *arguments))

    killed, state = tmp_path / "killed", tmp_path / "killed" / "training.pt"
    run_and_kill(*command(config_file, killed, *arguments), state=state)
    assert read_state(state)["progress"]["step"] < 84  # of 12 epochs of 7 steps
    run_here(*command(config_file, killed, *arguments, "--resume"))

    assert (killed / "config.json").read_bytes() == (tmp_path / "whole" / "config.json").read_bytes()
    assert_same_run(killed, tmp_path / "whole")
    for one, other in zip(
        read_state(state)["parameters"], read_state(tmp_path / "whole" / "training.pt")["parameters"], strict=True
    ):
        assert one.equal(other)


UNFREEZE = [{"parameters": "bilm.*layers.1", "epoch": 2}, {"parameters": "bilm|characters", "epoch": 3}]
GRADUALLY = ("--set=model.embedder.elmo.requires_grad=true", f"--set=trainer.unfreeze={json.dumps(UNFREEZE)}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "machines"),
    [((), 2), (GRADUALLY, 1)],
    ids=["frozen, two machines", "unfrozen gradually"],
)
def test_two_processes_train_as_one_with_the_same_batches(
    config_file: Path, tmp_path: Path, more: tuple[str, ...], machines: int
) -> None:
    # What depends on each process's own random numbers is off, so that one process and two compute the same.
    arguments = (
        *(f"--set={each}" for each in NO_DROPOUT),
        *more,
        "--set=trainer.optimizer.type=sgd",
        "--set=data_loader.batch_size=7",
    )
    run_here(*command(config_file, tmp_path / "one", *arguments))
    run_as_two(*command(config_file, tmp_path / "two", *arguments), machines=machines)

    one, two = (read_records(tmp_path / name) for name in ("one", "two"))
    assert len(one) == len(two) == 3
    for expected, found in zip(one, two, strict=True):
        assert found["training"]["loss"] == pytest.approx(expected["training"]["loss"], abs=1e-5)
        assert found["validation"]["loss"] == pytest.approx(expected["validation"]["loss"], abs=1e-4)
        assert found["validation"]["f1"] == pytest.approx(expected["validation"]["f1"])
    states = [read_state(tmp_path / name / "training.pt")["parameters"] for name in ("one", "two")]
    for parameter, other in zip(*states, strict=True):
        torch.testing.assert_close(other, parameter, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
def test_two_processes_evaluate_as_one(config_file: Path, settings: dict[str, Any], tmp_path: Path) -> None:
    run_here(*command(config_file, tmp_path / "run", "--set=trainer.num_epochs=1"))
    for name, run_all in (("one", run_here), ("two", run_as_two)):
        evaluate = ["-m", "elmo_tasks", "evaluate", str(tmp_path / "run"), settings["test_data_path"]]
        run_all(*evaluate, f"--predictions={tmp_path / name}.jsonl", f"--output={tmp_path / name}.json")
    one, two = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("one", "two"))
    assert two == pytest.approx(one, abs=1e-4)
    examples = [
        [json.loads(line)["example"] for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("one", "two")
    ]
    assert examples[0] == examples[1]
