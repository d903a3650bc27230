"""Archives of runs: packing a run, and opening it again, also from the hub or from an address."""

from __future__ import annotations

from pathlib import Path

from elmo_tasks.errors import AllenNlpArchiveError, RunError
from elmo_tasks.files import archives
from elmo_tasks.files.atomic import atomic_folder
from elmo_tasks.files.cache import content_hash, used_cache
from elmo_tasks.files.downloads import HUB, downloaded, hub_folder, is_address
from elmo_tasks.files.installed_models import find_model, how_to_get, package_of
from elmo_tasks.files.locks import locked
from elmo_tasks.files.paths import local_path
from elmo_tasks.runs.folder import RunFolder

ALLENNLP_WEIGHTS = ("weights.th", "best.th")  # of an archive, and of the folder of a training


def archive(path: str | Path, target: str | Path, *, self_contained: bool = True) -> None:
    """Packs the `trained_files` of a run into one `.tar.gz`, by default with those of its biLM and of its transformer.

    Raises:
        RunError: there is no trained run, or it is being trained.
    """
    run = open_run(path)
    with locked(run.path, writes=False):
        archives.pack(trained_files(run, self_contained=self_contained), target)


def trained_files(folder: RunFolder, *, self_contained: bool) -> dict[str, Path]:
    """The files of a trained run by their names in an archive, without those that only training needs.

    Arguments:
        self_contained: also the files of the biLM and of the transformer, if the run has them.

    Raises:
        RunError: the folder holds no trained model, a file is a link to elsewhere, or the biLM or the transformer has
            moved or changed.
        WeightsError: the files that the run names are not a biLM or a transformer.
    """
    if not folder.model.is_file():
        raise RunError(
            f"{folder.path}: no {folder.model.name}; expected the folder of a run that has finished an epoch"
        )
    packed = {name: path for name, path in folder.packed().items() if path.is_file() and path.parent == folder.path}
    # The hub's cache and some installers have links to files of their own. Others could name any file of this machine.
    if not folder.archive:
        for path in packed.values():
            if path.resolve().parent != folder.path.resolve() and not package_of(folder.path):
                raise RunError(
                    f"{path}: a link to {path.resolve()}; expected a file of the run, so put a copy in its place"
                )
    if self_contained:
        for frozen in folder.frozen_models:
            packed |= frozen.files_to_archive()
    return packed


def is_run(path: str | Path) -> bool:
    """Whether a path is the folder of a run or an archive, or the name of an installed model, and not data."""
    path = Path(path)
    if path.is_file():
        return path.name.endswith((".tar.gz", ".tgz"))
    return (path / "config.json").is_file() or find_model(path) is not None


def open_run(path: str | Path) -> RunFolder:
    """The folder of a run; an archive is unpacked once into the cache.

    Arguments:
        path: the folder, or the archive; the name of an installed model, if there is no file or folder of this name;
            `hub:ORG/NAME`, optionally with `@REVISION`; or the address of an archive, with its hash. What is downloaded
            is treated as an archive: it names no files outside of it.

    Raises:
        RunError: `path` is not a run, or the archive is damaged or contains anything that is not of a run.
        RemoteError: it cannot be downloaded.
        AllenNlpArchiveError: it is one of AllenNLP's.
    """
    if str(path).startswith(HUB):
        files, expected = tuple(RunFolder("").packed()), "expected the files of a run"
        folder = RunFolder(hub_folder(str(path), files, expected), Path(path))
        if not folder.is_started():
            raise RunError(f"{path}: has no {folder.config.name}; {expected}")
        return folder
    path = downloaded(path) if is_address(path) else local_path(path)
    if model := find_model(path):
        return RunFolder(model.folder)
    if any((path / name).is_file() for name in ALLENNLP_WEIGHTS):
        raise AllenNlpArchiveError(path)
    folder = RunFolder(_unpacked(path), path) if path.is_file() else RunFolder(path)
    if folder.is_started():
        return folder
    for kind in ("seed", "fold"):
        if runs := sorted(each.parent.name for each in path.glob(f"{kind}_*/config.json")):
            raise RunError(
                f"{path}: a folder of runs, one for each {kind} ({', '.join(runs)}); name one of them, such as "
                f"{path / runs[0]}"
            )
    expected = f"a run's folder, with a {folder.config.name}, its archive (.tar.gz), or the name of an installed model"
    hint = how_to_get(path) or ("" if path.exists() else "; there is no such file or folder")
    raise RunError(f"{path}: expected {expected}{hint}")


def _unpacked(path: Path) -> Path:
    target = used_cache("archives") / content_hash(path)
    if target.is_dir():
        return target
    try:
        with atomic_folder(target) as unpacked:
            archives.unpack(path, unpacked, RunFolder(unpacked).packed().__contains__)
    except RunError:
        if archives.contains(path, ALLENNLP_WEIGHTS[0]):
            raise AllenNlpArchiveError(path) from None
        raise
    return target
