"""Runs that are complete in themselves: copying the biLM into a run, packing a run into an archive, opening either."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from elmo_tasks.elmo.bilm import BiLM
from elmo_tasks.errors import AllenNlpArchiveError, RunError
from elmo_tasks.files import archives
from elmo_tasks.files.atomic import atomic_folder, atomic_write
from elmo_tasks.files.cache import used_cache
from elmo_tasks.files.hashes import content_hash
from elmo_tasks.files.paths import local_path
from elmo_tasks.runs.folder import RunFolder

_ALLENNLP_WEIGHTS = "weights.th"


def include_bilm(folder: RunFolder) -> None:
    """Copies the files of the run's biLM into its folder; raises `RunError` if they have moved."""
    if not folder.bilm.is_dir():
        files = folder.bilm_files()
        _include(folder, "biLM", {"options.json": files.options, "weights.hdf5": files.weights}, folder.bilm)


def include_transformer(folder: RunFolder) -> None:
    """Like `include_bilm`, for the files of the run's transformer."""
    if not folder.transformer.is_dir():
        _include(folder, "transformer", folder.transformer_files().paths, folder.transformer)


def _include(folder: RunFolder, kind: str, files: Mapping[str, Path], target: Path) -> None:
    with atomic_folder(target) as copies:
        for name, source in files.items():
            try:
                with open(source, "rb") as content, atomic_write(copies / name) as copy:
                    shutil.copyfileobj(content, copy, 1 << 20)
            except FileNotFoundError:
                raise RunError(f"{folder.path}: the run's {kind} is no longer at {source}") from None


def write_archive(folder: RunFolder, archive: str | Path, *, with_bilm: bool) -> None:
    """Packs a run into one `.tar.gz`, without the files that only training needs, atomically.

    Arguments:
        with_bilm: also packs the files of the biLM and of the transformer, if the run has them.

    Raises:
        RunError: the folder holds no trained model, a file is a link to elsewhere, or the biLM or the transformer has
            moved or changed.
        WeightsError: the files that the run names are not a biLM or a transformer.
    """
    if not folder.model.is_file():
        raise RunError(f"{folder.path}: no {folder.model.name}; wanted the folder of a run that has finished an epoch")
    packed = {name: path for name, path in folder.packed().items() if path.is_file() and path.parent == folder.path}
    for path in packed.values():
        if path.resolve().parent != folder.path.resolve():  # someone else's run could name any file of this machine
            raise RunError(f"{path}: a link to {path.resolve()}; wanted a file of the run, so put a copy in its place")
    if with_bilm and folder.bilm_reference.is_file() and not folder.bilm_options.is_file():
        files = folder.bilm_files()
        for path in (files.options, files.weights):
            if not path.is_file():
                raise RunError(f"{folder.path}: the run's biLM is no longer at {path}")
        folder.check_bilm(files)
        BiLM.load(files.options, files.weights)
        packed |= {"bilm/options.json": files.options, "bilm/weights.hdf5": files.weights}
    if with_bilm and folder.transformer_reference.is_file():
        transformer = folder.transformer_files()
        folder.check_transformer(lambda: transformer)
        transformer.load()
        packed |= {f"transformer/{name}": path for name, path in transformer.paths.items()}
    archives.pack(packed, archive)


def open_run(path: str | Path) -> RunFolder:
    """The folder of a run; an archive is unpacked once into the cache.

    Raises:
        RunError: `path` is not a run, or the archive is damaged or contains anything that is not of a run.
        AllenNlpArchiveError: it is one of AllenNLP's.
    """
    path = local_path(path)
    if (path / _ALLENNLP_WEIGHTS).is_file():
        raise AllenNlpArchiveError(path)
    archive = path if path.is_file() else None
    folder = RunFolder(_unpacked(path) if archive else path, archive)
    for kind in ("seed", "fold"):
        if runs := sorted(each.parent.name for each in path.glob(f"{kind}_*/config.json")):
            raise RunError(
                f"{path}: a folder of runs, one for each {kind} ({', '.join(runs)}); name one of them, such as "
                f"{path / runs[0]}"
            )
    if not folder.is_started():
        raise RunError(f"{path}: wanted a run's folder, with a {folder.config.name}, or its archive (.tar.gz)")
    return folder


def _unpacked(archive: Path) -> Path:
    target = used_cache("archives") / content_hash(archive)
    if target.is_dir():
        return target
    try:
        with atomic_folder(target) as unpacked:
            archives.unpack(archive, unpacked, RunFolder(unpacked).packed().__contains__)
    except RunError:
        if archives.contains(archive, _ALLENNLP_WEIGHTS):
            raise AllenNlpArchiveError(archive) from None
        raise
    return target
