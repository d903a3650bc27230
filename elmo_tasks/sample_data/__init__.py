"""Sample data of our own making, in the formats and under the names of the benchmarks, to try things out with.

One module per task: it says which files there are and how large, and shares the names and the grammar's machinery.
"""

from __future__ import annotations

import difflib
from pathlib import Path

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.sample_data import coref, ner, pos, snli, squad, srl, sst5
from elmo_tasks.sample_data.vectors import write_word_vectors

# Each has `write(folder, seed, sentences)`, which gives the paths, and `corpus(seed)`, sentences without labels.
_TASKS = {"ner": ner, "sst5": sst5, "snli": snli, "squad": squad, "srl": srl, "coref": coref, "pos": pos}

SAMPLE_TASKS = tuple(_TASKS)
ALL_TASKS = "all"

# Named like the vectors that they stand in for.
VECTORS = Path("glove") / "glove.6B.50d.txt.xz"


def write_sample_data(
    folder: str | Path, task: str, seed: int = 13, sentences: tuple[int, int, int] = (1000, 200, 200)
) -> list[Path]:
    """Writes a task's training, development and test files, and word vectors.

    Each file has the place below `folder` that the shipped configs look for below `$ELMO_TASKS_DATA`: with the folder
    as its value they run as they are. The same arguments give the same files. The vectors are made from unlabelled text
    of all tasks, so that one file serves them all; see `elmo_tasks.sample_data.vectors`.

    Arguments:
        folder: made if it is not there; files that are there are replaced.
        task: one of `SAMPLE_TASKS`, or `ALL_TASKS` for all of them.
        seed: of everything that is drawn.
        sentences: how many sentences the training, development and test files get; where examples are longer than a
            sentence, such as documents, so many fewer of them.

    Returns:
        The files that were written.

    Raises:
        ElmoTasksError: there is no sample data for this task, or a file would be empty.
    """
    known = (*SAMPLE_TASKS, ALL_TASKS)
    if task not in known:
        near = difflib.get_close_matches(task, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ElmoTasksError(f"no sample data for the task {task!r}; there is: {', '.join(known)}.{hint}")
    if min(sentences) < 1:
        raise ElmoTasksError(f"every file needs a sentence; got {sentences} for training, development and test")
    chosen = _TASKS.values() if task == ALL_TASKS else [_TASKS[task]]
    paths = [path for each in chosen for path in each.write(Path(folder), seed, sentences)]
    vectors = Path(folder) / VECTORS
    write_word_vectors(vectors, (sentence for each in _TASKS.values() for sentence in each.corpus(seed)))
    return [*paths, vectors]
