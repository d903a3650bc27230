"""Small real data sets for trying things out, with the formats and file names of the benchmarks.

`files/README.md` has their sources and licences.
"""

from __future__ import annotations

import itertools
import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from elmo_tasks.errors import ElmoTasksError, did_you_mean
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.paths import check_folder, plain_name, stored_file

_FILES = Path(__file__).parent / "files"
_SPLITS = ("train", "dev", "test")
_DOCUMENT = re.compile(r"#begin document.*?^#end document\n", re.DOTALL | re.MULTILINE)

_Part = TypeVar("_Part")


class _DataSet(NamedTuple):
    """The training, development and test files of a data set, below the folder of all data.

    `copies` are other names of the same files, one for each or only for the first ones.
    """

    files: tuple[str, ...]
    copies: tuple[str, ...] = ()


def _splits(template: str, names: tuple[str, ...] = _SPLITS) -> tuple[str, ...]:
    """The files of all splits. Only the training file gets the suffix `.xz` in place of `{xz}`."""
    return tuple(template.format(split=name, xz=".xz" if name == "train" else "") for name in names)


def _conll_2012(folder: str) -> tuple[str, ...]:
    return _splits(
        f"conll-2012/v4/data/{{split}}/data/english/annotations/{folder}.v4_gold_conll",
        ("train", "development", "test"),
    )


_CONLL_2005 = ("train", "devel", "test.wsj")

_TASKS: dict[str, tuple[_DataSet, ...]] = {
    "ner": (_DataSet(_splits("ner_conll2003/eng.{split}", ("train", "testa", "testb"))),),
    "sst5": (_DataSet(_splits("sst5/{split}.txt")),),
    # The copy is the part of the training data that configs/cpu uses.
    "snli": (_DataSet(_splits("snli/snli_1.0_{split}.jsonl"), ("snli/snli_1.0_train_subset.jsonl",)),),
    # SQuAD does not publish its test files.
    "squad": (
        _DataSet(_splits("squad/{split}-v1.1.json{xz}", _SPLITS[:2])),
        _DataSet(_splits("squad2/{split}-v2.0.json{xz}", _SPLITS[:2])),
    ),
    "srl": (
        _DataSet(_splits("srl_ewt/ewt.{split}.gold_conll{xz}"), _conll_2012("nw/roles/00/roles_0000")),
        _DataSet(_splits("conll05st-release/{split}/words/ewt.words", _CONLL_2005)),
        _DataSet(_splits("conll05st-release/{split}/props/ewt.props", _CONLL_2005)),
    ),
    "coref": (_DataSet(_splits("coref_ontogum/ontogum.{split}.v4_gold_conll{xz}"), _conll_2012("coref/coref_0000")),),
    "pos": (
        _DataSet(_splits("pos_ud_ewt/en_ewt-ud-{split}.conllu{xz}"), _splits("pos_ud/en_ewt-ud-{split}.conllu{xz}")),
    ),
    "multi_label": (_DataSet(_splits("multi_label/{split}.csv")),),
    "regression": (_DataSet(_splits("regression/{split}.csv")),),
    "pair_regression": (_DataSet(_splits("pair_regression/{split}.csv")),),
}

SAMPLE_TASKS = tuple(_TASKS)
ALL_TASKS = "all"

SENTENCES = Path(__file__).parent / "sentences.txt"
"""2,000 English sentences, one a line, written for this project and under its licence.

Each paragraph has a word with several senses, such as *bank*, in about 18 sentences, some for each sense. The last
paragraph has other sentences.
"""

# The vectors of the words in the sample data. Named after the file that they are a part of.
VECTORS = Path("glove") / "glove.6B.50d.txt.xz"


def write_sample_data(
    folder: str | Path, task: str, sentences: tuple[int, int, int] | None = None, *, force: bool = False
) -> list[Path]:
    """Writes a task's training, development and test files, and word vectors.

    The files are written where the configs expect them: to use the data, set `$ELMO_TASKS_DATA` to `folder`. The word
    vectors are the same for every task.

    Arguments:
        folder: the folder to write to. It is made if it does not exist.
        task: one of `SAMPLE_TASKS`, or `ALL_TASKS` for all of them.
        sentences: at most this many sentences, pairs of sentences or questions for training, development and test: the
            first ones. Passages and documents are kept whole. None writes everything.
        force: whether files with other content are replaced.

    Returns:
        The paths of the files.

    Raises:
        ElmoTasksError: the task does not have sample data, a file would be empty, a file with other content is there
            (the whole data sets have the same names, perhaps with another compression) and `force` is not set, or the
            folder cannot be written to.
    """
    known = (*SAMPLE_TASKS, ALL_TASKS)
    if task not in known:
        hint = did_you_mean(task, known)
        raise ElmoTasksError(f"no sample data for the task {task!r}; there is: {', '.join(known)}.{hint}")
    if sentences and min(sentences) < 1:
        raise ElmoTasksError(
            f"every file needs at least one sentence; got {sentences} for training, development and test"
        )
    check_folder(folder)
    chosen = itertools.chain.from_iterable(_TASKS.values()) if task == ALL_TASKS else _TASKS[task]
    contents: dict[Path, bytes] = {}
    for data_set in chosen:
        for split, file in enumerate(data_set.files):
            for name in (file, *data_set.copies[split : split + 1]):
                contents[Path(folder) / name] = _content(file, name, sentences[split] if sentences else None)
    contents[Path(folder) / VECTORS] = _content(str(VECTORS), str(VECTORS), None)
    changed = {
        path: content for path, content in contents.items() if not (path.is_file() and path.read_bytes() == content)
    }
    if not force and (others := [str(file) for file in map(stored_file, changed) if file.exists()]):
        raise ElmoTasksError(f"{', '.join(others)}: would be replaced by sample data; --force does so")
    for path, content in changed.items():
        with atomic_write(path) as stream:
            stream.write(content)
    return list(contents)


def _content(file: str, name: str, sentences: int | None) -> bytes:
    """A file of the package, or its first sentences, as the file `name` has it: compressed if it ends in `.xz`."""
    packed = (_FILES / f"{file.removesuffix('.xz')}.xz").read_bytes()
    if name.endswith(".xz") and sentences is None:
        return packed
    content = lzma.decompress(packed)
    if sentences is not None:
        content = first_sentences(Path(file), content.decode(), sentences).encode()
    return lzma.compress(content) if name.endswith(".xz") else content


def first_sentences(file: Path, text: str, count: int) -> str:
    """The beginning of a file's text with this many sentences, pairs of sentences or questions, or all if it has fewer.

    Passages and documents are kept whole, so that the last one may exceed the number.

    Arguments:
        file: the file. Its name shows the format.
        text: what is in it.
        count: the number of sentences, at least 1.
    """
    name = plain_name(file)
    if name.endswith(".json"):
        document = json.loads(text)
        articles = ((each, sum(len(part["qas"]) for part in each["paragraphs"])) for each in document["data"])
        return json.dumps({**document, "data": list(_until(articles, count))}, ensure_ascii=False)
    if name.endswith("gold_conll"):
        return "".join(_until(((match[0], match[0].count("\n\n")) for match in _DOCUMENT.finditer(text)), count))
    if name.endswith((".csv", ".jsonl")) or text.startswith("("):  # also trees
        return "".join(text.splitlines(keepends=True)[: count + name.endswith(".csv")])
    return "".join(f"{block}\n\n" for block in text.rstrip("\n").split("\n\n")[:count])


def _until(sized: Iterator[tuple[_Part, int]], count: int) -> Iterator[_Part]:
    """Parts with their sizes, until together they have at least `count`."""
    for part, size in sized:
        if count <= 0:
            return
        count -= size
        yield part
