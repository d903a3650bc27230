"""Where a biLM is on disk."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from pathlib import Path

from elmo_tasks.errors import WeightsError
from elmo_tasks.files import content_hash, file_state

DEFAULT_BILM = "default"
"""The name of the biLM that is installed with the package. It can be given instead of a folder."""


def bilm_folder(name: str | Path) -> Path:
    """The folder of a biLM: the given one, or that of the default biLM."""
    return Path(__file__).parent / "default_bilm" if str(name) == DEFAULT_BILM else Path(name)


@dataclasses.dataclass(frozen=True)
class BiLMFiles:
    """The two files of a biLM in the layout of bilm-tf and AllenNLP."""

    options: Path
    weights: Path

    @classmethod
    def in_folder(cls, folder: str | Path) -> BiLMFiles:
        """The files of the only biLM in a folder: `*options.json` and `*weights.hdf5`, as the published ones are named.

        Arguments:
            folder: the folder; `default` is the biLM that is installed with the package.

        Raises:
            WeightsError: the folder does not exist, or does not have exactly one file of each kind.
        """
        folder = bilm_folder(folder)
        if not folder.is_dir():
            found = "not a folder" if folder.exists() else "no such folder"
            raise WeightsError(f"{folder}: {found}; wanted one with a biLM's options.json and weights.hdf5")
        return cls(_only(folder, "*options.json"), _only(folder, "*weights.hdf5"))

    @classmethod
    def chosen(cls, folder: str | None, options: str | None, weights: str | None) -> BiLMFiles:
        """The files of a folder, or the two given files.

        Raises:
            WeightsError: both the folder and files are given, or neither; see also `in_folder`.
        """
        if folder is not None and options is None and weights is None:
            return cls.in_folder(folder)
        if folder is None and options is not None and weights is not None:
            return cls(Path(options), Path(weights))
        raise WeightsError("wanted either the folder of a biLM or both its options and its weights")

    def fingerprint(self) -> str:
        """The SHA-256 of both files' contents, in hexadecimal. It identifies the biLM without loading it.

        A process reads the files once, and again only after they have changed.

        Raises:
            WeightsError: a file is missing.
        """
        digest = hashlib.sha256()
        for path in (self.options, self.weights):
            if not path.is_file():
                raise WeightsError(f"{path}: no such file")
            digest.update(kept_hash(path).encode())
        return digest.hexdigest()


def kept_hash(path: Path) -> str:
    """The SHA-256 of a file, which a process reads once, and again only after it has changed."""
    return _kept_hash(path, file_state(path))


@functools.lru_cache(maxsize=8)
def _kept_hash(path: Path, state: tuple[int, ...]) -> str:
    return content_hash(path)


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise WeightsError(f"{folder}: wanted one file {pattern}, found {names}; name both files instead")
    return found[0]
