"""The folder of a search, and training its trials, one after the other.

search.json     the search, and the command that made it
trials.db       what Optuna knows about the trials, as SQLite
trials.jsonl    a line for each trial that has ended
best.json       the config of the best trial, for `elmo-tasks train`
trial_N         a run
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import optuna
import sqlalchemy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from elmo_tasks.config import to_json
from elmo_tasks.errors import ElmoTasksError, RunError, WriteError, one_line
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.files.json_lines import write_records
from elmo_tasks.files.locks import locked
from elmo_tasks.files.overwriting import check_kind
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.train import train
from elmo_tasks.studies.search_results import SEARCH, TRIALS, SearchRecord, TrialResult, best_trials
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
_STUDY = "search"  # the study's name in the database


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


def run_search(path: Path, search: Search, *, command: str) -> list[TrialResult]:
    """Trains the trials that are missing. One that was interrupted continues; one that fails does not stop the others.

    The values of a trial depend on the seed, its number and the trials before it, so an interrupted search ends like
    one that was not.

    Arguments:
        path: the folder of the search.
        command: what started the search, for its report.

    Returns:
        the trials that have ended.

    Raises:
        RunError: the folder has the trials of another search, or its database is damaged, or another process works on
            it.
        WriteError: the disk is full.
    """
    check_kind(path, SEARCH, remedy="-s names another folder")
    record = SearchRecord.of(search, command)
    with locked(path):
        _check_same_search(path, record)
        with _study(path, search) as (study, storage):
            write_json(path / SEARCH, record.model_dump(mode="json"))
            _write_results(path, search, study)
            for number in range(search.config.trials):
                if number >= len(study.trials) or not study.trials[number].state.is_finished():
                    _run_trial(path, search, study, _trial(search, study, storage, number))
                    _write_results(path, search, study)
            return _results(study)


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


@contextlib.contextmanager
def _study(path: Path, search: Search) -> Iterator[tuple[optuna.Study, optuna.storages.RDBStorage]]:
    """Optuna's study in the folder's database. Its errors become those of a run."""
    optuna.logging.disable_default_handler()  # trials are logged here
    file = path / "trials.db"
    url = sqlalchemy.URL.create("sqlite", database=str(file.resolve())).render_as_string()
    pruning = search.config.pruning
    pruner: optuna.pruners.BasePruner = optuna.pruners.NopPruner()
    if pruning is not None:
        pruner = optuna.pruners.MedianPruner(pruning.startup_trials, pruning.warmup_epochs + 1)
    higher = search.experiment.trainer.higher_is_better
    direction = StudyDirection.MAXIMIZE if higher else StudyDirection.MINIMIZE
    try:
        storage = optuna.storages.RDBStorage(url)
        try:
            study = optuna.create_study(
                storage=storage, pruner=pruner, study_name=_STUDY, direction=direction, load_if_exists=True
            )
            yield study, storage
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except (optuna.exceptions.OptunaError, sqlalchemy.exc.SQLAlchemyError) as error:
        raise RunError(f"{file}: cannot be used as the database of a search ({one_line(error)})") from None


def _sampler(search: Search, number: int) -> optuna.samplers.BaseSampler:
    """A sampler for one trial, with a seed of its own: what an interrupted search has drawn is not lost."""
    seed = int(np.random.SeedSequence([search.config.seed, number]).generate_state(1)[0])
    if search.config.sampler == "random":
        return optuna.samplers.RandomSampler(seed)
    return optuna.samplers.TPESampler(seed=seed)


def _trial(search: Search, study: optuna.Study, storage: optuna.storages.RDBStorage, number: int) -> Trial:
    """A new trial, or one that was interrupted, which only Optuna's constructor gives."""
    study.sampler = _sampler(search, number)
    if number >= len(study.trials):
        return study.ask()
    study_id = storage.get_study_id_from_name(_STUDY)
    return Trial(study, storage.get_trial_id_from_study_id_trial_number(study_id, number))


def _run_trial(path: Path, search: Search, study: optuna.Study, trial: Trial) -> None:
    """Trains one trial and reports to Optuna how it ended."""
    number = trial.number
    overrides = [f"{parameter.key}={parameter.suggest(trial)}" for parameter in search.parameters]
    run, trainer = RunFolder(path / _folder_name(number)), search.experiment.trainer
    resume = any(file.exists() for file in run.files)
    how = "resumed" if resume else "begins"
    logger.info("trial %d of %d %s: %s", number + 1, search.config.trials, how, " ".join(overrides))
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
        study.tell(number, state=TrialState.PRUNED)
        logger.info("trial %d: stopped after epoch %d", number + 1, max(_epochs(trial)))
    except (WriteError, OSError, optuna.exceptions.OptunaError, sqlalchemy.exc.SQLAlchemyError):
        raise  # would hit the other trials, too; this one continues when the search is called again
    except Exception as error:  # what a model of the user's own, or torch without memory, can raise
        logger.error("trial %d failed: %s", number + 1, one_line(error), exc_info=not isinstance(error, ElmoTasksError))
        trial.set_user_attr(_ERROR, one_line(error))
        study.tell(number, state=TrialState.FAIL)
    else:
        score = trainer.value_of(results["best"]["validation"])
        study.tell(number, score)
        logger.info("trial %d: %s %.2f", number + 1, trainer.metric_name, score)


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


def _write_results(path: Path, search: Search, study: optuna.Study) -> None:
    """Writes what has ended, and the config of the best trial."""
    results = _results(study)
    write_records(path / TRIALS, results)
    if ranked := best_trials(results, search.experiment.trainer.higher_is_better):
        write_json(path / "best.json", to_json(search.resolve(ranked[0].overrides)))
