"""Trains the runs of a study that are missing, each in a process of its own; several machines may share them."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import filelock

from elmo_tasks.config import to_json
from elmo_tasks.extras.pretraining.tokenize_files import num_processors
from elmo_tasks.extras.studies.study import StudyRun, as_options
from elmo_tasks.extras.studies.study_runs import StudyFolder
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.paths import check_kind
from elmo_tasks.runs.folder import RunFolder

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_CLAIMS = 0.5  # whether another process still trains a run or a trial
_SECONDS_BETWEEN_LOOKS = 0.1  # whether a process has ended
_CLAIMS = ".claims"  # a folder with a file for each run, which is locked while it is trained
_PR_SET_PDEATHSIG = 1  # Linux: the signal that a process gets when its parent ends
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclasses.dataclass(frozen=True)
class Training:
    """What a job needs to train a run.

    Arguments:
        title: of the run, for messages.
        folder: of the run.
        claim: a file that is locked while the run is trained.
        arguments: those of `elmo-tasks` that train it, without `--resume`.
        num_jobs: the most runs at a time.
    """

    title: str
    folder: RunFolder
    claim: Path
    arguments: Sequence[str]
    num_jobs: int

    @classmethod
    def of(
        cls, folder: StudyFolder, run: StudyRun, run_folder: RunFolder, num_jobs: int, packages: Sequence[str]
    ) -> Training:
        # Arms that share the run may report the scores of different data.
        splits = sorted({other.split for other, its_folder in folder.pairs() if its_folder.path == run_folder.path})
        kept = [word for split in splits for word in ("--predictions", split)]
        options = as_options(run.overrides, folder.study.variables, packages)
        arguments = ["train", run.config_file, "-s", str(run_folder.path), *kept, *options]
        claim = folder.path / _CLAIMS / "_".join(run_folder.path.relative_to(folder.path).parts)
        return cls(run.title, run_folder, claim, arguments, num_jobs)

    @property
    def log(self) -> Path:
        return self.folder.path / "log.txt"

    def train(self, stop: threading.Event) -> str | None:
        """Trains the run until `stop` is set, unless another process trains it; then it only waits for a moment.

        Returns:
            the last error, empty if the run has finished; None if another process trains it, or did a moment ago.
        """
        with claimed(self.claim) as is_ours:
            if not is_ours:
                stop.wait(SECONDS_BETWEEN_CLAIMS)
                return None
            return "" if self.folder.metrics.is_file() else self._train(stop)

    def _train(self, stop: threading.Event) -> str:
        """Returns the last error, empty if the run finishes. What the process prints is appended to the log."""
        logger.info("%s: %s", self.title, "resumed" if self.folder.is_started() else "begins")
        resume = ["--resume"] if any(file.exists() for file in self.folder.files) else []
        command = [sys.executable, "-m", "elmo_tasks", *self.arguments, *resume]
        env = {"OMP_NUM_THREADS": str(max(1, num_processors() // self.num_jobs)), **os.environ}
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            begin = log.tell()
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            process = subprocess.Popen(command, env=env, preexec_fn=_end_with_parent, **streams)
        while process.poll() is None:
            if stop.wait(_SECONDS_BETWEEN_LOOKS):
                process.terminate()
                process.wait()
        if process.returncode < 0:  # nothing in the log says so
            return f"killed by {signal.Signals(-process.returncode).name}"
        said = self.log.read_bytes()[begin:].decode(errors="replace")
        return _last_error(said) or f"ended with code {process.returncode}" if process.returncode else ""


def _last_error(text: str) -> str:
    """The last error, or else the last line, of what a process has printed."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or lines or [""])[-1]


def _end_with_parent() -> None:
    """Called in a new process: it is killed when its parent ends, so that nothing goes on without being asked for."""
    if _libc:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def run_study(
    folder: StudyFolder,
    *,
    command: str,
    num_jobs: int = 1,
    packages: Sequence[str] = (),
) -> list[str]:
    """Trains what is missing of the chosen runs, several runs at a time, each in a process of its own.

    Interrupted runs are resumed. A run that fails does not stop the others. If this process is killed, the trainings
    end with it (on Linux). Several processes, also on machines that share a disk, may work on one study: each run is
    trained by one of them, and all end when all runs have.

    Arguments:
        command: what started the study, for its report.
        num_jobs: the most runs at a time. They share the processor's cores unless `OMP_NUM_THREADS` is set.
        packages: packages to import, see `elmo_tasks.config.include_packages`.

    Returns:
        the runs that failed here, with the last errors of their logs.
    """
    check_kind(folder.path, "study.json", remedy="-s names another folder")
    record = {"command": command, "config": to_json(folder.study.config)}
    record |= {"variables": dict(folder.study.variables), "packages": list(packages)}
    write_json(folder.path / "study.json", record)
    folder.write_results()
    if folder.others:
        logger.info("%s", folder.describe_others())
    runs = [(run, Training.of(folder, run, run_folder, num_jobs, packages)) for run, run_folder in folder.chosen()]
    missing = [(run, training) for run, training in runs if not training.folder.metrics.is_file()]
    num_done = len(runs) - len(missing)
    logger.info("%d of %d runs have finished", num_done, len(runs))
    failures, stop = dict[str, str](), threading.Event()
    try:
        # Each job is a thread that waits for the process of a run. This thread logs, and writes the results.
        with ThreadPoolExecutor(num_jobs) as jobs:
            waiting = {jobs.submit(training.train, stop): (run, training) for run, training in missing}
            try:
                while waiting:
                    job = next(as_completed(waiting))
                    (run, training), error = waiting.pop(job), job.result()
                    if error is None:  # another process trains it: the others come first
                        waiting[jobs.submit(training.train, stop)] = (run, training)
                        continue
                    num_done += 1
                    progress = f"{num_done} of {len(runs)}: {run.title}"
                    if error:
                        failures[run.title] = f"{run.title}: {error} (see {training.log})"
                        logger.error("%s: failed: %s", progress, error)
                        continue
                    folder.write_results()
                    result = folder.result(run, training.folder)
                    logger.info("%s: %s %.2f, %.0f s", progress, result.metric, result.score, result.seconds)
            except BaseException:  # also Ctrl-C: the runs that train are interrupted
                stop.set()
                jobs.shutdown(cancel_futures=True)
                raise
    finally:
        folder.write_results()
    return [failures[run.title] for run, _ in runs if run.title in failures]


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Locks a file, which is made if it does not exist, and yields whether no other process has locked it.

    Unlike that of `locked`, the file stays. Where locks do not work, a warning says so, and the file counts as locked.

    Raises:
        PermissionError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock, is_ours = filelock.FileLock(path), True
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        is_ours = False
    except PermissionError:
        raise
    except (OSError, NotImplementedError) as error:
        logger.warning("%s: no lock (%s); make sure that no other command works there", path, error)
    try:
        yield is_ours
    finally:
        lock.release()
