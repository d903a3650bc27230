"""What the sample data of all tasks share: the files of each split, and that they never change."""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

import pytest

from elmo_tasks.sample_data.coref import COREF
from elmo_tasks.sample_data.ner import NER
from elmo_tasks.sample_data.pos import POS
from elmo_tasks.sample_data.snli import SNLI
from elmo_tasks.sample_data.squad import SQUAD
from elmo_tasks.sample_data.srl import SRL
from elmo_tasks.sample_data.sst5 import SST5
from elmo_tasks.sample_data.task import SampleTask, files_of_splits, write_text


@pytest.mark.parametrize(
    ("task", "digest"),
    [
        (COREF, "f92fe9a458213649"),
        (NER, "725484778f22e39d"),
        (POS, "3c3fcceff55c507b"),
        (SNLI, "1a9f632cfb34d566"),
        (SQUAD, "022ffe2940ca3593"),
        (SRL, "92e821a3ac638217"),
        (SST5, "5fab82eff4a70c90"),
    ],
    ids=["coref", "ner", "pos", "snli", "squad", "srl", "sst5"],
)
def test_every_version_writes_the_same_files(task: SampleTask, digest: str) -> None:
    """So that the scores of models that were trained on them can be compared."""
    files = "".join(f"{file}\n{text}" for file, text in task.texts(13, (100, 61, 21)))
    assert hashlib.sha256(files.encode()).hexdigest()[:16] == digest


def test_only_the_training_file_can_be_compressed() -> None:
    assert files_of_splits("a/{split}.txt{xz}", "b/{conll_2012}.txt") == [
        ["a/train.txt.xz", "b/train.txt"],
        ["a/dev.txt", "b/development.txt"],
        ["a/test.txt", "b/test.txt"],
    ]


def test_a_file_is_compressed_if_its_name_says_so(tmp_path: Path) -> None:
    plain, compressed = (write_text(tmp_path / "new" / name, "é\n") for name in ("a.txt", "a.txt.xz"))
    assert plain.read_bytes() == lzma.decompress(compressed.read_bytes()) == "é\n".encode()


def test_a_split_has_its_own_names_and_as_many_sentences_as_are_asked_for() -> None:
    given = []

    def lines(names: list[str], count: int, generator: object, file: str) -> list[str]:
        given.append((names, count, file))
        return [f"{count} in {file}"] * count

    task = SampleTask(
        files=[["x/one.txt", "y/two.txt"], ["x/dev.txt"]],
        lines=lines,  # type: ignore[arg-type]
        text=lambda names, generator: [[*names]],
        num_texts=3,
        seed_prefix="x ",
        split_seed="{split} {file}",
        num_names=(4, 2),
    )
    assert dict(task.texts(1, (2, 1, 5))) == {
        "x/one.txt": "2 in one.txt\n2 in one.txt\n",
        "y/two.txt": "2 in one.txt\n2 in one.txt\n",
        "x/dev.txt": "1 in dev.txt\n",
    }
    (train, *_), (dev, *_) = given
    assert (len(train), len(dev)) == (4, 2)
    assert not {*train} & {*dev}
    assert list(task.corpus(1)) == [[*train, *dev]] * 3
