"""The folder of a study: which of its runs are there, and training those that are missing.

study.json      the study, and the command that made it
results.jsonl   one line for each finished run
ARM/seed_N      a run, with its log.txt; with shares of the training data: ARM/share_X/seed_N
"""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import json
import logging
import os
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pydantic

from elmo_tasks.config import to_json
from elmo_tasks.errors import ElmoTasksError, RunError, some_of
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.json_files import Number, from_json, read_json, write_json
from elmo_tasks.files.locks import locked
from elmo_tasks.files.overwriting import check_kind
from elmo_tasks.files.text import read_lines
from elmo_tasks.runs.experiment_config import ExperimentConfig, Results
from elmo_tasks.runs.folder import RunFolder, Split
from elmo_tasks.runs.model_building import check_frozen_models
from elmo_tasks.studies.study import Study, StudyConfig, StudyRun, as_options

logger = logging.getLogger(__name__)

_LOG = "log.txt"
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
    """The folder of a study, and where each of its runs lies in it.

    A run that is there belongs to the study if it has the config of one of its runs, and was trained with the same
    biLM, whatever its folder is called.

    Attributes:
        places: the folders of the runs, in their order. Runs with the same config share one.
        others: runs in the folder that do not belong to the study.
    """

    def __init__(self, path: str | Path, study: Study) -> None:
        self.path = Path(path)
        self.study = study
        found = {key: place for place in _started(self.path) if (key := _key_of(place)) is not None}
        keys = [_key(to_json(run.config)) for run in study.runs]
        taken = set(found.values())
        for run, key in zip(study.runs, keys, strict=True):
            if key in found and (misfit := _misfit(run.config, RunFolder(found[key]))):
                logger.warning("%s: not used, and trained anew: %s", found.pop(key), misfit)
            if key not in found:
                found[key] = self._free(run.folder, taken)
                taken.add(found[key])
        self.places = tuple(RunFolder(found[key]) for key in keys)
        self.others = sorted(set(_started(self.path)) - {place.path for place in self.places})

    def _free(self, wanted: Path, taken: set[Path]) -> Path:
        """A folder for a new run: the wanted one, or that with the first number behind it that is free."""
        number, place = 1, self.path / wanted
        while place in taken or RunFolder(place).is_started():
            number += 1
            place = self.path / wanted.with_name(f"{wanted.name}_{number}")
        return place

    def chosen(self) -> list[tuple[StudyRun, RunFolder]]:
        """The chosen runs, with their folders. Runs that share a folder are there once."""
        pairs = zip(self.study.runs, self.places, strict=True)
        return list({place.path: (run, place) for run, place in pairs if run.chosen}.values())

    def state(self, place: RunFolder) -> str:
        return "finished" if place.metrics.is_file() else "interrupted" if place.is_started() else "missing"

    def results(self) -> list[Result]:
        """The results of the runs that have finished, in the order of the study."""
        pairs = zip(self.study.runs, self.places, strict=True)
        return [self._result(run, place) for run, place in pairs if place.metrics.is_file()]

    def _result(self, run: StudyRun, place: RunFolder) -> Result:
        found = read_json(place.metrics, Results, "the metrics of a run")
        metrics = {"validation": found.best.validation} | ({"test": found.test} if found.test else {})
        records = [
            from_json(line.encode(), _Epoch, f"{place.records}:{number}", "the record of an epoch")
            for number, line in read_lines(place.records)
        ]
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
            folder=place.path.relative_to(self.path).as_posix(),
        )

    def describe_others(self) -> str:
        """Says which runs in the folder do not belong to the study."""
        names = some_of([other.relative_to(self.path).as_posix() for other in self.others])
        return f"{self.path}: {len(self.others)} other run(s) there do not belong to the study: {names}"

    def write_results(self) -> None:
        with atomic_write(self.path / "results.jsonl") as stream:
            stream.writelines(f"{result.model_dump_json()}\n".encode() for result in self.results())

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
    lines = read_lines(file) if file.is_file() else ()
    results = [from_json(line.encode(), Result, f"{file}:{number}", "a result") for number, line in lines]
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
            return asyncio.run(_train_all(folder, num_jobs, packages))
        finally:
            folder.write_results()


async def _train_all(folder: StudyFolder, num_jobs: int, packages: Sequence[str]) -> list[Failure]:
    runs = folder.chosen()
    missing = [(run, place) for run, place in runs if folder.state(place) != "finished"]
    logger.info("%d of %d runs have finished", len(runs) - len(missing), len(runs))
    num_done, turn = len(runs) - len(missing), asyncio.Semaphore(num_jobs)

    async def train(run: StudyRun, place: RunFolder) -> Failure | None:
        nonlocal num_done
        async with turn:
            begin, how = time.monotonic(), "resumed" if place.is_started() else "begins"
            logger.info("%s: %s", run.title, how)
            error = await _train(folder, run, place, num_jobs, packages)
            num_done += 1
            progress = f"{num_done} of {len(runs)}"
            if error:
                logger.error("%s: %s: failed: %s", progress, run.title, error)
                return Failure(run, error, place.path / _LOG)
            folder.write_results()
            result = folder._result(run, place)
            seconds = time.monotonic() - begin
            logger.info("%s: %s: %s %.2f, %.0f s", progress, run.title, result.metric, result.score, seconds)
            return None

    failures = await asyncio.gather(*(train(run, place) for run, place in missing))
    return [failure for failure in failures if failure]


async def _train(
    folder: StudyFolder, run: StudyRun, place: RunFolder, num_jobs: int, packages: Sequence[str]
) -> str | None:
    """Trains one run in a process of its own; returns the last error of its log if it does not finish."""
    # Arms that share the run may report the scores of different data.
    pairs = zip(folder.study.runs, folder.places, strict=True)
    splits = sorted({other.split for other, its in pairs if its.path == place.path})
    arguments = train_arguments(folder.study, run, place.path, packages, splits)
    command = [sys.executable, "-m", "elmo_tasks", *arguments]
    if any(file.exists() for file in place.files):
        command.append("--resume")
    place.path.mkdir(parents=True, exist_ok=True)
    threads = {"OMP_NUM_THREADS": str(max(1, _num_cores() // num_jobs))}
    with (place.path / _LOG).open("ab") as log:
        begin = log.tell()
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**threads, **os.environ},
            preexec_fn=_end_with_parent,
        )
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
    if code == 0:
        return None
    if code < 0:  # nothing in the log says so
        return f"killed by {signal.Signals(-code).name}"
    return _last_error(place.path / _LOG, begin) or f"ended with code {code}"


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
    """The last line that tells an error, or else the last line, of what a log has from byte `begin` on."""
    text = log.read_bytes()[begin:].decode(errors="replace")
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return (errors or lines or [""])[-1]


def _started(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.rglob("config.json"))


def _key_of(place: Path) -> str | None:
    """The key of the run that a folder holds; None if its config cannot be read."""
    try:
        return _key(RunFolder(place).earlier_config(ExperimentConfig))
    except ElmoTasksError as error:
        logger.warning("%s", error)
        return None


def _misfit(config: ExperimentConfig, place: RunFolder) -> str | None:
    """Why the run there has another frozen biLM or transformer than the config names now; None if it has not."""
    if not any(frozen.reference.is_file() for frozen in place.frozen_models):
        return None
    try:
        check_frozen_models(config, place)
    except RunError as error:
        return str(error)
    return None


def _key(config: dict[str, Any]) -> str:
    return json.dumps(config, sort_keys=True)
