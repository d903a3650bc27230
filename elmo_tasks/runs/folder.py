"""The folder of a training run and its files.

config.json           the resolved config, with all defaults
data.json             the hashes of the examples and of the word vectors
versions.json         the versions of Python and of the packages that made the run, and the users' own packages
vocabulary.json       words, characters and labels
frozen.safetensors    tensors that training does not change, except the biLM's and the transformer's
model.safetensors     the best epoch's trained parameters
bilm.json             the biLM's files and their hash, as the run began with them
bilm/                 the biLM's files themselves, where the run is self-contained
transformer.json      the place of the transformer and the hash of its files, as the run began with them
transformer/          the transformer's files themselves, where the run is self-contained
bilm_options.json     the options of a biLM that is trained with the task; its weights are in model.safetensors
origin.json           the run that it began from (--from), and what it took over; or the archive of AllenNLP's
metrics.jsonl         a line for each epoch
metrics.json          the best epoch's metrics, and the test set's
predictions.jsonl     of the best epoch, for the examples of a fold or, with --predictions test, for the test data
predictions_validation.jsonl   the same with --predictions validation
training.pt           the state from which training resumes
tensorboard/          curves
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import logging
import platform
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pydantic
from torch import nn

from elmo_tasks.config import Config, to_json
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
from elmo_tasks.errors import FORCE, RESUME, RunError, WeightsError, some_of
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.files.overwriting import check_folder, check_kind
from elmo_tasks.files.paths import local_path
from elmo_tasks.files.tensor_files import BEGIN_AGAIN, read_tensors, tensor_shapes
from elmo_tasks.modules.transformer_files import CONFIG, HUB, TOKENIZER, WEIGHTS, TransformerFiles
from elmo_tasks.training.trainer import STATE_FILE

logger = logging.getLogger(__name__)

_PACKAGES = ("elmo-tasks", "torch", "pytorch-crf", "datasets", "accelerate", "seqeval", "numpy")
_INCLUDED, _PRECISION = "include-package", "precision"  # keys of versions.json
_MODULE_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
Split = Literal["validation", "test"]
"""The data that the best epoch is scored on."""

_ELMO, _TRANSFORMER = "model.embedder.elmo", "model.embedder.transformer"  # keys of a config
_VECTORS, WORD_VECTORS = "model.embedder.words.vectors", "word vectors"  # a key of a config, and one of data.json
_LENGTH = ("trainer.num_epochs", "trainer.patience")  # what may change when a run goes on
# And the places of files whose content is checked.
_DATA = ("train_data_path", "validation_data_path", "test_data_path")
_PLACES = (*_DATA, _VECTORS, f"{_ELMO}.bilm", f"{_ELMO}.options", f"{_ELMO}.weights", f"{_TRANSFORMER}.model")


class Folder:
    """The folder of a run of any kind: its files by name. A subclass adds more; `clear` removes those in `files`."""

    records: Path  # one JSON object per line and evaluation

    def __init__(self, path: str | Path) -> None:
        self.path = local_path(path)
        self.config = self.path / "config.json"
        self.versions = self.path / "versions.json"
        self.training_state = self.path / STATE_FILE
        self.tensorboard = self.path / "tensorboard"
        self.files: tuple[Path, ...] = (self.config, self.versions, self.training_state, self.tensorboard)
        self.begun: tuple[Path, ...] = (self.versions, self.tensorboard)  # may be there before the config is
        self.changed: frozenset[str] = frozenset()  # keys of the config that `reserve` found to differ, and accepted

    def adjustable(self) -> Collection[str]:
        """Keys of the config that may differ when the run is resumed."""
        return ()

    def is_started(self) -> bool:
        return self.config.is_file()

    def reserve(
        self, config: Mapping[str, Any], *, resume: bool, force: bool, kind: type[Config] | None = None
    ) -> bool:
        """Checks that a run with this config can be written here, and changes no file. Sets `changed`.

        Arguments:
            config: the resolved config, as JSON values.
            resume: whether to continue an earlier run.
            force: whether `clear` may remove an earlier run.
            kind: the config's class. Keys that it has gained since the run began are compared by their defaults.

        Returns:
            whether a new run begins, so that `create` must be called.

        Raises:
            RunError: the folder holds a run, and neither `resume` nor `force` is given, or the run has another config.
                Or it holds other files that a run would overwrite, such as those of a biLM, and `force` is not given.
            ElmoTasksError: the folder cannot be written to.
        """
        check_folder(self.path)
        check_kind(self.path, self.config.name, remedy="-s names another folder")
        for path in self.files:  # writing to a pipe, say, would wait for ever
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise RunError(f"{path}: not a regular file; remove it first")
        if not force and not self.is_started():
            own = self.begun if resume else ()  # a run that was stopped while it began has left these
            if others := [path.name for path in self.files if path.exists() and path not in own]:
                raise RunError(
                    f"{self.path}: holds {', '.join(others)}, which the run would overwrite; choose another "
                    f"folder, or {FORCE} removes them first"
                )
        if force or not self.is_started():
            if resume:
                logger.warning("%s: no run to resume there; a new one begins", self.path)
            return True
        changed = set(_differences(self.earlier_config(kind), config))
        if resume and (others := sorted(changed.difference(self.adjustable()))):
            raise RunError(f"{self.path}: cannot resume with another config; these keys differ: {', '.join(others)}")
        if changed and not resume:
            raise RunError(
                f"{self.path}: holds a run of another config; choose another folder, or {FORCE} removes that run first"
            )
        if not resume:
            raise RunError(f"{self.path}: holds a run; {RESUME} goes on with it, {FORCE} removes it first")
        self.changed = frozenset(changed)
        return False

    def warn_without_state(self) -> None:
        logger.warning("%s: no state was saved there to resume from; the training starts again from step 0", self.path)

    def earlier_config(self, kind: type[Config] | None) -> dict[str, Any]:
        """The config of the run here, with the defaults of keys that its class, `kind`, has gained since."""
        earlier = read_json(self.config, dict[str, Any], f"the config of a run ({BEGIN_AGAIN})")
        return earlier | (_with_defaults(earlier, kind) if kind else {})

    def create(
        self, config: Mapping[str, Any], included: Collection[str] = (), *, precision: str | None = None
    ) -> None:
        """Writes the packages' versions and, last, the config, which marks the folder as that of a run.

        Arguments:
            included: the users' own packages that the run's parts come from.
            precision: see `begun_precision`.
        """
        versions: dict[str, Any] = {name: importlib.metadata.version(name) for name in _PACKAGES}
        versions["python"] = platform.python_version()
        if included:
            versions[_INCLUDED] = sorted(included)
        if precision:
            versions[_PRECISION] = precision
        write_json(self.versions, versions)
        write_json(self.config, config)

    def included_packages(self) -> list[str]:
        """The packages that the run's parts came from, to be named in messages. They must not be imported unasked."""
        with contextlib.suppress(RunError):
            included = read_json(self.versions, dict[str, Any], "versions").get(_INCLUDED)
            names = included if isinstance(included, list) else []
            return [name for name in names if _MODULE_NAME.fullmatch(str(name))]
        return []

    def begun_precision(self) -> str | None:
        """The precision that a run with the setting 'auto' began with; it is resumed with the same."""
        with contextlib.suppress(RunError):
            return read_json(self.versions, dict[str, Any], "versions").get(_PRECISION)
        return None

    def clear(self) -> None:
        """Removes the run's files, but no other files in the folder."""
        for path in self.files:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


class BiLMReference(Config):
    """The contents of `bilm.json`: either the default biLM or two files, and the fingerprint of both."""

    bilm: Literal["default"] | None = None
    options: str | None = None
    weights: str | None = None
    fingerprint: str

    @pydantic.model_validator(mode="after")
    def _names_one(self) -> BiLMReference:
        if {self.options is None, self.weights is None} != {self.bilm is not None}:
            raise ValueError("wanted either 'bilm' or both 'options' and 'weights'")
        return self


class TransformerReference(Config):
    """The contents of `transformer.json`: the transformer's folder, or `hub:NAME`, and the fingerprint of its files."""

    model: str
    fingerprint: str


class RunFolder(Folder):
    """The files of a task model's run.

    Arguments:
        archive: the archive that the folder was unpacked from. Such a run uses no files outside of the folder.
    """

    def __init__(self, path: str | Path, archive: Path | None = None) -> None:
        super().__init__(path)
        self.archive = archive
        self.vocabulary = self.path / "vocabulary.json"
        self.frozen = self.path / "frozen.safetensors"
        self.model = self.path / "model.safetensors"
        self.data = self.path / "data.json"
        self.bilm_reference = self.path / "bilm.json"
        self.bilm = self.path / "bilm"
        self.bilm_options = self.path / "bilm_options.json"
        self.transformer_reference = self.path / "transformer.json"
        self.transformer = self.path / "transformer"
        self.origin = self.path / "origin.json"
        self.records = self.path / "metrics.jsonl"
        self.metrics = self.path / "metrics.json"
        self.predictions = self.path / "predictions.jsonl"
        self.validation_predictions = self.path / "predictions_validation.jsonl"
        self.files += (self.vocabulary, self.frozen, self.model, self.bilm_reference, self.bilm, self.bilm_options)
        self.files += (self.origin, self.records, self.metrics, self.predictions, self.validation_predictions)
        self.files += (self.transformer_reference, self.transformer, self.data)
        self.begun += (self.vocabulary, self.frozen, self.bilm_reference, self.bilm, self.bilm_options, self.origin)
        self.begun += (self.transformer_reference, self.transformer, self.data)

    def adjustable(self) -> Collection[str]:
        return (*_LENGTH, *_PLACES) if self.data.is_file() else _LENGTH

    def trains_more(self) -> bool:
        """Whether the config says how long to train, other than before."""
        return not self.changed.isdisjoint(_LENGTH)

    def check_data(self, hashes: Mapping[str, str]) -> None:
        """Raises `RunError` if a resumed run began with other data, as far as its record says."""
        if not self.data.is_file():  # of an earlier version
            return
        earlier = read_json(self.data, dict[str, str], f"the hashes of the data of a run ({BEGIN_AGAIN})")
        changed = [name for name in sorted({*earlier, *hashes}) if earlier.get(name) != hashes.get(name)]
        if _VECTORS not in self.changed and WORD_VECTORS in changed:  # the run has its own copy of what it needs
            changed.remove(WORD_VECTORS)
        if changed:
            raise RunError(
                f"{self.path}: cannot resume with other {' and other '.join(changed)}: expected the same content as "
                "when the run began; give that, or choose another folder"
            )

    def predictions_for(self, split: Split) -> Path:
        return self.predictions if split == "test" else self.validation_predictions

    def packed(self) -> dict[str, Path]:
        """The files of the folder that an archive can have, by their names in it."""
        names = (self.config, self.versions, self.vocabulary, self.frozen, self.model, self.records, self.metrics)
        references = (self.bilm_reference, self.bilm_options, self.transformer_reference)
        own = {path.name: path for path in (*names, *references, self.origin)}
        own |= {f"bilm/{name}": self.bilm / name for name in ("options.json", "weights.hdf5")}
        return own | {f"transformer/{name}": self.transformer / name for name in (CONFIG, WEIGHTS, TOKENIZER)}

    def read_bilm_reference(self) -> BiLMReference:
        """The contents of `bilm.json`; raises `RunError` if it is missing or damaged."""
        return read_json(self.bilm_reference, BiLMReference, "the reference to the biLM of a run")

    def bilm_files(self) -> BiLMFiles:
        """The files of the run's biLM: copies in the run, those that it refers to, or the default biLM's.

        Of a biLM that was trained with the task, these are its options and the model, which has its weights.

        Raises:
            RunError: the reference is damaged; or the run was in an archive, and names files outside of it.
        """
        if self.bilm_options.is_file():
            return BiLMFiles(self.bilm_options, self.model)
        if self.bilm.is_dir():
            return BiLMFiles.in_folder(self.bilm)
        reference = self.read_bilm_reference()
        if reference.options is None or reference.weights is None:
            return BiLMFiles.in_folder(DEFAULT_BILM)
        if self.archive:
            raise RunError(
                f"{self.archive}: does not contain its biLM, and an archive cannot name files outside of it; say where "
                f"the biLM is with --set {_ELMO}.bilm=DIR"
            )
        logger.info("%s: the biLM is at %s", self.path, reference.weights)
        return BiLMFiles(Path(reference.options), Path(reference.weights))

    def check_bilm(self, files: BiLMFiles) -> None:
        """Raises `RunError` if these are not the files of the biLM that the run has, or began with."""
        if files == BiLMFiles(self.bilm_options, self.model):  # its weights are checked as those of the model
            return
        reference = self.read_bilm_reference()  # before any file that the config names is opened
        found, wanted = files.fingerprint(), reference.fingerprint
        if found != wanted:
            replaced = reference.bilm == DEFAULT_BILM and files == BiLMFiles.in_folder(DEFAULT_BILM)
            reason = "the package has a newer biLM than when the run was trained; train again, or " if replaced else ""
            raise RunError(
                f"{files.weights}: not the biLM that the run was trained with (fingerprint {found[:12]}, wanted "
                f"{wanted[:12]}): {reason}name a folder with the run's biLM by --set {_ELMO}.bilm=DIR"
            )

    def bilm_place(self, given: Sequence[str]) -> dict[str, str | None]:
        """Where the run's biLM is, as values for the config's keys.

        Arguments:
            given: overrides of the config; if they name a place, only the other way of naming one is set to None.

        Raises:
            RunError: the biLM has moved.
        """
        elmo = _ELMO
        keys = {override.partition("=")[0] for override in given}
        if not self.bilm_reference.is_file() or keys & {"model", "model.embedder", elmo}:
            return {}
        if f"{elmo}.bilm" in keys:
            return {f"{elmo}.options": None, f"{elmo}.weights": None}
        if keys & {f"{elmo}.options", f"{elmo}.weights"}:
            return {f"{elmo}.bilm": None}
        files = self.bilm_files()
        for path in (files.options, files.weights):
            if not path.is_file() and path != self.model:  # whose absence means that no epoch has finished
                raise RunError(
                    f"{self.path}: the run's biLM is no longer at {path}; say where with --set {elmo}.bilm=DIR"
                )
        return {f"{elmo}.bilm": None, f"{elmo}.options": str(files.options), f"{elmo}.weights": str(files.weights)}

    def read_transformer_reference(self) -> TransformerReference:
        """The contents of `transformer.json`; raises `RunError` if it is missing or damaged."""
        return read_json(self.transformer_reference, TransformerReference, "the reference to the transformer of a run")

    def transformer_files(self) -> TransformerFiles:
        """The files of the run's transformer: copies in the run, or those that it refers to.

        Raises:
            RunError: the reference is damaged; the transformer has moved, or is not on this machine; or the run was in
                an archive, and names files outside of it.
        """
        if self.transformer.is_dir():
            return TransformerFiles(self.transformer)
        reference, key = self.read_transformer_reference(), _TRANSFORMER
        if self.archive:
            raise RunError(
                f"{self.archive}: does not contain its transformer, and an archive cannot name files outside of it; "
                f"say where the transformer is with --set {key}.model=DIR"
            )
        logger.info("%s: the transformer is at %s", self.path, reference.model)
        try:
            return TransformerFiles.of(reference.model, local_only=True)  # a stranger's run downloads nothing
        except WeightsError as error:
            place = reference.model if reference.model.startswith(HUB) else "DIR"
            raise RunError(f"{self.path}: its transformer: {error}; say where with --set {key}.model={place}") from None

    def check_transformer(self, find: Callable[[], TransformerFiles]) -> None:
        """Raises `RunError` if these are not the files of the transformer that the run began with.

        Arguments:
            find: gives the files. It is not called without a reference: what only the config names is not looked for.
        """
        wanted = self.read_transformer_reference().fingerprint
        files = find()
        found = files.fingerprint()
        if found != wanted:
            raise RunError(
                f"{files.folder}: not the transformer that the run was trained with (fingerprint {found[:12]}, wanted "
                f"{wanted[:12]})"
            )

    def transformer_place(self, given: Sequence[str]) -> dict[str, str | None]:
        """Where the run's transformer is, as `bilm_place`."""
        keys = {override.partition("=")[0] for override in given}
        own = {"model", "model.embedder", _TRANSFORMER, f"{_TRANSFORMER}.model"}
        if not self.transformer_reference.is_file() or keys & own:
            return {}
        return {f"{_TRANSFORMER}.model": str(self.transformer_files().folder)}

    def check_tensors(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Compares the shapes of the run's tensors with those of a model, without reading the tensors.

        Raises:
            RunError: no epoch has finished, or they differ; the first differences are named.
        """
        found = {**tensor_shapes(self.frozen), **tensor_shapes(self.model)}
        misfits = [
            f"{name} is {found.get(name, 'not there')} (wanted {shapes.get(name, 'none')})"
            for name in sorted(found.keys() | shapes.keys())
            if found.get(name) != shapes.get(name)
        ]
        if misfits:
            raise RunError(f"{self.path}: the weights do not fit the config: {some_of(misfits)}")

    def load_tensors(self, model: nn.Module) -> None:
        """Loads the tensors of the best epoch, frozen ones included, into a model that `check_tensors` has passed."""
        model.load_state_dict({**read_tensors(self.frozen), **read_tensors(self.model)})


def _with_defaults(earlier: Mapping[str, Any], kind: type[Config]) -> dict[str, Any]:
    """An earlier config with defaults for its missing keys; empty if it is not valid today."""
    values = {name: earlier[name] for name in kind.model_fields if name in earlier}
    with contextlib.suppress(pydantic.ValidationError):
        return to_json(kind.model_validate_json(json.dumps(values)))
    return {}


def _differences(one: Any, other: Any, key: str = "") -> Iterator[str]:
    """The key paths at which two JSON values differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in one.keys() | other.keys():
            yield from _differences(one.get(name), other.get(name), f"{key}.{name}" if key else name)
    elif one != other:
        yield key
