"""The folder of a study: which of its runs are there, and training those that are missing.

study.json      the study, and the command that made it
results.jsonl   one line for each finished run
ARM/seed_N      a run, with its log.txt; with shares of the training data: ARM/share_X/seed_N
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import logging
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import pydantic

from elmo_tasks.config import to_json
from elmo_tasks.errors import ElmoTasksError, RunError, some_of
from elmo_tasks.files.json_files import Number, read_json, write_json
from elmo_tasks.files.json_lines import read_records, write_records
from elmo_tasks.files.locks import locked
from elmo_tasks.files.overwriting import check_kind
from elmo_tasks.runs.experiment_config import ExperimentConfig, Results
from elmo_tasks.runs.folder import RunFolder, Split
from elmo_tasks.runs.model_building import check_frozen_models
from elmo_tasks.studies.study import Study, StudyConfig, StudyRun, as_options

logger = logging.getLogger(__name__)

_LOG = "log.txt"
_SECONDS_BETWEEN_LOOKS = 0.1  # whether a training has ended
_PR_SET_PDEATHSIG = 1  # Linux: the signal that a process gets when its parent ends
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class Result(pydantic.BaseModel):
    """A line of `results.jsonl`.

    Arguments:
        metric: the name of `score`: that of the config's validation metric.
        split: the data that `score` is of.
        metrics: all of them, of the best epoch: `validation` and, if there is test data, `test`.
        seconds: of training and evaluation; reading the data and computing the biLM's layers are not counted.
        evaluation_seconds: those of the evaluations among them.
        epochs: how many were trained.
        folder: of the run, in the folder of the study.
    """

    arm: str
    config: str
    changes: list[str]
    seed: int
    share: float
    metric: str
    higher_is_better: bool
    split: Split
    score: Number
    metrics: dict[str, dict[str, Number]]
    seconds: float
    evaluation_seconds: float = 0.0
    epochs: int | None = None
    folder: str


class _Training(pydantic.BaseModel):
    seconds: float


class _Epoch(pydantic.BaseModel):
    """The part of a line of `metrics.jsonl` that is used here."""

    seconds: float
    training: _Training | None = None


class StudyRecord(pydantic.BaseModel):
    """The contents of `study.json`."""

    command: str
    config: StudyConfig
    variables: dict[str, str] = {}  # of the configs, also those that the command gave
    packages: list[str] = []  # that were imported


@dataclasses.dataclass(frozen=True)
class Failure:
    """A run that did not finish, and the last error of its log."""

    run: StudyRun
    error: str
    log: Path

    def __str__(self) -> str:
        return f"{self.run.title}: {self.error} (see {self.log})"


class StudyFolder:
    """The folder of a study, and where each of its runs is in it.

    A run that is there belongs to the study if it has the config of one of its runs, and was trained with the same
    biLM, whatever its folder is called.

    Attributes:
        run_folders: those of the runs, in their order. Runs with the same config share one.
        others: runs in the folder that do not belong to the study.
    """

    def __init__(self, path: str | Path, study: Study) -> None:
        self.path = Path(path)
        self.study = study
        found = {key: folder for folder in _started(self.path) if (key := _key_of(folder)) is not None}
        keys = [_key(to_json(run.config)) for run in study.runs]
        taken = set(found.values())
        for run, key in zip(study.runs, keys, strict=True):
            if key in found and (mismatch := _mismatch(run.config, RunFolder(found[key]))):
                logger.warning("%s: not used, and trained anew: %s", found.pop(key), mismatch)
            if key not in found:
                found[key] = self._free(run.folder, taken)
                taken.add(found[key])
        self.run_folders = tuple(RunFolder(found[key]) for key in keys)
        self.others = sorted(set(_started(self.path)) - {folder.path for folder in self.run_folders})

    def _free(self, preferred: Path, taken: set[Path]) -> Path:
        """A folder for a new run: the preferred one, or that with the first number behind it that is free."""
        number, path = 1, self.path / preferred
        while path in taken or RunFolder(path).is_started():
            number += 1
            path = self.path / preferred.with_name(f"{preferred.name}_{number}")
        return path

    def pairs(self) -> list[tuple[StudyRun, RunFolder]]:
        """All runs with their folders."""
        return list(zip(self.study.runs, self.run_folders, strict=True))

    def chosen(self) -> list[tuple[StudyRun, RunFolder]]:
        """The chosen runs, with their folders. Runs that share a folder are there once."""
        return list({folder.path: (run, folder) for run, folder in self.pairs() if run.chosen}.values())

    def state(self, folder: RunFolder) -> str:
        return "finished" if folder.metrics.is_file() else "interrupted" if folder.is_started() else "missing"

    def results(self) -> list[Result]:
        """The results of the runs that have finished, in the order of the study."""
        return [self.result(run, folder) for run, folder in self.pairs() if folder.metrics.is_file()]

    def result(self, run: StudyRun, folder: RunFolder) -> Result:
        """The result of a run that has finished."""
        found = read_json(folder.metrics, Results, "the metrics of a run")
        metrics = {"validation": found.best.validation} | ({"test": found.test} if found.test else {})
        records = list(read_records(folder.records, _Epoch, "the record of an epoch"))
        trainer = run.config.trainer
        return Result(
            arm=run.arm.name,
            config=run.config_file,
            changes=list(run.overrides),
            seed=run.seed,
            share=run.share,
            metric=trainer.metric_name,
            higher_is_better=trainer.higher_is_better,
            split=run.split,
            score=trainer.value_of(metrics[run.split]),
            metrics=metrics,
            seconds=round(sum(record.seconds for record in records), 2),
            evaluation_seconds=round(sum(each.seconds - each.training.seconds for each in records if each.training), 2),
            epochs=len(records),
            folder=folder.path.relative_to(self.path).as_posix(),
        )

    def describe_others(self) -> str:
        """Says which runs in the folder do not belong to the study."""
        names = some_of([other.relative_to(self.path).as_posix() for other in self.others])
        return f"{self.path}: {len(self.others)} other run(s) there do not belong to the study: {names}"

    def write_results(self) -> None:
        write_records(self.path / "results.jsonl", self.results())

    def estimates(self) -> list[float | None]:
        """The seconds that each run may take, from the finished runs of the same config; None where there are none.

        Where none has the same share of the data, the time of the training is in proportion to the share, and that of
        the evaluations is not: it is the same in each epoch.
        """
        results = self.results()

        def estimate(run: StudyRun) -> float | None:
            alike = [each for each in results if each.config == run.config_file]
            same_arm = [each for each in alike if each.arm == run.arm.name] or alike
            exact = [each.seconds for each in same_arm if each.share == run.share]
            scaled = exact or [_scaled(each, run) for each in same_arm]
            return statistics.fmean(scaled) if scaled else None

        return [estimate(run) for run in self.study.runs]


def _scaled(finished: Result, run: StudyRun) -> float:
    """The seconds of a run, from those of another with another share of the data."""
    trainer = run.config.trainer
    stops_early = trainer.patience is not None or not finished.epochs
    times = 1.0 if stops_early else trainer.num_epochs / (finished.epochs or 1)
    training = finished.seconds - finished.evaluation_seconds
    return times * (training * run.share / finished.share + finished.evaluation_seconds)


def read_study(path: str | Path) -> tuple[StudyRecord, list[Result]]:
    """What a study's folder holds; raises `RunError` if it is not one, or no run has finished."""
    path = Path(path)
    record = read_json(path / "study.json", StudyRecord, "the folder of a study")
    file = path / "results.jsonl"
    results = list(read_records(file, Result, "a result")) if file.is_file() else []
    if not results:
        raise RunError(f"{path}: no run of the study has finished")
    return record, results


def run_study(folder: StudyFolder, *, command: str, num_jobs: int = 1, packages: Sequence[str] = ()) -> list[Failure]:
    """Trains what is missing of the chosen runs, several runs at a time, each in a process of its own.

    Interrupted runs are resumed. A run that fails does not stop the others. If this process is killed, the trainings
    end with it (on Linux).

    Arguments:
        command: what started the study, for its report.
        num_jobs: the most runs at a time. They share the processor's cores unless `OMP_NUM_THREADS` is set.
        packages: packages to import, see `elmo_tasks.config.include_packages`.

    Returns:
        the runs that failed.

    Raises:
        RunError: another process works on the study.
    """
    check_kind(folder.path, "study.json", remedy="-s names another folder")
    with locked(folder.path):
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
    earlier = len(runs) - len(missing)
    logger.info("%d of %d runs have finished", earlier, len(runs))
    stop = threading.Event()
    with ThreadPoolExecutor(num_jobs) as jobs:
        trainings = {jobs.submit(_train, folder, *each, num_jobs, packages, stop): each for each in missing}
        try:
            for num_done, training in enumerate(as_completed(trainings), start=earlier + 1):
                (error, seconds), (run, run_folder) = training.result(), trainings[training]
                progress = f"{num_done} of {len(runs)}"
                if error:
                    logger.error("%s: %s: failed: %s", progress, run.title, error)
                    continue
                folder.write_results()
                result = folder.result(run, run_folder)
                logger.info("%s: %s: %s %.2f, %.0f s", progress, run.title, result.metric, result.score, seconds)
        except BaseException:  # also Ctrl-C: the runs that train are interrupted
            stop.set()
            jobs.shutdown(cancel_futures=True)
            raise
    errors = [(*trainings[training], training.result()[0]) for training in trainings]
    return [Failure(run, error, run_folder.path / _LOG) for run, run_folder, error in errors if error]


def _train(
    folder: StudyFolder,
    run: StudyRun,
    run_folder: RunFolder,
    num_jobs: int,
    packages: Sequence[str],
    stop: threading.Event,
) -> tuple[str | None, float]:
    """Trains one run in a process of its own, which ends when `stop` is set.

    Returns:
        the last error of its log if it does not finish, and how many seconds it took.
    """
    begin = time.monotonic()
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
    return _error(code, path, log_begin), time.monotonic() - begin


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


def _started(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.rglob("config.json"))


def _key_of(folder: Path) -> str | None:
    """The key of the run that a folder holds; None if its config cannot be read."""
    try:
        return _key(RunFolder(folder).earlier_config(ExperimentConfig))
    except ElmoTasksError as error:
        logger.warning("%s", error)
        return None


def _mismatch(config: ExperimentConfig, folder: RunFolder) -> str | None:
    """Why the run there has another frozen biLM or transformer than the config names now; None if it has not."""
    if not any(frozen.reference.is_file() for frozen in folder.frozen_models):
        return None
    try:
        check_frozen_models(config, folder)
    except RunError as error:
        return str(error)
    return None


def _key(config: dict[str, Any]) -> str:
    return json.dumps(config, sort_keys=True)
