"""Packing runs, and opening them."""

import json
import tarfile
from pathlib import Path

import pytest
import torch

from elmo_tasks.elmo import TINY_OPTIONS, random_bilm
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.errors import RunError, WeightsError
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.tensor_files import write_tensors
from elmo_tasks.runs.archive import archive, open_run
from elmo_tasks.runs.folder import RunFolder


def test_archive_is_opened_like_its_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.config.write_text("{}")
    folder.training_state.write_text("large")
    (folder.path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"no model\.safetensors"):
        archive(folder.path, tmp_path / "run.tar.gz")
    write_tensors(folder.model, {"a": torch.ones(2)})
    archive(folder.path, tmp_path / "run.tar.gz")
    for _ in range(2):
        opened = open_run(tmp_path / "run.tar.gz")
        assert sorted(path.name for path in opened.path.iterdir()) == ["config.json", "model.safetensors"]


@pytest.fixture
def small_run(tmp_path: Path) -> RunFolder:
    """What an archive needs of a run, and its biLM outside of the folder."""
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.config.write_text("{}")
    write_tensors(folder.model, {"a": torch.ones(2)})
    files = BiLMFiles(tmp_path / "small_options.json", tmp_path / "small_weights.hdf5")
    random_bilm(TINY_OPTIONS, seed=1).save(files.options, files.weights)
    reference = {"options": str(files.options), "weights": str(files.weights), "fingerprint": files.fingerprint()}
    write_json(folder.bilm.reference, reference)
    return folder


@pytest.mark.parametrize("self_contained", [False, True])
def test_an_archive_has_the_bilm_if_wanted_and_leaves_the_run_as_it_is(
    small_run: RunFolder, tmp_path: Path, self_contained: bool
) -> None:
    if self_contained:
        small_run.bilm.copy_files()
    before = sorted(small_run.path.rglob("*"))
    without = {"bilm.json", "config.json", "model.safetensors"}
    for with_bilm, names in ((True, {"bilm/options.json", "bilm/weights.hdf5", *without}), (False, without)):
        archive(small_run.path, tmp_path / "run.tar.gz", self_contained=with_bilm)
        with tarfile.open(tmp_path / "run.tar.gz") as tar:
            assert set(tar.getnames()) == names
    assert sorted(small_run.path.rglob("*")) == before
    if not self_contained:
        (tmp_path / "small_weights.hdf5").unlink()
        with pytest.raises(RunError, match=r"no longer at .*small_weights\.hdf5"):
            archive(small_run.path, tmp_path / "other.tar.gz")
        assert not (tmp_path / "other.tar.gz").exists()


def test_an_archive_names_no_bilm_outside_of_it(small_run: RunFolder, tmp_path: Path) -> None:
    archive(small_run.path, tmp_path / "run.tar.gz", self_contained=False)
    opened = open_run(tmp_path / "run.tar.gz")
    with pytest.raises(RunError, match=r"run\.tar\.gz: does not contain its biLM.* --set model\.embedder\.elmo\.bilm"):
        opened.bilm.files()
    with pytest.raises(RunError, match=r"run\.tar\.gz: does not contain its biLM"):
        archive(tmp_path / "run.tar.gz", tmp_path / "other.tar.gz")


def test_packing_reads_no_private_file(small_run: RunFolder, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.write_text("secret")
    reference = json.loads(small_run.bilm.reference.read_text())
    options = Path(reference["options"])
    for files in (BiLMFiles(private, private), BiLMFiles(options, private)):
        # Even if the hash of the file is known.
        named = {"options": str(files.options), "weights": str(files.weights), "fingerprint": files.fingerprint()}
        write_json(small_run.bilm.reference, named)
        with pytest.raises(WeightsError, match="private"):
            archive(small_run.path, tmp_path / "run.tar.gz")
    write_json(small_run.bilm.reference, {**reference, "fingerprint": "0" * 64})
    with pytest.raises(RunError, match="not the biLM that the run was trained with"):
        archive(small_run.path, tmp_path / "run.tar.gz")
    write_json(small_run.bilm.reference, reference)
    small_run.metrics.symlink_to(private)
    with pytest.raises(RunError, match=r"metrics\.json: a link to .*private"):
        archive(small_run.path, tmp_path / "run.tar.gz")
    assert not (tmp_path / "run.tar.gz").exists()


@pytest.mark.parametrize("content", [b"not an archive", None])
def test_what_is_no_run_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "thing"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RunError, match="thing"):
        open_run(path)


def test_a_folder_of_seeds_says_what_it_is(tmp_path: Path) -> None:
    for kind in ("fold", "seed"):  # the seeds come first
        for number in (1, 2):
            RunFolder(tmp_path / f"{kind}_{number}").create({"a": 1})
        problem = rf"a folder of runs, one for each {kind} \({kind}_1, {kind}_2\); name one of them, such as .*{kind}_1"
        with pytest.raises(RunError, match=problem):
            open_run(tmp_path)
    RunFolder(tmp_path).create({"a": 1})  # a run of its own beside them
    assert open_run(tmp_path).path == tmp_path
