"""Trains a run: builds its parts in order, fits the model, evaluates the best epoch and writes the results."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_tasks import hooks
from elmo_tasks.config import Overrides, load_config, to_json
from elmo_tasks.data_readers.sources import Source, config_value
from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.elmo.shapes_only import shapes_only
from elmo_tasks.errors import ElmoTasksError, RunError, counted
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.json_lines import read_record
from elmo_tasks.files.locks import locked
from elmo_tasks.files.tensor_files import BEGIN_AGAIN, read_tensors, tensor_metadata
from elmo_tasks.models.model import TaskModel
from elmo_tasks.runs.experiment_config import BestEpoch, ExperimentConfig
from elmo_tasks.runs.experiment_data import Data, with_columns, with_validation
from elmo_tasks.runs.folder import RunFolder, Split
from elmo_tasks.runs.model_building import build_model
from elmo_tasks.runs.run_start import RunStart, check_before_reading, finished_results
from elmo_tasks.tasks import Task
from elmo_tasks.text.vocabulary import Vocabulary
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.callbacks import Callback
from elmo_tasks.training.evaluation import evaluate, ordered_lines, pairs_to
from elmo_tasks.training.processes import RunAccelerator, start_accelerator
from elmo_tasks.training.state import seed_everything
from elmo_tasks.training.task_training import TaskAgenda, Validation
from elmo_tasks.training.trainer import Objective, Trainer

logger = logging.getLogger(__name__)


def train(
    config: str | Path | Mapping[str, Any],
    folder: str | Path,
    *,
    datasets: Mapping[str, Source | None] | None = None,
    overrides: Overrides = (),
    variables: Mapping[str, str] | None = None,
    from_run: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    self_contained: bool = False,
    predictions: Collection[Split] = (),
    callbacks: Sequence[Callback] = (),
) -> dict[str, Any]:
    """Trains what a config describes, and evaluates the best epoch on the test set.

    For the arguments, see `elmo_tasks.train`. Here, `datasets` replace the config's data by their keys there, such as
    `train_data_path`; None for none. Returns the contents of `metrics.json`.

    Raises:
        ConfigError: the config has problems; all are named.
        RunError: the folder holds a run that is not to be resumed or removed, or began with other data or settings; or
            another process writes there; or nothing of `from_run` fits; or test data is to be predicted without any.
        ElmoTasksError: the loss is not finite, or no epoch has a value of the validation metric.
    """
    names = {key: None if source is None else config_value(source) for key, source in (datasets or {}).items()}
    experiment = load_config(config, ExperimentConfig, overrides, variables, replaced=names)
    experiment = with_columns(with_validation(experiment, overrides, names))
    run = RunFolder(folder)
    check_before_reading(experiment, run, from_run, predictions)
    settings = experiment.trainer.with_precision(run.begun_precision() if resume else None)
    accelerator = start_accelerator(settings, run.tensorboard)
    with locked(run.path) if accelerator.is_main_process else contextlib.nullcontext():
        begins = run.reserve(to_json(experiment), resume=resume, force=force, kind=ExperimentConfig)
        accelerator.wait_for_everyone()  # all processes check the folder before the first one writes to it
        if results := finished_results(run, predictions, begins=begins):
            return results
        start = RunStart(experiment, run, settings, from_run, begins, self_contained, accelerator)
        start.check()
        return _train(start, datasets, predictions, callbacks)


def _train(
    start: RunStart,
    datasets: Mapping[str, Source | None] | None,
    predictions: Collection[Split],
    callbacks: Sequence[Callback],
) -> dict[str, Any]:
    """Builds the parts of a run in their order, trains, evaluates and writes the results; see `train`."""
    config, run, settings, accelerator = start.config, start.run, start.settings, start.accelerator
    seed_everything(config.random_seed)
    with accelerator.main_process_first():  # the first to read fills the cache for the others
        data = Data.read(config, datasets)
    data.check_labels(config)
    hashes = start.check_data(data)
    vocabulary = data.vocabulary(config)
    model = build_model(config, vocabulary, pretrained=True)
    origin = start.load_weights(vocabulary, model)
    model.prepare_training(data.training)
    training, held_out = make_loaders(config, data, vocabulary, accelerator)
    steps = TaskAgenda(training, settings)
    seed, resume = config.random_seed, not start.begins
    trainer = Trainer(
        settings, Objective(model), steps, run.records, accelerator, seed=seed, resume=resume, callbacks=callbacks
    )
    _log_sizes(config, model, data)
    model.embedder.prepare(data.texts(model))
    start.write_changes(trainer.progress)
    if start.begins and accelerator.is_main_process:
        start.write(vocabulary, model, origin, hashes, data)
        for check in hooks.everything("training_check"):
            for warning in check(config, data, training, None if origin else steps.total):
                logger.warning("%s", warning)

    trainer.fit(Validation(settings, model, held_out.get("validation"), run.model))
    accelerator.wait_for_everyone()
    results = _evaluate_best(config, run, trainer, held_out, predictions)
    if accelerator.is_main_process:
        write_json(run.metrics, results)
        if "validation" in held_out:
            scores = results["best"]["validation"]
            for check in hooks.everything("result_check"):
                check(scores, model.task, settings, training, held_out["validation"].data, steps.total)
    accelerator.wait_for_everyone()
    return results


def make_loaders(
    config: ExperimentConfig, data: Data, vocabulary: Vocabulary, accelerator: RunAccelerator
) -> tuple[BatchLoader, dict[str, BatchLoader]]:
    """The batches of this process: of the training data, and of the data that is held out."""
    share = {"rank": accelerator.process_index, "num_processes": accelerator.num_processes}
    task, evaluation_task, seed = data.reader.task, data.evaluation_reader.task, config.random_seed
    return BatchLoader(config.data_loader, data.training, task, vocabulary, seed=seed, **share), {
        name: BatchLoader(config.evaluation_loader(), part, evaluation_task, vocabulary, **share)
        for name, part in data.held_out.items()
    }


def _evaluate_best(
    config: ExperimentConfig,
    run: RunFolder,
    trainer: Trainer,
    held_out: Mapping[str, BatchLoader],
    predictions: Collection[Split],
) -> dict[str, Any]:
    """Gives the model the parameters and the threshold of the best epoch. Returns the contents of `metrics.json`."""
    model, accelerator, best = trainer.objective.model, trainer.accelerator, trainer.progress.best_epoch
    if best is None:
        metric = config.trainer.metric_name
        raise ElmoTasksError(f"no epoch had a value of {metric!r} that is a number; nothing was saved")
    # The run may have been killed between writing these and its state, and resumed with fewer epochs.
    if (epoch := tensor_metadata(run.model).get("epoch", str(best))) != str(best):
        raise RunError(f"{run.model}: has the weights of epoch {epoch}; expected those of epoch {best}; {BEGIN_AGAIN}")
    tensors = read_tensors(run.model)
    trainer.set_parameters(tensors)
    if model.threshold is not None:
        model.threshold.copy_(tensors["threshold"])
    results: dict[str, Any] = {"best": read_record(run.records, best, BestEpoch).model_dump()}
    if "validation" in predictions:
        _predict(model, held_out["validation"], accelerator, run.predictions_for("validation"), model.task)
    if config.fold or "test" in predictions:
        task = None if config.fold else model.task
        results["test"] = _predict(model, held_out["test"], accelerator, run.predictions_for("test"), task)
    elif config.has_test():
        results["test"] = evaluate(model, held_out["test"], accelerator)
    return results


def _predict(
    model: TaskModel, loader: BatchLoader, accelerator: RunAccelerator, path: Path, task: Task | None = None
) -> dict[str, float]:
    """Evaluates and writes the predictions; for `task` see `pairs_to`."""
    with ordered_lines(path if accelerator.is_main_process else None) as write:
        return evaluate(model, loader, accelerator, pairs_to(write, task))


def _log_sizes(config: ExperimentConfig, model: TaskModel, data: Data) -> None:
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    frozen = sum(tensor.numel() for tensor in model.state_dict().values()) - trained
    parts = f"{counted(trained, 'trained parameter')}, {counted(frozen, 'frozen one')}"
    if (elmo := config.elmo()) and not elmo.requires_grad:
        with shapes_only():  # counts without making any
            bilm = BiLM(BiLMOptions.load(elmo.files().options))
        parts += f", and {counted(sum(each.numel() for each in bilm.parameters()), 'parameter')} in the frozen biLM"
    examples = counted(len(data.training), "training example")
    if "validation" in data.held_out:
        examples += f" and {counted(len(data.held_out['validation']), 'validation example')}"
    logger.info("%s; %s", examples, parts)
    if not config.has_validation():
        logger.info("no validation data: the last epoch is kept, whatever it has learned")
