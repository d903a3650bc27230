"""Every command that writes, on a disk that becomes full: one line of error, no leftovers, and nothing lost."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import cli
from elmo_tasks.files.tensor_files import read_state, read_tensors
from elmo_tasks.runs import train
from elmo_tasks.runs.evaluate import evaluate

pytestmark = pytest.mark.slow

Room = Callable[[int], AbstractContextManager[None]]

PROBLEM = r"cannot be written: (Error while serializing: I/O error: )?File too large.*; expected at least [\d,]+ bytes"


@pytest.fixture(scope="module")
def trained(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `experiment.json` and its finished `run`."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "experiment.json").write_text(json.dumps(settings))
    train.train(folder / "experiment.json", folder / "run", overrides=["trainer.num_epochs=2"])
    return folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ("sample-data {out} --task ner --sentences 200,20,20", "ner_conll2003/eng.train"),
        ("embed {text} --output {out}/vectors.hdf5 --bilm {bilm}", "vectors.hdf5"),
        ("embed {text} --output {out}/vectors.npz --bilm {bilm}", "vectors.npz"),
        ("predict {run} {text} --output {out}/predictions.jsonl", "predictions.jsonl"),
        ("evaluate {run} {data} --predictions {out}/predictions.jsonl", "predictions.jsonl"),
        ("archive {run} {out}/run.tar.gz", "run.tar.gz"),
        ("plot {run} --output {out}/run.svg", "run.svg"),
    ],
)
def test_a_command_names_what_it_cannot_write(
    arguments: str,
    written: str,
    trained: Path,
    sample_folder: Path,
    tmp_path: Path,
    room: Room,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("Mary went to Boeing .\n" * 100)
    out.mkdir()
    (out / "other").write_text("mine")
    data = sample_folder / "ner_conll2003" / "eng.testb"
    paths = {"text": text, "out": out, "run": trained / "run", "bilm": sample_folder / "bilm", "data": data}
    before = names(trained)
    evaluate(trained / "run", str(data))  # the data set is in the cache
    with room(2000):
        assert cli.main([part.format(**paths) for part in arguments.split()]) == 2
    *_, message = capsys.readouterr().err.splitlines()
    assert re.match(rf"error: {out}/{written}: {PROBLEM}. Free some space", message)
    assert names(trained) == before
    assert {path.name for path in out.rglob("*") if path.is_file()} <= {"other", "options.json"}


def test_a_training_goes_on_when_there_is_room_again(
    trained: Path, tmp_path: Path, room: Room, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails at one file after the other, and ends with the same bits as if it had not."""
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    run = tmp_path / "run"
    train = ["train", str(trained / "experiment.json"), "-s", str(run), "--resume", "--set", "trainer.num_epochs=2"]
    named, limit = [], 100
    while True:
        with room(limit):
            code = cli.main(train)
        if code == 0:
            break
        assert code == 2
        *_, message = capsys.readouterr().err.splitlines()
        cached = "cannot be written: File too large. It is in the cache"  # a data set, whose size is not known before
        found = re.match(rf"error: {tmp_path}/(.*?): ({PROBLEM}|{cached}|the layer cache cannot be written)", message)
        assert found, message
        named.append(found[1])
        assert not [name for name in names(tmp_path) if name.endswith(".tmp")]
        limit = limit * 5 // 2
    written = [name for name in names(run) if "tensorboard" not in name]
    assert written == [name for name in names(trained / "run") if "tensorboard" not in name]
    one, other = (read_tensors(folder / "run" / "model.safetensors") for folder in (trained, tmp_path))
    assert all(each.equal(other[name]) for name, each in one.items())
    states = [read_state(folder / "run" / "training.pt") for folder in (trained, tmp_path)]
    assert states[0]["progress"]["best_value"] == states[1]["progress"]["best_value"]
    assert {named[0].split("/")[1], named[-1]} == {"datasets", "run/frozen.safetensors"}


def test_a_process_ends_without_a_crash(tmp_path: Path) -> None:
    """HDF5 writes once more when the process ends."""
    (tmp_path / "text").write_text("Mary went to Boeing .\n" * 100)
    arguments = f"embed {tmp_path / 'text'} --output {tmp_path / 'out'}/vectors.hdf5"
    # -B: Python would keep a truncated file of compiled code.
    shell = f"ulimit -f 64; exec {sys.executable} -B -m elmo_tasks {arguments} --quiet"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert re.fullmatch(rf"error: .*: {PROBLEM}.*\n", done.stderr)
