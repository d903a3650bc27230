"""The folder of a run: what it holds, and what can be done with it."""

import json
import os
from pathlib import Path

import pytest
import torch

from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.errors import RunError, WeightsError
from elmo_tasks.extras.pretraining.pretrain import PretrainingFolder
from elmo_tasks.files import cache
from elmo_tasks.files.tensor_files import write_tensors
from elmo_tasks.runs.folder import Folder, RunFolder
from elmo_tasks.runs.plan import plan_folder


@pytest.mark.parametrize("kind", [RunFolder, PretrainingFolder])
def test_clear_removes_what_the_list_names_and_leaves_other_files_alone(kind: type[Folder], tmp_path: Path) -> None:
    folder = kind(tmp_path)
    paths = {value for name, value in vars(folder).items() if isinstance(value, Path) and name not in ("path", "folds")}
    for model in folder.frozen_models if isinstance(folder, RunFolder) else ():
        paths |= {model.reference, model.copies}
    if isinstance(folder, PretrainingFolder):
        paths |= {tmp_path / name for name in ("options.json", "weights.hdf5", "vocabulary.txt", "softmax.safetensors")}
    assert set(folder.files) == paths
    for path in folder.files:
        path.write_text("{}")
    folder.tensorboard.unlink()
    folder.tensorboard.mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    assert folder.is_started()
    folder.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_bilm_files_are_found_by_their_published_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("elmo_small_options.json", "elmo_small_weights.hdf5", "vectors.hdf5"):
        (tmp_path / name).write_text(name)
    files = BiLMFiles.in_folder(tmp_path)
    assert (files.options.name, files.weights.name) == ("elmo_small_options.json", "elmo_small_weights.hdf5")
    known = files.fingerprint()
    with monkeypatch.context() as patch:
        patch.delattr(cache, "content_hash")
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
    folder.create({"a": 1})
    os.mkfifo(tmp_path / name)
    with pytest.raises(RunError, match=f"{name}: not a regular file"):
        plan_folder(folder, {"a": 1}, resume=True, force=False)


def test_only_a_run_that_resumes_may_find_what_a_beginning_has_left(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.versions.write_text("{}")
    assert plan_folder(folder, {"a": 1}, resume=True, force=False).begins
    with pytest.raises(RunError, match=r"holds versions\.json, which the run would overwrite; choose another"):
        plan_folder(folder, {"a": 1}, resume=False, force=False)
    folder.model.write_text("{}")
    with pytest.raises(RunError, match=r"holds model\.safetensors, which the run would overwrite; choose another"):
        plan_folder(folder, {"a": 1}, resume=True, force=False)
    assert plan_folder(folder, {"a": 1}, resume=False, force=True).begins


def test_the_packages_of_a_run_s_parts_are_remembered_in_order(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.create({"a": 1}, ["mine.two", "mine", "a_third"])
    assert folder.included_packages() == ["a_third", "mine", "mine.two"]
    folder.versions.write_text(json.dumps({"include-package": ["mine", "rm -rf", 3]}))
    assert folder.included_packages() == ["mine"]  # a stranger's run may name anything
    for content in ("{}", '{"include-package": "mine"}', "["):
        folder.versions.write_text(content)
        assert folder.included_packages() == []
    folder.create({"a": 1})
    assert "include-package" not in json.loads(folder.versions.read_text())


def test_the_first_three_tensors_that_do_not_fit_are_named(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    write_tensors(folder.frozen, {"a": torch.ones(2), "b": torch.ones(3)})
    write_tensors(folder.model, {"c": torch.ones(1, 2)})
    right = {"a": (2,), "b": (3,), "c": (1, 2)}
    folder.check_tensors(right)
    three = {"a": (2,), "b": (4,), "d": (5,)}
    named = r"b is \(3,\) \(expected \(4,\)\), c is \(1, 2\) \(expected none\), d is not there \(expected \(5,\)\)"
    with pytest.raises(RunError, match=rf"^{tmp_path}: the weights do not fit the config: {named}$"):
        folder.check_tensors(three)
    with pytest.raises(RunError, match=rf"{named} and 1 more$"):
        folder.check_tensors({**three, "e": ()})
