"""From an archive of AllenNLP's to a run, and from a config of a training to one of this project."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import json
import logging
import operator
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from elmo_tasks.config import Part, load_config, to_json
from elmo_tasks.config.jsonnet import evaluate
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.errors import ElmoTasksError, MigrationError, RunError, one_line, some_of
from elmo_tasks.extras.allennlp.allennlp_keys import ROWS, answer
from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Archive, Params, Untrained, Weights, opened
from elmo_tasks.extras.allennlp.embedder import ConvertedEmbedder, WriteTransformer, convert_embedder
from elmo_tasks.extras.allennlp.heads import KINDS, convert_head
from elmo_tasks.extras.allennlp.heads.head import Head
from elmo_tasks.extras.allennlp.transformer import write_transformer
from elmo_tasks.extras.transformers.transformer_files import TransformerFiles
from elmo_tasks.extras.weights.foreign_files import fetched
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.downloads import is_address
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.locks import locked
from elmo_tasks.files.paths import check_folder, check_kind, check_output
from elmo_tasks.files.tensor_files import write_tensors
from elmo_tasks.modules.devices import shapes_only
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.text.vocabulary import Vocabulary
from elmo_tasks.training.optimizers import OptimizerConfig
from elmo_tasks.training.schedules import SchedulerConfig

logger = logging.getLogger(__name__)

# What makes no difference to a trained model, or has another name here.
_DATA = ("train_data_path", "validation_data_path", "test_data_path")
_TRAINER_TYPES = {"dense_sparse_adam": "adam", "huggingface_adamw": "adamw", "linear_with_warmup": "linear_decay"}
_IGNORED = ("serialization_dir", "evaluate_on_test", "numpy_seed", "pytorch_seed", "vocabulary")
# What the conversion of values that no model of AllenNLP's has can raise, such as a text instead of a size.
_MISMATCHES = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


@dataclasses.dataclass(frozen=True)
class Imported:
    """What an import reports."""

    kind: str  # AllenNLP's type of the model
    notes: tuple[str, ...]  # what differs from AllenNLP, a line each
    unread: tuple[str, ...]  # the keys of AllenNLP's config that mean nothing here
    label_names: Mapping[str, str]  # the archive's names of labels that have other names here

    def lines(self) -> list[str]:
        """All of it for people."""
        return [*self.notes, *([f"without a meaning here: {', '.join(self.unread)}"] if self.unread else [])]


def import_allennlp(
    path: str | Path,
    folder: str | Path,
    *,
    transformer: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Imported:
    """Writes the model of an archive as a run, which predicts, evaluates and trains on like any other.

    Arguments:
        path: AllenNLP's `model.tar.gz`, its address, or the folder that it unpacks to.
        folder: the folder of the run.
        transformer: a folder with the config and the tokenizer of the model's transformer, or `hub:NAME`; by default
            those of the model on the hub that the archive names.
        overrides: other values for AllenNLP's config, nested or with dots in their keys.
        force: removes an earlier run in the folder.

    Raises:
        MigrationError: the archive is missing or damaged, or this project does not have its model. Nothing is written.
        RunError: the folder holds a run, and `force` is not given.
        RemoteError: the file cannot be downloaded.
    """
    run = RunFolder(folder)
    check_folder(run.path)
    check_kind(run.path, run.config.name, remedy="name another folder for the run")
    if not force and (present := [each.name for each in run.files if each.exists()]):
        raise RunError(f"{run.path}: holds {', '.join(present)}; name another folder, or --force removes them first")
    with (
        locked(run.path),
        tempfile.TemporaryDirectory(prefix=".elmo-tasks.", dir=run.path) as temporary,
        opened(local_archive(path), Path(temporary)) as archive,
    ):
        with _mismatches(archive.path):
            _override(archive.config, overrides or {})
            # The reader with which AllenNLP evaluates and predicts, without those that wrap it, is the only one.
            reader = archive.config.pop("validation_dataset_reader", None) or archive.config.get("dataset_reader")
            while isinstance(reader, Mapping) and "base_reader" in reader:
                reader = reader["base_reader"]
            archive.config["dataset_reader"] = reader
            imported, config, vocabulary, frozen, trained = _converted(archive, transformer, Path(temporary))
        if force:
            run.clear()
        resolved = to_json(config)
        for model in run.frozen_models:
            if (made := Path(temporary) / model.copies.name).is_dir():
                shutil.move(made, model.copies)
                files = model.find({model.locations[0][0]: str(model.copies)})
                resolved["model"]["embedder"][model.part] |= model.refer_to(files)
        vocabulary.save(run.vocabulary)
        write_tensors(run.frozen, frozen)
        write_tensors(run.model, trained)
        write_json(run.origin, {"allennlp": str(archive.path), **dataclasses.asdict(imported)})
        run.create(resolved)  # last: it makes the folder a run
        return imported


def import_config(path: str | Path, target: str | Path, *, force: bool = False) -> list[str]:
    """Writes a config of AllenNLP's as one of this project, and returns what differs or is left out, a line each.

    These lines are comments in the new file. Paths of data stay as they are, as do variables that have no value now,
    `std.extVar(...)`. In place of an address of data, there is the name of its file.

    Raises:
        ConfigError: the config is missing, or not valid Jsonnet.
        MigrationError: this project does not have its model. Nothing is written.
        ElmoTasksError: the new file exists, and `force` is not given.
    """
    path, target = Path(path), Path(target)
    if target.suffix != ".jsonnet":
        raise MigrationError(f"{target}: expected the name of a config to write, which ends in .jsonnet")
    check_output(target, force=force)
    config = evaluate(path, undefined={})
    validation_reader = config.pop("validation_dataset_reader", None)
    with _mismatches(path, is_config=True):
        values, lines = _converted_config(path, config)
        if validation_reader:
            for_validation, more = _converted_config(path, {**config, "dataset_reader": validation_reader})
            values["validation_dataset_reader"] = for_validation["dataset_reader"]
            lines += more
        load_config(values, ExperimentConfig)
    lines = list(dict.fromkeys(lines))
    title = f"From AllenNLP's {path.name}. What differs, or is left out:"
    comments = "".join(f"// {line}\n" for line in [title, *lines])
    text = json.dumps(values, indent=2, ensure_ascii=False)
    text = re.sub("<undefined:(.+?)>", r'" + std.extVar("\1") + "', text).replace('"" + ', "").replace(' + ""', "")
    with atomic_write(target) as stream:
        stream.write(f"{comments}{text}\n".encode())
    return lines


def _converted_config(path: Path, config: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The values of a config with one reader, and what is to be said about them."""
    params = Params(config, needed=("initializer", "label_smoothing", "label_weights", "vocabulary"))
    names = AllenNlpVocabulary(collections.defaultdict(tuple))
    version = "2.10.1" if "data_loader" in params else "0.9.0"
    archive = Archive(path, config, version, names, tensors={}, bilm_options=None)
    embedder, head = _model(params, Untrained({}), archive, _refuse_transformer)
    values, notes = _config(params, embedder, head), [*embedder.notes, *head.notes]
    loader = params.part("data_loader" if "data_loader" in params else "iterator")
    batches = loader.part("batch_sampler") if "batch_sampler" in loader else loader
    batches.ignore("type", "sorting_keys", "padding_noise")
    values |= {"data_loader": {"batch_size": batches.number("batch_size", 32)}, "trainer": _trainer(params, notes)}
    values |= {key: config.get(key) for key in _DATA}
    words = embedder.config.get("words", {})
    for holder, key in [*((values, key) for key in _DATA), (words, "vectors")]:
        address = str(holder.get(key))
        if "://" in address:
            notes.append(f"{key}: download {address} into the current folder, or change the path")
            holder[key] = address.rpartition("/")[2]
    for key in params.unread():
        *names_of_holder, name = key.split(".")
        part = functools.reduce(operator.getitem, names_of_holder, config)
        notes.append(f"{key}: {answer(key.split('.'), part[name], part) or 'not carried over'}")
    return values, notes


def _refuse_transformer(named: Any, weights: Weights) -> TransformerFiles:
    raise MigrationError(
        f"AllenNLP trains the transformer {str(named)[:80]}, too, and here transformers are frozen; "
        "archives of trained models can be imported"
    )


def _trainer(params: Params, notes: list[str]) -> dict[str, Any]:
    """The config of the trainer; what is to be said about it is added to the notes."""
    trainer = params.part("trainer")
    metric = trainer.get("validation_metric", "-loss")
    metrics = next(row.values for row in ROWS if "trainer.validation_metric" in row.keys)
    values = {"num_epochs": trainer.get("num_epochs", 20), "validation_metric": metrics.get(metric, metric)}
    same = ("patience", "grad_norm", "grad_clipping", "num_gradient_accumulation_steps")
    values |= {key: trainer.get(key) for key in same if key in trainer}
    kinds: dict[str, type[Part]] = {"optimizer": OptimizerConfig, "learning_rate_scheduler": SchedulerConfig}
    for key in [key for key in kinds if key in trainer]:
        part, choices = trainer.part(key), kinds[key].choices()
        theirs = part.get("type", kinds[key].default_type)
        ours = _TRAINER_TYPES.get(theirs, theirs)
        if ours in choices:
            fields = choices[ours].model_fields.keys() - {"parameter_groups"}  # which name other parameters
            defaults = {"factor": 0.1, "patience": 10} if ours == "reduce_on_plateau" else {}  # torch's
            settings = {each: part.get(each) for each in sorted(fields) if each in part}
            values[key] = {**defaults, **settings, "type": ours}
        else:
            notes.append(f"{part.path('type')}: there is no {theirs!r} here; known types: {', '.join(choices)}")
    penalties = params.part("model").get("regularizer", None) or []
    for pattern, penalty in penalties["regexes"] if isinstance(penalties, Mapping) else penalties:
        if "scalar_parameters" in pattern:
            values["regularizers"] = [{"parameters": "mix.*weights", penalty["type"]: penalty.get("alpha", 0.01)}]
        else:
            notes.append(f"model.regularizer: {pattern!r} is not carried over; see trainer.regularizers")
    return values


def _override(config: dict[str, Any], overrides: Mapping[str, Any]) -> None:
    """Changes values of a config; what is not a mapping is replaced."""
    for key, value in overrides.items():
        part = config
        *path, last = key.split(".")
        for name in path:
            part = part.setdefault(name, {})
        if isinstance(value, Mapping) and isinstance(part.get(last), dict):
            _override(part[last], value)
        else:
            part[last] = value


def local_archive(path: str | Path) -> Path:
    """The path itself, or that of the file which is downloaded from an address; raises `RemoteError`."""
    return fetched(str(path))[0] if is_address(path) else Path(path)


@contextlib.contextmanager
def _mismatches(path: Path, is_config: bool = False) -> Iterator[None]:
    """Errors of the conversion name the archive or config. Those of impossible values become a `MigrationError`."""
    try:
        yield
    except ElmoTasksError as error:
        problem = one_line(error, 1000)
        raise MigrationError(f"{path}: {problem.removeprefix('config.json: ') if is_config else problem}") from None
    except _MISMATCHES as error:
        logger.debug("the conversion failed", exc_info=True)
        what = "its values" if is_config else "config.json and weights.th"
        raise MigrationError(f"{path}: {what} do not fit together ({one_line(error)})") from None


def _converted(
    archive: Archive, transformer: str | None, scratch: Path
) -> tuple[Imported, ExperimentConfig, Vocabulary, dict[str, Tensor], dict[str, Tensor]]:
    """What is reported, and a run's config, vocabulary, frozen and trained tensors.

    A biLM and a transformer are written to a temporary folder, each in a folder of the name that it has in a run.
    """
    params, weights = Params(archive.config), Weights(archive.tensors)
    write = functools.partial(write_transformer, transformer, scratch / "transformer")
    embedder, head = _model(params, weights, archive, write)
    kind = params.part("model").get("type")
    if unused := weights.names():
        raise MigrationError(f"weights.th: unexpected tensors {some_of(unused)}")
    params.part("model").ignore("initializer", "regularizer")
    values = _config(params, embedder, head)
    if embedder.bilm:
        files = BiLMFiles(*(scratch / "bilm" / name for name in BiLMFiles.names))
        embedder.bilm.save(files.options, files.weights)
        embedder.bilm = None  # its memory is free again
        values["model"]["embedder"]["elmo"] |= files.location()
    if embedder.transformer:
        values["model"]["embedder"]["transformer"] |= embedder.transformer.location()
    metric = load_config(values, ExperimentConfig).model.task.build_metric()
    config = load_config(values, ExperimentConfig, [f"trainer.validation_metric=+{metric.main}"])
    frozen = {f"embedder.{name}": tensor for name, tensor in embedder.tensors.items()} | head.tensors
    vocabulary = embedder.vocabulary(head.labels)
    trained = {name: frozen.pop(name) for name in _check(config, vocabulary, frozen)}
    notes = (*embedder.notes, *head.notes)
    return Imported(kind, notes, tuple(params.unread()), head.label_names), config, vocabulary, frozen, trained


def _model(
    params: Params, weights: Weights, archive: Archive, write: WriteTransformer
) -> tuple[ConvertedEmbedder, Head]:
    """The parts of a model; arguments and errors as for `convert_embedder`."""
    params.part("model").expect("type", *KINDS)
    params.part("dataset_reader").expect("readers", None)
    embedder = convert_embedder(params, weights, archive, write)
    return embedder, convert_head(params, weights, archive.vocabulary, embedder.columns)


def _config(params: Params, embedder: ConvertedEmbedder, head: Head) -> dict[str, Any]:
    """The config of the run, with settings of the training of its own, and without the location of the biLM."""
    given = (params.get(f"{name}_data_path", None) for name in ("train", "validation", "test"))
    train, validation, test = (None if "://" in str(path) else path for path in given)  # addresses are not downloaded
    values: dict[str, Any] = {
        "dataset_reader": head.dataset_reader,
        "train_data_path": str(train or ""),
        "validation_data_path": str(validation or train or ""),
        "vocabulary": embedder.vocabulary_config,
        "model": {**head.config, "embedder": embedder.config},
        "data_loader": {"batch_size": 32},
        "trainer": {"num_epochs": 20, "validation_metric": "-loss"},
    }
    if test:
        values["test_data_path"] = str(test)
    params.ignore(*_IGNORED)
    seed = params.get("random_seed", None)
    if isinstance(seed, int) and seed >= 0:
        values["random_seed"] = seed
    return values


def _check(config: ExperimentConfig, vocabulary: Vocabulary, tensors: Mapping[str, Tensor]) -> list[str]:
    """Refuses tensors that are not those of the run's model; returns the names of those that are trained."""
    with shapes_only():  # takes no memory
        model = config.build_model(vocabulary, pretrained=False)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    actual = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    mismatches = [
        f"{name} is {actual.get(name, 'missing')} (expected {expected.get(name, 'none')})"
        for name in sorted(expected.keys() | actual.keys())
        if expected.get(name) != actual.get(name)
    ]
    if mismatches:
        raise MigrationError(f"the tensors do not fit the config: {some_of(mismatches)}")
    return [name for name, parameter in model.named_parameters() if parameter.requires_grad]
