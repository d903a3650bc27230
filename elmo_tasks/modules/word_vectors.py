"""Files of pretrained word vectors in the text forms of GloVe and word2vec, read row by row.

# N words asked for, D numbers of a vector
"""

from __future__ import annotations

import array
import functools
import itertools
import logging
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elmo_tasks.config.data_folder import MissingDataError
from elmo_tasks.errors import DataError, ElmoTasksError, counted
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.cache import content_hash, file_state, used_cache
from elmo_tasks.files.paths import local_path, refuse_stream, stored_file, why_no_file
from elmo_tasks.files.text import read_lines

logger = logging.getLogger(__name__)

_VERSION = 2  # raise it when the cache's layout or what is read changes
_COLUMNS = ["word", "vector"]
_BATCH_ROWS = 1 << 14  # rows in memory while a file is parsed
_SAMPLE_LINES = 1000  # at the beginning of a file, to see how many numbers a vector has


def open_word_vectors(path: str | Path, size: int) -> WordVectorFile:
    """The file at `path`. A process hashes and opens it once, and again only after it has changed.

    Raises:
        DataError: see `WordVectorFile`.
        ElmoTasksError: its vectors do not have `size` numbers.
    """
    path = stored_file(Path(path))
    if not path.exists():
        raise MissingDataError(path, instead="To train without word vectors: --set model.embedder.words=null")
    file = _kept_file(path, size, file_state(path) if path.is_file() else ())
    if file.dimension != size:
        raise ElmoTasksError(
            f"{path}: its vectors have {file.dimension} numbers; expected {size}, as the config says; "
            f"set the word embedding's size to {file.dimension}"
        )
    return file


class WordVectorFile:
    """Word vectors of a text file with a word and its numbers, separated by spaces or tabs, in each line.

    Two forms are recognized: that of GloVe, and that of word2vec and fastText, whose first line gives the number of
    words and of numbers per word. Words may contain spaces, as some of GloVe's largest file do: the last D fields of a
    line are the numbers. If a word comes twice, the first vector counts. Blank lines are left out.

    Parsing such a file takes long, so it happens once: words and vectors are kept in `<cache folder>/word_vectors`,
    named by the content of the file, and memory-mapped from there, so that only the needed rows are loaded. Several
    processes can do so at once. A damaged cache file is written again.

    Arguments:
        path: the file, plain or compressed; see `stored_file`.
        size: D, if it is known. It counts if a line at the beginning of the file has this many numbers. Otherwise D is
            what most lines there have, or what the first line of word2vec says.

    Raises:
        DataError: the file is missing or damaged; a line has too few numbers, something else in their place, or one
            that is not finite; the first line promises another count. File and line are named.
    """

    def __init__(self, path: str | Path, size: int | None = None) -> None:
        self.path = stored_file(local_path(path))
        refuse_stream(self.path)
        if not self.path.is_file():
            raise MissingDataError(self.path, why_no_file(self.path))
        dimension = _dimension(self.path, size)
        self.fingerprint = content_hash(self.path)
        cached = used_cache("word_vectors") / f"{self.fingerprint}.{dimension}.v{_VERSION}.arrow"
        table = _open(cached)
        if table is None:
            _parse_into(self.path, dimension, cached)
            table = _open(cached)
        if table is None:
            raise DataError(cached, "cannot be read back just after it was written; is the disk full or faulty?")
        self._table = table

    def __len__(self) -> int:
        return self._table.num_rows

    @property
    def dimension(self) -> int:
        """D, how many numbers a vector has."""
        return self._table.schema.field("vector").type.list_size

    @property
    def words(self) -> Sequence[str]:
        """All words in the order of the file; read each time and not kept, since there can be millions."""
        return tuple(self._table.column("word").to_pylist())

    def rows(self, words: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of words in their exact form: (N, D), a row of NaN for a word that the file lacks."""
        # If a word comes twice, this finds the first.
        found = pc.index_in(pa.array(words, type=pa.string()), value_set=self._table.column("word"))
        positions = found.fill_null(-1).to_numpy()  # (N,)
        vectors = np.full((len(words), self.dimension), np.nan, dtype=np.float32)  # (N, D)
        begin = 0
        for chunk in self.chunks():
            here = (positions >= begin) & (positions < begin + len(chunk))
            vectors[here] = chunk[positions[here] - begin]
            begin += len(chunk)
        return vectors

    def chunks(self) -> Iterator[NDArray[np.float32]]:
        """The vectors (n, D) of some rows at a time, in the order of the file."""
        for chunk in self._table.column("vector").chunks:
            yield chunk.flatten().to_numpy(zero_copy_only=True).reshape(len(chunk), self.dimension)


@functools.lru_cache(maxsize=2)
def _kept_file(path: Path, size: int, state: tuple[int, ...]) -> WordVectorFile:
    return WordVectorFile(path, size)


def _open(path: Path) -> pa.Table | None:
    """The memory-mapped cache file; None if it is missing or incomplete."""
    try:
        with pa.memory_map(str(path)) as stream:
            table = pa.ipc.open_file(stream).read_all()
            table.validate(full=True)  # values beyond the end of the file would end the process
        if table.schema.names != _COLUMNS:
            raise pa.ArrowInvalid(f"columns {table.schema.names}; expected {_COLUMNS}")
        return table
    except FileNotFoundError:
        return None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        logger.warning("%s: the cached word vectors are damaged and are written again (%s)", path, error)
        return None


def _parse_into(path: Path, dimension: int, cached: Path) -> None:
    """Parses the file once, batch by batch, into an Arrow file."""
    logger.info("reading the word vectors of %s; this happens once", path)
    begin, count = time.monotonic(), 0
    batches = _batches(path, dimension)
    first = next(batches)
    with atomic_write(cached) as stream, pa.ipc.new_file(stream, first.schema) as writer:
        for batch in itertools.chain([first], batches):
            writer.write_batch(batch)
            count += batch.num_rows
    logger.info("%s: %s in %.1f s", path, counted(count, "word vector"), time.monotonic() - begin)


def _dimension(path: Path, size: int | None) -> int:
    """D, from the first line of word2vec or from how many numbers the first lines have; see `WordVectorFile`."""
    promised, dimension, lines = _lines(path)
    sample = list(itertools.islice(lines, _SAMPLE_LINES))
    if not sample:
        raise DataError(path, "holds no word vector")
    if promised is None:
        counts = Counter(_count_numbers(line) for _, line in sample)
        dimension = size if size and size in counts else counts.most_common(1)[0][0]
    if dimension < 1:
        number, line = sample[0]
        raise DataError(path, f"{line[:80]!r}; expected a word and its numbers, separated by spaces", number)
    return dimension


def _lines(path: Path) -> tuple[int | None, int, Iterator[tuple[int, str]]]:
    """How many vectors the first line promises, None if it is one itself; their size; and the numbered lines."""
    lines = ((number, line.replace("\t", " ")) for number, line in read_lines(path) if line.strip(" \t"))
    first = next(lines, (1, ""))
    fields = first[1].split()
    if len(fields) == 2 and all(field.isdecimal() and len(field) < 19 for field in fields):
        return int(fields[0]), int(fields[1]), lines
    return None, 0, itertools.chain([first], lines) if first[1] else lines


def _batches(path: Path, dimension: int) -> Iterator[pa.RecordBatch]:
    """The words and vectors of the file in batches of a bounded size."""
    promised, _, lines = _lines(path)
    count = 0
    while batch := list(itertools.islice(lines, _BATCH_ROWS)):
        yield _parse_batch(path, batch, dimension)
        count += len(batch)
    if promised is not None and promised != count:
        raise DataError(path, f"{count} word vectors; the first line promises {promised}. Is the file cut short?")


def _count_numbers(line: str) -> int:
    """How many fields there are from the first number on, after the first field, which is a word or a part of it."""
    fields = line.rstrip(" ").split(" ")[1:]
    return next((len(fields) - index for index, field in enumerate(fields) if _is_number(field)), 0)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_batch(path: Path, lines: Sequence[tuple[int, str]], dimension: int) -> pa.RecordBatch:
    words: list[str] = []
    numbers = array.array("f")
    for line_number, line in lines:
        word, *fields = line.rstrip(" ").rsplit(" ", dimension)
        if len(fields) != dimension or not word.strip(" "):
            problem = f"expected a word and {dimension} numbers, separated by spaces; got {line[:80]!r}"
            raise DataError(path, problem, line_number)
        try:
            numbers.extend(map(float, fields))
        except ValueError as error:
            raise DataError(path, f"{error}; expected {dimension} numbers after the word", line_number) from None
        words.append(word.strip(" "))
    vectors = np.frombuffer(numbers, dtype=np.float32)
    if not np.isfinite(vectors).all():
        line_number = lines[int(np.argmin(np.isfinite(vectors))) // dimension][0]
        raise DataError(path, "one of the numbers is not finite in single precision", line_number)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors), dimension)
    return pa.record_batch([pa.array(words, type=pa.string()), column], names=_COLUMNS)
