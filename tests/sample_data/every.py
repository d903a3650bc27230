"""The sample data of each task, written once for all tests, and read by the readers of its formats."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks.data_readers import (
    Conll2003Config,
    ConlluConfig,
    CoreferenceConll2012Config,
    DatasetReaderConfig,
    DelimitedConfig,
    SnliConfig,
    SquadConfig,
    SrlConll2012Config,
    SstConfig,
)
from elmo_tasks.sample_data.coref import COREF
from elmo_tasks.sample_data.ner import NER
from elmo_tasks.sample_data.pos import POS
from elmo_tasks.sample_data.reviews import MULTI_LABEL, PAIR_REGRESSION, REGRESSION
from elmo_tasks.sample_data.snli import SNLI
from elmo_tasks.sample_data.squad import SQUAD, SQUAD2
from elmo_tasks.sample_data.srl import SRL
from elmo_tasks.sample_data.sst5 import SST5
from elmo_tasks.sample_data.task import SampleTask, write_text

Examples = list[dict[str, Any]]


class Sample(NamedTuple):
    """The data of a task.

    Attributes:
        files: of training, development and test data.
        sentences: how many are asked for.
        sizes: the numbers of examples that these give; None if they depend on the seed.
        digest: of the files with 100, 61 and 21 sentences. They never change, so that scores can be compared.
        shared: words with a capital that all files may have.
    """

    task: SampleTask
    reader: DatasetReaderConfig
    files: tuple[str, ...]
    sentences: tuple[int, int, int]
    sizes: tuple[int, ...] | None
    digest: str
    shared: frozenset[str] = frozenset()


EWT = tuple(f"srl_ewt/ewt.{split}.gold_conll{xz}" for split, xz in (("train", ".xz"), ("dev", ""), ("test", "")))
ONTOGUM = tuple(file.replace("srl_ewt/ewt", "coref_ontogum/ontogum").replace("gold", "v4_gold") for file in EWT)
DAYS = {"Monday", "Tuesday", "Thursday", "Friday", "Sunday"}
NER_SYNONYMS = {synonym for synonyms in NER.synonyms.values() for synonym in synonyms}
MONTHS = {"March", "April", "June", "July", "August", "October"}


def table(name: str, task: SampleTask, digest: str) -> Sample:
    files = tuple(f"{name}/{split}.csv" for split in ("train", "dev", "test"))
    reader = DelimitedConfig.model_validate({"task": name})
    return Sample(task, reader, files, (1000, 200, 200), (1000, 200, 200), digest)


SAMPLES = {
    "ner": Sample(
        NER,
        Conll2003Config(input_scheme="IOB1"),
        ("ner_conll2003/eng.train", "ner_conll2003/eng.testa", "ner_conll2003/eng.testb"),
        (1000, 200, 200),
        (1000, 200, 200),
        "8ded976cf12321f1",
        frozenset(DAYS | {"North", "Bay", "United", "Bank", "Cup", "Games", "Open"} | NER_SYNONYMS),
    ),
    "sst5": Sample(
        SST5,
        SstConfig(),
        ("sst5/train.txt", "sst5/dev.txt", "sst5/test.txt"),
        (1000, 200, 200),
        (1000, 200, 200),
        "5fab82eff4a70c90",
    ),
    "snli": Sample(
        SNLI,
        SnliConfig(),
        ("snli/snli_1.0_train.jsonl", "snli/snli_1.0_dev.jsonl", "snli/snli_1.0_test.jsonl"),
        (1000, 200, 200),
        (1000, 200, 200),
        "1a9f632cfb34d566",
    ),
    "squad": Sample(
        SQUAD,
        SquadConfig(),
        ("squad/train-v1.1.json.xz", "squad/dev-v1.1.json"),
        (1000, 200, 200),
        None,
        "022ffe2940ca3593",
        frozenset({"In"}),
    ),
    "squad2": Sample(
        SQUAD2,
        SquadConfig(no_answer=True),
        ("squad2/train-v2.0.json.xz", "squad2/dev-v2.0.json"),
        (1000, 200, 200),
        None,
        "89f9ccf78322141c",
        frozenset({"In"}),
    ),
    "srl": Sample(
        SRL, SrlConll2012Config(), EWT, (500, 60, 60), None, "db63c337ab97c4d3", frozenset({"Bay", *DAYS, *MONTHS})
    ),
    "coref": Sample(COREF, CoreferenceConll2012Config(), ONTOGUM, (1000, 200, 200), (50, 10, 10), "211e5a9d5a71b495"),
    "pos": Sample(
        POS,
        ConlluConfig(tag_column="xpos"),
        ("pos_ud_ewt/en_ewt-ud-train.conllu.xz", "pos_ud_ewt/en_ewt-ud-dev.conllu", "pos_ud_ewt/en_ewt-ud-test.conllu"),
        (400, 50, 30),
        (400, 50, 30),
        "5070a28a8b4df099",
        frozenset(DAYS),
    ),
    "multi_label": table("multi_label", MULTI_LABEL, "e5bcea2a33279729"),
    "regression": table("regression", REGRESSION, "ad8c70a4151e6bed"),
    "pair_regression": table("pair_regression", PAIR_REGRESSION, "0cdd6e1e4223b05c"),
}


def write_files(task: SampleTask, path: Path, seed: int, sentences: tuple[int, int, int]) -> list[Path]:
    """Writes the files of a task to a folder, and returns their paths."""
    return [write_text(path / file, text) for file, text in task.texts(seed, sentences)]


@functools.cache
def folder(name: str) -> Path:
    """A folder with the data of a task, for all tests of this process."""
    path = Path(_temporary().name) / name
    write_files(SAMPLES[name].task, path, 13, SAMPLES[name].sentences)
    return path


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()  # removed when the process ends


def read_file(name: str, path: Path) -> Examples:
    """The examples of a file of a task."""
    return SAMPLES[name].reader.build().read(path).to_list()


def file(name: str, split: int = 0) -> Path:
    """The file of the training (0), development (1) or test data (2)."""
    return folder(name) / SAMPLES[name].files[split]


@functools.cache
def read(name: str, split: int = 0) -> Examples:
    """The examples of the training (0), development (1) or test data (2)."""
    return read_file(name, file(name, split))
