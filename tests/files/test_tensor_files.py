"""Tensors and training states: written and read, interrupted, damaged."""

import contextlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.torch_version import TorchVersion

from elmo_tasks.errors import RunError, WeightsError
from elmo_tasks.extras.weights.foreign_files import read_pickled_tensors
from elmo_tasks.files.tensor_files import (
    read_state,
    read_tensors,
    tensor_shapes,
    write_state,
    write_tensors,
)


def test_tensors_and_states_go_round(tmp_path: Path) -> None:
    tensors = {"a": torch.arange(6.0).view(2, 3).t(), "b": torch.tensor(1.0)}
    write_tensors(tmp_path / "x.safetensors", tensors)
    assert all(tensor.equal(tensors[name]) for name, tensor in read_tensors(tmp_path / "x.safetensors").items())
    write_state(tmp_path / "x.pt", {"tensor": torch.ones(2), "numbers": [1, 2.5, None], "text": "t"})
    assert read_state(tmp_path / "x.pt")["numbers"] == [1, 2.5, None]


def test_tensors_may_be_read_by_whom_other_files_are_and_outlast_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    (tmp_path / "other").touch()
    for _ in range(2):
        write_tensors(tmp_path / "x.safetensors", {"a": torch.ones(2)})
        written = (tmp_path / "x.safetensors").stat()
        assert written.st_mode == (tmp_path / "other").stat().st_mode
        assert written.st_ino in synced
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "x.safetensors"]


@pytest.mark.parametrize(
    ("function", "write"), [("safetensors.torch.save_file", write_tensors), ("torch.save", write_state)]
)
def test_an_interrupted_write_leaves_the_old_file_whole(
    function: str, write: Callable[[Path, dict[str, Tensor]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write(path, {"a": torch.ones(2)})
    before = path.read_bytes()

    def stopped_half_way(values: object, target: Any, *_: object) -> None:
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
    readers: dict[str, Callable[[Path], object]] = {"x.safetensors": read_tensors, "x.pt": read_state}
    for name, read in readers.items():
        for content in ((tmp_path / name).read_bytes()[:60], b"neither of them"):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(RunError, match=rf"{name}: damaged"):
                read(tmp_path / name)
    with pytest.raises(RunError, match="no such file"):
        read_tensors(tmp_path / "y.safetensors")


def test_values_that_are_not_numbers_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tensors = {"a": torch.ones(2, dtype=torch.int64), "b": torch.tensor([1.0, math.inf])}  # as a threshold may be
    write_tensors(path, tensors)
    assert read_tensors(path)["b"].isinf().any()
    write_tensors(path, {**tensors, "b": torch.tensor([1.0, math.nan])})
    with pytest.raises(RunError, match=rf"^{path}: damaged \(b has values that are not numbers\)$"):
        read_tensors(path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"a": Path("code")}, r"it contains more than tensors, perhaps code, which is not run\)$"),
        ([1], "holds a list; expected a state dict"),
        ({"a": 1}, "'a' is not a tensor; expected a state dict of tensors"),
        ({1: torch.ones(1)}, "'1' is not a tensor"),
        ({"a": torch.ones(2, 2).to_sparse()}, "'a' is not a tensor"),
        (None, "damaged, or not a state dict"),
    ],
)
def test_a_state_dict_of_another_program_holds_tensors_and_nothing_else(
    content: Any, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "weights.th"
    if content is None:
        path.write_bytes(b"not a file of torch")
    else:
        torch.save(content, path)
    with pytest.raises(WeightsError, match=rf"^{path}: .*{problem}|^{path}: {problem}"):
        read_pickled_tensors(path, WeightsError)


def test_a_torch_that_may_run_code_in_a_pickle_reads_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"a": torch.ones(2)}, tmp_path / "weights.th")
    monkeypatch.setattr(torch, "__version__", TorchVersion("2.9.1"))
    with pytest.raises(WeightsError, match=r"weights\.th: torch 2\.9\.1 may run code in such a file; install 2\.10 or"):
        read_pickled_tensors(tmp_path / "weights.th", WeightsError)


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path: Path) -> None:
    for read, expected in ((read_tensors, "tensors as safetensors"), (tensor_shapes, "tensors as safetensors"),
                         (read_state, r"a training state; --force \(force=True\) begins the run again")):  # fmt: skip
        with pytest.raises(RunError, match=rf"^{tmp_path}: not a regular file; expected {expected}$"):
            read(tmp_path)
    for state, reason in (
        ([1], r"a list\); --force \(force=True\) begins"),
        ({"code": Path("a")}, "Weights only load"),
    ):
        torch.save(state, tmp_path / "x.pt")
        with pytest.raises(RunError, match=rf"x\.pt: damaged, or not a training state \({reason}"):
            read_state(tmp_path / "x.pt")


def test_shapes_are_read_without_the_tensors(tmp_path: Path) -> None:
    write_tensors(tmp_path / "x.safetensors", {"a": torch.ones(2, 3), "b": torch.tensor(1.0)})
    assert tensor_shapes(tmp_path / "x.safetensors") == {"a": (2, 3), "b": ()}


def test_a_number_that_is_repeated_endlessly_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.th"
    torch.save({"a": torch.ones(1).expand(1 << 34)}, path)
    with pytest.raises(RunError, match=r"weights\.th: unpacks to 68,719,476,736 bytes; expected at most"):
        read_pickled_tensors(path, RunError)
    torch.save({"a": torch.ones(3).expand(2, 3)}, path)
    assert read_pickled_tensors(path, RunError)["a"].equal(torch.ones(2, 3))
