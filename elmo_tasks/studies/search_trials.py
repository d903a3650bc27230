"""The folder of a search, and training its trials, each by one of the processes that share the search.

search.json     the search, and the command that made it
trials.journal  what Optuna knows about the trials
trials.jsonl    a line for each trial that has ended
best.json       the config of the best trial, for `elmo-tasks train`
trial_N         a run
"""

from __future__ import annotations

import json
import logging
import platform
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from elmo_tasks.config import to_json
from elmo_tasks.errors import ElmoTasksError, RunError, WriteError, counted, one_line
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.files.json_lines import write_records
from elmo_tasks.files.overwriting import check_kind
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.train import train
from elmo_tasks.studies.processes import SECONDS_BETWEEN_CLAIMS, LoggedProcess
from elmo_tasks.studies.search_results import SEARCH, TRIALS, SearchRecord, TrialResult, best_trials
from elmo_tasks.studies.search_storage import SearchStorage
from elmo_tasks.studies.searches import Search
from elmo_tasks.training.callbacks import Callback, Progress
from elmo_tasks.training.trainer_config import TrainerConfig

logger = logging.getLogger(__name__)

_STATES: dict[TrialState, Literal["finished", "pruned", "failed"]] = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}
_ERROR = "error"  # a user attribute of a failed trial


class Pruning(Callback):
    """Reports the validation metric of each epoch to Optuna, and stops a trial that Optuna gives up.

    A resumed trial repeats the epochs after its last checkpoint; Optuna knows their values already. The last epoch does
    not stop a trial, since nothing is left to save.
    """

    def __init__(self, trial: Trial, trainer: TrainerConfig) -> None:
        self._trial = trial
        self._trainer = trainer
        self._known = set(_epochs(trial))

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        """Raises `optuna.TrialPruned` to stop the trial."""
        epoch = record["epoch"]
        if epoch not in self._known:
            self._trial.report(self._trainer.value_of(record["validation"]), epoch)
        if epoch < self._trainer.num_epochs and self._trial.should_prune():
            raise optuna.TrialPruned


def run_search(path: Path, search: Search, *, command: str, num_jobs: int = 1) -> list[TrialResult]:
    """Trains the trials that are missing. One that was interrupted continues; one that fails does not stop the others.

    The values of a trial depend on the seed, its number and the trials that were there when it began, so an interrupted
    search ends like one that was not. Several processes, also on machines that share a disk, may work on one search:
    each trial is trained by one of them, and all end when all trials have.

    Arguments:
        path: the folder of the search.
        command: what started the search, for its report.
        num_jobs: the most trials at a time. With more than one, `command` is started this many times.

    Returns:
        the trials that have ended.

    Raises:
        RunError: the folder has the trials of another search or of an earlier version, or its journal is damaged, or
            the processes have ended before the search.
        WriteError: the disk is full.
    """
    check_kind(path, SEARCH, remedy="-s names another folder")
    record, storage = SearchRecord.of(search, command), SearchStorage(path, search)
    with storage.lock:
        _check_same_search(path, record)
        write_json(path / SEARCH, record.model_dump(mode="json"))
    _write_results(path, search, storage)
    if num_jobs == 1:
        _train_trials(path, search, storage)
    else:
        _train_in_processes(path, search, storage, shlex.split(command)[1:], num_jobs)
    return _write_results(path, search, storage)


def _train_trials(path: Path, search: Search, storage: SearchStorage) -> None:
    """Trains the trials, one after the other, and waits for those that other processes train."""
    while storage.missing():
        with storage.claimed_trial() as claimed:
            if claimed is None:
                time.sleep(SECONDS_BETWEEN_CLAIMS)
                continue
            trial, overrides = claimed
            _run_trial(path, search, trial, overrides)
        results = _write_results(path, search, storage)
        _log_end(next(each for each in results if each.number == trial.number + 1), search)


def _train_in_processes(
    path: Path, search: Search, storage: SearchStorage, arguments: Sequence[str], num_jobs: int
) -> None:
    """Starts processes that train the trials, and logs which trials have ended, wherever they were trained."""
    num_jobs = min(num_jobs, len(storage.missing()))
    known = {each.number for each in _results(storage.study)}
    logs = [path / f"log_{platform.node()}_{number}.txt" for number in range(1, num_jobs + 1)]
    jobs = [LoggedProcess(arguments, log, num_jobs=num_jobs) for log in logs]
    is_running = True
    try:
        while is_running:
            time.sleep(SECONDS_BETWEEN_CLAIMS)
            is_running = bool(storage.missing()) and any(job.is_running() for job in jobs)  # before the last look
            for each in _results(storage.study):
                if each.number not in known:
                    known.add(each.number)
                    _log_end(each, search, f"{len(known)} of {search.config.trials}: ")
        ended = [job for job in jobs if not job.is_running()]
    finally:
        for job in jobs:
            job.stop()  # when all trials have ended, they only write the same report
    errors = "".join(f"\n  {error} (see {job.log})" for job in ended if (error := job.error()))
    if missing := storage.missing():
        raise RunError(f"{path}: {counted(len(missing), 'trial')} not trained; call again to go on:{errors}")
    if errors:
        logger.warning("processes that ended early, whose trials others have trained:%s", errors)


def _log_end(trial: TrialResult, search: Search, progress: str = "") -> None:
    level = logging.ERROR if trial.state == "failed" else logging.INFO
    logger.log(level, "%strial %d: %s", progress, trial.number, trial.describe(search.experiment.trainer.metric_name))


def _check_same_search(path: Path, record: SearchRecord) -> None:
    """Raises `RunError` if the folder has trials of another search. Their number and the text may change."""
    if not (path / SEARCH).is_file():
        return
    earlier = read_json(path / SEARCH, SearchRecord, "the folder of a search")
    harmless = {"title", "text", "trials"}
    old, new = (to_json(each.config) | {"config": each.experiment} for each in (earlier, record))
    if changed := [key for key in new if key not in harmless and old.get(key) != new[key]]:
        raise RunError(
            f"{path}: has the trials of another search, which differs in {', '.join(changed)}; -s names another folder"
        )


def _run_trial(path: Path, search: Search, trial: Trial, overrides: Sequence[str]) -> None:
    """Trains one trial and reports to Optuna how it ended."""
    run, trainer = RunFolder(path / _folder_name(trial.number)), search.experiment.trainer
    resume = any(file.exists() for file in run.files)
    how = "resumed" if resume else "begins"
    logger.info("trial %d of %d %s: %s", trial.number + 1, search.config.trials, how, " ".join(overrides))
    try:
        config = search.resolve(overrides)
        results = train(
            search.config_file,
            run.path,
            overrides=(*search.changes, *overrides, "evaluate_on_test=false"),
            variables=search.variables,
            resume=resume,
            callbacks=[Pruning(trial, config.trainer)],
        )
    except optuna.TrialPruned:
        trial.study.tell(trial.number, state=TrialState.PRUNED)
    except (WriteError, OSError, optuna.exceptions.OptunaError):
        raise  # would hit the other trials, too; this one continues when the search is called again
    except Exception as error:  # what a model of the user's own, or torch without memory, can raise
        if not isinstance(error, ElmoTasksError):
            logger.exception("trial %d: an unexpected error", trial.number + 1)
        trial.set_user_attr(_ERROR, one_line(error))
        trial.study.tell(trial.number, state=TrialState.FAIL)
    else:
        trial.study.tell(trial.number, trainer.value_of(results["best"]["validation"]))


def _folder_name(number: int) -> str:
    return f"trial_{number + 1}"


def _epochs(trial: Trial) -> dict[int, float]:
    """The values that Optuna knows of a trial, by epoch."""
    return trial.study.trials[trial.number].intermediate_values


def _results(study: optuna.Study) -> list[TrialResult]:
    best = max if study.direction is StudyDirection.MAXIMIZE else min

    def result(trial: FrozenTrial) -> TrialResult:
        known = [value for value in trial.intermediate_values.values() if value == value]  # without NaN
        score = trial.value if trial.state is TrialState.COMPLETE else None
        if trial.state is TrialState.PRUNED and known:
            score = best(known)
        values = {key: json.loads(value) if isinstance(value, str) else value for key, value in trial.params.items()}
        return TrialResult(
            number=trial.number + 1,
            state=_STATES[trial.state],
            values=values,
            score=score,
            epochs=len(trial.intermediate_values),
            error=trial.user_attrs.get(_ERROR),
            folder=_folder_name(trial.number),
        )

    return [result(trial) for trial in study.trials if trial.state in _STATES]


def _write_results(path: Path, search: Search, storage: SearchStorage) -> list[TrialResult]:
    """Writes what has ended, and the config of the best trial. Returns what has ended."""
    with storage.lock:  # otherwise older results could replace newer ones
        results = _results(storage.study)
        write_records(path / TRIALS, results)
        if ranked := best_trials(results, search.experiment.trainer.higher_is_better):
            write_json(path / "best.json", to_json(search.resolve(ranked[0].overrides)))
    return results
