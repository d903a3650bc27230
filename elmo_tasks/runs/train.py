"""Trains a run: builds its parts in order, fits the model, evaluates the best epoch and writes the results."""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_tasks import hooks
from elmo_tasks.config import Overrides, load_config, own_packages, to_json
from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.data_readers.sources import Source, config_value
from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import (
    BEGIN_AGAIN,
    FORCE,
    ElmoTasksError,
    RunError,
    check_argument,
    check_count,
    check_several,
    counted,
)
from elmo_tasks.files.json_files import read_json, read_record, write_json
from elmo_tasks.files.locks import locked
from elmo_tasks.files.tensor_files import read_tensors, tensor_metadata, write_tensors
from elmo_tasks.models.model import TaskModel
from elmo_tasks.modules.devices import shapes_only
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.experiment_config import BestEpoch, ExperimentConfig, Results
from elmo_tasks.runs.experiment_data import TRAINING, Data, wants_folds, with_columns, with_validation
from elmo_tasks.runs.folder import LENGTH, RunFolder, Split
from elmo_tasks.runs.learned import Learned
from elmo_tasks.runs.plan import Plan, plan_run
from elmo_tasks.text.vocabulary import Vocabulary
from elmo_tasks.training.batching import BatchLoader, DataLoaderConfig
from elmo_tasks.training.callbacks import Callback
from elmo_tasks.training.evaluation import evaluate, ordered_lines, pairs_to
from elmo_tasks.training.processes import RunAccelerator, start_accelerator
from elmo_tasks.training.state import seed_everything
from elmo_tasks.training.task_training import TaskAgenda, Validation
from elmo_tasks.training.trainer import Objective, Trainer
from elmo_tasks.training.trainer_config import TrainerConfig

logger = logging.getLogger(__name__)


def train(
    config: str | Path | Mapping[str, Any],
    folder: str | Path,
    *,
    datasets: Mapping[str, Source | None] | None = None,
    overrides: Overrides = (),
    variables: Mapping[str, str] | None = None,
    folds: int | None = None,
    from_run: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    self_contained: bool = False,
    predictions: Collection[Split] = (),
    callbacks: Sequence[Callback] = (),
    earlier: Learned | None = None,
    columns_of: str | Path | None = None,
) -> dict[str, Any]:
    """Trains what a config describes, and evaluates the best epoch on the test set.

    With folds, the run is scored by a cross-validation, and has learned from all of the training data.

    For the arguments, see `elmo_tasks.train`. Here, `datasets` replace the config's data by their keys there, such as
    `train_data_path`; None for none. Returns the contents of `metrics.json`.

    Arguments:
        earlier: what an earlier run has learned from; by default, that of `from_run`. What it held out of the training
            data is held out again.
        columns_of: the run whose columns are looked for first in a table; by default, `from_run`.

    Raises:
        ConfigError: the config has problems; all are named.
        RunError: the folder holds a run that is not to be resumed or removed, or began with other data or settings; or
            another process writes there; or nothing of `from_run` fits; or test data is to be predicted without any.
        ElmoTasksError: the loss is not finite, or no epoch has a value of the validation metric.
    """
    if folds is not None:
        check_count("folds", folds, 1)
    expected = "a list of callbacks, such as [PrintScores()]"
    check_several("callbacks", callbacks, expected)
    for callback in callbacks:
        check_argument("callbacks", callback, Callback, expected)
    names = {key: None if source is None else config_value(source) for key, source in (datasets or {}).items()}
    experiment = load_config(config, ExperimentConfig, overrides, variables, replaced=names)
    by_itself = folds is None and wants_folds(experiment, overrides, names)
    if by_itself and hooks.find("repeated_training", "folds"):
        folds = experiment.folds
    if folds and folds > 1:
        scored: dict[str, Any] = hooks.required("repeated_training", "folds", "--folds")(
            config,
            folder,
            folds,
            datasets=datasets,
            overrides=overrides,
            variables=variables,
            from_run=from_run,
            resume=resume,
            force=force,
            self_contained=self_contained,
            predictions=predictions,
            callbacks=callbacks,
            only_if_small=by_itself,
        )
        return scored
    run = RunFolder(folder)
    known = run.path if resume and run.is_started() else columns_of or from_run
    experiment = with_columns(with_validation(experiment, overrides, names), known)
    settings = experiment.trainer.with_precision(run.begun_precision() if resume else None)
    accelerator = start_accelerator(settings, run.tensorboard)
    with locked(run.path) if accelerator.is_main_process else contextlib.nullcontext():
        plan = plan_run(run, experiment, resume=resume, force=force, from_run=from_run, predictions=predictions)
        accelerator.wait_for_everyone()  # all processes check the folder before the first one writes to it
        if plan.state == "finished":
            logger.info("%s: finished before; nothing to do", run.path)
            return read_json(run.metrics, Results, "the metrics of a run").model_dump(exclude_unset=True)

        seed_everything(experiment.random_seed)
        with accelerator.main_process_first():  # the first to read fills the cache for the others
            if not plan.begins:
                earlier = Learned.read(run.learned) if experiment.validation_share else earlier
            elif plan.source and not earlier:
                earlier = Learned.read(open_run(plan.source).learned)
            data = Data.read(experiment, datasets, earlier=earlier)
        if not experiment.fold:  # what is left of few examples may have one label
            data.check_labels(experiment)
        if not plan.begins:
            run.check_data(data.hashes(experiment), plan.changed)
        vocabulary = data.vocabulary(experiment)
        model = experiment.build_model(vocabulary, pretrained=True)
        origin = _load_first_weights(plan, run, experiment, vocabulary, model)
        training, held_out = make_loaders(experiment, data, vocabulary, accelerator)
        agenda = TaskAgenda(training, settings, experiment.model.trained_by_steps)
        trainer = Trainer(
            settings,
            Objective(model),
            agenda,
            run.records,
            accelerator,
            seed=experiment.random_seed,
            resume=not plan.begins,
            callbacks=callbacks,
        )
        _log_sizes(experiment, model, data)
        if experiment.elmo() or experiment.transformer():
            model.embedder.prepare(data.texts(model))
        model.prepare_training(data.training)
        if not plan.begins:
            _write_changes(plan, run, experiment, trainer)
        elif accelerator.is_main_process:
            if earlier and plan.source:
                logger.info("%s learned from other data: %s", plan.source, earlier.changes(data.learned(experiment)))
            _begin(run, experiment, settings, data, vocabulary, model, origin, self_contained=self_contained)
            for check in hooks.everything("training_check"):
                for warning in check(experiment, data, training, None if origin else agenda.total):
                    logger.warning("%s", warning)

        trainer.fit(Validation(settings, model, held_out.get("validation"), run.model))
        accelerator.wait_for_everyone()
        results = _evaluate_best(experiment, run, trainer, held_out, predictions)
        if accelerator.is_main_process:
            write_json(run.metrics, results)
            if "validation" in held_out:
                scores, validation = results["best"]["validation"], held_out["validation"].data
                for check in hooks.everything("result_check"):
                    check(scores, model.task, settings, training, validation, agenda.total)
        accelerator.wait_for_everyone()
        return results


def make_loaders(
    config: ExperimentConfig, data: Data, vocabulary: Vocabulary, accelerator: RunAccelerator
) -> tuple[BatchLoader, dict[str, BatchLoader]]:
    """The batches of this process: of the training data, and of the data that is held out."""

    def loader(name: str, loader_config: DataLoaderConfig, reader: DatasetReader, seed: int = 0) -> BatchLoader:
        return BatchLoader(
            loader_config,
            data.parts[name],
            reader.task,
            vocabulary,
            seed=seed,
            rank=accelerator.process_index,
            num_processes=accelerator.num_processes,
            lengths=data.counts[name].batch_lengths,
        )

    training = loader(TRAINING, config.data_loader, data.reader, config.random_seed)
    return training, {name: loader(name, config.evaluation_loader(), data.evaluation_reader) for name in data.held_out}


def _load_first_weights(
    plan: Plan, run: RunFolder, config: ExperimentConfig, vocabulary: Vocabulary, model: TaskModel
) -> dict[str, Any] | None:
    """Gives a new model the weights that it starts with: frozen ones of the run, or those of the run to start from.

    Returns:
        the contents of `origin.json`; None if the run starts from no other one, or if a training state is loaded next.

    Raises:
        RunError: the run began with another vocabulary, biLM, transformer or run to start from; or nothing of it fits.
    """
    if not plan.begins:
        saved = Vocabulary.load(run.vocabulary).to_json()
        if changed := [name for name, value in vocabulary.to_json().items() if value != saved[name]]:
            raise RunError(
                f"{run.path}: cannot resume with other data: its vocabulary differs in {', '.join(changed)}; "
                "expected the data that the run began with, or another folder"
            )
        run.check_frozen_models(config.model.embedder)
        model.load_state_dict(read_tensors(run.frozen), strict=False)
    if plan.source is None:
        return None

    def shapes_of(other: Vocabulary) -> dict[str, tuple[int, ...]]:
        return config.tensor_shapes(other, run.config)

    start_from = hooks.required("first_weights", "run", "the weights of another run")
    origin: dict[str, Any] = start_from(model, vocabulary, shapes_of, config.model.embedder, plan.source)
    if plan.source_hash and origin["model"] != plan.source_hash:
        raise RunError(f"{plan.source}: not the run that {run.path} began from; {FORCE} begins it again")
    return origin


def _begin(
    run: RunFolder,
    config: ExperimentConfig,
    settings: TrainerConfig,
    data: Data,
    vocabulary: Vocabulary,
    model: TaskModel,
    origin: Mapping[str, Any] | None,
    *,
    self_contained: bool,
) -> None:
    """Writes the files that a new run has before its first step, in place of an earlier run or what is left of one.

    Arguments:
        settings: the config's trainer, with the precision that "auto" means.
        origin: what `_load_first_weights` returned.
        self_contained: whether the files of the biLM and of the transformer are copied into the run.
    """
    run.clear()
    if config.folds is None or config.has_validation():  # otherwise the folds come first, and the run last
        shutil.rmtree(run.folds, ignore_errors=True)
    write_json(run.data, data.hashes(config))
    data.learned(config).write(run.learned)
    if (elmo := config.elmo()) and elmo.requires_grad:
        BiLMOptions.load(elmo.files().options).save(run.bilm_options)
    for frozen in run.frozen_models:
        frozen.refer_to_config(config.model.embedder)
        if self_contained:
            frozen.copy_files()
    if origin:
        write_json(run.origin, origin)
    if config.validation_share or config.fold:
        reader, source = data.origin(config, "validation")
        write_json(run.validation_examples, list(reader.locations(source, data.held_out["validation"])))
    vocabulary.save(run.vocabulary)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    # The tensors of a frozen biLM or transformer are not in the model's state: they are in its own files.
    write_tensors(run.frozen, {name: each for name, each in model.state_dict().items() if name not in trained})
    precision = settings.precision if config.trainer.precision == "auto" else None
    run.create(to_json(config), own_packages(config), precision=precision)


def _write_changes(plan: Plan, run: RunFolder, config: ExperimentConfig, trainer: Trainer) -> None:
    """Writes the config of a resumed run if it has changed, and removes results that are no longer its last.

    Raises:
        RunError: the config has fewer epochs than have begun.
    """
    if not plan.changed:
        return
    begun = trainer.progress.epoch + (trainer.progress.recent_steps > 0)
    if config.trainer.num_epochs < begun:
        raise RunError(f"{run.path}: {begun} epochs have begun; expected trainer.num_epochs={begun} or more")
    if not trainer.accelerator.is_main_process:
        return
    if not plan.changed.isdisjoint(LENGTH):  # it trains more
        for path in run.results:
            path.unlink(missing_ok=True)
    for frozen in run.frozen_models:
        frozen.refer_to_config(config.model.embedder)
    write_json(run.config, to_json(config))


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
        _predict(model, held_out["validation"], accelerator, run.predictions_for("validation"))
    if "test" in predictions:
        results["test"] = _predict(model, held_out["test"], accelerator, run.predictions_for("test"))
    elif config.has_test():
        results["test"] = evaluate(model, held_out["test"], accelerator)
    return results


def _predict(model: TaskModel, loader: BatchLoader, accelerator: RunAccelerator, path: Path) -> dict[str, float]:
    """Evaluates and writes the predictions, only what is scored."""
    with ordered_lines(path if accelerator.is_main_process else None) as write:
        return evaluate(model, loader, accelerator, pairs_to(write, model.task))


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
    if not config.model.trained_by_steps:
        logger.info("the model is fitted in one go: epochs, batches and learning rates have no effect")
    elif not config.has_validation():
        logger.info("no validation data: the last epoch is kept, whatever it has learned")
