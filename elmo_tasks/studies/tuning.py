"""Training the trials of a search. What is known of them, their values and their plots are Optuna's.

trials.journal  Optuna's storage: the search, and its trials
best.json       the config of the best trial, for `elmo-tasks train`
trial_N         the run of a trial
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import shlex
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock
import optuna
import torch
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from elmo_tasks.config import to_json
from elmo_tasks.errors import ElmoTasksError, RunError, WriteError, counted, one_line
from elmo_tasks.evaluation.plots import save_figure
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.locks import claimed
from elmo_tasks.files.overwriting import SEARCH, check_kind
from elmo_tasks.pretraining.tokenize_files import num_processors
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.train import train
from elmo_tasks.studies.processes import SECONDS_BETWEEN_CLAIMS, LoggedProcess
from elmo_tasks.studies.report_pages import Picture, Report, Table
from elmo_tasks.studies.searches import Search, as_changes
from elmo_tasks.training.callbacks import Callback, Progress
from elmo_tasks.training.trainer_config import TrainerConfig

_MOST_SHOWN = 10  # trials in the table
_NOTES = (
    "All scores are those of the validation data. A trial that was stopped early or failed is not in the table. Optuna "
    "draws the plots. It counts trials from 0, and gives all keys the same importance while few trials have finished."
)
_SEARCH = "search"  # the study's name, and its user attribute with the settings of the search
_ERROR = "error"  # a trial's user attribute: why it failed

logger = logging.getLogger(__name__)


class Pruning(Callback):
    """Reports the validation metric of each epoch to Optuna, and stops a trial that Optuna gives up.

    A resumed trial repeats the epochs after its last checkpoint; Optuna knows their values already. The last epoch does
    not stop a trial, since nothing is left to save.
    """

    def __init__(self, trial: Trial, trainer: TrainerConfig) -> None:
        self._trial, self._trainer = trial, trainer
        self._known = set(trial.study.trials[trial.number].intermediate_values)

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        """Raises `optuna.TrialPruned` to stop the trial."""
        epoch = record["epoch"]
        if epoch not in self._known:
            self._trial.report(self._trainer.value_of(record["validation"]), epoch)
        if epoch < self._trainer.num_epochs and self._trial.should_prune():
            raise optuna.TrialPruned


class Tuning:
    """The trials of a search, in its folder. Several processes, also on machines that share a disk, may train them.

    Arguments:
        command: what started the search, for its report.

    Raises:
        RunError: the folder has the trials of another search, or its journal is damaged.
        WriteError: the disk is full.
    """

    def __init__(self, path: Path, search: Search, *, command: str) -> None:
        check_kind(path, SEARCH, remedy="-s names another folder")
        self._path, self._search, self._command = path, search, command
        self._claims = path / ".claims"  # a file for each trial, which is locked while it is trained
        self._claims.mkdir(parents=True, exist_ok=True)
        # Held while the next trial is chosen, and while the journal is written.
        self._lock = filelock.FileLock(self._claims / "next")
        with self._lock:
            self._storage, self.study = self._open()
            settings = search.settings()
            if _SEARCH not in self.study.user_attrs:
                self.study.set_user_attr(_SEARCH, settings)
        earlier = self.study.user_attrs[_SEARCH]
        if changed := [key for key in settings if earlier.get(key) != settings[key]]:
            names = ", ".join(changed)
            raise RunError(
                f"{path}: has the trials of another search, which differs in {names}; -s names another folder"
            )

    def _open(self) -> tuple[JournalStorage, optuna.Study]:
        journal, higher = self._path / SEARCH, self._search.experiment.trainer.higher_is_better
        try:
            storage = JournalStorage(_Journal(journal, self._lock))
            return storage, optuna.create_study(
                storage=storage,
                pruner=self._search.config.pruner(),
                study_name=_SEARCH,
                direction="maximize" if higher else "minimize",
                load_if_exists=True,
            )
        except (optuna.exceptions.OptunaError, ValueError, LookupError, TypeError, AssertionError) as error:
            raise RunError(f"{journal}: not the journal of a search ({one_line(error)})") from None

    def train(self, num_jobs: int = 1) -> None:
        """Trains trials until all have ended, wherever they are trained; one that was interrupted continues.

        Arguments:
            num_jobs: the most trials at a time. The command is started again for all but one of them.
        """
        arguments, logs = shlex.split(self._command)[1:], f"log_{platform.node()}"
        if num_jobs > 1 and "OMP_NUM_THREADS" not in os.environ:  # as in the other processes
            torch.set_num_threads(max(1, num_processors() // num_jobs))
        jobs = [
            LoggedProcess(arguments, self._path / f"{logs}_{number}.txt", num_jobs=num_jobs)
            for number in range(2, num_jobs + 1)
        ]
        try:
            while len(self._ended()) < self._search.config.trials:
                with contextlib.ExitStack() as claims:
                    if trial := self._claim(claims):
                        self._train(trial)
                    else:  # others train the last ones
                        time.sleep(SECONDS_BETWEEN_CLAIMS)
            for job in jobs:
                if not job.is_running() and (error := job.error()):
                    logger.warning("a process ended early; others have trained its trials: %s (see %s)", error, job.log)
        finally:
            for job in jobs:
                job.stop()  # when all trials have ended, they only write the same report

    def _claim(self, claims: contextlib.ExitStack) -> Trial | None:
        """The first trial that has not ended and that no other process trains: a new one, or that of a killed process.

        Optuna finds killed processes by the heartbeats of a database; here, their locks are free.
        """
        with self._lock:
            trials = self.study.get_trials(deepcopy=False)
            for number in range(self._search.config.trials):
                if number < len(trials) and trials[number].state.is_finished():
                    continue
                if claims.enter_context(claimed(self._claims / _folder_name(number))):
                    self.study.sampler = self._search.config.sampler_of(number)
                    trial = self._interrupted(number) if number < len(trials) else self.study.ask()
                    for key, dimension in self._search.config.space.items():
                        dimension.suggest(trial, key)
                    return trial
            return None

    def _interrupted(self, number: int) -> Trial:
        study = self._storage.get_study_id_from_name(_SEARCH)
        return Trial(self.study, self._storage.get_trial_id_from_study_id_trial_number(study, number))

    def _train(self, trial: Trial) -> None:
        """One that fails does not stop the others; a full disk, which would hit them too, does."""
        name, changes = _folder_name(trial.number), as_changes(trial.params)
        run = RunFolder(self._path / name)
        resume = any(file.exists() for file in run.files)
        how = "resumed" if resume else "begins"
        logger.info("%s of %d %s: %s", name, self._search.config.trials, how, " ".join(changes))
        try:
            trainer = self._search.resolve(changes).trainer
            results = train(
                self._search.config_file,
                run.path,
                overrides=(*self._search.changes, *changes, "evaluate_on_test=false"),
                variables=self._search.variables,
                resume=resume,
                callbacks=[Pruning(trial, trainer)],
            )
        except optuna.TrialPruned:
            self.study.tell(trial, state=TrialState.PRUNED)
            logger.info("%s stopped early", name)
        except (WriteError, OSError, optuna.exceptions.OptunaError):
            raise
        except Exception as error:  # what a model of the user's own, or torch without memory, can raise
            trial.set_user_attr(_ERROR, one_line(error))
            self.study.tell(trial, state=TrialState.FAIL)
            logger.error("%s failed: %s", name, one_line(error), exc_info=not isinstance(error, ElmoTasksError))
        else:
            value = trainer.value_of(results["best"]["validation"])
            self.study.tell(trial, value)
            logger.info("%s: %s %.2f", name, trainer.metric_name, value)

    def write_report(self) -> tuple[Table, str, list[Path]]:
        """Writes `report.md`, `report.html` and `best.json`, and Optuna's plots.

        Returns:
            the table of the best trials, the command that trains the best one, and the files.

        Raises:
            RunError: no trial has finished.
        """
        ended = self._ended()
        finished = [each for each in ended if each.state is TrialState.COMPLETE]
        if not finished:
            errors = [each.user_attrs[_ERROR] for each in ended if _ERROR in each.user_attrs]
            raise RunError("\n  ".join([f"{self._path}: no trial has finished", *errors]))
        higher = self._search.experiment.trainer.higher_is_better
        finished.sort(key=lambda trial: trial.values, reverse=higher)
        best = as_changes(finished[0].params)
        write_json(self._path / "best.json", to_json(self._search.resolve(best)))
        training = self._search.train_command(best)
        commands = f"{self._command}\n\n# the best trial, with its score on the test data:\n{training}"
        names = [".".join(key.split(".")[-2:]) for key in self._search.config.space]
        columns = ["trial", *names, self._search.experiment.trainer.metric_name]
        rows = [
            [str(each.number + 1), *map(_shown, each.params.values()), f"{each.value:.2f}"]
            for each in finished[:_MOST_SHOWN]
        ]
        table = Table(f"The best of {counted(len(ended), 'trial')}", columns, rows)
        report = Report(self._search.config, [table], _NOTES, list(self._pictures()), commands)
        return table, training, [self._path / "best.json", *report.write(self._path)]

    def _pictures(self) -> Iterator[Picture]:
        from matplotlib import pyplot
        from optuna.visualization import matplotlib as plots

        drawings: list[Callable[..., Any]] = [plots.plot_optimization_history, plots.plot_param_importances]
        for draw in drawings:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that these plots are experimental, and what _NOTES say
                axes = draw(self.study, target_name=self._search.experiment.trainer.metric_name)
            axes.figure.set_layout_engine("constrained")  # leaves room for the names of keys
            path = self._path / "plots" / f"{draw.__name__}.svg"
            save_figure(axes.figure, path)
            pyplot.close(axes.figure)
            yield Picture(axes.get_title() or axes.get_title("left"), "", path)

    def _ended(self) -> list[FrozenTrial]:
        return [each for each in self.study.get_trials(deepcopy=False) if each.state.is_finished()]


class _Journal(JournalFileBackend):
    """Optuna's journal. It cuts off an incomplete last line, which a full disk or a killed process leaves."""

    def __init__(self, path: Path, lock: filelock.BaseFileLock) -> None:
        super().__init__(str(path))
        self._path, self._writing = path, lock

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        try:
            with self._writing:
                os.truncate(self._path, self._path.read_bytes().rfind(b"\n") + 1)
                super().append_logs(logs)
        except OSError as error:
            raise WriteError(self._path, error) from None


def _folder_name(number: int) -> str:
    return f"trial_{number + 1}"


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
