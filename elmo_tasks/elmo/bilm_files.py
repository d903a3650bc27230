"""Where a biLM, or another frozen network, is on disk."""

from __future__ import annotations

import abc
import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, NamedTuple

from elmo_tasks import hooks
from elmo_tasks.errors import WeightsError
from elmo_tasks.files.cache import kept_hash
from elmo_tasks.files.downloads import HUB, downloaded, hub_folder, is_address
from elmo_tasks.files.paths import is_clutter, local_path, why_no_file

DEFAULT_BILM = "default"
"""The name of the biLM that is installed with the package. It can be given instead of a folder."""

LASTING_NAMES = rf"{DEFAULT_BILM}|{HUB}.*|https?:/.*"
"""A pattern of the names of biLMs that stay valid when files are moved, and on other machines."""

_NLPL_WEIGHTS = "model.hdf5"  # next to an options.json, in the NLPL vectors repository


class BiLMFormat(NamedTuple):
    """Another form in which biLMs are published.

    Attributes:
        files: the names of its files, with wildcards.
        is_one: whether a path is a biLM of this form.
        read: makes its folder in the cache with an options.json and weights, or with a biLM of the next form.
    """

    files: tuple[str, ...]
    is_one: Callable[[Path], bool]
    read: Callable[[Path], Path]


def file_patterns() -> tuple[str, ...]:
    """The names of the files of biLMs, in any form that is known, with wildcards."""
    formats: list[BiLMFormat] = list(hooks.everything("bilm_format"))
    return ("*options.json", "*weights.hdf5", _NLPL_WEIGHTS, *(name for each in formats for name in each.files))


def bilm_folder(name: str | Path, *others: str, local_only: bool = False) -> Path:
    """The folder of a biLM, or its zip archive, on this machine.

    Arguments:
        name: the folder or the archive; `default`; `hub:ORG/NAME`, optionally with `@REVISION`; or the address of an
            archive, with its hash.
        others: names of files that are needed in addition to the biLM's.
        local_only: never downloads anything.

    Raises:
        RemoteError: the biLM is not on this machine and cannot be downloaded.
    """
    if str(name) == DEFAULT_BILM:
        return Path(__file__).parent / "default_bilm"
    if str(name).startswith(HUB):
        return hub_folder(str(name), (*file_patterns(), *others), BiLMFiles.expected, local_only=local_only)
    return _local_file(name, local_only)


def _local_file(name: str | Path, local_only: bool) -> Path:
    return downloaded(name, local_only=local_only) if is_address(name) else local_path(name)


class FrozenFiles(abc.ABC):
    """The files of a biLM or of a transformer."""

    names: ClassVar[tuple[str, ...]]  # of the files, where they are copied to
    expected: ClassVar[str]  # what messages about missing files ask for

    @property
    @abc.abstractmethod
    def paths(self) -> dict[str, Path]:
        """The files by their `names`."""

    @property
    @abc.abstractmethod
    def shown_path(self) -> Path:
        """The path that messages name."""

    @abc.abstractmethod
    def location(self) -> dict[str, str]:
        """The files as values of the config's keys."""

    def fingerprint(self) -> str:
        """The SHA-256 of all files' contents, in hexadecimal. It identifies the model without loading it.

        A process reads the files once, and again only after they have changed.

        Raises:
            WeightsError: a file is missing.
        """
        digest = hashlib.sha256()
        for path in self.paths.values():
            if not path.is_file():
                raise WeightsError(f"{path}: {why_no_file(path)}; {self.expected}")
            digest.update(kept_hash(path).encode())
        return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class BiLMFiles(FrozenFiles):
    """The two files of a biLM in the layout of bilm-tf and AllenNLP."""

    names: ClassVar[tuple[str, ...]] = ("options.json", "weights.hdf5")
    expected: ClassVar[str] = "expected a biLM's options.json and weights.hdf5"
    options: Path
    weights: Path

    @property
    def paths(self) -> dict[str, Path]:
        return dict(zip(self.names, (self.options, self.weights), strict=True))

    @property
    def shown_path(self) -> Path:
        return self.weights

    def location(self) -> dict[str, str]:
        return {"options": str(self.options), "weights": str(self.weights)}

    @classmethod
    def in_folder(cls, folder: str | Path, *, local_only: bool = False) -> BiLMFiles:
        """The files of the only biLM in a folder: `*options.json` and `*weights.hdf5`, as the published ones are named.

        The weights may also be in `model.hdf5`, as in the NLPL vectors repository. A biLM in another form, such as a
        zip archive, is converted into the cache, once; see `BiLMFormat`.

        Arguments:
            folder: the folder, or another name of a biLM; see `bilm_folder`.
            local_only: never downloads anything.

        Raises:
            WeightsError: the folder does not exist, or does not have exactly one file of each kind; or a file of
                another form is damaged; or it cannot be downloaded (RemoteError).
        """
        folder = bilm_folder(folder, local_only=local_only)
        formats: list[BiLMFormat] = list(hooks.everything("bilm_format"))
        for form in formats:
            if form.is_one(folder):
                folder = form.read(folder)
        if not folder.is_dir():
            if folder.exists() and not formats:
                hooks.required("bilm_format", "zip", f"{folder}: no folder, and what reads zip archives")
            found = "neither a folder nor a zip archive" if folder.exists() else "no such folder"
            raise WeightsError(f"{folder}: {found}; expected one with a biLM's options.json and weights.hdf5")
        weights = "*weights.hdf5"
        if (folder / _NLPL_WEIGHTS).is_file() and not any(folder.glob(weights)):
            weights = _NLPL_WEIGHTS
        return cls(_only(folder, "*options.json"), _only(folder, weights))

    @classmethod
    def chosen(
        cls, folder: str | None, options: str | None, weights: str | None, *, local_only: bool = False
    ) -> BiLMFiles:
        """The files of a folder, see `in_folder`, or the two given files, which may be addresses with their hashes.

        Raises:
            WeightsError: both the folder and files are given, or neither; see also `in_folder`.
        """
        if folder is not None and options is None and weights is None:
            return cls.in_folder(folder, local_only=local_only)
        if folder is None and options is not None and weights is not None:
            return cls(_local_file(options, local_only), _local_file(weights, local_only))
        raise WeightsError("expected either the folder of a biLM or both its options and its weights")


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(path for path in folder.glob(pattern) if not is_clutter(path.name))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise WeightsError(f"{folder}: expected exactly one file {pattern} in this folder, got {names}")
    return found[0]
