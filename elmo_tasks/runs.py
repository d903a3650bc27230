"""The folder of a training run and its files.

config.json           the resolved config, with all defaults
versions.json         the versions of Python and of the packages that made the run
vocabulary.json       words, characters and labels
frozen.safetensors    tensors that training does not change, except the biLM's
model.safetensors     the best epoch's trained parameters
bilm.json             the biLM's files and their hash, where the model has a frozen one
bilm/                 the biLM's files themselves, where the run is self-contained
metrics.jsonl         a line for each epoch
metrics.json          the best epoch's metrics, and the test set's
training.pt           the state from which training resumes
tensorboard/          curves
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import pickle
import platform
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from pydantic import ValidationError
from safetensors import SafetensorError
from torch import Tensor, nn

from elmo_tasks import __version__
from elmo_tasks.config import Config, to_json
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
from elmo_tasks.errors import RunError
from elmo_tasks.files import atomic_path, atomic_write, cache_folder, content_hash, write_json

_PACKAGES = ("torch", "pytorch-crf", "datasets", "accelerate", "seqeval", "numpy")


class Folder:
    """The folder of a run of any kind: its files by name. A subclass adds more; `clear` removes those in `files`."""

    records: Path  # one JSON object per line and evaluation

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.versions = self.path / "versions.json"
        self.training_state = self.path / "training.pt"
        self.tensorboard = self.path / "tensorboard"
        self.files: tuple[Path, ...] = (self.config, self.versions, self.training_state, self.tensorboard)

    def is_started(self) -> bool:
        return self.config.is_file()

    def claim(self, config: Mapping[str, Any], *, resume: bool, force: bool, kind: type[Config] | None = None) -> bool:
        """Checks that a run with this config can be written here, and changes nothing.

        Arguments:
            config: the resolved config, as JSON values.
            resume: whether to continue an earlier run.
            force: whether `clear` may remove an earlier run.
            kind: the config's class. Keys that it has gained since the run began are compared by their defaults.

        Returns:
            whether a new run begins, so that `begin` must be called.

        Raises:
            RunError: the folder holds a run, and neither `resume` nor `force` is given, or the run has another config.
        """
        if force or not self.is_started():
            return True
        earlier = json.loads(self.config.read_text(encoding="utf-8"))
        if kind:
            earlier |= _with_defaults(earlier, kind)
        changed = sorted(_differences(earlier, config))
        if resume and changed:
            raise RunError(f"{self.path}: cannot resume with another config; these keys differ: {', '.join(changed)}")
        if changed:
            raise RunError(
                f"{self.path}: holds a run of another config; -s names another folder, --force removes that run first"
            )
        if not resume:
            raise RunError(f"{self.path}: holds a run; --resume goes on with it, --force removes it first")
        return False

    def begin(self, config: Mapping[str, Any]) -> None:
        """Writes the packages' versions and, last, the config, which marks the folder as that of a run."""
        packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
        write_json(self.versions, {"elmo-tasks": __version__, "python": platform.python_version(), **packages})
        write_json(self.config, config)

    def clear(self) -> None:
        """Removes the run's files, but no other files in the folder."""
        for path in self.files:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


class RunFolder(Folder):
    """The files of a task model's run."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.vocabulary = self.path / "vocabulary.json"
        self.frozen = self.path / "frozen.safetensors"
        self.model = self.path / "model.safetensors"
        self.bilm_reference = self.path / "bilm.json"
        self.bilm = self.path / "bilm"
        self.records = self.path / "metrics.jsonl"
        self.metrics = self.path / "metrics.json"
        self.files += (self.vocabulary, self.frozen, self.model, self.bilm_reference, self.bilm)
        self.files += (self.records, self.metrics)

    def bilm_files(self) -> BiLMFiles:
        """The files of the run's biLM: copies in the run, those that it refers to, or the default biLM's."""
        if self.bilm.is_dir():
            return BiLMFiles.in_folder(self.bilm)
        reference = json.loads(self.bilm_reference.read_text(encoding="utf-8"))
        if reference.get("bilm") == DEFAULT_BILM:
            return BiLMFiles.in_folder(DEFAULT_BILM)
        return BiLMFiles(Path(reference["options"]), Path(reference["weights"]))

    def bilm_place(self, given: Sequence[str]) -> dict[str, str | None]:
        """Where the run's biLM is, as values for the config's keys.

        Arguments:
            given: overrides of the config; if they name a place, only the other way of naming one is set to None.

        Raises:
            RunError: the biLM has moved.
        """
        elmo = "model.embedder.elmo"
        keys = {override.partition("=")[0] for override in given}
        if not self.bilm_reference.is_file() or keys & {"model", "model.embedder", elmo}:
            return {}
        if f"{elmo}.bilm" in keys:
            return {f"{elmo}.options": None, f"{elmo}.weights": None}
        if keys & {f"{elmo}.options", f"{elmo}.weights"}:
            return {f"{elmo}.bilm": None}
        files = self.bilm_files()
        for path in (files.options, files.weights):
            if not path.is_file():
                raise RunError(
                    f"{self.path}: the run's biLM is no longer at {path}; say where with --set {elmo}.bilm=DIR"
                )
        return {f"{elmo}.bilm": None, f"{elmo}.options": str(files.options), f"{elmo}.weights": str(files.weights)}

    def load_tensors(self, model: nn.Module) -> None:
        """Loads the tensors of the best epoch, frozen ones included, into a model.

        Raises:
            RunError: no epoch has finished, or the tensors do not fit the model; the first of them are named.
        """
        saved, wanted = {**read_tensors(self.frozen), **read_tensors(self.model)}, model.state_dict()
        found, fitting = ({name: str(tuple(tensor.shape)) for name, tensor in each.items()} for each in (saved, wanted))
        misfits = [
            f"{name} is {found.get(name, 'not there')} (wanted {fitting.get(name, 'none')})"
            for name in sorted(found.keys() | fitting.keys())
            if found.get(name) != fitting.get(name)
        ]
        if misfits:
            more = f", and {len(misfits) - 3} more" if len(misfits) > 3 else ""
            raise RunError(f"{self.path}: the weights do not fit the config: {', '.join(misfits[:3])}{more}")
        model.load_state_dict(saved)


def _with_defaults(earlier: Mapping[str, Any], kind: type[Config]) -> dict[str, Any]:
    """An earlier config with defaults for its missing keys; empty if it is not valid today."""
    values = {name: earlier[name] for name in kind.model_fields if name in earlier}
    with contextlib.suppress(ValidationError):
        return to_json(kind.model_validate_json(json.dumps(values)))
    return {}


def _differences(one: Any, other: Any, key: str = "") -> Iterator[str]:
    """The key paths at which two JSON values differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in one.keys() | other.keys():
            yield from _differences(one.get(name), other.get(name), f"{key}.{name}" if key else name)
    elif one != other:
        yield key


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes tensors as safetensors, atomically."""
    with atomic_path(path) as temporary:
        safetensors.torch.save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, temporary)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads a safetensors file; raises `RunError` if it is missing or damaged."""
    try:
        return safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise RunError(f"{path}: no such file; the run has not finished its first epoch") from None
    except SafetensorError as error:
        raise RunError(f"{path}: damaged, or not a safetensors file ({error})") from None


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Writes a training state (tensors, numbers, strings and containers of them), atomically."""
    with atomic_write(path) as stream:
        torch.save(dict(state), stream)


def read_state(path: Path) -> dict[str, Any]:
    """Reads a training state; raises `RunError` if it is damaged."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise RunError(f"{path}: damaged, or not a training state ({error})") from None


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Appends a record to a JSON lines file."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_record(path: Path, number: int) -> dict[str, Any]:
    """A record of a JSON lines file, counted from 1."""
    with path.open(encoding="utf-8") as stream:
        return json.loads(list(stream)[number - 1])


def keep_lines(path: Path, count: int) -> None:
    """Cuts a JSON lines file after its first `count` records; a resumed run writes the later ones again."""
    lines = path.read_bytes().splitlines(keepends=True) if path.is_file() else []
    with atomic_write(path) as stream:
        stream.writelines(lines[:count])


def include_bilm(folder: RunFolder) -> None:
    """Copies the files of the run's biLM, if it has one, into its folder; raises `RunError` if they have moved."""
    if not folder.bilm_reference.is_file() or folder.bilm.is_dir():
        return
    files = folder.bilm_files()
    with tempfile.TemporaryDirectory(dir=folder.path) as scratch:
        copies = Path(scratch) / folder.bilm.name
        copies.mkdir()
        try:
            shutil.copyfile(files.options, copies / "options.json")
            shutil.copyfile(files.weights, copies / "weights.hdf5")
        except FileNotFoundError as error:
            raise RunError(f"{folder.path}: the run's biLM is no longer at {error.filename}") from None
        copies.rename(folder.bilm)


def write_archive(folder: RunFolder, archive: str | Path, *, with_bilm: bool) -> None:
    """Packs a run into one `.tar.gz`, without the files that only training needs, atomically.

    Arguments:
        with_bilm: also packs the biLM's files, if the run has a biLM.

    Raises:
        RunError: the folder holds no trained model, or the biLM has moved.
    """
    if not folder.model.is_file():
        raise RunError(f"{folder.path}: no {folder.model.name}; wanted the folder of a run that has finished an epoch")
    own = (folder.config, folder.versions, folder.vocabulary, folder.frozen, folder.model, folder.bilm_reference)
    packed = {path.name: path for path in (*own, folder.records, folder.metrics) if path.is_file()}
    if with_bilm and folder.bilm_reference.is_file():
        files = folder.bilm_files()
        packed |= {"bilm/options.json": files.options, "bilm/weights.hdf5": files.weights}
    # Links are packed as the files that they point to.
    with atomic_path(archive) as temporary, tarfile.open(temporary, "w:gz", dereference=True) as tar:
        for name, path in packed.items():
            if not path.is_file():
                raise RunError(f"{folder.path}: the run's biLM is no longer at {path}")
            tar.add(path, arcname=name)


def open_run(path: str | Path) -> RunFolder:
    """The folder of a run; an archive is unpacked once into the cache.

    Raises:
        RunError: `path` is not a run, or the archive is damaged.
    """
    path = Path(path)
    folder = RunFolder(_unpacked(path) if path.is_file() else path)
    if not folder.is_started():
        raise RunError(f"{path}: wanted a run's folder, with a {folder.config.name}, or its archive (.tar.gz)")
    return folder


def _unpacked(archive: Path) -> Path:
    target = cache_folder() / "runs" / content_hash(archive)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        unpacked = Path(scratch) / "run"
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(unpacked, filter="data")
        except (tarfile.TarError, EOFError, OSError) as error:
            raise RunError(f"{archive}: not the archive of a run, or damaged ({error})") from None
        with contextlib.suppress(OSError):  # another process was faster, and its copy is the same
            unpacked.rename(target)
    return target
