"""Faults that the torture has found, as small cases. Add a line for each new one."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest

from elmo_tasks.elmo import BiLM
from elmo_tasks.errors import DataError, ElmoTasksError, WeightsError
from elmo_tasks.files.text import read_lines
from elmo_tasks.pretraining.prepare import TextCorpus
from elmo_tasks.runs.load import load_run
from elmo_tasks.runs.train import train
from tests.torture.files import pack
from tests.torture.workshop import make_workshop

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Data and runs; see `make_workshop`."""
    folder = tmp_path_factory.mktemp("found") / "shop"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMO_TASKS_CACHE", "")  # is set by the workshop, and set back at the end
        make_workshop(folder)
        yield folder


@pytest.fixture
def run(shop: Path, tmp_path: Path) -> Path:
    """A copy of a finished run."""
    return Path(shutil.copytree(shop / "run", tmp_path / "run"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bilm.json", b"[]"),
        ("bilm.json", b'"x"'),
        ("bilm.json", b"{}"),
        ("bilm.json", b"{"),
        ("bilm.json", b"\xff"),
        ("bilm.json", DEEP),
        ("bilm.json", b'{"options": {"a": 1}, "weights": "x", "fingerprint": "x"}'),
        ("bilm.json", b'{"options": "x", "weights": 1, "fingerprint": "x"}'),
        ("bilm.json", b'{"bilm": "default", "fingerprint": 1.5}'),
        ("vocabulary.json", DEEP),
        ("vocabulary.json", b'{"words": [["a"]], "lowercase_words": false, "characters": [], "labels": {}}'),
        ("vocabulary.json", b'{"words": Infinity}'),
        ("metrics.json", b"{"),
        ("metrics.json", b"\xff"),
        ("config.json", DEEP),
        ("metrics.jsonl", b"\xff\n\n\n"),
        ("metrics.jsonl", b"{\n{\n{\n"),
        ("metrics.jsonl", b""),
        ("metrics.jsonl", b'{"a": {}}\n' * 3),
    ],
)
def test_a_damaged_file_of_a_run_is_an_error(name: str, content: bytes, run: Path, shop: Path) -> None:
    """When the run is loaded, or resumed if only that reads the file."""
    (run / name).write_bytes(content)
    if name == "metrics.jsonl":
        (run / "metrics.json").unlink()  # else there would be nothing to do
    with pytest.raises(ElmoTasksError):
        load_run(run) if name in ("bilm.json", "vocabulary.json") else train(shop / "tagger.json", run, resume=True)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [{}, {"tags": [1.5]}, {"tags": [["O"]]}, {"tags": "O"}, {"tags": {"O": 1}}, None])
def test_odd_labels_of_a_run_are_an_error(labels: object, run: Path) -> None:
    vocabulary = json.loads((run / "vocabulary.json").read_text())
    (run / "vocabulary.json").write_text(json.dumps({**vocabulary, "labels": labels}))
    with pytest.raises(ElmoTasksError):
        load_run(run)


@pytest.mark.slow
def test_a_damaged_compressed_block_of_an_archive_is_an_error(shop: Path, tmp_path: Path) -> None:
    content = bytearray(gzip.compress(pack({"config.json": (shop / "run" / "config.json").read_bytes()})))
    content[60:90] = b"\xff" * 30
    (tmp_path / "run.tar.gz").write_bytes(content)
    with pytest.raises(ElmoTasksError):
        load_run(tmp_path / "run.tar.gz")


@pytest.mark.parametrize(
    ("offset", "content"),
    [(0, b"XX"), (26, b"\xff\xff"), (-6, b"\xff\xff\xff\xff"), (-12, b"\xff\xff\xff\xff")],
)
def test_a_damaged_zip_archive_is_an_error(offset: int, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.txt", "a b\n" * 50)
    data = bytearray(path.read_bytes())
    offset %= len(data)
    data[offset : offset + len(content)] = content
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"data\.zip"):
        list(read_lines(path))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["empty", "loop", "huge"])
def test_odd_datasets_of_weights_are_an_error(kind: str, shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "weights.hdf5"
    shutil.copyfile(shop / "bilm" / "weights.hdf5", path)
    with h5py.File(path, "r+") as file:
        del file["char_embed"]
        if kind == "empty":
            file["char_embed"] = h5py.Empty("f4")
        elif kind == "loop":
            file["char_embed"] = h5py.SoftLink("/char_embed")
        else:
            file.create_dataset("char_embed", (1 << 20, 1 << 30), "f2", chunks=True)
    with pytest.raises(WeightsError):
        BiLM.load(shop / "bilm" / "options.json", path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [("types.json", DEEP), ("types.json", b"[]"), ("counts.npy", b"\x93NUMPY\x01\x00\x02\x00{("), ("counts.npy", b"")],
)
def test_a_damaged_prepared_corpus_is_prepared_again(
    name: str, content: bytes, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    config = TextCorpus(paths=(str(shop / "text.txt"),), tokenized=True, held_out=0.2)
    expected = config.build(workers=1)
    (expected.folder / name).write_bytes(content)
    found = config.build(workers=1)
    assert found.types == expected.types
    assert len(found.counts) == len(found.types)
