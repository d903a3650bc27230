"""The commands that write files, with what they begin from and what they leave."""

import builtins
import dataclasses
import functools
import io
import json
import os
import re
import shutil
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.torture.workshop import apart, fork, wait_for

_CALLS = (
    *((os, name) for name in ("replace", "rename", "fsync", "unlink", "rmdir", "mkdir", "open", "chmod", "utime")),
    (io, "open"),
    (builtins, "open"),
)
_MEASURES = "measures.json"  # of an undisturbed run
_MEASURED = ("seconds", "recent_seconds", "trained_hours", "training_seconds")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A command that writes.

    Arguments:
        command: its arguments; `{shop}` and `{here}` stand for the workshop and the folder to write to.
        outputs: what it leaves in the folder, which must always be the same.
        more: the arguments that are added when it is called again after it was stopped.
        start: what of the workshop is copied to the folder first, and under which name.
        weight: how often it is drawn, compared with others.
    """

    name: str
    command: str
    outputs: tuple[str, ...]
    more: str = ""
    start: tuple[tuple[str, str], ...] = ()
    weight: float = 1.0

    def prepare(self, shop: Path, here: Path) -> None:
        for source, name in self.start:
            if (shop / source).is_dir():
                shutil.copytree(shop / source, here / name)
            else:
                shutil.copyfile(shop / source, here / name)

    def run(self, shop: Path, here: Path, *, again: bool = False) -> int:
        """Runs the command in this process, with a cache in the folder, and returns its exit code."""
        from elmo_tasks import cli
        from elmo_tasks.errors import ElmoTasksError

        os.environ["ELMO_TASKS_CACHE"] = str(here / "cache")
        text = f"{self.command} {self.more if again else ''}"
        arguments = [part.format(shop=shop, here=here) for part in text.split()]
        if arguments != ["fill"]:
            return cli.main(arguments)
        try:
            fill(shop, here)
        except ElmoTasksError as error:
            print(f"error: {error}")
            return cli.USER_ERROR
        return 0


_TRAIN, _PRETRAIN = "train {shop}/tagger.json -s {here}/run", "pretrain {shop}/pretraining.json -s {here}/run"

SCENARIOS = (
    Scenario("train", _TRAIN, ("run",), more="--resume", weight=3),
    Scenario("train --self-contained", f"{_TRAIN} --self-contained", ("run",), more="--resume"),
    Scenario("train --force", f"{_TRAIN} --force", ("run",), start=(("other", "run"),)),
    Scenario("train --seeds", f"{_TRAIN} --seeds 1,2", ("run",), more="--resume", weight=0.5),
    Scenario("train --resume", f"{_TRAIN} --resume", ("run",), start=(("half", "run"),), weight=2),
    Scenario("pretrain", _PRETRAIN, ("run",), more="--resume", weight=2),
    Scenario("pretrain --resume", f"{_PRETRAIN} --resume", ("run",), start=(("half_pretrained", "run"),)),
    Scenario("pretrain --dry-run", "pretrain {shop}/pretraining.json --dry-run", ("cache/corpora",)),
    Scenario("fill the layer cache", "fill", ("layers.npy",), weight=2),
    Scenario("archive", "archive {shop}/run {here}/run.tar.gz", ("run.tar.gz",), more="--force", weight=2),
    Scenario(
        "embed hdf5",
        "embed {shop}/text.txt --output {here}/x.hdf5 --bilm {shop}/bilm",
        ("x.hdf5",),
        more="--force",
        weight=2,
    ),
    Scenario("embed npz", "embed {shop}/text.txt --output {here}/x.npz --bilm {shop}/bilm", ("x.npz",), more="--force"),
    Scenario(
        "embed parts", "embed {shop}/text.txt --output {here}/x/ --bilm {shop}/bilm --part-tokens 20", ("x",), weight=2
    ),
    Scenario(
        "predict", "predict {shop}/run {shop}/text.txt --output {here}/x.jsonl", ("x.jsonl",), more="--force", weight=2
    ),
    Scenario(
        "predict from an archive",
        "predict {here}/run.tar.gz {shop}/text.txt --output {here}/x.jsonl",
        ("x.jsonl",),
        more="--force",
        start=(("run.tar.gz", "run.tar.gz"),),
        weight=2,
    ),
    Scenario(
        "evaluate",
        "evaluate {shop}/run {shop}/test.txt --predictions {here}/x.jsonl --output {here}/x.json",
        ("x.jsonl", "x.json"),
        more="--force",
        weight=2,
    ),
    Scenario(
        "sample-data", "sample-data {here}/data --task ner --sentences 3,2,2", ("data",), more="--force", weight=0.2
    ),
)


def reference(shop: Path, scenario: Scenario) -> Path:
    """The folder that an undisturbed run of a scenario fills, when it is first asked for."""
    folder = shop / "references" / scenario.name.replace(" ", "-")
    if not (folder / _MEASURES).exists():
        folder.mkdir(parents=True)
        scenario.prepare(shop, folder)
        started, run = time.monotonic(), functools.partial(scenario.run, shop, folder)
        counts = folder / "calls.json"
        apart(lambda: before_call(0, run, lambda: None, counts), shop / "log.txt")
        measures = [json.loads(counts.read_text()), time.monotonic() - started]
        (folder / _MEASURES).write_text(json.dumps(measures))
    return folder


def measures(shop: Path, scenario: Scenario) -> tuple[int, float]:
    """How many calls that change files an undisturbed run makes, and its seconds."""
    calls, seconds = json.loads((reference(shop, scenario) / _MEASURES).read_text())
    return calls, seconds


def before_call(nth: int, command: Callable[[], Any], action: Callable[[], object], counts: Path | None = None) -> Any:
    """Runs a command, and an action right before its nth call of a function that changes files.

    Arguments:
        counts: where the number of calls is written at the end.
    """
    made = 0

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any, **settings: Any) -> Any:
            nonlocal made
            mode = settings.get("mode", arguments[1] if len(arguments) > 1 else "r")
            if function.__name__ != "open" or not isinstance(mode, str) or set(mode) & set("wax+"):
                made += 1
                if made == nth:
                    action()
            return function(*arguments, **settings)

        return call

    for module, name in _CALLS:
        setattr(module, name, watched(getattr(module, name)))
    code = command()
    if counts:
        counts.write_text(json.dumps(made))
    return code


def fill(shop: Path, here: Path) -> None:
    """Fills a layer cache, and writes all of its layers to `layers.npy`."""
    import numpy as np

    from elmo_tasks.elmo import BiLM, FastBiLM
    from elmo_tasks.elmo.frozen_layers import LayerCacheConfig
    from tests.elmo.layer_store.fillers import CPU, Provider

    sentences = [line.split() for line in (shop / "text.txt").read_text().splitlines() if line]
    bilm = BiLM.load(shop / "bilm" / "options.json", shop / "bilm" / "weights.hdf5")
    store = LayerCacheConfig().build("f" * 64, "float32", 3, bilm.output_size)
    layers = Provider(lambda: FastBiLM(bilm), store)
    for count in range(2, len(sentences) + 2, 2):
        layers.fill(sentences[:count], CPU)
    output, missing = store.read(sentences)
    assert not missing
    np.save(here / "layers.npy", output.layers.numpy())


def finish(scenario: Scenario, shop: Path, here: Path) -> None:
    """Calls a stopped command again, and checks that it leaves what an undisturbed run leaves, and nothing else."""
    assert_whole(here)
    let_a_day_pass(here)
    log = here / "log.txt"
    code = wait_for(fork(lambda: scenario.run(shop, here, again=True), log))
    assert code == 0, f"the next call ended with {code}:\n{log.read_text(errors='replace')[-3000:]}"
    assert_whole(here)
    assert_same(scenario, shop, here)
    left = [str(path.relative_to(here)) for path in here.rglob("*") if is_temporary(path)]
    shown = {re.sub(r"[.][^.]+[.]tmp$|(?<=tmp).+", "*", name) for name in left}
    assert not left, f"temporary files are left: {', '.join(sorted(shown))}"


def let_a_day_pass(here: Path) -> None:
    """Makes temporary files old: the next call that writes to their folder only removes what is older than a day."""
    for path in here.rglob(".elmo-tasks.*"):
        for each in (path, *path.rglob("*")):
            os.utime(each, (0, 0))


def assert_same(scenario: Scenario, shop: Path, here: Path) -> None:
    """Fails if what a command has left is not what an undisturbed run leaves."""
    actual, expected = (contents(each, scenario.outputs) for each in (here, reference(shop, scenario)))
    different = sorted(name for name in actual.keys() | expected.keys() if actual.get(name) != expected.get(name))
    assert not different, f"not the same as an undisturbed run leaves: {', '.join(different)}"


def is_temporary(path: Path) -> bool:
    return path.name.endswith((".tmp", "-journal", ".incomplete")) or path.name.startswith("tmp")


def assert_whole(folder: Path) -> None:
    """Fails if a file under its final name cannot be read."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(is_temporary(Path(part)) for part in parts):
            try:
                _content(path)
            except Exception as error:
                raise AssertionError(f"torn file {path.relative_to(folder)}: {error!r}") from error


def contents(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """What files hold, apart from times, by their paths below a folder; files of folders one by one."""
    paths = [path for name in names for path in (folder / name, *(folder / name).rglob("*"))]
    return {
        str(path.relative_to(folder)): _content(path) for path in paths if path.is_file() and not is_temporary(path)
    }


def _content(path: Path) -> Any:
    """A file's content, in a form that can be compared; raises if the file is not valid."""
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as tar:
            return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    if path.suffix in _READABLE:
        _READABLE[path.suffix](path)
        return path.read_bytes()
    readers: Mapping[str, Callable[[Path], Any]] = {
        ".json": lambda path: _timeless(json.loads(path.read_bytes())),
        ".jsonl": lambda path: [_timeless(json.loads(line)) for line in path.read_bytes().splitlines()],
        ".pt": _torch,
        ".sqlite": _sqlite,
    }
    return readers.get(path.suffix, Path.read_bytes)(path)


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(each) for key, each in value.items() if key.rpartition("/")[2] not in _MEASURED}
    return [_timeless(each) for each in value] if isinstance(value, list) else value


def _hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: item[...].nbytes and None if isinstance(item, h5py.Dataset) else None)


def _numpy(path: Path) -> None:
    import numpy as np

    loaded = np.load(path)
    if path.suffix == ".npz":
        with loaded:
            assert all(loaded[name].nbytes >= 0 for name in loaded.files)


def _parquet(path: Path) -> None:
    import pyarrow.parquet as pq

    pq.read_table(path)


def _safetensors(path: Path) -> None:
    from safetensors.torch import load_file

    load_file(path)


_READABLE: dict[str, Callable[[Path], None]] = {
    ".safetensors": _safetensors, ".hdf5": _hdf5, ".npz": _numpy, ".npy": _numpy, ".parquet": _parquet
}  # fmt: skip
"""Reads files whose bytes are compared."""


def _torch(path: Path) -> Any:
    import torch

    def plain(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return str(value.dtype), tuple(value.shape), value.numpy().tobytes()
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key not in _MEASURED}
        return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value

    return plain(torch.load(path, map_location="cpu", weights_only=True))


def _sqlite(path: Path) -> None:
    """Checks a copy, since opening the file would undo what a killed process has left half done."""
    with tempfile.TemporaryDirectory() as name:
        for each in path.parent.glob(f"{path.name}*"):
            shutil.copyfile(each, Path(name) / each.name)
        connection = sqlite3.connect(Path(name) / path.name)
        try:
            (result,) = connection.execute("PRAGMA integrity_check").fetchone()
            assert result == "ok", result
        finally:
            connection.close()
