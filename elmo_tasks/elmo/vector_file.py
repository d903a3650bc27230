"""Files of vectors: bilm-tf's and AllenNLP's HDF5 layout, and NumPy archives with the same entries."""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.atomic import OutputFile, atomic_output

_SENTENCES = "sentence_to_index"
# Since HDF5 1.8 (2008), a group of a million entries does not have to be held in memory.
_HDF5_VERSIONS = ("v108", "v110")


class VectorFile:
    """A file of named float32 arrays that is written entry by entry, in any order."""

    def __init__(self, file: h5py.File | zipfile.ZipFile, stream: OutputFile) -> None:
        self._file = file
        self._stream = stream

    def write(self, key: str, vectors: np.ndarray) -> None:
        """Writes an entry; raises `WriteError` if it cannot be written."""
        if isinstance(self._file, h5py.File):
            self._file.create_dataset(key, data=vectors)
        else:
            self._write_array(self._file, key, vectors)
        self._stream.check()

    def write_sentences(self, sentence_to_index: dict[str, str]) -> None:
        """Writes which entry belongs to which sentence, as a JSON string in an array of shape (1,)."""
        if isinstance(self._file, h5py.File):
            self._file.create_dataset(_SENTENCES, data=[json.dumps(sentence_to_index)], dtype=h5py.string_dtype())
        else:
            self._write_array(self._file, _SENTENCES, np.array([json.dumps(sentence_to_index)]))

    @staticmethod
    def _write_array(archive: zipfile.ZipFile, key: str, array: np.ndarray) -> None:
        with archive.open(f"{key}.npy", "w", force_zip64=True) as stream:
            np.lib.format.write_array(stream, array, allow_pickle=False)


def check_vector_file(path: str | Path) -> None:
    """Raises `ElmoTasksError` if the name of a file of vectors has an unknown ending."""
    if Path(path).suffix not in (".hdf5", ".h5", ".npz"):
        raise ElmoTasksError(
            f"{path}: expected a name that ends in .hdf5, .h5 or .npz, or for a folder, a slash: {path}/"
        )


@contextlib.contextmanager
def create_vector_file(path: str | Path) -> Iterator[VectorFile]:
    """Opens a new file of vectors, HDF5 (.hdf5, .h5) or NumPy archive (.npz) by its ending.

    It appears under its name, complete, when the block ends without an error.

    Raises:
        ElmoTasksError: another ending.
        WriteError: the file cannot be written.
    """
    check_vector_file(path)
    with atomic_output(path) as stream:
        npz = Path(path).suffix == ".npz"
        with zipfile.ZipFile(stream, "w") if npz else h5py.File(stream, "w", libver=_HDF5_VERSIONS) as file:
            yield VectorFile(file, stream)
