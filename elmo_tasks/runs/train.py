"""Builds the parts of a run, in order, and trains it."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelerate import Accelerator

# Importing the packages of parts registers their types.
import elmo_tasks.data_readers
import elmo_tasks.models
import elmo_tasks.modules  # noqa: F401
from elmo_tasks.config import Overrides, load_config, own_packages, to_json
from elmo_tasks.data_readers.in_memory import Source, source_name
from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.elmo.shapes_only import shapes_only
from elmo_tasks.errors import FORCE, ElmoTasksError, RunError, counted
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.files.json_lines import read_record
from elmo_tasks.files.locks import locked
from elmo_tasks.files.tensor_files import read_tensors, write_tensors
from elmo_tasks.models.model import TaskModel
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.experiment_config import ExperimentConfig, Results
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.folder import RunFolder, Split
from elmo_tasks.runs.model_building import build_model, check_frozen_models, tensor_shapes
from elmo_tasks.runs.warm_start import warm_start
from elmo_tasks.tasks import Task
from elmo_tasks.text.vocabulary import Vocabulary
from elmo_tasks.training.advice import judge, warn_of_few_steps
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.callbacks import Callback
from elmo_tasks.training.evaluation import evaluate as evaluate_model
from elmo_tasks.training.evaluation import ordered_lines, pairs_to
from elmo_tasks.training.random_state import seed_everything
from elmo_tasks.training.trainer import Objective, Trainer
from elmo_tasks.training.trainer_config import TrainerConfig

logger = logging.getLogger(__name__)


def train(
    described: str | Path | Mapping[str, Any],
    folder: str | Path,
    *,
    given: Mapping[str, Source | None] | None = None,
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

    Arguments:
        described: the config: a Jsonnet or JSON file, or its values.
        folder: where the run is written.
        given: data sets in place of the config's, by their keys there: `train_data_path` and so on; None for none.
        overrides: changes of the config, `{"key.path": value}` or `["key.path=value"]`.
        variables: external variables of the Jsonnet file.
        from_run: the folder or archive of a run, of which the model takes over what fits; see `warm_start`.
        resume: continues the run in the folder, with its own state. `trainer.num_epochs` and `trainer.patience` may
            change, and files may have moved if their content is the same. A finished run is left as it is, unless its
            config changes.
        force: removes the folder's earlier run.
        self_contained: copies the files of the biLM and of the transformer into the run.
        predictions: the data for which the best epoch's predictions are written, with only what is scored; see
            `RunFolder.predictions_for`. A fold always writes those for the examples held out.
        callbacks: called after every step and epoch, in addition to the progress bar and the trackers.

    Returns:
        the metrics of `metrics.json`.

    Raises:
        ConfigError: the config has problems; all are named.
        RunError: the folder holds a run, and neither `resume` nor `force` is given; or another process writes there; or
            it holds the run to start from, or nothing of that fits. Or a resumed run began with other data or settings.
            Or predictions of test data are wanted, and the config evaluates none.
        ElmoTasksError: the loss is not finite, or no epoch has a value of the validation metric.
    """
    names = {key: None if source is None else source_name(source) for key, source in (given or {}).items()}
    config, run = load_config(described, ExperimentConfig, overrides, variables, replaced=names), RunFolder(folder)
    if "test" in predictions and not config.has_test():
        raise RunError(f"{run.path}: predictions of test data are wanted, but the config evaluates none")
    for frozen in (config.elmo(), config.transformer()):
        if frozen:
            frozen.files()  # if they are missing, it is known before the data is read
    if from_run and not run.is_started():
        open_run(from_run)
    trainer = config.trainer.with_precision(run.begun_precision() if resume else None)
    accelerator = trainer.accelerator(run.tensorboard)
    with locked(run.path) if accelerator.is_main_process else contextlib.nullcontext():
        begins = run.reserve(to_json(config), resume=resume, force=force, kind=ExperimentConfig)
        accelerator.wait_for_everyone()  # no process writes before all have looked
        finished, goes_on = not begins and run.metrics.is_file(), not begins and run.training_state.is_file()
        if finished and not run.changed:
            if all(run.predictions_for(split).is_file() for split in predictions):
                logger.info("%s: finished before; nothing to do", run.path)
                return read_json(run.metrics, Results, "the metrics of a run").model_dump(exclude_unset=True)
            if not goes_on:
                command = f"elmo-tasks evaluate {run.path} DATA --predictions FILE"
                raise RunError(f"{run.path}: finished before, without these predictions; `{command}` writes some")
        _check_changes(run, trainer, finished=finished, goes_on=goes_on)
        if from_run and goes_on:
            logger.info(
                "%s: goes on with its own state; the weights of %s are for a run that begins", run.path, from_run
            )
        elif from_run and Path(from_run).resolve() == run.path.resolve():
            raise RunError(f"{run.path}: contains the run to start from; choose another folder for the result")

        seed_everything(config.random_seed)
        with accelerator.main_process_first():  # the first to read fills the cache for the others
            data = Data.read(config, given)
        hashes = data.hashes(config)
        if not begins:
            run.check_data(hashes)
        vocabulary = data.vocabulary(config)
        model = build_model(config, vocabulary, pretrained=True)
        if not begins:
            _take_up(config, run, vocabulary, model)
        origin = None if goes_on else _start_from(from_run, config, run, vocabulary, model, begins=begins)

        share = {"rank": accelerator.process_index, "num_processes": accelerator.num_processes}
        seed, accumulated = config.random_seed, trainer.num_gradient_accumulation_steps
        training = BatchLoader(config.data_loader, data.training, data.reader.task, vocabulary, seed=seed, **share)
        validation, *test = (
            BatchLoader(config.evaluation_loader(), part, data.evaluation_reader.task, vocabulary, **share)
            for part in data.held_out
        )
        num_steps = trainer.num_epochs * training.num_steps(0, accumulated)
        loop = Trainer(trainer, Objective(model), run.records, accelerator, num_steps, callbacks)
        _log_sizes(config, model, data)
        model.embedder.prepare(data.texts(model))
        if begins and accelerator.is_main_process:
            precision = trainer.precision if config.trainer.precision == "auto" else None
            _begin(config, run, vocabulary, model, origin, hashes, copy_frozen=self_contained, precision=precision)
            if not origin:
                warn_of_few_steps(trainer, training, num_steps)
        if goes_on:
            loop.resume()
        else:
            if not begins:
                run.warn_without_state()
            seed_everything(seed + accelerator.process_index)  # each process drops other units
        if run.changed:
            _keep_changes(config, run, loop)

        progress = loop.progress
        model.train()
        with loop:
            while progress.epoch < trainer.num_epochs and progress.epochs_without_progress() < (
                trainer.patience or math.inf
            ):
                for batches in training.steps(progress.epoch, accumulated, first=progress.recent_steps):
                    loop.step(batches)
                    if trainer.checkpoint_every_steps and progress.step % trainer.checkpoint_every_steps == 0:
                        loop.save()
                begin = time.monotonic()
                with loop.averaged():
                    metrics = evaluate_model(model, validation, accelerator)
                    value = trainer.value_of(metrics)
                    better = loop.note_value(value, metrics["loss"])
                    if better and accelerator.is_main_process:
                        write_tensors(run.model, {name: each.detach() for name, each in loop.parameters.items()})
                    loop.record(_epoch_record(trainer, loop, model, metrics, better, time.monotonic() - begin))
                progress.epoch += 1
                loop.schedule.after_epoch(value)
                loop.save()

        accelerator.wait_for_everyone()
        if progress.best_epoch is None:
            raise ElmoTasksError(f"no epoch had a value of {trainer.metric_name!r} that is a number; nothing was saved")
        loop.set_parameters(read_tensors(run.model))
        results: dict[str, Any] = {"best": read_record(run.records, progress.best_epoch, dict[str, Any])}
        if "validation" in predictions:
            _predict(model, validation, accelerator, run.predictions_for("validation"), model.task)
        if config.fold:
            results["test"] = _predict(model, test[0], accelerator, run.predictions_for("test"))
        elif "test" in predictions:
            results["test"] = _predict(model, test[0], accelerator, run.predictions_for("test"), model.task)
        elif config.has_test():
            results["test"] = evaluate_model(model, test[0], accelerator)
        if accelerator.is_main_process:
            write_json(run.metrics, results)
            judge(results["best"]["validation"], trainer, training, validation, num_steps)
        accelerator.wait_for_everyone()
        return results


def _predict(
    model: TaskModel, loader: BatchLoader, accelerator: Accelerator, path: Path, task: Task | None = None
) -> dict[str, float]:
    """Evaluates and writes the predictions; for `task` see `pairs_to`."""
    with ordered_lines(path if accelerator.is_main_process else None) as write:
        return evaluate_model(model, loader, accelerator, pairs_to(write, task))


def _epoch_record(
    config: TrainerConfig, loop: Trainer, model: TaskModel, metrics: dict[str, float], better: bool, evaluation: float
) -> dict[str, Any]:
    """The line of `metrics.jsonl` for an epoch, which is logged too. `evaluation` took this many seconds."""
    progress = loop.progress
    epoch, loss, seconds = progress.epoch + 1, progress.mean_loss(), progress.recent_seconds
    validation = f"loss {metrics['loss']:.4f}"
    if config.metric_name != "loss":
        validation += f", {config.metric_name} {config.value_of(metrics):.2f}"
    validation += " (best)" if better else ""
    logger.info("epoch %d: training loss %.4f, validation %s, %.0f s", epoch, loss, validation, seconds)
    transformer = model.embedder.transformer_weights()
    return {
        "epoch": epoch,
        "step": progress.step,
        "seconds": round(seconds + evaluation, 2),
        "training": {"loss": loss, "seconds": round(seconds, 2)},
        "validation": metrics,
        "learning_rate": [group["lr"] for group in loop.optimizer.param_groups],
        "elmo": model.embedder.mix_weights(),
        **({"transformer": transformer} if transformer else {}),
        "best": better,
    }


def _begin(
    config: ExperimentConfig,
    folder: RunFolder,
    vocabulary: Vocabulary,
    model: TaskModel,
    origin: Mapping[str, Any] | None,
    hashes: Mapping[str, str],
    *,
    copy_frozen: bool,
    precision: str | None,
) -> None:
    """Writes what a run's folder holds before the first step, in place of an earlier run or what is left of one."""
    folder.clear()
    write_json(folder.data, hashes)
    if (elmo := config.elmo()) and elmo.requires_grad:
        BiLMOptions.load(elmo.files().options).save(folder.bilm_options)
    for frozen in folder.frozen_models:
        frozen.refer_to_config(config.model.embedder)
        if copy_frozen:
            frozen.copy_files()
    if origin:
        write_json(folder.origin, origin)
    vocabulary.save(folder.vocabulary)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    # The tensors of a frozen biLM or transformer are not in the model's state: they lie in its own files.
    write_tensors(folder.frozen, {name: each for name, each in model.state_dict().items() if name not in trained})
    folder.create(to_json(config), own_packages(config), precision=precision)


def _check_changes(run: RunFolder, trainer: TrainerConfig, *, finished: bool, goes_on: bool) -> None:
    """Raises `RunError` if a resumed run cannot go on with what has changed in its config."""
    if run.changed and finished and not goes_on:
        raise RunError(
            f"{run.path}: finished before, and there is no {run.training_state.name} to go on from; `elmo-tasks train "
            f"CONFIG -s DIR --from {run.path}` begins another run with its weights"
        )
    schedule = trainer.learning_rate_scheduler
    if "trainer.num_epochs" in run.changed and schedule.spans_training:
        raise RunError(
            f"{run.path}: trainer.num_epochs cannot change: the learning rates of '{to_json(schedule)['type']}' depend "
            f"on it from the first step on; `elmo-tasks train CONFIG -s DIR --from {run.path}` begins another run with "
            "its weights"
        )


def _keep_changes(config: ExperimentConfig, run: RunFolder, loop: Trainer) -> None:
    """Writes what has changed in the config of a resumed run, and removes results that are no longer its last."""
    progress, num_epochs = loop.progress, config.trainer.num_epochs
    begun = progress.epoch + (progress.recent_steps > 0)
    if num_epochs < begun:
        raise RunError(f"{run.path}: {begun} epochs have begun; expected trainer.num_epochs={begun} or more")
    if loop.accelerator.is_main_process:
        for path in (run.metrics, run.predictions, run.validation_predictions) if run.trains_more() else ():
            path.unlink(missing_ok=True)
        for frozen in run.frozen_models:
            frozen.refer_to_config(config.model.embedder)
        write_json(run.config, to_json(config))


def _take_up(config: ExperimentConfig, folder: RunFolder, vocabulary: Vocabulary, model: TaskModel) -> None:
    """Loads a resumed run's frozen tensors.

    Raises:
        RunError: the run began with another vocabulary, biLM or transformer.
    """
    saved = Vocabulary.load(folder.vocabulary).to_json()
    if changed := [name for name, value in vocabulary.to_json().items() if value != saved[name]]:
        raise RunError(
            f"{folder.path}: cannot resume with other data: its vocabulary differs in {', '.join(changed)}; "
            "wanted the data that the run began with, or another folder"
        )
    check_frozen_models(config, folder)
    model.load_state_dict(read_tensors(folder.frozen), strict=False)


def _start_from(
    from_run: str | Path | None,
    config: ExperimentConfig,
    folder: RunFolder,
    vocabulary: Vocabulary,
    model: TaskModel,
    *,
    begins: bool,
) -> dict[str, Any] | None:
    """Gives the model the weights of another run, if a run begins from one or was stopped before it saved any state.

    Returns:
        the contents of `origin.json`; None if there is no other run.

    Raises:
        RunError: it is not the run that this one began from; or as `warm_start`.
    """
    recorded = None if begins else _recorded_origin(folder)
    source = from_run if begins else recorded and (from_run or recorded["run"])
    if not source:
        return None

    def shapes_of(other: Vocabulary) -> dict[str, tuple[int, ...]]:
        return tensor_shapes(config, other, folder)

    origin = warm_start(model, vocabulary, shapes_of, config.model.embedder, source)
    if recorded and origin["model"] != recorded["model"]:
        raise RunError(f"{source}: not the run that {folder.path} began from; {FORCE} begins it again")
    return origin


def _recorded_origin(folder: RunFolder) -> dict[str, Any] | None:
    """What a warm start has written of the run that it took weights from; None if there was no warm start."""
    if not folder.origin.is_file():
        return None
    origin = read_json(folder.origin, dict[str, Any], "the origin of a run")
    return origin if {"run", "model"} <= origin.keys() else None


def _log_sizes(config: ExperimentConfig, model: TaskModel, data: Data) -> None:
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    frozen = sum(tensor.numel() for tensor in model.state_dict().values()) - trained
    parts = f"{counted(trained, 'trained parameter')}, {counted(frozen, 'frozen one')}"
    if (elmo := config.elmo()) and not elmo.requires_grad:
        with shapes_only():  # counts without making any
            bilm = BiLM(BiLMOptions.load(elmo.files().options))
        parts += f", and {counted(sum(each.numel() for each in bilm.parameters()), 'parameter')} in the frozen biLM"
    examples = counted(len(data.held_out[0]), "validation example")
    logger.info("%s and %s; %s", counted(len(data.training), "training example"), examples, parts)
