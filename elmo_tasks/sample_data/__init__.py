"""Sample data of our own making, in the formats of the benchmarks, to try things out where real data is not at hand.

One module per task: it says which files there are and how large, and shares the names and the grammar's machinery.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.sample_data import ner
from elmo_tasks.sample_data.vectors import write_word_vectors

Writer = Callable[[Path, int, tuple[int, int, int]], list[Path]]
Corpus = Callable[[int], Iterator[list[str]]]

_WRITERS: dict[str, Writer] = {"ner": ner.write}
_CORPORA: dict[str, Corpus] = {"ner": ner.corpus}

SAMPLE_TASKS = tuple(_WRITERS)


def write_sample_data(
    folder: str | Path, task: str, seed: int = 13, sentences: tuple[int, int, int] = (1000, 200, 200)
) -> list[Path]:
    """Writes a task's training, dev and test files into `folder/<task>`, and word vectors into `folder/vectors.txt`.

    The same arguments give the same files. The vectors are made from unlabelled text of all tasks, so that one file
    serves them all; see `elmo_tasks.sample_data.vectors`.

    Arguments:
        folder: made if it is not there; files that are there are replaced.
        task: one of `SAMPLE_TASKS`.
        seed: of everything that is drawn.
        sentences: how many sentences the training, development and test files get.

    Returns:
        The files that were written.

    Raises:
        ElmoTasksError: there is no sample data for this task, or a file would be empty.
    """
    if task not in _WRITERS:
        near = difflib.get_close_matches(task, SAMPLE_TASKS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ElmoTasksError(f"no sample data for the task {task!r}; there is: {', '.join(SAMPLE_TASKS)}.{hint}")
    if min(sentences) < 1:
        raise ElmoTasksError(f"every file needs a sentence; got {sentences} for training, development and test")
    paths = _WRITERS[task](Path(folder), seed, sentences)
    vectors = Path(folder) / "vectors.txt"
    write_word_vectors(vectors, (sentence for corpus in _CORPORA.values() for sentence in corpus(seed)))
    return [*paths, vectors]
