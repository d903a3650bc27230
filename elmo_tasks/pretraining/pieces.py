"""Tokenized text in pieces of about 32 MB, of which several machines that share a folder each make a share.

The folder has NUMBER.parquet for each piece, which appears when it is complete. It has a row for each chunk of the
text; the columns are the fields of `NumberedText`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from elmo_tasks.errors import CacheError
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.pretraining.tokenize_files import NumberedText, in_processes

_CHUNKS_OF_A_PIECE = 32

_SCHEMA = pa.schema(
    {
        "types": pa.list_(pa.string()),
        "tokens": pa.list_(pa.uint32()),
        "lengths": pa.list_(pa.uint32()),
        "documents": pa.list_(pa.int64()),
        "num_begun": pa.int64(),
        "num_bytes": pa.int64(),
    }
)


def make_pieces(
    folder: Path, jobs: Iterable[Callable[[], NumberedText]], share: tuple[int, int], workers: int | None = None
) -> list[Path]:
    """Makes the pieces of a share that are not there, and returns the paths of the pieces of all shares.

    Arguments:
        jobs: of all of the text, from `tokenizing_jobs`. To pass over a job, its text is only read.
        share: (I, N) for every Nth piece, from the Ith on, counted from 1.
        workers: see `in_processes`.

    Raises:
        WriteError: a piece cannot be written.
        DataError, ElmoTasksError: those of `tokenize_files`.
    """
    paths, jobs = list[Path](), iter(jobs)
    number, total = share
    while piece := list(itertools.islice(jobs, _CHUNKS_OF_A_PIECE)):
        path = folder / f"{len(paths):06}.parquet"
        if len(paths) % total == number - 1 and not path.is_file():
            with atomic_write(path) as stream, pq.ParquetWriter(stream, _SCHEMA, compression="zstd") as writer:
                for text in in_processes(piece, workers):
                    columns = {name: [getattr(text, name)] for name in _SCHEMA.names}
                    writer.write_table(pa.table(columns, _SCHEMA))
        paths.append(path)
    return paths


def read_pieces(paths: Sequence[Path]) -> Generator[NumberedText, None, None]:
    """The text of pieces, a chunk at a time; raises `CacheError` if one is damaged."""
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                for row in file.iter_batches(batch_size=1):
                    types, *arrays, num_begun, num_bytes = (column[0] for column in row.columns)
                    tokens, lengths, documents = (array.values.to_numpy() for array in arrays)
                    yield NumberedText(types.as_py(), tokens, lengths, documents, num_begun.as_py(), num_bytes.as_py())
        except (pa.ArrowException, OSError) as error:
            raise CacheError(f"{path}: cannot be read ({error}); remove it, and prepare the text again") from None
