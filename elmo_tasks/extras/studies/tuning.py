"""Searches of hyperparameters: a config, and the values that some of its keys can have, in one Jsonnet file.

What is known of the trials and their values are Optuna's, whose own tools draw plots. The folder of a search has

trials.journal  Optuna's storage: the search, and its trials
best.json       the config of the best trial, for `elmo-tasks train`
trial_N         the run of a trial
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import filelock
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import Trial, TrialState
from pydantic import Field

from elmo_tasks.config import Config, load_config, own_packages, to_json
from elmo_tasks.errors import ConfigError, ElmoTasksError, RunError, WriteError, counted, one_line
from elmo_tasks.extras.studies import advice_last, find_search
from elmo_tasks.extras.studies.reports import Table
from elmo_tasks.extras.studies.study import as_overrides, as_text, config_of_study, missing_files, train_command
from elmo_tasks.extras.studies.study_runs import SECONDS_BETWEEN_CLAIMS, claimed
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.paths import SEARCH, check_kind
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.train import train
from elmo_tasks.training.callbacks import Callback, Progress
from elmo_tasks.training.trainer_config import TrainerConfig

_MOST_SHOWN = 10  # trials in the table
_SEARCH = "search"  # the study's name, and its user attribute with the settings of the search
_ERROR = "error"  # a trial's user attribute: why it failed

logger = logging.getLogger(__name__)


class Pruning(Config):
    """When a trial is stopped: its best value so far is worse than the median of the others' values of that epoch."""

    startup_trials: Annotated[int, Field(ge=1)] = Field(5, description="finished trials before any is stopped")
    warmup_epochs: Annotated[int, Field(ge=0)] = Field(1, description="epochs after which no trial is stopped yet")


class SearchConfig(Config):
    """A whole search."""

    hints_for_other_configs = {  # noqa: RUF012
        "model": "describes a task, not a search; use `elmo-tasks train`",
        "arms": "describes a study, not a search; use `elmo-tasks study`",
    }

    title: str
    text: str = Field("", description="what is searched, for people")
    variables: dict[str, str] = Field({}, description="external variables of the config, as by --ext-var")
    config: str = Field(description="the name of a config in the package, or a file; also next to the search's file")
    changes: dict[str, Any] = Field({}, description="of the config, as those of a study")
    space: Annotated[dict[str, dict[str, Any]], Field(min_length=1)] = Field(
        description="by the key path in the config, such as trainer.optimizer.lr, the values that are tried: numbers "
        "from 'low' to 'high', perhaps with 'log' or 'step', or any values as 'choices'"
    )
    trials: Annotated[int, Field(ge=1)] = Field(description="how many, with those that fail or are stopped early")
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] = Field(1, description="of the values, not of the trainings")
    pruning: Pruning | None = Field(Pruning(), description="null: every trial trains to its end")

    def pruner(self) -> optuna.pruners.BasePruner:
        if self.pruning is None:
            return optuna.pruners.NopPruner()
        return optuna.pruners.MedianPruner(self.pruning.startup_trials, self.pruning.warmup_epochs + 1)


@dataclasses.dataclass(frozen=True)
class Search:
    """A search, checked.

    Arguments:
        config_file: as `elmo-tasks train` finds it.
        changes: of the config, as `--set` takes them; the values of a trial come after them.
        variables: external variables of the config.
        experiment: the config with the changes.
        space: what Optuna draws the values of each key from.
    """

    config: SearchConfig
    config_file: str
    changes: tuple[str, ...]
    variables: Mapping[str, str]
    experiment: ExperimentConfig
    space: Mapping[str, BaseDistribution]

    @classmethod
    def load(cls, source: str, overrides: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> Search:
        """Reads a search and checks all of it: that its files are there, and the config with the lowest and the highest
        value of every key and one between them, or with each choice.

        Arguments:
            source: a Jsonnet or JSON file, or the name of a search in the package.
            overrides: `key.path=value`, in place of the search's values.
            variables: external variables of the search and of its config, before those that the search sets.

        Raises:
            ConfigError: the search or its config has problems, or a file is missing; all are named.
        """
        path = find_search(source)
        config = load_config(path, SearchConfig, overrides, variables)
        known, changes = {**config.variables, **(variables or {})}, tuple(as_overrides(config.changes))
        config_file = config_of_study(path, config.config)
        experiment = load_config(config_file, ExperimentConfig, changes, known)
        problems = list(missing_files(experiment))
        if experiment.fold is not None or not experiment.has_validation():
            problems.append(f"{config_file}: a search scores the validation data; expected some, and no fold")
        space = dict[str, BaseDistribution]()
        for key, values in config.space.items():
            try:
                space[key] = _distribution(values)
            except (ValueError, ArithmeticError, UserWarning) as error:
                problems.append(f"space: {key}: {error}")
        search = cls(config, config_file, changes, known, experiment, space)
        for key, distribution in space.items():
            for value in _examples(distribution):
                (change,) = as_changes({key: value})
                try:
                    problems += missing_files(search.resolve([change]))
                except ElmoTasksError as error:
                    lines = str(error).splitlines()
                    problems += [f"space: {change.replace('=', ' = ', 1)}: {line}" for line in lines]
        if problems:
            raise ConfigError("\n".join(advice_last(problems)))
        return search

    def resolve(self, overrides: Sequence[str]) -> ExperimentConfig:
        """The config with the values of a trial; raises `ConfigError` with its problems."""
        return load_config(self.config_file, ExperimentConfig, (*self.changes, *overrides), self.variables)

    def settings(self) -> dict[str, Any]:
        """What the trials depend on, and so must stay when a search goes on: not how many there are."""
        own = self.config.model_dump(mode="json", exclude={"title", "text", "trials"})
        return own | {"config": to_json(self.experiment)}


class Reports(Callback):
    """Reports the validation metric of each epoch to Optuna, which may stop a trial before its last epoch.

    A resumed trial repeats the epochs after its last checkpoint; Optuna knows their values already.
    """

    def __init__(self, trial: Trial, trainer: TrainerConfig) -> None:
        self._trial, self._trainer = trial, trainer

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        """Raises `optuna.TrialPruned` to stop the trial."""
        epoch = record["epoch"]
        if epoch not in self._trial.study.trials[self._trial.number].intermediate_values:
            self._trial.report(self._trainer.value_of(record["validation"]), epoch)
        if epoch < self._trainer.num_epochs and self._trial.should_prune():
            raise optuna.TrialPruned


class Tuning:
    """The trials of a search, in its folder. Several processes, also on machines that share a disk, may train them.

    Raises:
        RunError: the folder has the trials of another search.
        WriteError: the disk is full.
    """

    def __init__(self, path: Path, search: Search) -> None:
        check_kind(path, SEARCH, remedy="-s names another folder")
        self._path, self._search = path, search
        self._claims = path / ".claims"  # a file for each trial, which is locked while it is trained
        self._claims.mkdir(parents=True, exist_ok=True)
        # Held while the next trial is chosen, and while the journal is written.
        self._lock = filelock.FileLock(self._claims / "next")
        self._storage = JournalStorage(_Journal(path / SEARCH, self._lock))
        optuna.logging.disable_default_handler()  # our own log says what happens
        with self._lock:
            self.study = optuna.create_study(
                storage=self._storage,
                pruner=search.config.pruner(),
                study_name=_SEARCH,
                direction="maximize" if search.experiment.trainer.higher_is_better else "minimize",
                load_if_exists=True,
            )
            if _SEARCH not in self.study.user_attrs:
                self.study.set_user_attr(_SEARCH, search.settings())
        if self.study.user_attrs[_SEARCH] != search.settings():
            raise RunError(f"{path}: has the trials of another search; -s names another folder")

    def train(self) -> None:
        """Trains trials until all have ended, wherever they are trained; one that was interrupted continues."""
        while sum(each.state.is_finished() for each in self.study.trials) < self._search.config.trials:
            with contextlib.ExitStack() as claims:
                if trial := self._claim(claims):
                    self._train(trial)
                else:  # others train the last ones
                    time.sleep(SECONDS_BETWEEN_CLAIMS)

    def _claim(self, claims: contextlib.ExitStack) -> Trial | None:
        """The first trial that has not ended and whose lock is free: a new one, or that of a killed process."""
        with self._lock:
            trials = self.study.get_trials(deepcopy=False)
            for number in range(self._search.config.trials):
                if number < len(trials) and trials[number].state.is_finished():
                    continue
                if claims.enter_context(claimed(self._claims / f"trial_{number}")):
                    if number < len(trials):  # the number of a trial is also its id, as the journal has one study
                        self._storage.set_trial_state_values(number, TrialState.WAITING)
                    self.study.sampler = optuna.samplers.TPESampler(seed=self._search.config.seed + number)
                    return self.study.ask(dict(self._search.space))
            return None

    def _train(self, trial: Trial) -> None:
        """One that fails does not stop the others; a full disk, which would hit them too, does."""
        name, changes = f"trial_{trial.number}", as_changes(trial.params)
        run = RunFolder(self._path / name)
        resume = any(file.exists() for file in run.files)
        logger.info("%s %s: %s", name, "resumed" if resume else "begins", " ".join(changes))
        try:
            config = self._search.resolve([*changes, "evaluate_on_test=false"])
            results = train(to_json(config), run.path, resume=resume, callbacks=[Reports(trial, config.trainer)])
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
            self.study.tell(trial, value := config.trainer.value_of(results["best"]["validation"]))
            logger.info("%s: %s %.2f", name, config.trainer.metric_name, value)

    def write_best(self) -> tuple[Table, str]:
        """Writes `best.json`, the config of the best trial.

        Returns:
            the table of the best trials, and the command that trains the best one.

        Raises:
            RunError: no trial has finished.
        """
        finished = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if not finished:
            errors = [each.user_attrs[_ERROR] for each in self.study.trials if _ERROR in each.user_attrs]
            raise RunError("\n  ".join([f"{self._path}: no trial has finished", *errors]))
        finished.sort(key=lambda trial: trial.values, reverse=self._search.experiment.trainer.higher_is_better)
        best, config = self._path / "best.json", self._search.resolve(as_changes(finished[0].params))
        write_json(best, to_json(config))
        rows = [
            [str(each.number), *map(_shown, each.params.values()), f"{each.value:.2f}"]
            for each in finished[:_MOST_SHOWN]
        ]
        columns = ["trial", *(".".join(key.split(".")[-2:]) for key in self._search.space), config.trainer.metric_name]
        table = Table(f"The best of {counted(len(self.study.trials), 'trial')}", columns, rows)
        return table, train_command(str(best), (), {}, sorted(own_packages(config)))


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


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _distribution(values: Mapping[str, Any]) -> BaseDistribution:
    """What Optuna draws the values of a key from; raises what Optuna does."""
    if values.keys() == {"choices"} and isinstance(values["choices"], list):
        # As texts: Optuna stores no objects and takes 1 for true.
        return CategoricalDistribution(list(map(as_text, values["choices"])))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Optuna warns when it changes a range
            return FloatDistribution(**values)
    except TypeError:
        expected = "expected 'low' and 'high', perhaps with 'log' or 'step', or only a list of 'choices'"
        raise ValueError(f"{expected}; got {as_text(values)}") from None


def _examples(space: Any) -> Sequence[Any]:
    """The lowest and the highest number and one between them, or every choice."""
    if isinstance(space, CategoricalDistribution):
        return space.choices
    between = space.low + (space.step or (space.high - space.low) / math.pi)
    return list(dict.fromkeys((space.low, min(between, space.high), space.high)))


def as_changes(values: Mapping[str, Any]) -> list[str]:
    """A trial's values, as `--set` takes them: whole numbers have no point, and choices are JSON already."""
    texts = {key: each if isinstance(each, str) else repr(each).removesuffix(".0") for key, each in values.items()}
    return [f"{key}={text}" for key, text in texts.items()]
