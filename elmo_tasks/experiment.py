"""Builds the parts of a run, in order; trains, evaluates and loads runs."""

from __future__ import annotations

import dataclasses
import json
import logging
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import datasets
import torch
from accelerate import Accelerator
from pydantic import Field, ValidationInfo, field_validator
from torch import Tensor

# Importing the packages of parts registers their types.
import elmo_tasks.data_readers
import elmo_tasks.models
import elmo_tasks.modules  # noqa: F401
from elmo_tasks.compatibility import find_misfit
from elmo_tasks.config import Config, load_config, to_json
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.elmo import ElmoConfig
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM
from elmo_tasks.errors import RunError, UnknownLabelError
from elmo_tasks.files import atomic_write, write_json
from elmo_tasks.models.model import ModelConfig, TaskModel
from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS, Predictor, build_predictor
from elmo_tasks.runs import RunFolder, include_bilm, open_run, read_tensors, write_archive, write_tensors
from elmo_tasks.text.vocabulary import Vocabulary, VocabularyConfig
from elmo_tasks.training.batching import DataLoaderConfig
from elmo_tasks.training.evaluation import evaluate as evaluate_model
from elmo_tasks.training.random_state import seed_everything
from elmo_tasks.training.reporting import flatten
from elmo_tasks.training.trainer import Trainer, TrainerConfig

logger = logging.getLogger(__name__)


class ExperimentConfig(Config):
    """A whole experiment: what is read, what is trained on it and how."""

    dataset_reader: DatasetReaderConfig
    validation_dataset_reader: DatasetReaderConfig | None = Field(
        None,
        description="reads what is evaluated and predicted, into examples of the same form; default: `dataset_reader`",
    )
    train_data_path: str = Field(description="file, compressed or not, or hub data set, to learn from")
    validation_data_path: str = Field(description="the same, to choose the best epoch with")
    test_data_path: str | None = Field(None, description="the same, looked at once, after training")
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
        for key in ("dataset_reader", "validation_dataset_reader"):
            if (reader := info.data.get(key)) and (problem := find_misfit(key, reader, model)):
                raise ValueError(problem)
        return model

    def evaluation_loader(self) -> DataLoaderConfig:
        return (self.validation_data_loader or self.data_loader).for_evaluation()

    def evaluation_reader(self) -> DatasetReaderConfig:
        return self.validation_dataset_reader or self.dataset_reader

    def elmo(self) -> ElmoConfig | None:
        return self.model.embedder.elmo


@dataclasses.dataclass(frozen=True)
class Data:
    """What a run reads."""

    reader: DatasetReader  # of the training data
    evaluation_reader: DatasetReader  # of the others
    training: datasets.Dataset
    validation: datasets.Dataset
    test: datasets.Dataset | None

    @classmethod
    def read(cls, config: ExperimentConfig) -> Data:
        reader, evaluation_reader = config.dataset_reader.build(), config.evaluation_reader().build()
        return cls(
            reader,
            evaluation_reader,
            training=reader.read(config.train_data_path),
            validation=evaluation_reader.read(config.validation_data_path),
            test=evaluation_reader.read(config.test_data_path) if config.test_data_path else None,
        )

    @property
    def held_out(self) -> list[datasets.Dataset]:
        """The validation data and, where there is any, the test data."""
        return [data for data in (self.validation, self.test) if data]

    def vocabulary(self, config: ExperimentConfig) -> Vocabulary:
        pretrained = config.model.embedder.pretrained_words()
        return config.vocabulary.build(self.reader, self.training, self.held_out, pretrained)

    def texts(self) -> list[Sequence[str]]:
        """Every sequence of tokens that a run embeds, once: a passage may come with each of its questions."""
        examples = (example for data in (self.training, *self.held_out) for example in data)
        return list(dict.fromkeys(tuple(tokens) for example in examples for tokens in self.reader.tokens(example)))


@dataclasses.dataclass(frozen=True)
class Run:
    """The parts of a trained run, ready to evaluate and to predict with."""

    config: ExperimentConfig
    reader: DatasetReader  # of what is evaluated or predicted
    vocabulary: Vocabulary
    model: TaskModel


def train(
    config_path: str | Path,
    folder: str | Path,
    *,
    overrides: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    seeds: Sequence[int] = (),
    resume: bool = False,
    force: bool = False,
    self_contained: bool = False,
) -> dict[str, Any]:
    """Trains what a config describes, once or once a seed, and evaluates it on the test set.

    Arguments:
        folder: where the run is written; with `seeds`, holds a run's folder `seed_N` for each.
        overrides: `key.path=value`, over what the config says.
        variables: external variables of the Jsonnet file.
        resume: goes on with what the folder holds; a run that has finished is left as it is.
        force: removes what an earlier run left in the folder.
        self_contained: copies the biLM's files into the run.

    Returns:
        the metrics of `metrics.json`; with `seeds`, the means and standard deviations of `seeds.json`.

    Raises:
        ConfigError: the config has problems, all of them named.
        RunError: the folder holds a run, and neither `resume` nor `force` is given.
    """
    config = load_config(config_path, ExperimentConfig, overrides, variables or {})
    settings = {"resume": resume, "force": force, "self_contained": self_contained}
    if not seeds:
        return _train_once(config, RunFolder(folder), **settings)
    results: dict[int, dict[str, Any]] = {}
    for seed in seeds:
        logger.info("seed %d (%d of %d)", seed, len(results) + 1, len(seeds))
        seeded = config.model_copy(update={"random_seed": seed})
        results[seed] = _train_once(seeded, RunFolder(Path(folder) / f"seed_{seed}"), **settings)
    summary = {"seeds": list(seeds), **mean_and_deviation(list(results.values()))}
    if Accelerator().is_main_process:
        write_json(Path(folder) / "seeds.json", summary)
    return summary


def mean_and_deviation(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """For each metric of several runs its mean and its standard deviation (of the sample, n - 1)."""
    flat = [flatten(result) for result in results]
    names = [name for name in flat[0] if all(name in other for other in flat)]
    values = {name: [result[name] for result in flat] for name in names}
    return {
        "mean": {name: statistics.fmean(each) for name, each in values.items()},
        "std": {name: statistics.stdev(each) if len(each) > 1 else 0.0 for name, each in values.items()},
    }


def _train_once(
    config: ExperimentConfig, folder: RunFolder, *, resume: bool, force: bool, self_contained: bool
) -> dict[str, Any]:
    accelerator = config.trainer.accelerator()
    begins = folder.claim(to_json(config), resume=resume, force=force)
    accelerator.wait_for_everyone()  # nobody writes before everybody has looked
    if not begins and folder.metrics.is_file():
        logger.info("%s: finished before; nothing to do", folder.path)
        return json.loads(folder.metrics.read_text(encoding="utf-8"))

    seed_everything(config.random_seed)
    with accelerator.main_process_first():  # the first to read fills the cache for the others
        data = Data.read(config)
    vocabulary = data.vocabulary(config)
    model = build_model(config, vocabulary, pretrained=True)
    if not begins:
        _take_up(config, folder, vocabulary, model)

    share = {"rank": accelerator.process_index, "num_processes": accelerator.num_processes}
    training = config.data_loader.build(data.training, data.reader, vocabulary, seed=config.random_seed, **share)
    held_out = [
        config.evaluation_loader().build(part, data.evaluation_reader, vocabulary, **share) for part in data.held_out
    ]
    trainer = Trainer(config.trainer, model, training, held_out[0], folder, accelerator)
    _log_sizes(model, data.training, data.validation)
    model.embedder.prepare(data.texts())
    if begins and accelerator.is_main_process:
        _begin(config, folder, vocabulary, model, force=force, self_contained=self_contained)
    if not begins and folder.training_state.is_file():
        trainer.resume()
    else:
        # Each process drops other units; with one process this is the seed's own sequence.
        seed_everything(config.random_seed + accelerator.process_index)
    metrics = {"best": trainer.train()}
    if data.test and config.evaluate_on_test:
        metrics["test"] = evaluate_model(model, held_out[-1], accelerator)
    if accelerator.is_main_process:
        write_json(folder.metrics, metrics)
    accelerator.wait_for_everyone()
    return metrics


def _begin(
    config: ExperimentConfig,
    folder: RunFolder,
    vocabulary: Vocabulary,
    model: TaskModel,
    *,
    force: bool,
    self_contained: bool,
) -> None:
    """Writes what a run's folder holds before the first step, in place of an earlier run with `force`."""
    if force:
        folder.clear()
    if elmo := config.elmo():
        files = elmo.files()
        reference = {"options": str(files.options.resolve()), "weights": str(files.weights.resolve())}
        if elmo.bilm == DEFAULT_BILM:  # wherever the package lies
            reference = {"bilm": DEFAULT_BILM}
        write_json(folder.bilm_reference, {**reference, "fingerprint": files.fingerprint()})
        if self_contained:
            include_bilm(folder)
    vocabulary.save(folder.vocabulary)
    write_tensors(folder.frozen, frozen_state(model))
    folder.begin(to_json(config))


def _take_up(config: ExperimentConfig, folder: RunFolder, vocabulary: Vocabulary, model: TaskModel) -> None:
    """Makes sure that a run goes on with the words, labels and biLM that it began with, and loads its frozen tensors.

    Raises:
        RunError: the vocabulary or the biLM is another one.
    """
    saved = Vocabulary.load(folder.vocabulary).to_json()
    if changed := [name for name, value in vocabulary.to_json().items() if value != saved[name]]:
        raise RunError(
            f"{folder.path}: cannot resume with other data: its vocabulary differs in {', '.join(changed)}; "
            "wanted the data that the run began with, or another folder by -s"
        )
    _check_bilm(folder, config)
    model.load_state_dict(read_tensors(folder.frozen), strict=False)


def build_model(config: ExperimentConfig, vocabulary: Vocabulary, *, pretrained: bool) -> TaskModel:
    """The untrained model.

    Arguments:
        pretrained: reads the word vectors' file; without it their tables wait for a run's tensors.
    """
    embedder = config.model.embedder.build(vocabulary, pretrained=pretrained)
    return config.model.build(vocabulary, embedder)


def frozen_state(model: TaskModel) -> dict[str, Tensor]:
    """The model's tensors that training does not change. The biLM's are not the model's: they lie in its own files."""
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return {name: tensor for name, tensor in model.state_dict().items() if name not in trained}


def load_run(path: str | Path, *, overrides: Sequence[str] = ()) -> Run:
    """A trained run, with the best epoch's parameters, from its folder or archive.

    Arguments:
        overrides: `key.path=value`, over the run's config; for example where the biLM's files now lie.

    Raises:
        RunError: there is no run, no finished epoch, or its biLM is not where it was, or has changed.
    """
    folder = open_run(path)
    config = load_config(folder.config, ExperimentConfig, (*folder.bilm_overrides(overrides), *overrides))
    reader = config.evaluation_reader().build()
    vocabulary = Vocabulary.load(folder.vocabulary)
    model = build_model(config, vocabulary, pretrained=False)
    _check_bilm(folder, config)
    folder.load_tensors(model)
    return Run(config, reader, vocabulary, model.eval())


def load_predictor(
    path: str | Path,
    *,
    overrides: Sequence[str] = (),
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    predicates: Predictor | None = None,
) -> Predictor:
    """The predictor of a trained run, on the device that the run's config chooses.

    Arguments and errors are those of `load_run` and `build_predictor`.
    """
    run = load_run(path, overrides=overrides)
    on_gpu = run.config.trainer.device == "auto" and torch.cuda.is_available()
    model = run.model.to("cuda" if on_gpu else "cpu")
    return build_predictor(model, run.vocabulary, run.reader, batch_tokens=batch_tokens, predicates=predicates)


def _check_bilm(folder: RunFolder, config: ExperimentConfig) -> None:
    elmo = config.elmo()
    if elmo is None:
        return
    reference = json.loads(folder.bilm_reference.read_text(encoding="utf-8"))
    files = elmo.files()
    found = files.fingerprint()
    if found != reference["fingerprint"]:
        raise RunError(
            f"{files.weights}: not the biLM that the run was trained with (fingerprint {found[:12]}, "
            f"wanted {reference['fingerprint'][:12]})"
        )


def evaluate(
    path: str | Path,
    data: str,
    *,
    predictions: str | Path | None = None,
    batch_tokens: int | None = None,
    overrides: Sequence[str] = (),
) -> dict[str, float]:
    """A run's metrics on a data set.

    Arguments:
        data: file or hub data set, as the run's reader takes them.
        predictions: where to write each example with its prediction, a JSON object a line, in the data's order.
        batch_tokens: most tokens in a batch, see `DataLoaderConfig`; by default the run's own limits.

    Raises:
        ElmoTasksError: an example has a label that the run does not know; its place is named.
    """
    run = load_run(path, overrides=overrides)
    accelerator = run.config.trainer.accelerator()
    loader_config = run.config.evaluation_loader()
    if batch_tokens:
        loader_config = DataLoaderConfig(batch_tokens=batch_tokens, shuffle=False)
    run.model.to(accelerator.device)
    with accelerator.main_process_first():
        examples = run.reader.read(data)
    share = {"rank": accelerator.process_index, "num_processes": accelerator.num_processes}
    loader = loader_config.build(examples, run.reader, run.vocabulary, **share)
    records: list[dict[str, Any]] = []

    def keep(example: dict[str, Any], prediction: dict[str, Any]) -> None:
        records.append({"example": example, "prediction": prediction})

    try:
        metrics = evaluate_model(run.model, loader, accelerator, keep if predictions else None)
    except UnknownLabelError as error:
        raise run.reader.unknown_label(data, examples, error) from None
    if predictions and accelerator.is_main_process:
        with atomic_write(predictions) as stream:
            for _, record in sorted(zip(loader.rows(), records, strict=True), key=lambda pair: pair[0]):
                stream.write((json.dumps(record, ensure_ascii=False) + "\n").encode())
    return metrics


def archive(path: str | Path, target: str | Path, *, self_contained: bool = True) -> None:
    """Packs a run into one `.tar.gz`, by default with the biLM's files."""
    write_archive(open_run(path), target, with_bilm=self_contained)


def _log_sizes(model: TaskModel, training: datasets.Dataset, validation: datasets.Dataset) -> None:
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    frozen = sum(tensor.numel() for tensor in model.state_dict().values()) - trained
    logger.info(
        "%d training and %d validation examples; %.2f million trained and %.2f million frozen numbers",
        len(training),
        len(validation),
        trained / 1e6,
        frozen / 1e6,
    )
