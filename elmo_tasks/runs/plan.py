"""What a training does with its folder: it begins a run there, resumes one, or finds it finished."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pydantic

from elmo_tasks import hooks
from elmo_tasks.config import Config, to_json
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import BEGIN_AGAIN, FORCE, RESUME, RunError
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.paths import check_folder, check_kind
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import Folder, RunFolder, Split

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a training does. It is decided once, before anything is read or written.

    Attributes:
        state: a new run `begins`, in place of an earlier one; the run that is there `resumes`; or it is `finished`, and
            there is nothing to do.
        changed: the keys of the config that differ from those of the run that is there. The run may be resumed with
            all of them.
        source: the run whose weights a model starts with; None if it starts with new ones, or with a saved state.
        source_hash: the hash of the source's weights, if the run began from them before.
    """

    state: Literal["begins", "resumes", "finished"]
    changed: frozenset[str] = frozenset()
    source: str | Path | None = None
    source_hash: str | None = None

    @property
    def begins(self) -> bool:
        return self.state == "begins"


def plan_folder(
    folder: Folder, config: Mapping[str, Any], *, resume: bool, force: bool, kind: type[Config] | None = None
) -> Plan:
    """The plan for a run of any kind. Changes no file.

    Arguments:
        config: the resolved config, as JSON values.
        resume: whether to continue an earlier run.
        force: whether an earlier run may be removed.
        kind: the config's class. Keys that it has gained since the run began are compared by their defaults.

    Raises:
        RunError: the folder holds a run, and neither `resume` nor `force` is given, or the run has another config.
            Or it holds other files that a run would overwrite, such as those of a biLM, and `force` is not given.
        ElmoTasksError: the folder cannot be written to.
    """
    if resume and force:
        raise RunError(f"{folder.path}: expected `resume`, which continues a run, or `force`, which removes it")
    check_folder(folder.path)
    check_kind(folder.path, folder.config.name, remedy="-s names another folder")
    for path in folder.files:  # writing to a pipe, say, would wait for ever
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise RunError(f"{path}: not a regular file; remove it first")
    if not force and not folder.is_started():
        own = folder.begun if resume else ()  # a run that was stopped while it began has left these
        if foreign := [path.name for path in folder.files if path.exists() and path not in own]:
            raise RunError(
                f"{folder.path}: holds {', '.join(foreign)}, which the run would overwrite; choose another folder, or "
                f"{FORCE} removes them first"
            )
    if force or not folder.is_started():
        if resume:
            logger.warning("%s: no run to resume there; a new one begins", folder.path)
        return Plan("begins")
    changed = frozenset(_differences(earlier_config(folder, kind), config))
    if not resume:
        if not changed:
            raise RunError(f"{folder.path}: holds a run; {RESUME} continues it, {FORCE} removes it first")
        raise RunError(
            f"{folder.path}: holds a run of another config; choose another folder, or {FORCE} removes that run first"
        )
    if others := sorted(changed.difference(folder.adjustable())):
        raise RunError(f"{folder.path}: cannot resume with another config; these keys differ: {', '.join(others)}")
    return Plan("finished" if folder.summary.is_file() and not changed else "resumes", changed)


def plan_run(
    run: RunFolder,
    config: ExperimentConfig,
    *,
    resume: bool = False,
    force: bool = False,
    from_run: str | Path | None = None,
    predictions: Collection[Split] = (),
) -> Plan:
    """The plan for a run of a task. Changes no file of the run; what is missing is known before the data is read.

    For the arguments, see `elmo_tasks.train`. A finished run that lacks predictions resumes from its last state.

    Raises:
        RunError: as `plan_folder`; or the config has changed in a way in which the run cannot continue; or predictions
            are missing, and the folder has no training state that could make them; or `from_run` does not exist, or
            is in the same folder.
        WeightsError: the files of the biLM or of the transformer are missing.
    """
    if "test" in predictions and not config.has_test():
        raise RunError(f"{run.path}: cannot write predictions of test data, because the config evaluates none")
    if "validation" in predictions and not config.has_validation():
        raise RunError(f"{run.path}: cannot write predictions of validation data, because the config has none")
    if from_run:
        hooks.required("first_weights", "run", "--from")
    if elmo := config.elmo():
        BiLMOptions.load(elmo.files().options)
    if transformer := config.transformer():
        transformer.files()
    plan = plan_folder(run, to_json(config), resume=resume, force=force, kind=ExperimentConfig)
    has_state = run.training_state.is_file()
    if plan.state == "finished":
        if all(run.predictions_for(split).is_file() for split in predictions):
            return plan
        if not has_state:
            command = f"elmo-tasks evaluate {run.path} DATA --predictions FILE"
            raise RunError(f"{run.path}: finished before, without these predictions; `{command}` writes some")
    if plan.changed:
        another = f"`elmo-tasks train CONFIG -s DIR --from {run.path}` begins another run with its weights"
        if run.metrics.is_file() and not has_state:
            raise RunError(
                f"{run.path}: finished before, and there is no {run.training_state.name} to continue from; {another}"
            )
        schedule = config.trainer.learning_rate_scheduler
        if "trainer.num_epochs" in plan.changed and schedule.spans_training:
            raise RunError(
                f"{run.path}: trainer.num_epochs cannot change: the learning rates of '{to_json(schedule)['type']}' "
                f"depend on it from the first step on; {another}"
            )
    continues = has_state and not plan.begins
    if from_run and not continues and Path(from_run).resolve() == run.path.resolve():
        raise RunError(f"{run.path}: contains the run to start from; choose another folder for the result")
    if plan.begins:
        for frozen in run.frozen_models:
            given = frozen.config_in(config.model.embedder)
            paths = given.files().paths.values() if given else ()
            if any(frozen.copies.resolve() in path.resolve().parents for path in paths):
                raise RunError(
                    f"{frozen.copies}: the config has this {frozen.title}, and a run that begins here removes it; "
                    "copy it to another place, or choose another folder for the run"
                )
        if from_run:
            from elmo_tasks.runs.archive import open_run

            open_run(from_run)
        return dataclasses.replace(plan, source=from_run)
    if from_run and continues:
        logger.info("%s: continues with its own state; the weights of %s are for a run that begins", run.path, from_run)
    if not continues and run.origin.is_file():
        origin = read_json(run.origin, dict[str, Any], "the origin of a run")
        if {"run", "model"} <= origin.keys():  # otherwise it is that of an import
            return Plan("resumes", plan.changed, source=from_run or origin["run"], source_hash=origin["model"])
    return Plan("resumes", plan.changed)


def earlier_config(folder: Folder, kind: type[Config] | None) -> dict[str, Any]:
    """The config of the run in a folder, with the defaults of keys that its class, `kind`, has gained since."""
    earlier = read_json(folder.config, dict[str, Any], f"the config of a run ({BEGIN_AGAIN})")
    if kind is None:
        return earlier
    values = {name: earlier[name] for name in kind.model_fields if name in earlier}
    with contextlib.suppress(pydantic.ValidationError):  # it may not be valid today
        earlier |= to_json(kind.model_validate_json(json.dumps(values)))
    return earlier


def _differences(one: Any, other: Any, key: str = "") -> Iterator[str]:
    """The key paths at which two JSON values differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in one.keys() | other.keys():
            yield from _differences(one.get(name), other.get(name), f"{key}.{name}" if key else name)
    elif one != other:
        yield key
