"""Training the trials of a search. What is known of them, their values and their plots are Optuna's.

trials.journal  Optuna's storage: the search, and its trials
best.json       the config of the best trial, for `elmo-tasks train`
trial_N         the run of a trial
"""

from __future__ import annotations

import contextlib
import logging
import platform
import shlex
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import filelock
import optuna
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from elmo_tasks.config import to_json
from elmo_tasks.errors import ElmoTasksError, RunError, WriteError, counted, one_line
from elmo_tasks.evaluation.plots import save_figure
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.locks import claimed
from elmo_tasks.files.overwriting import SEARCH, check_kind
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.train import train
from elmo_tasks.studies.processes import SECONDS_BETWEEN_CLAIMS, LoggedProcess
from elmo_tasks.studies.report_pages import Picture, Report, Table, report_commands
from elmo_tasks.studies.searches import Search, as_changes
from elmo_tasks.training.callbacks import Callback, Progress
from elmo_tasks.training.trainer_config import TrainerConfig

_MOST_SHOWN = 10  # trials in the table
_NOTES = "All scores are those of the validation data. A trial that was stopped early or failed is not in the table."
_SEARCH = "search"  # the study's name, and its user attribute with the settings of the search
_ERROR, _FOLDER = "error", "folder"  # user attributes of a trial: why it failed, and the run that it continues

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
        path.mkdir(parents=True, exist_ok=True)
        self._path, self._search = path, search
        # Held while a process chooses a trial, so that no two choose the same one.
        self._lock = filelock.FileLock(path / ".choosing")
        self._command = command
        with self._lock:
            self.study = _study(path, search)
            settings = search.settings()
            earlier = self.study.user_attrs.get(_SEARCH, settings)
            if changed := [key for key in settings if earlier[key] != settings[key]]:
                names = ", ".join(changed)
                raise RunError(
                    f"{path}: has the trials of another search, which differs in {names}; -s names another folder"
                )
            self.study.set_user_attr(_SEARCH, settings)

    def missing(self) -> int:
        return max(0, self._search.config.trials - len(self._ended()))

    def train(self, num_jobs: int = 1) -> None:
        """Trains trials until all have ended, wherever they are trained; one that was interrupted continues.

        Arguments:
            num_jobs: the most trials at a time. With more than one, the command is started this many times.

        Raises:
            RunError: the processes have ended before the search.
        """
        if num_jobs == 1:
            for trial in self._claimed():
                self._train(trial)
            return
        logs = [self._path / f"log_{platform.node()}_{number}.txt" for number in range(1, num_jobs + 1)]
        jobs = [LoggedProcess(shlex.split(self._command)[1:], log, num_jobs=num_jobs) for log in logs]
        try:
            known, total = 0, self._search.config.trials
            while (missing := self.missing()) and any(job.is_running() for job in jobs):
                if total - missing > known:
                    known = total - missing
                    logger.info("%d of %d trials have ended", known, total)
                time.sleep(SECONDS_BETWEEN_CLAIMS)
            errors = [f"{error} (see {job.log})" for job in jobs if not job.is_running() and (error := job.error())]
        finally:
            for job in jobs:
                job.stop()  # when all trials have ended, they only write the same report
        if missing := self.missing():
            problem = f"{self._path}: {counted(missing, 'trial')} not trained; call again to go on:"
            raise RunError("\n  ".join([problem, *errors]))

    def _claimed(self) -> Iterator[Trial]:
        """Trials that no other process trains, until all have ended."""
        while self.missing():
            with contextlib.ExitStack() as claims:
                with self._lock:
                    if trial := self._next():
                        claims.enter_context(claimed(self._claim(trial)))
                if trial:
                    yield trial
                else:
                    time.sleep(SECONDS_BETWEEN_CLAIMS)

    def _next(self) -> Trial | None:
        """A new trial; one that continues where a process was killed; or None while others train the last ones."""
        running = self.study.get_trials(deepcopy=False, states=[TrialState.RUNNING])
        for each in running:
            with claimed(self._claim(each)) as is_free:
                if is_free:
                    again = optuna.trial.create_trial(
                        state=TrialState.WAITING,
                        params=each.params,
                        distributions=each.distributions,
                        user_attrs={_FOLDER: self._folder(each)},
                        intermediate_values=each.intermediate_values,
                    )
                    self.study.add_trial(again)
                    self.study.tell(each.number, state=TrialState.FAIL)
                    return self.study.ask()
        if len(running) >= self.missing():
            return None
        self.study.sampler = self._search.config.sampler_of(len(self._ended()) + len(running))
        return self.study.ask(dict(self._search.space))

    def _train(self, trial: Trial) -> None:
        """One that fails does not stop the others; a full disk, which would hit them too, does."""
        name, changes = self._folder(trial), as_changes(trial.params)
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
        finished = self.study.get_trials(states=[TrialState.COMPLETE])
        if not finished:
            errors = [each.user_attrs[_ERROR] for each in self._ended() if _ERROR in each.user_attrs]
            raise RunError("\n  ".join([f"{self._path}: no trial has finished", *errors[-3:]]))
        trainer, keys = self._search.experiment.trainer, list(self._search.space)
        ranked = sorted(finished, key=lambda trial: trial.value or 0.0, reverse=trainer.higher_is_better)
        columns = ("trial", *(".".join(key.split(".")[-2:]) for key in keys), trainer.metric_name)
        rows = [
            [f"{each.number + 1}", *(_cell(each.params[key]) for key in keys), f"{each.value:.2f}"]
            for each in ranked[:_MOST_SHOWN]
        ]
        table = Table(f"The best of {len(self._ended())} trials", columns, rows)
        best = as_changes(ranked[0].params)
        write_json(self._path / "best.json", to_json(self._search.resolve(best)))
        training = self._search.train_command(best)
        note = "the best trial, with its score on the test data"
        commands = report_commands(self._command, self._path, note, [training])
        report = Report(self._search.config, [table], _NOTES, self._pictures(len(finished)), commands)
        return table, training, [self._path / "best.json", *report.write(self._path)]

    def _pictures(self, num_finished: int) -> list[Picture]:
        """Optuna's plots, which need at least two finished trials."""
        import matplotlib
        from optuna.visualization import matplotlib as plots

        matplotlib.use("Agg")
        drawn = {"Scores of the trials": plots.plot_optimization_history}
        drawn |= {"How much each key matters": plots.plot_param_importances} if num_finished > 1 else {}
        folder = self._path / "plots"
        pictures = [
            Picture(title, "Drawn by Optuna.", folder / f"{plot.__name__}.svg") for title, plot in drawn.items()
        ]
        with warnings.catch_warnings(action="ignore"):  # they are experimental in Optuna
            for picture, plot in zip(pictures, drawn.values(), strict=True):
                save_figure(plot(self.study).figure, picture.path)
        return pictures

    def _ended(self) -> list[FrozenTrial]:
        """The trials that count: those that finished, were stopped, or failed with an error."""
        ended = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL))
        return [each for each in ended if each.state is not TrialState.FAIL or _ERROR in each.user_attrs]

    def _folder(self, trial: Trial | FrozenTrial) -> str:
        return trial.user_attrs.get(_FOLDER, f"trial_{trial.number + 1}")

    def _claim(self, trial: Trial | FrozenTrial) -> Path:
        return self._path / ".claims" / str(trial.number)


def _study(path: Path, search: Search) -> optuna.Study:
    """Optuna's study in a folder; raises `RunError` if its journal is damaged."""
    optuna.logging.disable_default_handler()  # trials are logged here
    try:
        return optuna.create_study(
            storage=optuna.storages.JournalStorage(JournalFileBackend(str(path / SEARCH))),
            pruner=search.config.pruner(),
            study_name=_SEARCH,
            direction="maximize" if search.experiment.trainer.higher_is_better else "minimize",
            load_if_exists=True,
        )
    except OSError as error:
        raise WriteError(path / SEARCH, error) from None
    except (optuna.exceptions.OptunaError, ValueError, LookupError, TypeError, AssertionError) as error:
        raise RunError(f"{path / SEARCH}: not the journal of a search ({one_line(error)})") from None


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
