"""What only whole processes can show of pretraining: `kill -9` and resuming, and two that share the streams."""

import json
from pathlib import Path

import pytest

from elmo_tasks.files.tensor_files import read_state
from tests.stopping import run_and_kill, run_as_two, run_here


def command(config_file: Path, folder: Path, *arguments: str) -> list[str]:
    return ["-m", "elmo_tasks", "pretrain", str(config_file), "-s", str(folder), *arguments]


@pytest.mark.slow
def test_killed_and_resumed_is_the_same_training_bit_for_bit(config_file: Path, tmp_path: Path) -> None:
    arguments = ("--set=trainer.checkpoint_every_steps=3",)
    run_here(*command(config_file, tmp_path / "whole", *arguments))
    killed, state = tmp_path / "killed", tmp_path / "killed" / "training.pt"
    run_and_kill(*command(config_file, killed, *arguments), state=state)
    last = read_state(tmp_path / "whole" / "training.pt")["progress"]["step"]
    assert read_state(state)["progress"]["step"] < last
    run_here(*command(config_file, killed, *arguments, "--resume"))
    for name in ("options.json", "weights.hdf5", "vocabulary.txt", "softmax.safetensors"):
        assert (killed / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.slow
def test_two_processes_train_as_one_on_the_same_streams(config_file: Path, tmp_path: Path) -> None:
    # What depends on each process's own random numbers is off.
    arguments = ("--set=dropout=0", '--set=softmax={"type": "full"}', "--set=trainer.num_epochs=0.5")
    for name, run in (("one", run_here), ("two", run_as_two)):
        run(*command(config_file, tmp_path / name, *arguments))
    one, two = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("one", "two"))
    assert two["trained_targets"] == one["trained_targets"]
    assert two["held_out"]["mean"] == pytest.approx(one["held_out"]["mean"], rel=1e-3)
