"""Trains the runs of a study that are missing, each in a process of its own; several machines may share them."""

from __future__ import annotations

import ctypes
import dataclasses
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from elmo_tasks.config import to_json
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.locks import claimed
from elmo_tasks.files.overwriting import check_kind
from elmo_tasks.runs.folder import RunFolder, Split
from elmo_tasks.studies.study import Study, StudyRun, as_options
from elmo_tasks.studies.study_runs import StudyFolder

logger = logging.getLogger(__name__)

_LOG = "log.txt"
_CLAIMS = ".claims"  # a folder with a file for each run, which is locked while it is trained
_SECONDS_BETWEEN_LOOKS = 0.1  # whether a training has ended
_SECONDS_BETWEEN_CLAIMS = 0.5  # whether another process still trains a run
_PR_SET_PDEATHSIG = 1  # Linux: the signal that a process gets when its parent ends
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclasses.dataclass(frozen=True)
class Failure:
    """A run that did not finish, and the last error of its log."""

    run: StudyRun
    error: str
    log: Path

    def __str__(self) -> str:
        return f"{self.run.title}: {self.error} (see {self.log})"


def run_study(folder: StudyFolder, *, command: str, num_jobs: int = 1, packages: Sequence[str] = ()) -> list[Failure]:
    """Trains what is missing of the chosen runs, several runs at a time, each in a process of its own.

    Interrupted runs are resumed. A run that fails does not stop the others. If this process is killed, the trainings
    end with it (on Linux). Several processes, also on machines that share a disk, may work on one study: each run is
    trained by one of them, and all end when all runs have.

    Arguments:
        command: what started the study, for its report.
        num_jobs: the most runs at a time. They share the processor's cores unless `OMP_NUM_THREADS` is set.
        packages: packages to import, see `elmo_tasks.config.include_packages`.

    Returns:
        the runs that failed here.
    """
    check_kind(folder.path, "study.json", remedy="-s names another folder")
    record = {"command": command, "config": to_json(folder.study.config)}
    record |= {"variables": dict(folder.study.variables), "packages": list(packages)}
    write_json(folder.path / "study.json", record)
    folder.write_results()
    if folder.others:
        logger.info("%s", folder.describe_others())
    try:
        return _train_all(folder, num_jobs, packages)
    finally:
        folder.write_results()


def _train_all(folder: StudyFolder, num_jobs: int, packages: Sequence[str]) -> list[Failure]:
    """Each job is a thread that waits for the process of a run. This thread logs, and writes the results."""
    runs = folder.chosen()
    missing = [(run, run_folder) for run, run_folder in runs if folder.state(run_folder) != "finished"]
    num_done = len(runs) - len(missing)
    logger.info("%d of %d runs have finished", num_done, len(runs))
    failures, stop = list[Failure](), threading.Event()
    with ThreadPoolExecutor(num_jobs) as jobs:

        def start(run: StudyRun, run_folder: RunFolder) -> Future[_Ended]:
            return jobs.submit(_train, folder, run, run_folder, num_jobs, packages, stop)

        trainings = {start(*each): each for each in missing}
        try:
            while trainings:
                training = next(as_completed(trainings))
                (run, run_folder), ended = trainings.pop(training), training.result()
                if ended.is_elsewhere:  # the others come first
                    trainings[start(run, run_folder)] = (run, run_folder)
                    continue
                num_done += 1
                progress = f"{num_done} of {len(runs)}"
                if ended.error:
                    failures.append(Failure(run, ended.error, run_folder.path / _LOG))
                    logger.error("%s: %s: failed: %s", progress, run.title, ended.error)
                    continue
                folder.write_results()
                result = folder.result(run, run_folder)
                logger.info("%s: %s: %s %.2f, %.0f s", progress, run.title, result.metric, result.score, ended.seconds)
        except BaseException:  # also Ctrl-C: the runs that train are interrupted
            stop.set()
            jobs.shutdown(cancel_futures=True)
            raise
    order = [run for run, _ in runs]
    return sorted(failures, key=lambda failure: order.index(failure.run))


@dataclasses.dataclass(frozen=True)
class _Ended:
    """How the training of a run ended: the last error of its log if it did not finish, and the seconds that it took.

    `is_elsewhere`: another process trains it, or did when this one looked last.
    """

    error: str | None
    seconds: float
    is_elsewhere: bool = False


def _train(
    folder: StudyFolder,
    run: StudyRun,
    run_folder: RunFolder,
    num_jobs: int,
    packages: Sequence[str],
    stop: threading.Event,
) -> _Ended:
    """Trains one run, unless another process that works on the study does; then it waits for a moment."""
    begin = time.monotonic()
    name = "_".join(run_folder.path.relative_to(folder.path).parts)
    with claimed(folder.path / _CLAIMS / name) as is_ours:
        if not is_ours:
            stop.wait(_SECONDS_BETWEEN_CLAIMS)
            return _Ended(None, 0.0, is_elsewhere=True)
        is_finished = folder.state(run_folder) == "finished"  # elsewhere, in the meantime
        error = None if is_finished else _train_in_process(folder, run, run_folder, num_jobs, packages, stop)
    return _Ended(error, time.monotonic() - begin)


def _train_in_process(
    folder: StudyFolder,
    run: StudyRun,
    run_folder: RunFolder,
    num_jobs: int,
    packages: Sequence[str],
    stop: threading.Event,
) -> str | None:
    """Trains one run in a process of its own, which ends when `stop` is set.

    Returns:
        the last error of its log if it does not finish.
    """
    logger.info("%s: %s", run.title, "resumed" if run_folder.is_started() else "begins")
    # Arms that share the run may report the scores of different data.
    splits = sorted({other.split for other, its_folder in folder.pairs() if its_folder.path == run_folder.path})
    arguments = train_arguments(folder.study, run, run_folder.path, packages, splits)
    command = [sys.executable, "-m", "elmo_tasks", *arguments]
    if any(file.exists() for file in run_folder.files):
        command.append("--resume")
    run_folder.path.mkdir(parents=True, exist_ok=True)
    env = {"OMP_NUM_THREADS": str(max(1, _num_cores() // num_jobs)), **os.environ}
    path = run_folder.path / _LOG
    with path.open("ab") as log:
        log_begin = log.tell()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, preexec_fn=_end_with_parent
        )
        while (code := process.poll()) is None:
            if stop.wait(_SECONDS_BETWEEN_LOOKS):
                process.terminate()
                code = process.wait()
    return _error(code, path, log_begin)


def _error(code: int, log: Path, begin: int) -> str | None:
    """Why a process did not finish; None if it did."""
    if code == 0:
        return None
    if code < 0:  # nothing in the log says so
        return f"killed by {signal.Signals(-code).name}"
    return _last_error(log, begin) or f"ended with code {code}"


def train_arguments(
    study: Study, run: StudyRun, folder: Path, packages: Sequence[str] = (), splits: Sequence[Split] = ()
) -> list[str]:
    """The arguments of `elmo-tasks` that train a run and write its predictions for these splits."""
    kept = [word for split in splits for word in ("--predictions", split)]
    options = as_options(run.overrides, study.variables, packages)
    return ["train", run.config_file, "-s", str(folder), *kept, *options]


def _end_with_parent() -> None:
    """Called in a new process: it is killed when its parent ends, so that a killed study leaves no training behind."""
    if _libc:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _last_error(log: Path, begin: int) -> str:
    """The last error, or else the last line, of what a log has from byte `begin` on."""
    text = log.read_bytes()[begin:].decode(errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or lines or [""])[-1]
