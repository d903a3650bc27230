"""Builds the parts of a run, in order; trains, evaluates and loads runs."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import datasets
import torch
from pydantic import ConfigDict, Field, ValidationInfo, field_validator

# Importing the packages of parts registers their types.
import elmo_tasks.data_readers
import elmo_tasks.models
import elmo_tasks.modules  # noqa: F401
from elmo_tasks.config import Config, load_config, own_packages, to_json
from elmo_tasks.console import is_main_process
from elmo_tasks.data_readers.memory import Source, source_name
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.elmo import BiLM, ElmoConfig
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import DataError, ElmoTasksError, RunError, UnknownLabelError, UnknownTypeError, one_line
from elmo_tasks.files import read_lines, write_json
from elmo_tasks.json_files import from_json, read_json
from elmo_tasks.locks import locked
from elmo_tasks.metrics.confusion import Confusion
from elmo_tasks.models.model import ModelConfig, TaskModel
from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS, Predictor, build_predictor
from elmo_tasks.runs import RunFolder, include_bilm, open_run, read_record, read_tensors, write_archive, write_tensors
from elmo_tasks.text.tokenizer_config import build_tokenizer
from elmo_tasks.text.vocabulary import Vocabulary, VocabularyConfig
from elmo_tasks.training.batching import BatchLoader, DataLoaderConfig
from elmo_tasks.training.callbacks import Callback, flatten
from elmo_tasks.training.config import TrainerConfig
from elmo_tasks.training.evaluation import Sink, ordered_lines
from elmo_tasks.training.evaluation import evaluate as evaluate_model
from elmo_tasks.training.loop import Loop, Objective
from elmo_tasks.training.random_state import seed_everything
from elmo_tasks.training.samples import Fold, TrainShare
from elmo_tasks.warm_start import warm_start

logger = logging.getLogger(__name__)


class ExperimentConfig(Config):
    """A whole experiment: what is read, what is trained on it and how."""

    foreign_keys = {  # noqa: RUF012
        "corpus": "describes the pretraining of a biLM, not a task; use `elmo-tasks pretrain`",
        "arms": "describes a study, not a task; use `elmo-tasks study`",
    }

    dataset_reader: DatasetReaderConfig
    validation_dataset_reader: DatasetReaderConfig | None = Field(
        None, description="reads what is evaluated, for the same task; default: `dataset_reader`"
    )
    train_data_path: str = Field(description="file, compressed or not, or hub data set, to learn from")
    validation_data_path: str = Field(description="the same, to choose the best epoch")
    test_data_path: str | None = Field(None, description="the same, evaluated once, after training")
    train_share: TrainShare | None = Field(None, description="trains on a random share of the training data")
    fold: Fold | None = Field(None, description="holds out a fold of the training data, in place of the test data")
    vocabulary: VocabularyConfig = VocabularyConfig()
    model: ModelConfig
    data_loader: DataLoaderConfig
    validation_data_loader: DataLoaderConfig | None = Field(
        None, description="batches for evaluation; by default those of `data_loader`, in a fixed order"
    )
    trainer: TrainerConfig
    random_seed: Annotated[int, Field(ge=0)] = 13370
    evaluate_on_test: bool = Field(True, description="evaluates the best epoch on `test_data_path`, where there is one")

    @field_validator("model")
    @classmethod
    def _fits_the_readers(cls, model: ModelConfig, info: ValidationInfo) -> ModelConfig:
        reader, evaluation_reader = info.data.get("dataset_reader"), info.data.get("validation_dataset_reader")
        for key, given in (("dataset_reader", reader), ("validation_dataset_reader", evaluation_reader)):
            if given and (problem := given.misfit(model.task, key=key, other=model, other_key="model")):
                raise ValueError(problem)
        if reader and evaluation_reader:
            keys = {"key": "validation_dataset_reader", "other_key": "dataset_reader"}
            if problem := evaluation_reader.misfit(reader.task, other=reader, **keys):
                raise ValueError(problem)
        return model

    def evaluation_loader(self) -> DataLoaderConfig:
        return (self.validation_data_loader or self.data_loader).model_copy(update={"shuffle": False})

    def evaluation_reader(self) -> DatasetReaderConfig:
        return self.validation_dataset_reader or self.dataset_reader

    def elmo(self) -> ElmoConfig | None:
        return self.model.embedder.elmo


class BestEpoch(Config):
    """What readers of `metrics.json` use of the best epoch's record."""

    model_config = ConfigDict(extra="allow")
    epoch: int
    validation: dict[str, int | float]


class Results(Config):
    """The contents of `metrics.json`."""

    best: BestEpoch
    test: dict[str, int | float] | None = None


@dataclasses.dataclass(frozen=True)
class Data:
    """The data sets of a run."""

    reader: DatasetReader  # of the training data
    evaluation_reader: DatasetReader  # of the held-out data
    training: datasets.Dataset
    held_out: tuple[datasets.Dataset, ...]  # the validation data and, if there is any, the test data

    @classmethod
    def read(cls, config: ExperimentConfig, given: Mapping[str, Source | None] | None = None) -> Data:
        """Reads the data sets: those in `given`, by their key in the config, and the config's."""
        reader, evaluation_reader = config.dataset_reader.build(), config.evaluation_reader().build()
        keys = ("train_data_path", "validation_data_path", "test_data_path")
        source, *others = ((given or {}).get(key, getattr(config, key)) for key in keys)
        if config.fold:
            others = others[:1]
        held_out = [_read(evaluation_reader, other) for other in others if other is not None]
        training = _read(reader, source)
        if config.fold:
            training, test = config.fold.split(training, _read(evaluation_reader, source), reader.task)
            held_out.append(test)
        if config.train_share:
            training = config.train_share.take(training)
        return cls(reader, evaluation_reader, training, tuple(held_out))

    def vocabulary(self, config: ExperimentConfig) -> Vocabulary:
        pretrained = config.model.embedder.pretrained_words()
        return config.vocabulary.build(self.reader.task, self.training, self.held_out, pretrained)

    def texts(self) -> list[Sequence[str]]:
        """Every sequence of tokens that a run embeds, each once."""
        examples = (example for data in (self.training, *self.held_out) for example in data)
        return list(dict.fromkeys(tuple(tokens) for example in examples for tokens in self.reader.task.texts(example)))


def _read(reader: DatasetReader, source: Source) -> datasets.Dataset:
    """A data set to learn from or to score; raises `DataError` if it has no gold labels that could be found."""
    examples = reader.read(source)
    if problem := reader.task.nothing_to_learn(examples):
        raise DataError(source_name(source), problem)
    return examples


@dataclasses.dataclass(frozen=True)
class Run:
    """The parts of a trained run, ready for evaluation and prediction."""

    config: ExperimentConfig
    reader: DatasetReader  # of the data to evaluate
    vocabulary: Vocabulary
    model: TaskModel


def train(
    described: str | Path | Mapping[str, Any],
    folder: str | Path,
    *,
    given: Mapping[str, Source | None] | None = None,
    overrides: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    from_run: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    self_contained: bool = False,
    callbacks: Sequence[Callback] = (),
) -> dict[str, Any]:
    """Trains what a config describes, and evaluates the best epoch on the test set.

    Arguments:
        described: the config: a Jsonnet or JSON file, or its values.
        folder: where the run is written.
        given: data sets in place of the config's, by their keys there: `train_data_path` and so on; None for none.
        overrides: `key.path=value`, in place of the config's values.
        variables: external variables of the Jsonnet file.
        from_run: the folder or archive of a run, of which the model takes over what fits; see `warm_start`.
        resume: continues the run in the folder, with its own state; a finished run is left as it is.
        force: removes the folder's earlier run.
        self_contained: copies the biLM's files into the run.
        callbacks: called after every step and epoch, in addition to the progress bar and the trackers.

    Returns:
        the metrics of `metrics.json`.

    Raises:
        ConfigError: the config has problems; all are named.
        RunError: the folder holds a run, and neither `resume` nor `force` is given; or another process writes there; or
            it holds the run to start from, or nothing of that fits.
        ElmoTasksError: the loss is not finite, or no epoch has a value of the validation metric.
    """
    names = {key: None if source is None else source_name(source) for key, source in (given or {}).items()}
    config, run = load_config(described, ExperimentConfig, overrides, variables, replaced=names), RunFolder(folder)
    accelerator = config.trainer.accelerator(run.tensorboard)
    with locked(run.path) if accelerator.is_main_process else contextlib.nullcontext():
        begins = run.claim(to_json(config), resume=resume, force=force, kind=ExperimentConfig)
        accelerator.wait_for_everyone()  # no process writes before all have looked
        if not begins and run.metrics.is_file():
            logger.info("%s: finished before; nothing to do", run.path)
            return read_json(run.metrics, Results, "the metrics of a run").model_dump(exclude_unset=True)
        if from_run and not begins:
            logger.info("%s: goes on with its own state; --from %s is for a run that begins", run.path, from_run)
        elif from_run and Path(from_run).resolve() == run.path.resolve():
            raise RunError(f"{run.path}: contains the run of --from; choose another folder for the result with -s")

        seed_everything(config.random_seed)
        with accelerator.main_process_first():  # the first to read fills the cache for the others
            data = Data.read(config, given)
        vocabulary = data.vocabulary(config)
        model = build_model(config, vocabulary, pretrained=True)
        if not begins:
            _take_up(config, run, vocabulary, model)
        origin = None
        if begins and from_run:
            origin = warm_start(model, vocabulary, lambda other: _shapes(config, other, run), config.elmo(), from_run)

        share = {"rank": accelerator.process_index, "num_processes": accelerator.num_processes}
        seed, trainer, accumulated = config.random_seed, config.trainer, config.trainer.num_gradient_accumulation_steps
        training = BatchLoader(config.data_loader, data.training, data.reader.task, vocabulary, seed=seed, **share)
        validation, *test = (
            BatchLoader(config.evaluation_loader(), part, data.evaluation_reader.task, vocabulary, **share)
            for part in data.held_out
        )
        trainer.check_metric({**model.task.build_metric().compute(), "loss": 0.0})
        num_steps = trainer.num_epochs * training.num_steps(0, accumulated)
        loop = Loop(trainer, Objective(model), run, accelerator, num_steps, callbacks)
        _log_sizes(config, model, data)
        model.embedder.prepare(data.texts())
        if begins and accelerator.is_main_process:
            _begin(config, run, vocabulary, model, origin, force=force, copy_bilm=self_contained)
        if not begins and run.training_state.is_file():
            loop.resume()
        else:
            seed_everything(seed + accelerator.process_index)  # each process drops other units

        progress = loop.progress
        model.train()
        with loop:
            while progress.epoch < trainer.num_epochs and progress.epochs_since_best() < (trainer.patience or math.inf):
                for batches in training.steps(progress.epoch, accumulated, first=progress.recent_steps):
                    loop.step(batches)
                    if trainer.checkpoint_every_steps and progress.step % trainer.checkpoint_every_steps == 0:
                        loop.save()
                begin = time.monotonic()
                with loop.averaged():
                    metrics = evaluate_model(model, validation, accelerator)
                    value = trainer.value_of(metrics)
                    if better := progress.is_better(value, trainer.higher_is_better):
                        progress.best_epoch, progress.best_value = progress.epoch + 1, value
                        if accelerator.is_main_process:
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
        if config.fold:
            with ordered_lines(run.predictions if accelerator.is_main_process else None) as write:
                results["test"] = evaluate_model(model, test[0], accelerator, _pairs_to(write))
        elif test and config.evaluate_on_test:
            results["test"] = evaluate_model(model, test[0], accelerator)
        if accelerator.is_main_process:
            write_json(run.metrics, results)
        accelerator.wait_for_everyone()
        return results


def train_seeds(
    described: str | Path | Mapping[str, Any],
    folder: str | Path,
    seeds: Sequence[int],
    *,
    overrides: Sequence[str] = (),
    **settings: Any,
) -> dict[str, Any]:
    """Trains once for each seed, each run in the folder `seed_N`; arguments and errors are those of `train`.

    Returns:
        the means and standard deviations of `seeds.json`.
    """
    results: list[dict[str, Any]] = []
    for seed in seeds:
        logger.info("seed %d (%d of %d)", seed, len(results) + 1, len(seeds))
        seeded = (*overrides, f"random_seed={seed}")
        results.append(train(described, Path(folder) / f"seed_{seed}", overrides=seeded, **settings))
    summary = {"seeds": list(seeds), **mean_and_deviation(results)}
    if is_main_process():
        write_json(Path(folder) / "seeds.json", summary)
    return summary


def train_folds(
    described: str | Path | Mapping[str, Any],
    folder: str | Path,
    num_folds: int,
    *,
    overrides: Sequence[str] = (),
    **settings: Any,
) -> dict[str, Any]:
    """Cross-validation: trains once for each fold of the training data, each run in the folder `fold_N`.

    The validation data still chooses the best epoch of each run. Arguments and errors are those of `train`.

    Returns:
        the contents of `folds.json`: the metrics over the predictions of all folds together (`pooled`), and the means
        and standard deviations of the runs.
    """
    results: list[dict[str, Any]] = []
    runs = [RunFolder(Path(folder) / f"fold_{number}") for number in range(1, num_folds + 1)]
    for number, run in enumerate(runs, start=1):
        logger.info("fold %d of %d", number, num_folds)
        held_out = (*overrides, f"fold.number={number}", f"fold.of={num_folds}", "test_data_path=null")
        results.append(train(described, run.path, overrides=held_out, **settings))
    summary = {"folds": num_folds, **mean_and_deviation(results)}
    if is_main_process():
        metric = load_config(runs[0].config, ExperimentConfig).model.task.build_metric()
        for run in runs:
            for number, line in read_lines(run.predictions):
                pair = from_json(
                    line.encode(), dict[str, dict[str, Any]], f"{run.predictions}:{number}", "a prediction"
                )
                metric.update([pair["prediction"]], [pair["example"]])
        summary["pooled"] = metric.compute()
        write_json(Path(folder) / "folds.json", summary)
    return summary


def _pairs_to(write: Callable[[int, Any], None]) -> Callable[[int, dict[str, Any], dict[str, Any]], None]:
    """Writes examples with their predictions, as `evaluate_model` gives them."""
    return lambda row, example, prediction: write(row, {"example": example, "prediction": prediction})


def mean_and_deviation(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """The mean and the sample standard deviation (n - 1) of each metric that all runs have."""
    flat = [flatten(result) for result in results]
    names = [name for name in flat[0] if all(name in other for other in flat)]
    values = {name: [result[name] for result in flat] for name in names}
    return {
        "mean": {name: statistics.fmean(each) for name, each in values.items()},
        "std": {name: statistics.stdev(each) if len(each) > 1 else 0.0 for name, each in values.items()},
    }


def _epoch_record(
    config: TrainerConfig, loop: Loop, model: TaskModel, metrics: dict[str, float], better: bool, evaluation: float
) -> dict[str, Any]:
    """The line of `metrics.jsonl` for an epoch, which is logged too. `evaluation` took this many seconds."""
    progress = loop.progress
    epoch, loss, seconds = progress.epoch + 1, progress.mean_loss(), progress.recent_seconds
    metric = f"{config.metric_name} {config.value_of(metrics):.2f}{' (best)' if better else ''}"
    logger.info("epoch %d: training loss %.4f, validation %s, %.0f s", epoch, loss, metric, seconds)
    return {
        "epoch": epoch,
        "step": progress.step,
        "seconds": round(seconds + evaluation, 2),
        "training": {"loss": loss, "seconds": round(seconds, 2)},
        "validation": metrics,
        "learning_rate": [group["lr"] for group in loop.optimizer.param_groups],
        "elmo": model.embedder.mix_weights(),
        "best": better,
    }


def _begin(
    config: ExperimentConfig,
    folder: RunFolder,
    vocabulary: Vocabulary,
    model: TaskModel,
    origin: Mapping[str, Any] | None,
    *,
    force: bool,
    copy_bilm: bool,
) -> None:
    """Writes what a run's folder holds before the first step; `force` removes an earlier run first."""
    if force:
        folder.clear()
    if elmo := config.elmo():
        files = elmo.files()
        reference = {"options": str(files.options.resolve()), "weights": str(files.weights.resolve())}
        if elmo.bilm == DEFAULT_BILM:  # the package may move
            reference = {"bilm": DEFAULT_BILM}
        write_json(folder.bilm_reference, {**reference, "fingerprint": files.fingerprint()})
        if elmo.requires_grad:
            BiLMOptions.load(files.options).save(folder.bilm_options)
        elif copy_bilm:
            include_bilm(folder)
    if origin:
        write_json(folder.origin, origin)
    vocabulary.save(folder.vocabulary)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    # A frozen biLM's tensors are not in the model's state: they lie in the biLM's files.
    write_tensors(folder.frozen, {name: each for name, each in model.state_dict().items() if name not in trained})
    folder.begin(to_json(config), own_packages(config))


def _take_up(config: ExperimentConfig, folder: RunFolder, vocabulary: Vocabulary, model: TaskModel) -> None:
    """Loads a resumed run's frozen tensors; raises `RunError` if it began with another vocabulary or biLM."""
    saved = Vocabulary.load(folder.vocabulary).to_json()
    if changed := [name for name, value in vocabulary.to_json().items() if value != saved[name]]:
        raise RunError(
            f"{folder.path}: cannot resume with other data: its vocabulary differs in {', '.join(changed)}; "
            "wanted the data that the run began with, or another folder by -s"
        )
    if elmo := config.elmo():
        folder.check_bilm(elmo.files())
    model.load_state_dict(read_tensors(folder.frozen), strict=False)


def build_model(config: ExperimentConfig, vocabulary: Vocabulary, *, pretrained: bool) -> TaskModel:
    """The untrained model. With `pretrained`, the word vectors are read; otherwise a run's tensors replace them."""
    embedder = config.model.embedder.build(vocabulary, pretrained=pretrained)
    return config.model.build(vocabulary, embedder)


def load_run(path: str | Path, *, overrides: Sequence[str] = ()) -> Run:
    """A trained run, with the best epoch's parameters, from its folder or archive.

    Arguments:
        overrides: `key.path=value`, in place of the config's values; for example where the biLM's files now lie.

    Raises:
        RunError: there is no run or no finished epoch, or its biLM has moved or changed; or it has parts of a package
            that is not included.
    """
    folder = open_run(path)
    try:
        config = load_config(folder.config, ExperimentConfig, overrides, replaced=folder.bilm_place(overrides))
    except UnknownTypeError:
        if not (packages := folder.included_packages()):
            raise
        options = " ".join(f"--include-package {name}" for name in packages)
        raise RunError(
            f"{path}: has parts of other packages; add {options} (in Python, elmo_tasks.include_packages({packages}))"
        ) from None
    reader = config.evaluation_reader().build()
    vocabulary = Vocabulary.load(folder.vocabulary)
    if elmo := config.elmo():
        folder.check_bilm(elmo.files())  # before any of it is read
    folder.check_tensors(_shapes(config, vocabulary, folder))
    model = build_model(config, vocabulary, pretrained=False)
    folder.load_tensors(model)
    return Run(config, reader, vocabulary, model.eval())


def _shapes(config: ExperimentConfig, vocabulary: Vocabulary, folder: RunFolder) -> dict[str, tuple[int, ...]]:
    """The shapes of the model's tensors. No memory is taken for them, since the config may be a stranger's."""
    try:
        with torch.device("meta"):
            model = build_model(config, vocabulary, pretrained=False)
    except (RuntimeError, OverflowError, TypeError) as error:  # torch's, of sizes beyond what it can count
        raise RunError(f"{folder.config}: its sizes are too large for a model ({one_line(error)})") from None
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def load_predictor(
    path: str | Path,
    *,
    overrides: Sequence[str] = (),
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    predicates: Predictor | None = None,
) -> Predictor:
    """The predictor of a run, on its config's device; arguments and errors: see `load_run` and `build_predictor`."""
    run = load_run(path, overrides=overrides)
    model = run.model.to(run.config.trainer.torch_device())
    tokenizer = build_tokenizer(run.config.dataset_reader.tokenizer)
    return build_predictor(model, run.vocabulary, batch_tokens=batch_tokens, tokenizer=tokenizer, predicates=predicates)


def evaluate(
    path: str | Path,
    data: Source,
    *,
    predictions: str | Path | None = None,
    confusion: bool = False,
    batch_tokens: int | None = None,
    overrides: Sequence[str] = (),
) -> dict[str, Any]:
    """A run's metrics on a data set.

    Arguments:
        data: file or hub data set that the run's reader can read, or examples with the columns of the task.
        predictions: where to write each example with its prediction, one JSON object per line, in the data's order.
        confusion: also returns a `ConfusionTable` under `confusion`, in the main process.
        batch_tokens: most tokens in a batch, see `DataLoaderConfig`; by default the run's limits.

    Raises:
        ElmoTasksError: the run does not know an example's label; the place is named. Or `confusion` is asked for,
            and the run does not predict labels.
    """
    run = load_run(path, overrides=overrides)
    task, confusions = run.reader.task, Confusion()
    is_main = run.config.trainer.accelerator().is_main_process
    with ordered_lines(predictions if is_main else None) as write:
        keep_pair = _pairs_to(write)

        def keep(row: int, example: dict[str, Any], prediction: dict[str, Any]) -> None:
            keep_pair(row, example, prediction)
            if confusion:
                confusions.add(task.compared_labels(prediction), task.compared_labels(example))

        sink = keep if predictions or confusion else None
        metrics = evaluate_run(run, data, sink=sink, batch_tokens=batch_tokens)
        return {**metrics, "confusion": confusions.table()} if confusion else metrics


def evaluate_run(
    run: Run, data: Source, *, sink: Sink | None = None, batch_tokens: int | None = None
) -> dict[str, float]:
    """The metrics of a loaded run on a data set; see `evaluate`.

    Arguments:
        sink: called in the main process with the row, the example and the prediction, in the order of the batches.
    """
    accelerator = run.config.trainer.accelerator()
    given = DataLoaderConfig(batch_tokens=batch_tokens, shuffle=False) if batch_tokens else None
    run.model.to(accelerator.device)
    with accelerator.main_process_first():
        examples = _read(run.reader, data)
    share = {"rank": accelerator.process_index, "num_processes": accelerator.num_processes}
    loader = BatchLoader(given or run.config.evaluation_loader(), examples, run.reader.task, run.vocabulary, **share)
    try:
        return evaluate_model(run.model, loader, accelerator, sink)
    except UnknownLabelError as error:
        raise run.reader.unknown_label(data, examples, error) from None


def archive(path: str | Path, target: str | Path, *, self_contained: bool = True) -> None:
    """Packs a run into one `.tar.gz`, by default with the biLM's files.

    Raises:
        RunError: there is no trained run, or it is being trained.
    """
    run = open_run(path)
    with locked(run.path, writes=False):
        write_archive(run, target, with_bilm=self_contained)


def _log_sizes(config: ExperimentConfig, model: TaskModel, data: Data) -> None:
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    frozen = sum(tensor.numel() for tensor in model.state_dict().values()) - trained
    parts = f"{trained / 1e6:.2f} million trained and {frozen / 1e6:.2f} million frozen parameters"
    if (elmo := config.elmo()) and not elmo.requires_grad:
        with torch.device("meta"):  # counts without making any
            bilm = BiLM(BiLMOptions.load(elmo.files().options))
        parts += f", and {sum(each.numel() for each in bilm.parameters()) / 1e6:.2f} million in the frozen biLM"
    logger.info("%d training and %d validation examples; %s", len(data.training), len(data.held_out[0]), parts)
