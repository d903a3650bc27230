"""Small made-up data sets for trying things out, with the formats and file names of the benchmarks.

Each task has a module. The modules share `SampleTask`, which makes their files, and a small grammar engine.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from elmo_tasks.errors import DataError, ElmoTasksError, did_you_mean
from elmo_tasks.files.overwriting import check_folder
from elmo_tasks.files.paths import stored_file
from elmo_tasks.files.text import DAMAGE_ERRORS, open_binary
from elmo_tasks.sample_data.coref import COREF
from elmo_tasks.sample_data.ner import CHUNKS, NER
from elmo_tasks.sample_data.pos import POS
from elmo_tasks.sample_data.reviews import MULTI_LABEL, PAIR_REGRESSION, REGRESSION
from elmo_tasks.sample_data.snli import SNLI
from elmo_tasks.sample_data.squad import SQUAD, SQUAD2
from elmo_tasks.sample_data.srl import SRL, SRL_PROPS, SRL_WORDS
from elmo_tasks.sample_data.sst5 import SST5
from elmo_tasks.sample_data.task import SampleTask, write_text
from elmo_tasks.sample_data.word_vectors import word_vectors_text

# The first of each writes the task's main files, and the text that word vectors are made from.
_TASKS: dict[str, tuple[SampleTask, ...]] = {
    "ner": (NER, CHUNKS),
    "sst5": (SST5,),
    "snli": (SNLI,),
    "squad": (SQUAD, SQUAD2),
    "srl": (SRL, SRL_WORDS, SRL_PROPS),
    "coref": (COREF,),
    "pos": (POS,),
    "multi_label": (MULTI_LABEL,),
    "regression": (REGRESSION,),
    "pair_regression": (PAIR_REGRESSION,),
}

SAMPLE_TASKS = tuple(_TASKS)
ALL_TASKS = "all"

SENTENCES = Path(__file__).parent / "sentences.txt"
"""2,000 English sentences, one a line, written for this project and under its licence.

Each paragraph has a word with several senses, such as *bank*, in about 18 sentences, some for each sense. The last
paragraph has other sentences.
"""

# Named after the vectors that they replace.
VECTORS = Path("glove") / "glove.6B.50d.txt.xz"


def write_sample_data(
    folder: str | Path,
    task: str,
    seed: int = 13,
    sentences: tuple[int, int, int] = (1000, 200, 200),
    *,
    force: bool = False,
) -> list[Path]:
    """Writes a task's training, development and test files, and word vectors.

    The files are written where the configs expect them: to use the data, set `$ELMO_TASKS_DATA` to `folder`. The same
    arguments give the same files. The word vectors are the same for every task, because they are made from unlabelled
    text of all tasks; see `elmo_tasks.sample_data.word_vectors`.

    Arguments:
        folder: the folder to write to. It is made if it does not exist.
        task: one of `SAMPLE_TASKS`, or `ALL_TASKS` for all of them.
        seed: the random seed.
        sentences: the number of sentences in the training, development and test files. Tasks whose examples are longer
            than a sentence, such as documents, get fewer examples.

        force: whether files with other content are replaced.

    Returns:
        The paths of the files.

    Raises:
        ElmoTasksError: the task does not have sample data, a file would be empty, a file with other content is there
            (real data have the same names, perhaps with another compression) and `force` is not set, or the folder
            cannot be written to.
    """
    known = (*SAMPLE_TASKS, ALL_TASKS)
    if task not in known:
        hint = did_you_mean(task, known)
        raise ElmoTasksError(f"no sample data for the task {task!r}; there is: {', '.join(known)}.{hint}")
    if min(sentences) < 1:
        raise ElmoTasksError(
            f"every file needs at least one sentence; got {sentences} for training, development and test"
        )
    check_folder(folder)
    chosen = itertools.chain.from_iterable(_TASKS.values()) if task == ALL_TASKS else _TASKS[task]
    texts = {Path(folder) / file: text for each in chosen for file, text in each.texts(seed, sentences)}
    corpus = (sentence for each, *_ in _TASKS.values() for sentence in each.corpus(seed))
    texts[Path(folder) / VECTORS] = word_vectors_text(corpus)
    changed = {path: text for path, text in texts.items() if not _holds(path, text)}
    if not force and (others := [str(file) for file in map(stored_file, changed) if file.exists()]):
        raise ElmoTasksError(f"{', '.join(others)}: would be replaced by sample data; --force does so")
    for path, text in changed.items():
        write_text(path, text)
    return list(texts)


def _holds(path: Path, text: str) -> bool:
    """Whether a file has this text already."""
    try:
        with open_binary(path) as stream:
            return stream.read() == text.encode()
    except (DataError, *DAMAGE_ERRORS):
        return False
