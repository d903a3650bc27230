"""Studies: configs, changes, seeds and shares of the training data in one Jsonnet file, and the runs that they need."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator

from elmo_tasks.config import Config, load_config
from elmo_tasks.config.data_folder import MissingDataError
from elmo_tasks.errors import ConfigError, ElmoTasksError, WeightsError, did_you_mean
from elmo_tasks.extras.studies import advice_last, find_study
from elmo_tasks.files.paths import portable_name, stored_file
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import Split
from elmo_tasks.training.data_splits import TrainShare


def _each_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Refuses a seed or a share that is there twice: it would count as two samples."""
    numbers = [value.share if isinstance(value, SharePoint) else value for value in values]
    if twice := [number for number in dict.fromkeys(numbers) if numbers.count(number) > 1]:
        raise ValueError(f"got {', '.join(map(str, twice))} more than once; expected each once")
    return values


Seeds = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1), AfterValidator(_each_once)]
Share = Annotated[float, Field(gt=0, le=1)]


class SharePoint(Config):
    """A share of the training data, with what else it changes: a small share needs more epochs."""

    share: Share
    changes: dict[str, Any] = Field({}, description="of all arms, after their own")


Shares = Annotated[tuple[Share | SharePoint, ...], Field(min_length=1), AfterValidator(_each_once)]


class Arm(Config):
    """What is trained, once for each seed and share, and compared with other arms."""

    name: Annotated[str, Field(min_length=1)] = Field(description="in tables and plots; no other arm has it")
    config: str = Field(description="the name of a config in the package, or a file; also next to the study's file")
    changes: dict[str, Any] = Field(
        {},
        description="of the config, as nested objects: each value is set as by --set; an object with a 'type' replaces "
        "the whole part",
    )
    group: str = Field("", description="arms of a group share a table")
    baseline: str | None = Field(None, description="the name of the arm that this one is compared with")
    seeds: Seeds | None = Field(None, description="default: those of the study")
    shares: Shares | None = Field(None, description="default: those of the study")
    split: Split | None = Field(
        None, description="the data whose score is reported; default: test where the config has test data"
    )
    paper: float | None = Field(None, description="the score that the paper reports, shown next to the measured one")
    paper_std: Annotated[float, Field(ge=0)] | None = Field(
        None, description="its standard deviation over the seeds: the report says whether a score is within two of them"
    )

    @property
    def slug(self) -> str:
        """The name as that of a folder."""
        return portable_name(re.sub(r"[^a-z0-9.]+", "_", self.name.lower()).strip("_.") or "arm")

    def share_points(self, study: StudyConfig) -> list[SharePoint]:
        """The arm's own shares, or else those of the study."""
        shares = self.shares or study.shares
        return [each if isinstance(each, SharePoint) else SharePoint(share=each) for each in shares]


class StudyConfig(Config):
    """A whole study."""

    hints_for_other_configs = {  # noqa: RUF012
        "model": "describes a task, not a study; use `elmo-tasks train`",
        "space": "describes a search, not a study; use `elmo-tasks tune`",
    }

    title: str
    text: str = Field("", description="what the study shows, for its report")
    variables: dict[str, str] = Field({}, description="external variables of the configs, as by --ext-var")
    changes: dict[str, Any] = Field({}, description="of all arms, before their own")
    seeds: Seeds = Field((1,), description="of the arms that do not name their own")
    shares: Shares = Field((1.0,), description="shares of the training data: a sample for each seed, alike in all arms")
    arms: Annotated[tuple[Arm, ...], Field(min_length=1)]

    @field_validator("arms")
    @classmethod
    def _fit_together(cls, arms: tuple[Arm, ...]) -> tuple[Arm, ...]:
        names = [arm.name for arm in arms]
        problems = [f"two arms are named {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1]
        for arm in arms:
            if arm.baseline == arm.name:
                problems.append(f"arm {arm.name!r}: is its own baseline")
            elif arm.baseline is not None and arm.baseline not in names:
                problems.append(f"arm {arm.name!r}: no arm {arm.baseline!r}.{did_you_mean(arm.baseline, names)}")
        if problems:
            raise ValueError("; ".join(problems))
        return arms


@dataclasses.dataclass(frozen=True)
class Selection:
    """The runs of a study that are to be trained. An empty field selects everything.

    Arguments:
        arms: names of arms, or patterns of them as `fnmatch` reads them. The baseline of a chosen arm is chosen, too.
        shares: shares of the training data.
        seeds: seeds.
    """

    arms: Sequence[str] = ()
    shares: Sequence[float] = ()
    seeds: Sequence[int] = ()

    def names(self, arms: Sequence[Arm]) -> frozenset[str]:
        """The names of the chosen arms."""
        chosen = [arm for arm in arms if not self.arms or any(_matches(arm, pattern) for pattern in self.arms)]
        return frozenset(name for arm in chosen for name in (arm.name, arm.baseline) if name is not None)

    def has(self, share: float, seed: int) -> bool:
        return (not self.shares or share in self.shares) and (not self.seeds or seed in self.seeds)

    def problems(self, arms: Sequence[Arm], runs: Sequence[StudyRun]) -> Iterator[str]:
        """What is chosen but not in the study, one message each."""
        for pattern in self.arms:
            if not any(_matches(arm, pattern) for arm in arms):
                yield f"no arm has a name like {pattern!r}; there are {', '.join(repr(arm.name) for arm in arms)}"
        for name, chosen, known in (
            ("share", self.shares, {run.share for run in runs}),
            ("seed", self.seeds, {run.seed for run in runs}),
        ):
            there = ", ".join(f"{value:.15g}" for value in sorted(known))
            for value in chosen:
                if value not in known:
                    yield f"no run has the {name} {value:.15g}; there are {there}"  # all digits of a seed


def _matches(arm: Arm, pattern: str) -> bool:
    return arm.name == pattern or fnmatch.fnmatchcase(arm.name, pattern)


@dataclasses.dataclass(frozen=True)
class StudyRun:
    """One run of a study.

    Arguments:
        config_file: as `elmo-tasks train` finds it.
        overrides: its changes, share and seed, as `--set` takes them.
        config: the config that results.
        chosen: whether it is to be trained.
    """

    arm: Arm
    share: float
    seed: int
    config_file: str
    overrides: tuple[str, ...]
    config: ExperimentConfig
    chosen: bool

    @property
    def title(self) -> str:
        share = "" if self.share == 1 else f", {100 * self.share:g} %"
        return f"{self.arm.name}{share}, seed {self.seed}"

    @property
    def folder(self) -> Path:
        """Where the run is in the folder of the study, unless an earlier arm has the same run."""
        share = () if self.share == 1 else (f"share_{self.share:g}",)
        return Path(self.arm.slug, *share, f"seed_{self.seed}")

    @property
    def split(self) -> Split:
        return self.arm.split or ("test" if self.config.has_test() else "validation")


@dataclasses.dataclass(frozen=True)
class Study:
    """A study and its runs.

    Arguments:
        variables: external variables of the configs.
        runs: all of them, chosen or not.
    """

    config: StudyConfig
    variables: Mapping[str, str]
    runs: tuple[StudyRun, ...]

    @classmethod
    def load(
        cls,
        source: str,
        overrides: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        selection: Selection = Selection(),
    ) -> Study:
        """Reads a study and checks all of it: every arm's config, and that the files of the chosen arms are there.

        Arguments:
            source: a Jsonnet or JSON file, or the name of a study in the package.
            overrides: `key.path=value`, in place of the study's values.
            variables: external variables of the study and of its configs, before those that the study sets.
            selection: what is to be trained.

        Raises:
            ConfigError: the study or any of its configs has problems, a file is missing, or something that is selected
                is not in the study; all are named.
        """
        path = find_study(source)
        config = load_config(path, StudyConfig, overrides, variables)
        known = {**config.variables, **(variables or {})}
        runs: list[StudyRun] = []
        problems: list[str] = []
        chosen = selection.names(config.arms)
        for arm in config.arms:
            config_file = config_of_study(path, arm.config)
            for point in arm.share_points(config):
                changes = [each for part in (config, arm, point) for each in as_overrides(part.changes)]
                try:
                    experiment = load_config(config_file, ExperimentConfig, changes, known)
                except ElmoTasksError as error:
                    problems += [f"arm {arm.name!r}: {line}" for line in str(error).splitlines()]
                    continue
                if arm.name in chosen:
                    problems += missing_files(experiment)
                for seed in arm.seeds or config.seeds:
                    trained = arm.name in chosen and selection.has(point.share, seed)
                    share = {"train_share": TrainShare(share=point.share, seed=seed)} if point.share < 1 else {}
                    own = experiment.model_copy(update={"random_seed": seed, **share})
                    added = as_overrides({"random_seed": seed} | {key: dict(each) for key, each in share.items()})
                    runs.append(StudyRun(arm, point.share, seed, config_file, (*changes, *added), own, trained))
                split = runs[-1].split
                if not (experiment.has_test() if split == "test" else experiment.has_validation()):
                    problems.append(f"arm {arm.name!r}: {arm.config} has no {split} data whose score can be reported")
        slugs = [arm.slug for arm in config.arms]
        same = [arm for arm in config.arms if slugs.count(arm.slug) > 1]
        problems += [f"arm {arm.name!r}: another arm has its folder, {arm.slug}; expected another name" for arm in same]
        problems += [*_uncomparable(runs), *selection.problems(config.arms, runs)]
        if not problems and not any(run.chosen for run in runs):
            problems.append("no run of the chosen arms has one of the chosen shares and one of the chosen seeds")
        if problems:
            raise ConfigError("\n".join(advice_last(problems)))
        return cls(config, known, tuple(runs))


def _uncomparable(runs: Sequence[StudyRun]) -> Iterator[str]:
    """Which arms report another score than their baseline, one message each."""
    scores = {run.arm.name: f"{run.split} {run.config.trainer.metric_name}" for run in runs}
    for arm in {run.arm.name: run.arm for run in runs}.values():
        baseline = scores.get(arm.baseline or "")
        if baseline not in (None, scores[arm.name]):
            found = f"reports {scores[arm.name]}, but its baseline reports {baseline}"
            yield f"arm {arm.name!r}: {found}; expected the same score"


def config_of_study(study: Path, name: str) -> str:
    """The config that a study's file names: a file next to it, or else the name as it is."""
    path = study.parent / name
    return str(path) if path.is_file() else name


def as_options(changes: Sequence[str], variables: Mapping[str, str], packages: Sequence[str] = ()) -> list[str]:
    """The words of a command line that set these changes and variables, and include these packages."""
    words = [word for each in changes for word in ("--set", each)]
    words += [word for name, value in variables.items() for word in ("--ext-var", f"{name}={value}")]
    return words + [word for name in packages for word in ("--include-package", name)]


def train_command(
    config_file: str, changes: Sequence[str], variables: Mapping[str, str], packages: Sequence[str]
) -> str:
    """A command that trains a run by hand, as a shell takes it."""
    return shlex.join(["elmo-tasks", "train", config_file, *as_options(changes, variables, packages)])


def as_overrides(changes: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Nested changes as `--set` takes them: `key.path=value`, one for each value.

    An object with a `type` is one value, because another type has other settings.
    """
    for key, value in changes.items():
        if isinstance(value, Mapping) and value and "type" not in value:
            yield from as_overrides(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}={as_text(value)}"


def as_text(value: Any) -> str:
    """A value as `--set` reads it."""
    return json.dumps(value, ensure_ascii=False)


def missing_files(config: ExperimentConfig) -> Iterator[str]:
    """What is missing of the files that a config names, one message each."""
    held_out = config.evaluation_reader()
    sources = [(config.dataset_reader, config.train_data_path)]
    sources += [(held_out, path) for path in (config.validation_data_path, config.test_data_path) if path]
    for reader, source in sources:
        try:
            reader.build().origins(source)
        except MissingDataError as error:
            yield from (error.missing, *error.advice)
        except ElmoTasksError as error:
            yield str(error)
    words, elmo = config.model.embedder.words, config.elmo()
    if words and words.vectors and not stored_file(Path(words.vectors)).is_file():
        missing = MissingDataError(words.vectors)
        yield from (missing.missing, *missing.advice)
    for frozen in (elmo, config.transformer()):
        try:
            if frozen:
                frozen.files().fingerprint()
        except WeightsError as error:
            yield str(error)
