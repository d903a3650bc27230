"""Small made-up data sets for trying things out, with the formats and file names of the benchmarks.

Each task has a module. The modules share `SampleTask`, which writes their files, and a small grammar engine.
"""

from __future__ import annotations

from pathlib import Path

from elmo_tasks.errors import ElmoTasksError, did_you_mean
from elmo_tasks.sample_data.coref import COREF
from elmo_tasks.sample_data.ner import NER
from elmo_tasks.sample_data.pos import POS
from elmo_tasks.sample_data.snli import SNLI
from elmo_tasks.sample_data.squad import SQUAD
from elmo_tasks.sample_data.srl import SRL
from elmo_tasks.sample_data.sst5 import SST5
from elmo_tasks.sample_data.vectors import write_word_vectors

_TASKS = {"ner": NER, "sst5": SST5, "snli": SNLI, "squad": SQUAD, "srl": SRL, "coref": COREF, "pos": POS}

SAMPLE_TASKS = tuple(_TASKS)
ALL_TASKS = "all"

# Named after the vectors that they replace.
VECTORS = Path("glove") / "glove.6B.50d.txt.xz"


def write_sample_data(
    folder: str | Path, task: str, seed: int = 13, sentences: tuple[int, int, int] = (1000, 200, 200)
) -> list[Path]:
    """Writes a task's training, development and test files, and word vectors.

    The files are written where the configs expect them: to use the data, set `$ELMO_TASKS_DATA` to `folder`. The same
    arguments give the same files. The word vectors are the same for every task, because they are made from unlabelled
    text of all tasks; see `elmo_tasks.sample_data.vectors`.

    Arguments:
        folder: the folder to write to. It is made if it does not exist; existing files are replaced.
        task: one of `SAMPLE_TASKS`, or `ALL_TASKS` for all of them.
        seed: the random seed.
        sentences: the number of sentences in the training, development and test files. Tasks whose examples are longer
            than a sentence, such as documents, get fewer examples.

    Returns:
        The paths of the files.

    Raises:
        ElmoTasksError: the task does not have sample data, or a file would be empty.
    """
    known = (*SAMPLE_TASKS, ALL_TASKS)
    if task not in known:
        hint = did_you_mean(task, known)
        raise ElmoTasksError(f"no sample data for the task {task!r}; there is: {', '.join(known)}.{hint}")
    if min(sentences) < 1:
        raise ElmoTasksError(
            f"every file needs at least one sentence; got {sentences} for training, development and test"
        )
    chosen = _TASKS.values() if task == ALL_TASKS else [_TASKS[task]]
    paths = [path for each in chosen for path in each.write(Path(folder), seed, sentences)]
    vectors = Path(folder) / VECTORS
    write_word_vectors(vectors, (sentence for each in _TASKS.values() for sentence in each.corpus(seed)))
    return [*paths, vectors]
