"""The files of a model that is read and not trained, and the hash that identifies it."""

from __future__ import annotations

import abc
import hashlib
from pathlib import Path
from typing import ClassVar

from elmo_tasks.errors import WeightsError
from elmo_tasks.files.hashes import kept_hash
from elmo_tasks.files.paths import why_no_file


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
