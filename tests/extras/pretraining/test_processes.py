"""What only whole processes can show of pretraining: two that share the streams."""

import json
from pathlib import Path

import pytest

from tests.stopping import run_as_two, run_here


def command(config_file: Path, folder: Path, *arguments: str) -> list[str]:
    return ["-m", "elmo_tasks", "pretrain", str(config_file), "-s", str(folder), *arguments]


@pytest.mark.slow
def test_two_processes_train_as_one_on_the_same_streams(config_file: Path, tmp_path: Path) -> None:
    # What depends on each process's own random numbers is off.
    arguments = ("--set=dropout=0", '--set=softmax={"type": "full"}', "--set=trainer.num_epochs=0.5")
    for name, run in (("one", run_here), ("two", run_as_two)):
        run(*command(config_file, tmp_path / name, *arguments))
    one, two = (json.loads((tmp_path / name / "results.json").read_text()) for name in ("one", "two"))
    assert two["trained_targets"] == one["trained_targets"]
    assert two["held_out"]["mean"] == pytest.approx(one["held_out"]["mean"], rel=1e-3)
