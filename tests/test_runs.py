from __future__ import annotations

import contextlib
import json
import math
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_tasks.config import to_json
from elmo_tasks.elmo import TINY_OPTIONS, bilm_files, random_bilm
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
    read_record,
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


@pytest.mark.parametrize(
    ("function", "write"), [("safetensors.torch.save_file", write_tensors), ("torch.save", write_state)]
)
def test_an_interrupted_write_leaves_the_old_file_whole(
    function: str, write: Callable[[Path, dict[str, Tensor]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write(path, {"a": torch.ones(2)})
    before = path.read_bytes()

    def stopped_half_way(values: object, target: Any) -> None:
        with contextlib.ExitStack() as stack:
            stream = target if hasattr(target, "write") else stack.enter_context(open(target, "wb"))
            stream.write(b"half of it")
            raise KeyboardInterrupt

    monkeypatch.setattr(function, stopped_half_way)
    with pytest.raises(KeyboardInterrupt):
        write(path, {"a": torch.zeros(3)})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


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
    folder.versions.write_text("{}")  # of a run that was stopped while it began
    assert folder.claim(config, resume=True, force=False)
    with pytest.raises(RunError, match=r"holds versions\.json, which the run would overwrite"):
        folder.claim(config, resume=False, force=False)
    folder.begin(config)
    assert not folder.claim(config, resume=True, force=False)
    with pytest.raises(RunError, match="holds a run; --resume goes on with it, --force removes it first"):
        folder.claim(config, resume=False, force=False)
    with pytest.raises(RunError, match="holds a run of another config; -s names another folder"):
        folder.claim(other, resume=False, force=False)
    with pytest.raises(RunError, match=r"these keys differ: model\.dropout"):
        folder.claim(other, resume=True, force=False)
    for more in ({**config, "seed": 1}, {"model": {"dropout": 0.5, "size": 3}}, {}):
        with pytest.raises(RunError, match=r"these keys differ: (seed|model\.size|model)$"):
            folder.claim(more, resume=True, force=False)
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
    assert set(folder.files) == {
        value for name, value in vars(folder).items() if name not in ("path", "files", "archive", "begun")
    }
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


def test_a_record_that_is_missing_or_damaged_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    kind = dict[str, Any]
    with pytest.raises(RunError, match=r"metrics\.jsonl: 0 lines; wanted line 1"):
        read_record(path, 1, kind)
    path.write_text('{"loss": NaN}\n{"epo')
    assert math.isnan(read_record(path, 1, kind)["loss"])
    with pytest.raises(RunError, match=r"metrics\.jsonl:2: Invalid JSON: .*; wanted the record of an evaluation"):
        read_record(path, 2, kind)
    with pytest.raises(RunError, match=r"metrics\.jsonl: 2 lines; wanted line 3, the record of an evaluation"):
        read_record(path, 3, kind)


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
    write_json(folder.bilm_reference, reference)
    return folder


@pytest.mark.parametrize("self_contained", [False, True])
def test_an_archive_has_the_bilm_if_wanted_and_leaves_the_run_as_it_is(
    small_run: RunFolder, tmp_path: Path, self_contained: bool
) -> None:
    if self_contained:
        include_bilm(small_run)
    before = sorted(small_run.path.rglob("*"))
    without = {"bilm.json", "config.json", "model.safetensors"}
    for with_bilm, names in ((True, {"bilm/options.json", "bilm/weights.hdf5", *without}), (False, without)):
        write_archive(small_run, tmp_path / "run.tar.gz", with_bilm=with_bilm)
        with tarfile.open(tmp_path / "run.tar.gz") as tar:
            assert set(tar.getnames()) == names
    assert sorted(small_run.path.rglob("*")) == before
    if not self_contained:
        (tmp_path / "small_weights.hdf5").unlink()
        with pytest.raises(RunError, match=r"no longer at .*small_weights\.hdf5"):
            write_archive(small_run, tmp_path / "other.tar.gz", with_bilm=True)
        assert not (tmp_path / "other.tar.gz").exists()


def test_an_archive_names_no_bilm_outside_of_it(small_run: RunFolder, tmp_path: Path) -> None:
    write_archive(small_run, tmp_path / "run.tar.gz", with_bilm=False)
    opened = open_run(tmp_path / "run.tar.gz")
    with pytest.raises(RunError, match=r"run\.tar\.gz: does not contain its biLM.* --set model\.embedder\.elmo\.bilm"):
        opened.bilm_files()
    with pytest.raises(RunError, match=r"run\.tar\.gz: does not contain its biLM"):
        write_archive(opened, tmp_path / "other.tar.gz", with_bilm=True)


def test_packing_reads_no_private_file(small_run: RunFolder, tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.write_text("secret")
    reference = json.loads(small_run.bilm_reference.read_text())
    options = Path(reference["options"])
    for files in (BiLMFiles(private, private), BiLMFiles(options, private)):
        # Even if the hash of the file is known.
        named = {"options": str(files.options), "weights": str(files.weights), "fingerprint": files.fingerprint()}
        write_json(small_run.bilm_reference, named)
        with pytest.raises(WeightsError, match="private"):
            write_archive(small_run, tmp_path / "run.tar.gz", with_bilm=True)
    write_json(small_run.bilm_reference, {**reference, "fingerprint": "0" * 64})
    with pytest.raises(RunError, match="not the biLM that the run was trained with"):
        write_archive(small_run, tmp_path / "run.tar.gz", with_bilm=True)
    write_json(small_run.bilm_reference, reference)
    small_run.metrics.symlink_to(private)
    with pytest.raises(RunError, match=r"metrics\.json: a link to .*private"):
        write_archive(small_run, tmp_path / "run.tar.gz", with_bilm=True)
    assert not (tmp_path / "run.tar.gz").exists()


@pytest.mark.parametrize("content", [b"not an archive", None])
def test_what_is_no_run_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "thing"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RunError, match="thing"):
        open_run(path)


def test_bilm_files_are_found_by_their_published_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("elmo_small_options.json", "elmo_small_weights.hdf5", "vectors.hdf5"):
        (tmp_path / name).write_text(name)
    files = BiLMFiles.in_folder(tmp_path)
    assert (files.options.name, files.weights.name) == ("elmo_small_options.json", "elmo_small_weights.hdf5")
    known = files.fingerprint()
    with monkeypatch.context() as patch:
        patch.delattr(bilm_files, "content_hash")
        assert BiLMFiles.in_folder(tmp_path).fingerprint() == known  # nothing is read again
    for file in (files.options, files.weights):
        before = file.read_text()
        file.write_text("other")
        assert files.fingerprint() != known
        file.write_text(before)
    assert files.fingerprint() == known
    (tmp_path / "other_weights.hdf5").write_text("")
    with pytest.raises(WeightsError, match=r"elmo_small_weights\.hdf5, other_weights\.hdf5"):
        BiLMFiles.in_folder(tmp_path)
    with pytest.raises(WeightsError, match="no such folder"):
        BiLMFiles.in_folder(tmp_path / "missing")


@pytest.mark.parametrize("name", ["metrics.jsonl", "metrics.json", "training.pt"])
def test_a_pipe_in_the_place_of_a_file_is_refused(name: str, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin({"a": 1})
    os.mkfifo(tmp_path / name)
    with pytest.raises(RunError, match=f"{name}: not a regular file"):
        folder.claim({"a": 1}, resume=True, force=False)


def test_a_folder_of_seeds_says_what_it_is(tmp_path: Path) -> None:
    for seed in (1, 2):
        RunFolder(tmp_path / f"seed_{seed}").begin({"a": 1})
    with pytest.raises(
        RunError, match=r"a folder of runs, one for each seed \(seed_1, seed_2\); name one of them, such as .*seed_1"
    ):
        open_run(tmp_path)


def test_resuming_nothing_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert RunFolder(tmp_path).claim({"a": 1}, resume=True, force=False)
    assert "no run to resume there; a new one begins" in caplog.text
