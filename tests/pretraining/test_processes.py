"""What only whole processes can show of pretraining: `kill -9` and resuming, and two that share the streams."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from elmo_tasks.files.tensor_files import read_state


def command(config_file: Path, folder: Path, *arguments: str) -> list[str]:
    return ["-m", "elmo_tasks", "pretrain", str(config_file), "-s", str(folder), *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def run(*arguments: str) -> None:
    finished = subprocess.run(
        [sys.executable, *arguments], env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert finished.returncode == 0, finished.stderr


@pytest.mark.slow
def test_killed_and_resumed_is_the_same_training_bit_for_bit(config_file: Path, tmp_path: Path) -> None:
    arguments = ("--set=trainer.checkpoint_every_steps=3",)
    run(*command(config_file, tmp_path / "whole", *arguments))
    killed = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, *command(config_file, killed, *arguments)], env=environment(), stderr=subprocess.DEVNULL
    )
    state = killed / "training.pt"
    while not state.is_file():
        assert process.poll() is None, "the training ended before it could be killed"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    last = read_state(tmp_path / "whole" / "training.pt")["progress"]["step"]
    assert read_state(state)["progress"]["step"] < last
    run(*command(config_file, killed, *arguments, "--resume"))
    for name in ("options.json", "weights.hdf5", "vocabulary.txt", "softmax.safetensors"):
        assert (killed / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


@pytest.mark.slow
def test_two_processes_train_as_one_on_the_same_streams(config_file: Path, tmp_path: Path) -> None:
    # What depends on each process's own random numbers is off.
    arguments = ("--set=dropout=0", '--set=softmax={"type": "full"}', "--set=trainer.num_epochs=0.5")
    run(*command(config_file, tmp_path / "one", *arguments))
    run(
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        *command(config_file, tmp_path / "two", *arguments),
    )
    one, two = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("one", "two"))
    assert two["trained_targets"] == one["trained_targets"]
    assert two["held_out"]["mean"] == pytest.approx(one["held_out"]["mean"], rel=1e-3)
