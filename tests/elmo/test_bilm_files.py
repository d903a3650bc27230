"""BiLMs as others publish them: other names, and zip archives."""

import itertools
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.errors import WeightsError

Files = tuple[Path, Path]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))


def zipped(path: Path, contents: Mapping[str, Path | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content if isinstance(content, bytes) else content.read_bytes())
    return path


def test_the_names_of_the_nlpl_repository(bilm: BiLM, bilm_files: Files, tmp_path: Path) -> None:
    folder = tmp_path / "213"
    folder.mkdir()
    shutil.copy(bilm_files[0], folder / "options.json")
    shutil.copy(bilm_files[1], folder / "model.hdf5")
    for name in ("._options.json", "._model.hdf5", ".DS_Store"):
        (folder / name).write_bytes(b"\0\5\x16\7")  # as macOS leaves them on other disks
    assert BiLM.load(folder).fingerprint() == bilm.fingerprint()
    shutil.copy(bilm_files[1], folder / "weights.hdf5")
    assert BiLMFiles.in_folder(folder).weights.name == "weights.hdf5"


@pytest.mark.parametrize("prefix", ["", "213/", "../../", "/"])
def test_a_zip_archive_is_unpacked_once(bilm: BiLM, bilm_files: Files, tmp_path: Path, prefix: str) -> None:
    contents: dict[str, Path | bytes] = {"old_options.json/": b"", "vocab.txt.gz": b"?", "options.json": bilm_files[0]}
    contents |= {"meta.json": b"{}", "model.hdf5": bilm_files[1], "._options.json": b"x", "__MACOSX/model.hdf5": b"x"}
    archive = zipped(tmp_path / "213.zip", {prefix + name: content for name, content in contents.items()})
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    files = BiLMFiles.in_folder(archive)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} - before == {files.options, files.weights}
    assert files.options.is_relative_to(tmp_path / "cache" / "archives")
    sentences = [["the", "cat"]]
    assert torch.equal(BiLM.load(archive).layers(sentences).layers, bilm.layers(sentences).layers)
    written = files.weights.stat()
    assert BiLMFiles.in_folder(archive).weights.stat() == written


def test_either_a_folder_or_both_files_are_named(bilm_files: Files) -> None:
    folder, options, weights = str(bilm_files[0].parent), *map(str, bilm_files)
    assert BiLMFiles.chosen(folder, None, None) == BiLMFiles.chosen(None, options, weights) == BiLMFiles(*bilm_files)
    for named in itertools.product((folder, None), (options, None), (weights, None)):
        if named not in ((folder, None, None), (None, options, weights)):
            with pytest.raises(WeightsError, match="either the folder of a biLM or both its options and its weights"):
                BiLMFiles.chosen(*named)


def test_archives_that_are_refused(bilm_files: Files, tmp_path: Path) -> None:
    options, weights = bilm_files
    whole = zipped(tmp_path / "whole.zip", {"options.json": options, "model.hdf5": weights})
    broken = tmp_path / "broken.zip"
    content = bytearray(whole.read_bytes())
    content[300] ^= 255
    broken.write_bytes(content)
    twice = zipped(tmp_path / "twice.zip", {"a/options.json": options, "b/options.json": options})
    bomb = zipped(tmp_path / "bomb.zip", {"model.hdf5": bytes(70_000_000)})
    other = zipped(tmp_path / "other.zip", {"a.txt": b"text"})
    for archive, problem in (
        (broken, "damaged, or not a zip archive"),
        (twice, "two files options.json"),
        (bomb, r"unpacks to more than 65,\d+,\d+ bytes; .*LIMITS"),
        (other, r"expected exactly one file \*options.json in this folder, got none"),
        (options, "neither a folder nor a zip archive"),
    ):
        with pytest.raises(WeightsError, match=problem):
            BiLMFiles.in_folder(archive)
        assert not list((tmp_path / "cache").rglob("*.hdf5"))
