"""Searches of hyperparameters: a config, and the values that some of its keys can have, in one Jsonnet file."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from elmo_tasks.config import Config, load_config
from elmo_tasks.config.data_folder import advice_last
from elmo_tasks.config.packaged import find_search
from elmo_tasks.errors import ConfigError, ElmoTasksError
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.studies.study import as_overrides, as_text, config_beside, missing_files

if TYPE_CHECKING:
    import optuna


class Dimension(Config):
    """The values that a key can have: numbers from `low` to `high`, or `choices`."""

    low: float | None = Field(None, description="the smallest number")
    high: float | None = Field(None, description="the largest number")
    log: bool = Field(False, description="draws the number's logarithm, for values such as learning rates")
    step: Annotated[float, Field(gt=0)] | None = Field(None, description="the distance of the numbers from each other")
    choices: Annotated[tuple[Any, ...], Field(min_length=1)] | None = Field(
        None, description="any values, also objects"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Dimension:
        low, high, step = self.low, self.high, self.step
        if self.choices is not None:
            if low is not None or high is not None or step is not None or self.log:
                raise ValueError("'choices' come without 'low', 'high', 'log' and 'step'")
            texts = list(map(as_text, self.choices))
            if twice := [text for text in dict.fromkeys(texts) if texts.count(text) > 1]:
                raise ValueError(f"'choices' has {', '.join(twice)} more than once")
        elif low is None or high is None:
            raise ValueError("expected 'low' and 'high', or 'choices'")
        elif low > high:
            raise ValueError(f"'low' is {low:g}, which is more than 'high', {high:g}")
        elif self.log and low <= 0:
            raise ValueError(f"'low' is {low:g}; with 'log', expected a number above 0")
        elif self.log and step is not None:
            raise ValueError("expected only one of 'log' and 'step'")
        elif step is not None and not _divides(step, low, high):
            raise ValueError(f"from {low:g} to {high:g} is not a number of steps of {step:g}")
        return self

    def ends(self) -> list[str]:
        """The lowest and the highest value, or every choice, as JSON."""
        if self.choices is not None:
            return list(map(as_text, self.choices))
        return [as_text(_shortest(end)) for end in dict.fromkeys((self.low, self.high)) if end is not None]

    def __str__(self) -> str:
        if self.choices is not None:
            return ", ".join(self.ends())
        how = ", logarithmic" if self.log else "" if self.step is None else f" in steps of {self.step:g}"
        return f"{' to '.join(self.ends())}{how}"


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


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A key that is searched.

    Arguments:
        whole: only whole numbers are tried, because the config takes no others.
    """

    key: str
    dimension: Dimension
    whole: bool

    def suggest(self, trial: optuna.Trial) -> str:
        """The trial's value, as JSON."""
        low, high, step, log = (getattr(self.dimension, name) for name in ("low", "high", "step", "log"))
        if self.dimension.choices is not None:  # as texts, because Optuna stores no objects and takes 1 for true
            return str(trial.suggest_categorical(self.key, self.dimension.ends()))
        if self.whole:
            return as_text(trial.suggest_int(self.key, int(low), int(high), step=int(step or 1), log=log))
        return as_text(trial.suggest_float(self.key, low, high, step=step, log=log))


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
    parameters: tuple[Parameter, ...]

    @classmethod
    def load(cls, source: str, overrides: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> Search:
        """Reads a search and checks all of it: the config with the lowest and the highest value, or each choice, of
        every key, and that its files are there.

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
        search = cls(config, config_file, changes, known, experiment, ())
        parameters = tuple(search._check(key, dimension, problems) for key, dimension in config.space.items())
        for key in config.space:
            if inner := [other for other in config.space if other.startswith(f"{key}.")]:
                problems.append(f"space: {', '.join(inner)}: within {key}, which is searched as a whole")
        if problems:
            raise ConfigError("\n".join(advice_last(problems)))
        return dataclasses.replace(search, parameters=parameters)

    def resolve(self, overrides: Sequence[str]) -> ExperimentConfig:
        """The config with the values of a trial; raises `ConfigError` with its problems."""
        return load_config(self.config_file, ExperimentConfig, (*self.changes, *overrides), self.variables)

    def _check(self, key: str, dimension: Dimension, problems: list[str]) -> Parameter:
        """Resolves the config with the values of one key, and adds what is wrong with them to the problems."""
        valid = True
        for text in dimension.ends():
            try:
                found = self.resolve([f"{key}={text}"])
            except ElmoTasksError as error:
                problems += [f"space: {key} = {text}: {line}" for line in str(error).splitlines()]
                valid = False
                continue
            problems += missing_files(found)
            for name in ("validation_metric", "precision", "device"):
                if getattr(found.trainer, name) != getattr(self.experiment.trainer, name):
                    problems.append(f"space: {key} = {text}: changes trainer.{name}; expected the same in all trials")
        whole = valid and dimension.choices is None and self._takes_only_whole_numbers(key, dimension)
        if whole and dimension.step is not None and not dimension.step.is_integer():
            problems.append(f"space: {key}: step: got {dimension.step:g}; expected a whole number, as the key does")
        return Parameter(key, dimension, whole)

    def _takes_only_whole_numbers(self, key: str, dimension: Dimension) -> bool:
        """Asks the config whether it takes a number between two whole ones, since Jsonnet writes 1.0 as 1."""
        low, high = dimension.low, dimension.high
        if low is None or high is None or not (low.is_integer() and high.is_integer()):
            return False
        try:
            self.resolve([f"{key}={low + 0.5}"])
        except ElmoTasksError:
            return True
        return False


def expected_best(
    scores: Sequence[float], count: int, *, higher_is_better: bool = True, replacement: bool = True
) -> float:
    """The best score that `count` trials are expected to reach, estimated from the scores of all trials.

    With replacement, it is the estimator of Dodge et al. (2019, "Show Your Work", section 3): if F(v) is the share of
    scores that are at most v, then the best of n is at most v with probability F(v)^n. Without replacement, it is the
    mean of the best over all subsets of this size, which has no bias (Tang et al. 2020).

    Raises:
        ValueError: without replacement, `count` is more than the number of scores.
    """
    num = len(scores)
    if not replacement and count > num:
        raise ValueError(f"got a sample of {count} from {num} scores without replacement; expected at most {num}")
    ordered = sorted(scores, reverse=not higher_is_better)
    # The probability that the best is among the `rank` worst ones.
    among = [(rank / num) ** count if replacement else math.comb(rank, count) / math.comb(num, count)
             for rank in range(num + 1)]  # fmt: skip
    return math.fsum(score * (among[rank + 1] - among[rank]) for rank, score in enumerate(ordered))


def _divides(step: float, low: float, high: float) -> bool:
    """Whether whole steps lead from one number to the other."""
    try:
        return not (Decimal(str(high)) - Decimal(str(low))) % Decimal(str(step))
    except InvalidOperation:  # more steps than digits
        return False


def _shortest(number: float) -> int | float:
    """Whole numbers without a point, so that keys which only take such ones accept them."""
    return int(number) if number.is_integer() else number
