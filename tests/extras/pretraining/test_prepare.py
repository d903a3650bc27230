import errno
import itertools
import json
import logging
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.extras.pretraining import corpus as prepared
from elmo_tasks.extras.pretraining import prepare, tokenize_files
from elmo_tasks.extras.pretraining.corpus import Corpus, CorpusPart
from elmo_tasks.extras.pretraining.prepare import TextCorpus, choose_held_out, read_text
from elmo_tasks.text import tokenization
from elmo_tasks.text.tokenizers import TREEBANK, WhitespaceTokenizer

Documents = list[list[list[str]]]

WORDS = ["the", "of", "and", "a", "in", "Ann", "ship", "tree", "café", "Straße", "ship's", "don't", "1,000", "U.S."]


def make_text(num_documents: int, seed: int = 1) -> str:
    """Paragraphs of sentences, blank lines between documents."""
    choose = random.Random(seed)

    def sentence() -> str:
        return " ".join(choose.choices(WORDS, range(len(WORDS), 0, -1), k=choose.randint(2, 12))).capitalize() + "."

    def paragraph() -> str:
        return " ".join(sentence() for _ in range(choose.randint(1, 5)))

    documents = ["\n".join(paragraph() for _ in range(choose.randint(1, 5))) for _ in range(num_documents)]
    return "\n\n".join(documents) + "\n"


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


def documents_of(corpus: Corpus, part: CorpusPart) -> Documents:
    sentences = [
        [corpus.types[number] for number in part.tokens[start:end]] for start, end in itertools.pairwise(part.sentences)
    ]
    return [sentences[start:end] for start, end in itertools.pairwise(part.documents)]


def both_parts(corpus: Corpus) -> tuple[Documents, Documents]:
    return documents_of(corpus, corpus.training), documents_of(corpus, corpus.held_out)


def everything(corpus: Corpus) -> list[Any]:
    return [list(corpus.types), corpus.counts.tolist(), *both_parts(corpus)]


def assert_nothing_is_left(cache: Path) -> None:
    assert not cache.exists() or list(cache.iterdir()) == []


def test_against_a_plain_computation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "_SENTENCES_AT_ONCE", 13)
    text = make_text(60)
    corpus = TextCorpus(paths=(write(tmp_path, "text", text),), held_out=0.2, seed=5).build()

    documents = [
        [[token.text for token in sentence] for line in document.split("\n") for sentence in TREEBANK.tokenize(line)]
        for document in text.split("\n\n")
    ]
    is_held_out = choose_held_out(60, 0.2, 5)
    training = [document for document, out in zip(documents, is_held_out, strict=True) if not out]
    held_out = [document for document, out in zip(documents, is_held_out, strict=True) if out]
    counts = Counter(token for document in training for sentence in document for token in sentence)
    types = sorted({token for document in documents for sentence in document for token in sentence})
    types.sort(key=lambda token: -counts[token])

    assert both_parts(corpus) == (training, held_out)
    assert len(held_out) > 1
    assert list(corpus.types) == types
    assert corpus.counts.tolist() == [counts[token] for token in types]
    made_of = json.loads((corpus.folder / "corpus.json").read_text())
    assert (
        made_of.items() >= {"files": [str(tmp_path / "text")], "held_out": 0.2, "seed": 5, "tokenized": False}.items()
    )
    arrays = (corpus.counts, corpus.training.tokens, corpus.held_out.sentences, corpus.held_out.documents)
    assert all(isinstance(array, np.memmap) for array in arrays)  # a corpus may be larger than memory


@pytest.mark.slow
def test_neither_processes_nor_chunks_change_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TextCorpus(paths=(write(tmp_path, "text", make_text(40)),), held_out=0.2)
    expected = everything(config.build())
    monkeypatch.setattr(prepare, "_MIN_PARALLEL_BYTES", 0)
    for size, workers in ((64, 1), (300, 3)):
        monkeypatch.setattr(tokenize_files, "_CHUNK_CHARACTERS", size)
        monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / f"cache{size}"))
        assert everything(config.build(workers)) == expected


def test_every_file_begins_a_document(tmp_path: Path) -> None:
    write(tmp_path, "1.txt", "\n\nA b.\nC.\n\n\n\nD.\n\n")
    write(tmp_path, "2.txt", "E.\n\nF.")
    corpus = TextCorpus(paths=(str(tmp_path / "*.txt"),), held_out=0.01).build()
    training, held_out = both_parts(corpus)
    assert len(held_out) == 1
    expected = [[["A", "b", "."], ["C", "."]], [["D", "."]], [["E", "."]], [["F", "."]]]
    assert [document for document in expected if document not in held_out] == training


@pytest.mark.parametrize(
    ("num_documents", "share", "number"),
    [(1000, 0.6, 600), (2, 0.01, 1), (2, 0.99, 1), (10, 0.14, 1), (10, 0.16, 2), (10, 0.99, 9)],
)
def test_as_many_documents_are_held_out_as_the_share_says(num_documents: int, share: float, number: int) -> None:
    chosen = choose_held_out(num_documents, share, 2**70)
    assert (len(chosen), chosen.sum()) == (num_documents, number)
    assert choose_held_out(num_documents, share, 2**70).tolist() == chosen.tolist()


def test_prepared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="elmo_tasks")
    path = write(tmp_path, "text", make_text(5))
    corpus = TextCorpus(paths=(path,)).build()
    num_tokens = len(corpus.training.tokens) + len(corpus.held_out.tokens)
    assert f"{num_tokens} tokens ({len(corpus.types)} distinct)" in caplog.messages[-1]
    monkeypatch.setattr(prepare, "CorpusWriter", None)
    os.rename(path, tmp_path / "renamed")
    again = TextCorpus(paths=(str(tmp_path / "renamed"),)).build()
    assert again.folder == corpus.folder
    assert len(caplog.messages) == 1


def test_the_key_has_all_that_matters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TextCorpus(paths=(write(tmp_path, "text", make_text(5)),))
    other = write(tmp_path, "other", make_text(5, seed=2))
    changes = ({"seed": 1}, {"held_out": 0.5}, {"tokenized": True}, {"tokenizer": "unicode"}, {"paths": (other,)})
    folders = [config.model_copy(update=change).build().folder for change in ({}, *changes)]
    assert len(set(folders)) == len(folders)
    monkeypatch.setattr(tokenization, "VERSION", "another")
    assert config.build().folder not in folders
    assert config.model_copy(update={"tokenized": True}).build().folder in folders


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("held_out/tokens.npy", lambda content: b""),
        ("training/sentences.npy", lambda content: content[:20]),
        ("counts.npy", lambda content: content[:-1]),
        ("counts.npy", None),
        ("types.json", lambda content: content[:-1]),
        ("types.json", lambda content: b"[]"),
        ("types.json", lambda content: b'["a"]'),
        ("types.json", lambda content: b"[" * 100_000),
    ],
)
def test_a_damaged_cache_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, damage: Callable[[bytes], bytes] | None
) -> None:
    config = TextCorpus(paths=(write(tmp_path, "text", make_text(5)),))
    corpus = config.build()
    expected = everything(corpus)
    path = corpus.folder / name
    content = path.read_bytes()
    path.unlink()  # the corpus may have mapped it into memory
    if damage:
        path.write_bytes(damage(content))
    assert everything(config.build()) == expected
    assert any("is damaged; it is prepared again" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("content", "found"),
    [(b"", "no text"), (b"\n \n\n", "no text"), (b"One line.", "a single document"), (b"\n\nA.\nB.\n \n", None)],
)
def test_too_few_documents(tmp_path: Path, cache: Path, content: bytes, found: str | None) -> None:
    (tmp_path / "text").write_bytes(content)
    config = TextCorpus(paths=(str(tmp_path / "text"),))
    if found is None:
        config.build()
        return
    with pytest.raises(ElmoTasksError, match=f"text: holds {found}; expected at least two documents") as caught:
        config.build()
    assert "\n" not in str(caught.value)
    assert_nothing_is_left(cache)


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_text_late_in_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path, workers: int
) -> None:
    monkeypatch.setattr(prepare, "_MIN_PARALLEL_BYTES", 0)
    monkeypatch.setattr(tokenize_files, "_CHUNK_CHARACTERS", 100)
    write(tmp_path, "1.txt", make_text(20))
    (tmp_path / "2.txt").write_bytes(b"A.\n\nB.\n" * 100 + b"\xff\xfe\n")
    with pytest.raises(DataError, match=r"2\.txt:301: byte 0xff at column 1 is not UTF-8"):
        TextCorpus(paths=(str(tmp_path / "*.txt"),)).build(workers)
    assert_nothing_is_left(cache)


@pytest.mark.parametrize("content", ['[\n{"text": "Mary left."}\n]\n', "\ntext,label\nMary left.,good\n"])
def test_data_files_are_not_text(content: str, tmp_path: Path, cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "data").write_text(content)
    with pytest.raises(DataError, match=r"data:\d: looks like a .*; --tokenized reads any file"):
        read_text([str(tmp_path / "data")], TREEBANK)
    read_text([str(tmp_path / "data")], WhitespaceTokenizer())
    TextCorpus(paths=(str(tmp_path / "data"),)).build()  # may be intended, so it is only a warning
    assert "data: looks like a " in caplog.text
    caplog.clear()
    lines = write(tmp_path, "lines.jsonl", '{"text": "Mary left."}\n' * 2)
    read_text([lines], TREEBANK)
    TextCorpus(paths=(lines,)).build()
    assert "looks like" not in caplog.text


def test_text_for_one_reading_comes_through_pipes(tmp_path: Path, cache: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"Mary left.\nOrla came.\n")
    os.close(write)
    part, types = read_text([f"/dev/fd/{read}"], TREEBANK)
    assert types == ["Mary", "left", ".", "Orla", "came"]
    assert len(part.sentences) == 3
    with pytest.raises(DataError, match=r"/dev/fd/\d+: is a pipe or a device, and this file is read twice"):
        TextCorpus(paths=(f"/dev/fd/{read}",)).build()
    os.close(read)


def test_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(prepare, "content_hash", refuse)
    with pytest.raises(DataError, match=r"text: cannot be read \(Permission denied\)"):
        TextCorpus(paths=(write(tmp_path, "text", "A.\n\nB."),)).build()
