"""Studies on a Ray cluster, where Ray is installed: `make engines`."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import cli
from elmo_tasks.studies.study_runs import read_study


@pytest.fixture
def study(config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of three runs, one of which fails, in the current folder; its paths are relative."""
    monkeypatch.chdir(tmp_path)
    diverging = {"trainer": {"optimizer": {"type": "sgd", "lr": 1e30}, "grad_norm": None}}
    arms: list[dict[str, Any]] = [{"name": "good", "seeds": [1, 2]}, {"name": "bad", "changes": diverging}]
    arms = [{"config": config_file.name, **arm} for arm in arms]
    Path("study.json").write_text(json.dumps({"title": "t", "arms": arms}))
    return Path("study.json")


def test_without_ray_the_extra_is_named(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main(["study", str(study), "--engine", "ray"]) == 2
    assert "Ray is not installed; install it with: pip install 'elmo-tasks[ray]'" in capsys.readouterr().err
    assert cli.main(["study", str(study), "--address", "auto"]) == 2
    assert "--address is the address of a Ray cluster; expected --engine ray as well" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray warns about the versions of what it uses
def test_runs_on_ray_are_those_of_this_machine_even_if_a_process_is_killed(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ray = pytest.importorskip("ray")
    killed: list[int] = []

    def kill_one() -> None:
        while not list(Path("rayed").rglob("training.pt")):
            time.sleep(0.01)
        found = subprocess.run(["pgrep", "-f", "ray::_train"], capture_output=True, text=True, check=False)
        for number in map(int, found.stdout.split()[:1]):
            os.kill(number, signal.SIGKILL)
            killed.append(number)

    watcher = threading.Thread(target=kill_one, daemon=True)
    watcher.start()
    assert cli.main(["study", str(study), "-s", "rayed", "--engine", "ray"]) == 2
    watcher.join()
    assert killed
    assert not ray.is_initialized()
    said = capsys.readouterr().err
    assert "1 of 3 runs failed" in said
    assert said.count("the loss is ") == 2  # in the log, and in the error
    results = read_study(Path("rayed"))[1]
    assert [(each.arm, each.seed) for each in results] == [("good", 1), ("good", 2)]
    for each in results:
        assert cli.main(["train", "experiment.json", "-s", f"{each.seed}", "--set", f"random_seed={each.seed}"]) == 0
        trained = json.loads(Path(f"{each.seed}", "metrics.json").read_text())
        assert each.metrics == {"validation": trained["best"]["validation"], "test": trained["test"]}
