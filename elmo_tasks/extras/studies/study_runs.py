"""The runs of a study: its folder, their training, and the means of their scores.

study.json      the study, and the command that made it
results.jsonl   one line for each finished run
ARM/seed_N      a run; with shares of the training data: ARM/share_X/seed_N
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock
import pydantic

from elmo_tasks.config import to_json
from elmo_tasks.errors import ElmoTasksError, RunError, WriteError, one_line
from elmo_tasks.extras.repeats.repeats import deviation
from elmo_tasks.extras.studies.study import Arm, Study, StudyConfig, StudyRun
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.json_files import Number, read_json, read_records, write_json
from elmo_tasks.files.paths import check_kind
from elmo_tasks.runs.experiment_config import ExperimentConfig, Results
from elmo_tasks.runs.folder import RunFolder, Split
from elmo_tasks.runs.plan import earlier_config
from elmo_tasks.runs.train import train

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_CLAIMS = 0.5  # whether another process still trains a run or a trial


class Result(pydantic.BaseModel):
    """A line of `results.jsonl`.

    Arguments:
        metric: the name of `score`: that of the config's validation metric.
        split: the data that `score` is of.
        metrics: all of them, of the best epoch: `validation` and, if there is test data, `test`.
        seconds: of training and evaluation; reading the data and computing the biLM's layers are not counted.
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
    folder: str


class _Epoch(pydantic.BaseModel):
    """The part of a line of `metrics.jsonl` that is used here."""

    seconds: float


class StudyRecord(pydantic.BaseModel):
    """The contents of `study.json`."""

    command: str
    config: StudyConfig
    variables: dict[str, str] = {}  # of the configs, also those that the command gave
    packages: list[str] = []  # that were imported


class StudyFolder:
    """The folder of a study, and where each of its runs is in it. Arms with the same config share their runs.

    Attributes:
        run_folders: those of the runs, in their order.

    Raises:
        RunError: a folder holds another run than that of the study, or one with another biLM; all are named.
    """

    def __init__(self, path: str | Path, study: Study) -> None:
        self.path = Path(path)
        self.study = study
        first: dict[str, Path] = {}  # by the config, the folder of its first run
        keys = [json.dumps(to_json(run.config), sort_keys=True) for run in study.runs]
        for run, key in zip(study.runs, keys, strict=True):
            first.setdefault(key, self.path / run.folder)
        self.run_folders = tuple(RunFolder(first[key]) for key in keys)
        problems = dict.fromkeys(
            problem
            for key, (run, folder) in zip(keys, self.pairs(), strict=True)
            if folder.is_started() and (problem := _problem(run.config, key, folder))
        )
        if problems:
            advice = "remove what is to be trained again, or -s names another folder"
            raise RunError("\n".join([*problems, advice]))

    def pairs(self) -> list[tuple[StudyRun, RunFolder]]:
        """All runs with their folders."""
        return list(zip(self.study.runs, self.run_folders, strict=True))

    def chosen(self) -> list[tuple[StudyRun, RunFolder]]:
        """The chosen runs, with their folders. Runs that share a folder are there once."""
        return list({folder.path: (run, folder) for run, folder in self.pairs() if run.chosen}.values())

    def claim(self, folder: RunFolder) -> Path:
        """The file that is locked while a run is trained."""
        return self.path / ".claims" / "_".join(folder.path.relative_to(self.path).parts)

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
            folder=folder.path.relative_to(self.path).as_posix(),
        )

    def write_results(self) -> None:
        with atomic_write(self.path / "results.jsonl") as stream:
            stream.writelines(f"{record.model_dump_json()}\n".encode() for record in self.results())


def _problem(config: ExperimentConfig, key: str, folder: RunFolder) -> str | None:
    """Why a run that has begun is not that of a config, which is also given as JSON; None if it is."""
    if json.dumps(earlier_config(folder, ExperimentConfig), sort_keys=True) != key:
        return f"{folder.path}: holds a run with another config than the study's"
    if any(frozen.reference.is_file() for frozen in folder.frozen_models):
        try:
            folder.check_frozen_models(config.model.embedder)
        except RunError as error:
            return str(error)
    return None


def run_study(folder: StudyFolder, *, command: str, packages: Sequence[str] = ()) -> list[str]:
    """Trains what is missing of the chosen runs.

    Interrupted runs are resumed. A run that fails does not stop the others; a full disk, which would hit them too,
    does. Several processes, also on machines that share a disk, may work on one study: each run is trained by one of
    them, and all end when all runs have.

    Arguments:
        command: what started the study, for its report.
        packages: packages that were imported, for its report; see `elmo_tasks.config.include_packages`.

    Returns:
        the runs that failed here, with their errors.
    """
    check_kind(folder.path, "study.json", remedy="-s names another folder")
    record = {"command": command, "config": to_json(folder.study.config)}
    record |= {"variables": dict(folder.study.variables), "packages": list(packages)}
    write_json(folder.path / "study.json", record)
    folder.write_results()
    runs = folder.chosen()
    waiting = [(run, run_folder) for run, run_folder in runs if not run_folder.metrics.is_file()]
    logger.info("%d of %d runs have finished", len(runs) - len(waiting), len(runs))
    failures = list[str]()
    while waiting:
        with contextlib.ExitStack() as claims:
            mine = next((each for each in waiting if claims.enter_context(claimed(folder.claim(each[1])))), None)
            if mine is None:  # other processes train the last ones
                time.sleep(SECONDS_BETWEEN_CLAIMS)
                continue
            run, run_folder = mine
            error = "" if run_folder.metrics.is_file() else _train(folder, run, run_folder)
        waiting.remove(mine)
        progress = f"{len(runs) - len(waiting)} of {len(runs)}: {run.title}"
        if error:
            failures.append(f"{run.title}: {error}")
            logger.error("%s: failed: %s", progress, error)
            continue
        folder.write_results()
        result = folder.result(run, run_folder)
        logger.info("%s: %s %.2f, %.0f s", progress, result.metric, result.score, result.seconds)
    folder.write_results()  # also those of other processes
    return failures


def _train(folder: StudyFolder, run: StudyRun, run_folder: RunFolder) -> str:
    """Trains a run; returns its error, empty if it finishes."""
    # Arms that share the run may report the scores of different data.
    splits = sorted({other.split for other, its_folder in folder.pairs() if its_folder.path == run_folder.path})
    logger.info("%s: %s", run.title, "resumed" if run_folder.is_started() else "begins")
    try:
        train(
            run.config_file,
            run_folder.path,
            overrides=run.overrides,
            folds=1,
            variables=folder.study.variables,
            resume=any(file.exists() for file in run_folder.files),
            predictions=splits,
        )
    except (WriteError, OSError):
        raise
    except Exception as error:  # what a model of the user's own, or torch without memory, can raise
        if not isinstance(error, ElmoTasksError):
            logger.error("%s", run.title, exc_info=True)
        return one_line(error)
    return ""


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


def read_study(path: str | Path) -> tuple[StudyRecord, list[Result]]:
    """What a study's folder holds; raises `RunError` if it is not one, or no run has finished."""
    path = Path(path)
    record = read_json(path / "study.json", StudyRecord, "the folder of a study")
    file = path / "results.jsonl"
    results = list(read_records(file, Result, "a result")) if file.is_file() else []
    if not results:
        raise RunError(f"{path}: no run of the study has finished")
    return record, results


@dataclasses.dataclass(frozen=True)
class Summary:
    """An arm at a share of the training data.

    Arguments:
        results: of its seeds.
        num_seeds: how many there are when the study is complete.
        baseline: the arm that it is compared with, at the same share; None without any.
    """

    arm: Arm
    share: float
    results: Sequence[Result]
    num_seeds: int
    baseline: Summary | None

    @property
    def scores(self) -> list[float]:
        return [result.score for result in self.results]

    @property
    def metric(self) -> str:
        return f"{self.results[0].split} {self.results[0].metric}"

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores)

    @property
    def std(self) -> float | None:
        """The sample standard deviation (n - 1) over the seeds; None for a single one."""
        return deviation(self.scores)

    @property
    def minutes(self) -> float:
        return statistics.fmean(result.seconds for result in self.results) / 60

    def expected(self) -> str:
        """The range that the paper's seeds make likely, and whether the mean is outside; empty without one."""
        if self.arm.paper is None or self.arm.paper_std is None:
            return ""
        low, high = (self.arm.paper + sign * 2 * self.arm.paper_std for sign in (-1, 1))
        outside = ", below" if self.mean < low else ", above" if self.mean > high else ""
        return f"{low:.2f} to {high:.2f}{outside}"

    def error_reduction(self) -> float | None:
        """The share of the baseline's error that is gone; None without a baseline, or if it makes no error.

        Scores where higher is better are in percent, so that the error is what is missing to 100.
        """
        if self.baseline is None:
            return None
        before, after = self.baseline.mean, self.mean
        if self.results[0].higher_is_better:
            before, after = 100 - before, 100 - after
        return (before - after) / before if before > 0 else None


def summarize(record: StudyRecord, results: Sequence[Result]) -> list[Summary]:
    """What a study has found, in the order of its arms and shares. Where no run has finished, there is no summary."""
    config = record.config
    arms = {arm.name: arm for arm in config.arms}

    def summary(arm: Arm, share: float, baseline: Summary | None) -> Summary | None:
        own = [each for each in results if (each.arm, each.share) == (arm.name, share)]
        return Summary(arm, share, own, len(arm.seeds or config.seeds), baseline) if own else None

    found = []
    for arm in config.arms:
        for point in arm.share_points(config):
            baseline = summary(arms[arm.baseline], point.share, None) if arm.baseline else None
            found.append(summary(arm, point.share, baseline))
    return [each for each in found if each]
