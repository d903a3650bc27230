"""Searches of hyperparameters: a config, and the values that some of its keys can have, in one Jsonnet file."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import optuna
from pydantic import Field

from elmo_tasks.config import Config, load_config, own_packages, to_json
from elmo_tasks.config.data_folder import advice_last
from elmo_tasks.config.packaged import find_search
from elmo_tasks.errors import ConfigError, ElmoTasksError
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.studies.study import as_overrides, as_text, config_beside, missing_files, train_command


class Dimension(Config):
    """The values that a key can have: numbers from `low` to `high`, or `choices`."""

    low: float | None = Field(None, description="the smallest number")
    high: float | None = Field(None, description="the largest number")
    log: bool = Field(False, description="draws the number's logarithm, for values such as learning rates")
    step: Annotated[float, Field(gt=0)] | None = Field(
        None, description="the distance of the numbers from each other; 1 for whole numbers"
    )
    choices: Annotated[tuple[Any, ...], Field(min_length=1)] | None = Field(
        None, description="any values, also objects"
    )

    def suggest(self, trial: optuna.Trial, key: str) -> None:
        """Lets Optuna give a trial a value of the key, unless it has one; raises what Optuna does."""
        if self.choices is not None and self.model_fields_set == {"choices"}:
            trial.suggest_categorical(key, self.examples())  # texts: Optuna stores no objects and takes 1 for true
        elif self.choices is None and self.low is not None and self.high is not None:
            trial.suggest_float(key, self.low, self.high, step=self.step, log=self.log)
        else:
            raise ValueError("expected 'low' and 'high', or only 'choices'")

    def examples(self) -> list[str]:
        """The lowest and the highest value and one between them, or every choice, as JSON."""
        if self.low is None or self.high is None:
            return list(map(as_text, self.choices or ()))
        between = self.low + (self.step or (self.high - self.low) / math.pi)
        return [_as_number(each) for each in dict.fromkeys((self.low, min(between, self.high), self.high))]


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
    text: str = Field("", description="what is searched, for the report")
    variables: dict[str, str] = Field({}, description="external variables of the config, as by --ext-var")
    config: str = Field(description="the name of a config in the package, or a file; also next to the search's file")
    changes: dict[str, Any] = Field({}, description="of the config, as those of a study")
    space: Annotated[dict[str, Dimension], Field(min_length=1)] = Field(
        description="by the key path in the config, such as trainer.optimizer.lr, the values that are tried"
    )
    trials: Annotated[int, Field(ge=1)] = Field(description="how many, with those that fail or are stopped early")
    seed: Annotated[int, Field(ge=0)] = Field(1, description="of the values; `random_seed` of the config is another")
    metric: str | None = Field(None, description="such as '+f1'; default: the config's validation metric")
    sampler: Literal["tpe", "random"] = Field("tpe", description="how values are chosen after the first ten trials")
    pruning: Pruning | None = Field(Pruning(), description="null: every trial trains to its end")

    def pruner(self) -> optuna.pruners.BasePruner:
        if self.pruning is None:
            return optuna.pruners.NopPruner()
        return optuna.pruners.MedianPruner(self.pruning.startup_trials, self.pruning.warmup_epochs + 1)

    def sampler_of(self, number: int) -> optuna.samplers.BaseSampler:
        """The sampler of one trial, with a seed of its own, so that an interrupted search draws what it would have."""
        seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        if self.sampler == "random":
            return optuna.samplers.RandomSampler(seed)
        return optuna.samplers.TPESampler(seed=seed)


@dataclasses.dataclass(frozen=True)
class Search:
    """A search, checked.

    Arguments:
        config_file: as `elmo-tasks train` finds it.
        changes: of the config, as `--set` takes them; the values of a trial come after them.
        variables: external variables of the config.
        experiment: the config with the changes.
    """

    config: SearchConfig
    config_file: str
    changes: tuple[str, ...]
    variables: Mapping[str, str]
    experiment: ExperimentConfig

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
        known = {**config.variables, **(variables or {})}
        config_file = config_beside(path, config.config)
        changes = tuple(as_overrides(config.changes))
        if config.metric is not None:
            changes += (f"trainer.validation_metric={as_text(config.metric)}",)
        experiment = load_config(config_file, ExperimentConfig, changes, known)
        problems = list(missing_files(experiment))
        if experiment.fold is not None:
            problems.append(
                f"{config_file}: fold: a search scores the validation data; expected a config without folds"
            )
        if not experiment.has_validation():
            problems.append(f"{config_file}: expected validation data, which a search scores; set validation_share")
        search = cls(config, config_file, changes, known, experiment)
        optuna.logging.disable_default_handler()  # our own log says what happens
        trial = optuna.create_study().ask()  # one that is not trained
        for key, dimension in config.space.items():
            if inner := [other for other in config.space if other.startswith(f"{key}.")]:
                problems.append(f"space: {', '.join(inner)}: within {key}, which is searched as a whole")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")  # Optuna warns when it changes a range
                    dimension.suggest(trial, key)
            except (ValueError, TypeError, ArithmeticError, UserWarning) as error:
                problems.append(f"space: {key}: {error}")
            else:
                problems += search._problems(key, dimension)
        if problems:
            raise ConfigError("\n".join(advice_last(problems)))
        return search

    def resolve(self, overrides: Sequence[str]) -> ExperimentConfig:
        """The config with the values of a trial; raises `ConfigError` with its problems."""
        return load_config(self.config_file, ExperimentConfig, (*self.changes, *overrides), self.variables)

    def settings(self) -> dict[str, Any]:
        """What the trials depend on, and so must stay when a search goes on: not how many there are."""
        return self.config.model_dump(mode="json", exclude={"title", "text", "trials"}) | {
            "config": to_json(self.experiment)
        }

    def train_command(self, changes: Sequence[str]) -> str:
        """Trains a trial by hand, with its evaluation on the test data."""
        packages = sorted(own_packages(self.experiment))
        return train_command(self.config_file, [*self.changes, *changes], self.variables, packages)

    def _problems(self, key: str, dimension: Dimension) -> list[str]:
        """What is wrong with the config when a key has these values."""
        problems = []
        for text in dimension.examples():
            try:
                found = self.resolve([f"{key}={text}"])
            except ElmoTasksError as error:
                problems += [f"space: {key} = {text}: {line}" for line in str(error).splitlines()]
                continue
            problems += missing_files(found)
            if found.trainer.validation_metric != self.experiment.trainer.validation_metric:
                problems.append(f"space: {key} = {text}: expected the same validation metric in all trials")
        return problems


def as_changes(values: Mapping[str, Any]) -> list[str]:
    """A trial's values, as `--set` takes them; choices are JSON already."""
    return [f"{key}={each if isinstance(each, str) else _as_number(each)}" for key, each in values.items()]


def _as_number(number: float) -> str:
    """Whole numbers without a point, so that keys which only take such ones accept them."""
    return as_text(int(number) if number.is_integer() else number)
