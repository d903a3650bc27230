"""Trained runs: loads them, evaluates them, packs them into archives."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from elmo_tasks.config import Overrides, include_packages, load_config, override_list, own_packages
from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.data_readers.sources import Source, source_name
from elmo_tasks.elmo.devices import Device
from elmo_tasks.errors import RunError, UnknownLabelError, UnknownTypeError, some_of
from elmo_tasks.files.downloads import is_address
from elmo_tasks.files.hub import HUB
from elmo_tasks.files.locks import locked
from elmo_tasks.files.tensor_files import read_tensors
from elmo_tasks.metrics.confusion import Confusion, label_scores
from elmo_tasks.models.ensemble import Member, ensemble
from elmo_tasks.models.model import TaskModel
from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS, Predictor, build_predictor
from elmo_tasks.runs.archive import open_run, write_archive
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import read_examples
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.installed_models import About, model_named, package_of
from elmo_tasks.runs.model_building import build_model, check_frozen_models, tensor_shapes
from elmo_tasks.tasks import SemanticRoles, Task
from elmo_tasks.text.tokenizer_config import build_tokenizer
from elmo_tasks.text.vocabulary import Vocabulary
from elmo_tasks.training.batching import BatchLoader, DataLoaderConfig
from elmo_tasks.training.evaluation import Sink, ordered_lines, pairs_to
from elmo_tasks.training.evaluation import evaluate as evaluate_model
from elmo_tasks.training.processes import start_accelerator

logger = logging.getLogger(__name__)

_DEVICE = "trainer.device="  # the beginning of an override

UnknownLabels = Literal["error", "count"]
"""What becomes of gold labels that a run does not know: the data is refused, or they count as errors of the run."""

RunPaths = str | Path | Sequence[str | Path]
"""A run, or several that are an ensemble."""


@dataclasses.dataclass(frozen=True, repr=False)
class Run:
    """The parts of a trained run, ready for evaluation and prediction."""

    path: (
        Path | list[Path]
    )  # its folder or archive; or its name on the hub, or its address; those of an ensemble's runs

    config: ExperimentConfig
    reader: DatasetReader  # of the data to evaluate
    vocabulary: Vocabulary
    model: TaskModel

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
        return _load_ensemble(path, overrides)
    folder, overrides = open_run(path), override_list(overrides)
    locations = folder.bilm.location(overrides) | folder.transformer.location(overrides)
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
    reader = config.evaluation_reader().build()
    check_frozen_models(config, folder)  # before any of them is read
    with _repaired_by_installing(folder, overrides):
        vocabulary = Vocabulary.load(folder.vocabulary)
        folder.check_tensors(tensor_shapes(config, vocabulary, folder))
        model = build_model(config, vocabulary, pretrained=False)
        model.load_state_dict({**read_tensors(folder.frozen), **read_tensors(folder.model)})
    is_elsewhere = str(path).startswith(HUB) or is_address(path)
    own_path = Path(path) if is_elsewhere else (folder.archive or folder.path).resolve()
    return Run(own_path, config, reader, vocabulary, model.eval())


@contextlib.contextmanager
def _repaired_by_installing(folder: RunFolder, overrides: Sequence[str]) -> Iterator[None]:
    """Within the block, errors about the files of an installed model say that it can be installed again."""
    try:
        yield
    except RunError as error:
        if overrides or not (package := package_of(folder.path)):
            raise
        repair = f"pip install --force-reinstall --no-deps {package}"
        raise RunError(f"{error}; the installed model is damaged: {repair}") from None


def _load_ensemble(paths: Sequence[str | Path], overrides: Overrides) -> Run:
    for path, times in Counter(map(str, paths)).items():
        if times > 1:
            raise RunError(f"{path}: given {times} times; expected different runs")
    runs = [load_run(path, overrides=overrides) for path in paths]
    if len(runs) == 1:
        return runs[0]
    members = [Member(str(path), run.model, run.vocabulary) for path, run in zip(paths, runs, strict=True)]
    own_paths = [run.path for run in runs if isinstance(run.path, Path)]
    return dataclasses.replace(runs[0], path=own_paths, model=ensemble(members))


def load_predictor(
    path: RunPaths,
    *,
    overrides: Overrides = (),
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    predicates: Predictor | None = None,
) -> Predictor:
    """The predictor of a run, on its config's device; arguments and errors: see `load_run` and `build_predictor`.

    Without `predicates`, those that an installed model names find the predicates for it, see `predicates_for`. It is
    pickled as the run's path, the packages of its parts and these settings, and loaded again from there.
    """
    run = load_run(path, overrides=overrides)
    if predicates is None and isinstance(run.model.task, SemanticRoles) and (tagger := predicates_for(path)):
        device = [each for each in override_list(overrides) if each.startswith(_DEVICE)]
        predicates = load_predictor(tagger, overrides=device, batch_tokens=batch_tokens)
    settings = {"overrides": overrides, "batch_tokens": batch_tokens, "predicates": predicates}
    predictor = run_predictor(run, batch_tokens=batch_tokens, predicates=predicates)
    packages = sorted(own_packages(run.config))
    predictor.load_again = functools.partial(_load_again, packages, run.path, **settings)
    return predictor


def predicates_for(path: RunPaths) -> Path | None:
    """The installed model that finds the predicates for an installed model of semantic roles, as its folder.

    Arguments:
        path: of the run, or of the runs of an ensemble, of which the first counts.

    Raises:
        RunError: there is no such run.
    """
    first = path if isinstance(path, (str, Path)) else path[0]
    name = About.of(open_run(first).path).predicates
    model = model_named(name) if name else None
    return model.folder if model else None


def _load_again(packages: Sequence[str], path: RunPaths, **settings: Any) -> Predictor:
    include_packages(packages)
    return load_predictor(path, **settings)


def run_predictor(
    run: Run, *, batch_tokens: int = DEFAULT_BATCH_TOKENS, predicates: Predictor | None = None
) -> Predictor:
    """The predictor of a loaded run, as `load_predictor`."""
    model = run.model.to(run.config.trainer.torch_device())
    tokenizer = build_tokenizer(run.config.dataset_reader.tokenizer)
    predictor = build_predictor(
        model, run.vocabulary, batch_tokens=batch_tokens, tokenizer=tokenizer, predicates=predicates
    )
    predictor.origin = _described(run)
    predictor.own_columns = run.config.dataset_reader.own_columns()
    return predictor


def _described(run: Run) -> str:
    elmo = run.config.elmo()
    bilm = (elmo.bilm or elmo.options) if elmo else None
    path = str(run.path) if isinstance(run.path, Path) else list(map(str, run.path))
    return f"run={path!r}, task={type(run.model.task).__name__}, model={type(run.model).__name__}, bilm={bilm!r}"


def with_device(device: Device | None, overrides: Overrides) -> list[str]:
    """The overrides of a run's config, with a device before them."""
    return [*([f"{_DEVICE}{device}"] if device else []), *override_list(overrides)]


def evaluate(
    path: RunPaths,
    data: Source,
    *,
    predictions: str | Path | None = None,
    confusion: bool = False,
    batch_tokens: int | None = None,
    unknown_labels: UnknownLabels = "error",
    device: Device | None = None,
    overrides: Overrides = (),
) -> dict[str, Any]:
    """A run's metrics on a data set.

    Arguments:
        path: the folder or archive of the run; of several, their ensemble is evaluated, see `load_run`.
        data: file or hub data set that the run's reader can read, or examples with the columns of the task.
        predictions: a file for each example with its prediction, one JSON object per line, in the data's order.
        confusion: also returns a `ConfusionTable` under `confusion`, and `LabelScores` under `label_scores`.
        batch_tokens: most tokens in a batch, see `DataLoaderConfig`; by default the run's limits.
        unknown_labels: `count` scores gold labels that the run does not know as its errors, as the official scorers
            do. They are named in a warning, and `loss` is the mean of the other examples; without any, it is left out.
        device: `auto` uses a GPU if there is one, `cuda` requires one; by default, the setting of the run's config.
        overrides: changes of the run's config, `{"key.path": value}` or `["key.path=value"]`.

    Raises:
        ElmoTasksError: the run does not know a label of the data, or predicts no labels for a `confusion`.
    """
    run = load_run(path, overrides=with_device(device, overrides))
    task, confusions = run.reader.task, Confusion()
    is_main = start_accelerator(run.config.trainer).is_main_process
    with ordered_lines(predictions if is_main else None) as write:
        sink = pairs_to(write) if predictions or confusion else None
        if sink and confusion:
            sink = _counting(sink, task, confusions)
        metrics = evaluate_run(run, data, sink=sink, batch_tokens=batch_tokens, unknown_labels=unknown_labels)
        if not confusion:
            return metrics
        table = confusions.table()
        return {**metrics, "confusion": table, "label_scores": label_scores(table)}


def _counting(sink: Sink, task: Task, confusions: Confusion) -> Sink:
    """Does what a sink does, and counts which labels are predicted for which."""

    def keep(row: int, example: dict[str, Any], prediction: dict[str, Any]) -> None:
        sink(row, example, prediction)
        confusions.add(task.compared_labels(prediction), task.compared_labels(example))

    return keep


def evaluate_run(
    run: Run,
    data: Source,
    *,
    sink: Sink | None = None,
    batch_tokens: int | None = None,
    unknown_labels: UnknownLabels = "error",
) -> dict[str, float]:
    """The metrics of a loaded run on a data set; see `evaluate`.

    Arguments:
        sink: called in the main process with the row, the example and the prediction, in the order of the batches.
    """
    accelerator = start_accelerator(run.config.trainer)
    given = DataLoaderConfig(batch_tokens=batch_tokens, shuffle=False) if batch_tokens else None
    run.model.to(accelerator.device)
    with accelerator.main_process_first():
        examples = read_examples(run.reader, data)
    loader = BatchLoader(
        given or run.config.evaluation_loader(),
        examples,
        run.reader.task,
        run.vocabulary,
        rank=accelerator.process_index,
        num_processes=accelerator.num_processes,
        without_gold=_rows_with_unknown_labels(run, data, examples) if unknown_labels == "count" else frozenset(),
    )
    try:
        return evaluate_model(run.model, loader, accelerator, sink)
    except UnknownLabelError as error:
        raise run.reader.unknown_label(data, examples, error) from None


def _rows_with_unknown_labels(run: Run, data: Source, examples: Iterable[Mapping[str, Any]]) -> set[int]:
    """The rows with gold labels that a run does not know. A warning names these labels."""
    task = run.reader.task
    unknown = {
        row: labels for row, each in enumerate(examples) if (labels := task.unknown_labels(each, run.vocabulary))
    }
    if unknown:
        counts = Counter(label for labels in unknown.values() for label in labels)
        logger.warning(
            "%s: the run does not know some labels, which count as its errors: %s; the loss leaves out %d example(s)",
            source_name(data),
            some_of([f"{label!r} ({count})" for label, count in counts.most_common()], most=10),
            len(unknown),
        )
    return set(unknown)


def archive(path: str | Path, target: str | Path, *, self_contained: bool = True) -> None:
    """Packs a run into one `.tar.gz`, by default with the files of the biLM and of the transformer.

    Raises:
        RunError: there is no trained run, or it is being trained.
    """
    run = open_run(path)
    with locked(run.path, writes=False):
        write_archive(run, target, with_bilm=self_contained)
