"""Files of vectors: bilm-tf's and AllenNLP's HDF5 layout, and NumPy archives with the same entries."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.atomic import OutputFile, atomic_output

SENTENCES = "sentence_to_index"  # the name of the entry that says which one belongs to which sentence
# Since HDF5 1.8 (2008), a group of a million entries does not have to be held in memory.
_HDF5_VERSIONS = ("v108", "v110")


class VectorFile:
    """A file of named arrays that is written entry by entry, in any order."""

    def __init__(self, file: h5py.File | zipfile.ZipFile, stream: OutputFile) -> None:
        self._file = file
        self._stream = stream

    def write(self, key: str, values: np.ndarray) -> None:
        """Writes an entry, of numbers or of strings; raises `WriteError` if it cannot be written."""
        if isinstance(self._file, h5py.File):
            strings = values.dtype.kind == "U"
            self._file.create_dataset(
                key, data=values.tolist() if strings else values, dtype=h5py.string_dtype() if strings else None
            )
        else:
            with self._file.open(f"{key}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, values, allow_pickle=False)
        self._stream.check()


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
