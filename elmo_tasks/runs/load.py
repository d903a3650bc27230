"""Loads trained runs: the parts of a run, and its predictor."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_tasks import hooks
from elmo_tasks.config import Overrides, include_packages, load_config, override_list, own_packages
from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.errors import ArgumentError, RunError, UnknownTypeError, one_line_of
from elmo_tasks.files.downloads import HUB, is_address
from elmo_tasks.files.installed_models import VERBS, About, model_named
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.tensor_files import read_tensors
from elmo_tasks.models.model import TaskModel
from elmo_tasks.modules.devices import Device
from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS, Origin, Predictor, build_predictor
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.experiment_config import Calibration, ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.tasks import SemanticRoles, Task
from elmo_tasks.text.tokenizer_config import build_tokenizer
from elmo_tasks.text.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

_DEVICE = "trainer.device="  # the beginning of an override
_ALLENNLP_ROLES = ("srl", "srl_bert")  # AllenNLP's types of models of semantic roles

RunPaths = str | Path | Sequence[str | Path]
"""A run, or several that are an ensemble."""


@dataclasses.dataclass(frozen=True, repr=False)
class Run:
    """The parts of a trained run, ready for evaluation and prediction."""

    path: Path | list[Path]  # its folder, archive, name on the hub or address; for an ensemble, those of its runs
    config: ExperimentConfig
    reader: DatasetReader  # of the data to evaluate
    vocabulary: Vocabulary
    model: TaskModel
    label_names: Mapping[str, str] = dataclasses.field(default_factory=dict)  # see `Origin`
    folder: RunFolder | None = None  # None for an ensemble
    least_probability: float = 0.0  # see `Origin`

    def __repr__(self) -> str:
        return f"Run({_described(self)})"


def load_run(path: RunPaths, *, overrides: Overrides = ()) -> Run:
    """A trained run, with the best epoch's parameters.

    Arguments:
        path: see `open_run`. Several runs make an ensemble, whose config, reader and vocabulary are those of the first.
        overrides: `key.path=value`, in place of the config's values; for example where the biLM's files now are.

    Raises:
        RunError: there is no run or no finished epoch, or its biLM or transformer has moved or changed; or it has parts
            of a package that is not included; or several runs are not of the same task, head and labels.
    """
    if not isinstance(path, (str, Path)):
        paths = run_paths(path)
        if len(paths) == 1:
            return load_run(paths[0], overrides=overrides)
        combined: Run = hooks.required("several_runs", "mean", "an ensemble of several runs")(paths, overrides)
        return combined
    folder, overrides = open_run(path), override_list(overrides)
    locations: dict[str, str | None] = {}
    for frozen in folder.frozen_models:
        locations |= frozen.location(overrides)
    try:
        config = load_config(folder.config, ExperimentConfig, overrides, replaced=locations)
    except UnknownTypeError:
        if not (packages := folder.included_packages()):
            raise
        options = " ".join(f"--include-package {name}" for name in packages)
        raise RunError(
            f"{path}: has parts of other packages; add {options} (in Python, elmo_tasks.include_packages({packages}))"
        ) from None
    if begun := folder.begun_precision():
        config = config.model_copy(update={"trainer": config.trainer.with_precision(begun)})
    changed = [each.partition("=")[0] for each in overrides if each.startswith("dataset_reader")]
    unused = [key for key in changed if not key.startswith("dataset_reader.tokenizer")]
    if unused and config.validation_dataset_reader:
        logger.warning("%s: data is read by validation_dataset_reader; set it instead of %s", path, ", ".join(unused))
    reader = config.evaluation_reader().build()
    folder.check_frozen_models(config.model.embedder)  # before any of them is read
    vocabulary = Vocabulary.load(folder.vocabulary)
    folder.check_tensors(config.tensor_shapes(vocabulary, folder.config))
    model = config.build_model(vocabulary, pretrained=False)
    model.load_state_dict({**read_tensors(folder.frozen), **read_tensors(folder.model)})
    calibration, least = Calibration(temperature=1), 0.0
    if config.calibrated and folder.calibration.is_file():
        calibration = read_json(folder.calibration, Calibration, "the calibration of a run")
        model.temperature = calibration.temperature
    if config.wanted_precision:
        if not calibration.answers:
            raise RunError(f"{path}: cannot promise a precision: {_without_answers(config, folder, model.task)}")
        least = calibration.least_probability(config.wanted_precision, path)
    is_elsewhere = str(path).startswith(HUB) or is_address(path)
    own_path = Path(path) if is_elsewhere else (folder.archive or folder.path).resolve()
    return Run(
        own_path, config, reader, vocabulary, model.eval(), _origin(folder).get("label_names", {}), folder, least
    )


def _without_answers(config: ExperimentConfig, folder: RunFolder, task: Task) -> str:
    """Why a run does not know from which probability on its labels have a precision."""
    if task.predicted_field != "label":
        return f"its task is {task.summary}; expected a task with one label"
    if not config.calibrated:
        return "its calibration is turned off; expected no --uncalibrated (calibrated=false)"
    if folder.cross_validation.is_file() and not folder.calibration.is_file():
        return "in its cross-validation, all predictions were right, or all were wrong; expected data with both"
    return "it is not calibrated; expected a run that a cross-validation or `calibrate` has calibrated"


def _origin(folder: RunFolder) -> dict[str, Any]:
    """What a run was imported from; empty if it was not."""
    return read_json(folder.origin, dict[str, Any], "the origin of a run") if folder.origin.is_file() else {}


def run_paths(runs: RunPaths) -> list[str | Path]:
    """The paths of a run or of those of an ensemble, at least one.

    Raises:
        ArgumentError: it is something else.
    """
    paths = [runs] if isinstance(runs, (str, Path)) else runs
    is_list = isinstance(paths, Sequence) and all(isinstance(each, (str, Path)) for each in paths)
    if not is_list or not paths:
        expected = "the folder, archive or name of a run, or a list of them, which are an ensemble"
        raise ArgumentError(f"run is {one_line_of(runs)}; expected {expected}")
    return list(paths)


def load_predictor(
    path: RunPaths,
    *,
    overrides: Overrides = (),
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    predicates: Predictor | None = None,
) -> Predictor:
    """The predictor of a run, on its config's device; arguments and errors: see `load_run` and `build_predictor`.

    Without `predicates`, an installed model may find the predicates, see `predicates_for`. The predictor is pickled as
    the run's path, the packages of its parts and these settings, and loaded again from there.
    """
    run = load_run(path, overrides=overrides)
    if predicates is None and isinstance(run.model.task, SemanticRoles) and (tagger := predicates_for(path)):
        device = [each for each in override_list(overrides) if each.startswith(_DEVICE)]
        predicates = load_predictor(tagger, overrides=device, batch_tokens=batch_tokens)
    settings = {"overrides": overrides, "batch_tokens": batch_tokens, "predicates": predicates}
    load = functools.partial(_load_again, sorted(own_packages(run.config)), run.path, **settings)
    return run_predictor(run, batch_tokens=batch_tokens, predicates=predicates, load=load)


def predicates_for(path: RunPaths) -> Path | None:
    """The installed model that finds the predicates for a model of semantic roles, as its folder.

    An installed model names it. For a model of AllenNLP's, whose predicates are the verbs, it is the one that
    finds parts of speech.

    Arguments:
        path: of the run, or of the runs of an ensemble, of which the first counts.

    Raises:
        RunError: there is no such run.
    """
    folder = open_run(run_paths(path)[0])
    name = About.of(folder.path).predicates
    if name is None and _origin(folder).get("kind") in _ALLENNLP_ROLES:
        name = VERBS
    model = model_named(name) if name else None
    return model.folder if model else None


def _load_again(packages: Sequence[str], path: RunPaths, **settings: Any) -> Predictor:
    include_packages(packages)
    return load_predictor(path, **settings)


def run_predictor(
    run: Run,
    *,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    predicates: Predictor | None = None,
    load: Callable[[], Predictor] | None = None,
) -> Predictor:
    """The predictor of a loaded run, as `load_predictor`; `load` loads it in another process."""
    return build_predictor(
        run.model.to(run.config.trainer.torch_device()),
        run.vocabulary,
        batch_tokens=batch_tokens,
        tokenizer=build_tokenizer(run.config.dataset_reader.tokenizer),
        predicates=predicates,
        origin=Origin(
            _described(run), run.config.dataset_reader.own_columns(), load, run.label_names, run.least_probability
        ),
    )


def _described(run: Run) -> str:
    elmo = run.config.elmo()
    bilm = (elmo.bilm or elmo.options) if elmo else None
    path = str(run.path) if isinstance(run.path, Path) else list(map(str, run.path))
    return f"run={path!r}, task={type(run.model.task).__name__}, model={type(run.model).__name__}, bilm={bilm!r}"


def with_device(device: Device | None, overrides: Overrides) -> list[str]:
    """The overrides of a run's config, with a device before them."""
    return [*([f"{_DEVICE}{device}"] if device else []), *override_list(overrides)]
