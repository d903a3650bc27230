"""Corpora, and data sets of tasks as text for a biLM."""

import errno
import itertools
import json
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from elmo_tasks.errors import WriteError
from elmo_tasks.extras.pretraining import corpus as prepared
from elmo_tasks.extras.pretraining import prepare, tokenize_files
from elmo_tasks.extras.pretraining.corpus import Corpus
from elmo_tasks.extras.pretraining.prepare import DatasetCorpus, TextCorpus

PAIRS = [("she sang", "it is"), ("she sang", "she left"), ("it is", "she sang"), ("she left", "it rains")]
ROLES = [("Orla sang", 1), ("Orla sang", 0), ("She left", 1), ("Orla sang", 1)]


def corpus_of(training: Path, held_out: Path, task: str = "classification") -> Corpus:
    reader = {"type": "jsonl", "task": task}
    paths = {"train_data_path": str(training), "validation_data_path": str(held_out)}
    return DatasetCorpus.model_validate({"dataset_reader": reader, **paths}).build()


@pytest.mark.parametrize(
    ("task", "rows", "documents"),
    [
        (
            "text_pairs",
            [{"premise": premise, "hypothesis": other, "label": "same"} for premise, other in PAIRS],
            [["she sang", "it is"], ["she left"], ["it is"], ["she left", "it rains"]],
        ),
        (
            "semantic_roles",
            [{"tokens": text, "predicate": index, "tags": "O B-V" if index else "B-V O"} for text, index in ROLES],
            [["Orla sang"], ["She left"], ["Orla sang"]],
        ),
    ],
    ids=["text_pairs", "semantic_roles"],
)
def test_a_text_that_neighbours_share_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, rows: list[dict[str, Any]], documents: list[list[str]]
) -> None:
    monkeypatch.setattr(prepare, "_SENTENCES_AT_ONCE", 3)
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = corpus_of(path, path, task)
    assert corpus.counts.sum() == len(corpus.training.tokens)
    tokens, sentences = corpus.training.tokens, corpus.training.sentences
    texts = [" ".join(corpus.types[number] for number in tokens[a:b]) for a, b in itertools.pairwise(sentences)]
    assert [texts[a:b] for a, b in itertools.pairwise(corpus.training.documents)] == documents


def test_a_change_in_any_of_several_files_is_seen(tmp_path: Path) -> None:
    texts = {"a": "she sang", "b": "it rains", "held_out": "she left"}

    def types() -> set[str]:
        for name, text in texts.items():
            (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": text, "label": "good"}) + "\n")
        return set(corpus_of(tmp_path / "[ab].jsonl", tmp_path / "held_out.jsonl").types)

    assert types() == {"she", "sang", "it", "rains", "left"}
    texts["b"] = "it snows"
    assert types() == {"she", "sang", "it", "snows", "left"}


def fill_disk(monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """Lets the disk be full after this many arrays."""
    original = prepared._write
    left = itertools.count(writes, -1)

    def fill(stream: IO[bytes], values: np.ndarray) -> None:
        if next(left) <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(stream, values)

    monkeypatch.setattr(prepared, "_write", fill)


@pytest.mark.parametrize("writes", [0, 4, 9])
def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path, writes: int) -> None:
    """At whatever point of the work the disk is full, one line says how much is needed and nothing is left behind."""
    monkeypatch.setattr(tokenize_files, "_CHUNK_CHARACTERS", 200_000)
    fill_disk(monkeypatch, writes)
    text = tmp_path / "text"
    text.write_text(("a " * 999 + "a\n") * 400)  # 400 documents of 1,000 tokens of 4 bytes, twice on the disk: 3.2 MB
    problem = r"corpora/\w+: cannot be written: No space .*; expected at least 3,\d+,\d+ bytes\. .*set ELMO_TASKS_CACHE"
    with pytest.raises(WriteError, match=problem) as caught:
        TextCorpus(paths=(str(text),), tokenized=True).build(workers=1)
    assert "\n" not in str(caught.value)
    assert not list(cache.iterdir())


def test_a_data_set_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"text": "she sang", "label": "good"}\n')
    with monkeypatch.context() as patched:
        fill_disk(patched, 0)  # while the number of tokens is not known
        with pytest.raises(WriteError, match=r"cannot be written: No space left on device\. .*set ELMO_TASKS_CACHE"):
            corpus_of(data, data)
    assert not list(cache.iterdir())
    corpus = corpus_of(data, data)
    monkeypatch.setattr(prepare, "CorpusWriter", None)
    assert corpus_of(data, data).folder == corpus.folder


def test_cache_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "text").write_text("A.\n\nB.")
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "file"))
    with pytest.raises(WriteError, match=r"corpora/\w+: cannot be written: Not a directory\. .*set ELMO_TASKS_CACHE"):
        TextCorpus(paths=(str(tmp_path / "text"),)).build()
