"""Processes that train; trainings that are killed, stopped before a step or by Ctrl-C, against whole ones."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import cli
from elmo_tasks.training.callbacks import Callback, Progress
from elmo_tasks.training.trainer import Trainer
from tests import command_server


def run_here(*arguments: str) -> None:
    """Runs `-m elmo_tasks ARGUMENT...` in this process, without waiting for its imports."""
    assert cli.main([*arguments[2:]]) == 0


def start_warm(*arguments: str, **settings: str) -> subprocess.Popen[bytes]:
    """Starts `-m elmo_tasks ARGUMENT...` in a process that has imported everything. `terminate` kills it."""
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [command_server.start(), *arguments], env={**os.environ, "OMP_NUM_THREADS": "1", **settings}, **streams
    )


def run_as_two(*arguments: str, machines: int = 1) -> None:
    """Runs `-m elmo_tasks ARGUMENT...` to its end in two processes, with the variables that torchrun sets."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    shared["LOCAL_WORLD_SIZE"] = str(2 // machines)
    local_ranks = ("0", "1") if machines == 1 else ("0", "0")
    ranks = enumerate(local_ranks)
    processes = [start_warm(*arguments, **shared, RANK=str(rank), LOCAL_RANK=local) for rank, local in ranks]
    for process in processes:
        _, error = process.communicate(timeout=300)
        assert process.returncode == 0, error.decode()


def run_and_kill(*arguments: str, state: Path) -> None:
    """Runs `-m elmo_tasks ARGUMENT...`, and kills it as soon as the file of the training's state exists."""
    with start_warm(*arguments) as process:
        while not state.is_file():
            assert process.poll() is None, "the training ended before it could be killed"
            time.sleep(0.002)
        process.terminate()
    assert process.returncode == command_server.KILLED


class Killed(BaseException):
    """Stands for the end of a process by SIGKILL: nothing is saved."""


@contextlib.contextmanager
def stop_at(step: int) -> Iterator[None]:
    """Ends a training before it makes a step, with `Killed`."""
    plain_step = Trainer.step

    def stopping(trainer: Trainer, parts: Any) -> float:
        if trainer.progress.step == step:
            raise Killed
        return plain_step(trainer, parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "step", stopping)
        yield


class CtrlC(Callback):
    """Sends SIGINT once, as Ctrl-C does: within a step, or while the record of an epoch is written.

    Arguments:
        signals: sent one after the other.
    """

    def __init__(
        self,
        *,
        step: int | None = None,
        epoch: int | None = None,
        signals: Sequence[signal.Signals] = (signal.SIGINT,),
    ) -> None:
        self._step, self._epoch, self._signals = step, epoch, signals

    def on_step(self, progress: Progress, loss: float) -> None:
        if progress.step == self._step:
            self._send()

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        if record["epoch"] == self._epoch:
            self._send()

    def _send(self) -> None:
        for number in self._signals:
            signal.raise_signal(number)


def read_records(folder: Path, *, seconds: bool = True) -> list[dict[str, Any]]:
    """Those of a run's epochs, with or without the seconds that they took."""
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for record in records:
        if not seconds:
            del record["seconds"], record["training"]["seconds"]
    return records


def assert_same_run(run: Path, whole: Path) -> None:
    """Bit for bit."""
    for path in (*whole.glob("*.safetensors"), whole / "vocabulary.json", *whole.glob("bilm_options.json")):
        assert (run / path.name).read_bytes() == path.read_bytes(), path.name
    assert read_records(run, seconds=False) == read_records(whole, seconds=False)
    tests = [json.loads((folder / "metrics.json").read_text())["test"] for folder in (run, whole)]
    assert tests[0] == tests[1]
