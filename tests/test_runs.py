from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
import torch

from elmo_tasks.config import to_json
from elmo_tasks.elmo import bilm_files
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.errors import RunError, WeightsError
from elmo_tasks.files import write_json
from elmo_tasks.pretraining.runs import PretrainingFolder
from elmo_tasks.runs import (
    Folder,
    RunFolder,
    include_bilm,
    keep_lines,
    open_run,
    read_state,
    read_tensors,
    write_archive,
    write_state,
    write_tensors,
)
from elmo_tasks.training.config import TrainerConfig


def test_tensors_and_states_go_round(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).view(2, 3).t(), "b": torch.tensor(1.0)}
    write_tensors(tmp_path / "x.safetensors", tensors)
    assert all(tensor.equal(tensors[name]) for name, tensor in read_tensors(tmp_path / "x.safetensors").items())
    write_state(tmp_path / "x.pt", {"tensor": torch.ones(2), "numbers": [1, 2.5, None], "text": "t"})
    assert read_state(tmp_path / "x.pt")["numbers"] == [1, 2.5, None]


def test_damaged_files_are_one_clear_error(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", {"a": torch.ones(100)})
    write_state(tmp_path / "x.pt", {"a": torch.ones(100)})
    for name in ("x.safetensors", "x.pt"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content[:60])
    with pytest.raises(RunError, match=r"x\.safetensors: damaged"):
        read_tensors(tmp_path / "x.safetensors")
    with pytest.raises(RunError, match=r"x\.pt: damaged"):
        read_state(tmp_path / "x.pt")
    with pytest.raises(RunError, match="no such file"):
        read_tensors(tmp_path / "y.safetensors")
    (tmp_path / "x.pt").write_bytes(b"not a state at all")
    with pytest.raises(RunError, match=r"x\.pt: damaged"):
        read_state(tmp_path / "x.pt")


def test_a_folder_says_what_can_be_done_with_the_run_it_holds(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    config = {"model": {"dropout": 0.5}}
    other = {"model": {"dropout": 0.1}}
    assert folder.claim(config, resume=True, force=False)  # there is nothing to go on with
    folder.begin(config)
    assert not folder.claim(config, resume=True, force=False)
    with pytest.raises(RunError, match="holds a run; --resume goes on with it, --force removes it first"):
        folder.claim(config, resume=False, force=False)
    with pytest.raises(RunError, match="holds a run of another config; -s names another folder"):
        folder.claim(other, resume=False, force=False)
    with pytest.raises(RunError, match=r"these keys differ: model\.dropout"):
        folder.claim(other, resume=True, force=False)
    assert folder.claim(other, resume=False, force=True)
    assert folder.is_started()  # until the new run begins


def test_keys_that_a_later_version_added_do_not_keep_a_run_from_its_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    today = to_json(TrainerConfig(num_epochs=3, validation_metric="+f1"))
    folder.begin({name: value for name, value in today.items() if name != "trackers"})
    assert not folder.claim(today, resume=True, force=False, kind=TrainerConfig)
    with pytest.raises(RunError, match="these keys differ: trackers"):
        folder.claim({**today, "trackers": []}, resume=True, force=False, kind=TrainerConfig)


@pytest.mark.parametrize("kind", [RunFolder, PretrainingFolder])
def test_clear_removes_what_the_list_names_and_leaves_other_files_alone(kind: type[Folder], tmp_path: Path) -> None:
    folder = kind(tmp_path)
    assert set(folder.files) == {value for name, value in vars(folder).items() if name not in ("path", "files")}
    for path in folder.files:
        path.write_text("{}")
    folder.tensorboard.unlink()
    folder.tensorboard.mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    assert folder.is_started()
    folder.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_keep_lines_cuts_what_came_later(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"epoch": 1}\n{"epoch": 2}\n{"epo')
    keep_lines(path, 1)
    assert path.read_text() == '{"epoch": 1}\n'


def test_archive_is_opened_like_its_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.config.write_text("{}")
    folder.training_state.write_text("large")
    (folder.path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"no model\.safetensors"):
        write_archive(folder, tmp_path / "run.tar.gz", with_bilm=True)
    write_tensors(folder.model, {"a": torch.ones(2)})
    write_archive(folder, tmp_path / "run.tar.gz", with_bilm=True)
    for _ in range(2):
        opened = open_run(tmp_path / "run.tar.gz")
        assert sorted(path.name for path in opened.path.iterdir()) == ["config.json", "model.safetensors"]


@pytest.mark.parametrize("self_contained", [False, True])
def test_an_archive_has_the_bilm_if_wanted_and_leaves_the_run_as_it_is(tmp_path: Path, self_contained: bool) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()
    write_tensors(folder.model, {"a": torch.ones(2)})
    files = [tmp_path / name for name in ("small_options.json", "small_weights.hdf5")]
    for path in files:
        path.write_text(path.name)
    write_json(folder.bilm_reference, {"options": str(files[0]), "weights": str(files[1])})
    if self_contained:
        include_bilm(folder)
    before = sorted(folder.path.rglob("*"))
    without = {"bilm.json", "model.safetensors"}
    for with_bilm, names in ((True, {"bilm/options.json", "bilm/weights.hdf5", *without}), (False, without)):
        write_archive(folder, tmp_path / "run.tar.gz", with_bilm=with_bilm)
        with tarfile.open(tmp_path / "run.tar.gz") as tar:
            assert set(tar.getnames()) == names
    assert sorted(folder.path.rglob("*")) == before
    if not self_contained:
        files[1].unlink()
        with pytest.raises(RunError, match=r"no longer at .*small_weights\.hdf5"):
            write_archive(folder, tmp_path / "other.tar.gz", with_bilm=True)
        assert not (tmp_path / "other.tar.gz").exists()


@pytest.mark.parametrize("content", [b"not an archive", None])
def test_what_is_no_run_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "thing"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RunError, match="thing"):
        open_run(path)


def test_archive_cannot_write_outside(tmp_path: Path) -> None:
    (tmp_path / "evil").write_text("x")
    with tarfile.open(tmp_path / "run.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "evil", arcname="../../evil")
    with pytest.raises(RunError, match="damaged"):
        open_run(tmp_path / "run.tar.gz")


def test_bilm_files_are_found_by_their_published_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("elmo_small_options.json", "elmo_small_weights.hdf5", "vectors.hdf5"):
        (tmp_path / name).write_text(name)
    files = BiLMFiles.in_folder(tmp_path)
    assert (files.options.name, files.weights.name) == ("elmo_small_options.json", "elmo_small_weights.hdf5")
    known = files.fingerprint()
    with monkeypatch.context() as patch:
        patch.delattr(bilm_files, "content_hash")
        assert BiLMFiles.in_folder(tmp_path).fingerprint() == known  # nothing is read again
    files.weights.write_text("other")
    assert files.fingerprint() != known
    (tmp_path / "other_weights.hdf5").write_text("")
    with pytest.raises(WeightsError, match=r"elmo_small_weights\.hdf5, other_weights\.hdf5"):
        BiLMFiles.in_folder(tmp_path)
    with pytest.raises(WeightsError, match="no such folder"):
        BiLMFiles.in_folder(tmp_path / "missing")
