"""What all tests share: one thread, a cache of their own, and the real data where it is there."""

import collections
import contextlib
import json
import logging
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import filelock
import pytest
import torch
from accelerate.state import AcceleratorState

import elmo_tasks
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.extras.samples import VECTORS, write_sample_data
from tests import command_server
from tests.browser import MARKS, open_browser
from tests.fake_hub import hub  # noqa: F401 - a fixture
from tests.random_bilm import random_bilm

REPOSITORY = Path(__file__).resolve().parent.parent
# What takes longest. The tests of the page stand together: they share a server.
LONGEST = (
    *("test_documentation.py", "extras/server/page", "test_configs.py", "torture", "extras/teaching", "extras/export"),
    *("test_deleted_extras.py", "test_every_edge.py", "test_windows.py", "test_pictures.py", "test_small_configs.py"),
)

torch.set_num_threads(1)


def pytest_configure(config: pytest.Config) -> None:
    """Several processes of the tests share a server of commands, which imports the package meanwhile."""
    if config.getoption("numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ["COMMAND_SERVER"] = command_server.start()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What asks for a browser is slow, wherever it stands. What takes longest runs first: no process waits for it.

    The other files follow with most slow tests first, so that small ones come last.
    """
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            for mark in MARKS:
                item.add_marker(mark)
    slow = collections.Counter(item.path for item in items if item.get_closest_marker("slow"))

    def place(path: Path) -> tuple[int, int]:
        name = path.relative_to(REPOSITORY / "tests").as_posix()
        return next((at for at, each in enumerate(LONGEST) if name.startswith(each)), len(LONGEST)), -slow[path]

    items.sort(key=lambda item: place(item.path))


@pytest.fixture(scope="session", autouse=True)
def isolated_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Derived data goes to a temporary folder, so that no test sees what an earlier run left behind."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMO_TASKS_CACHE", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def fresh_accelerator() -> Iterator[None]:
    """Accelerate keeps device and precision for the whole process; each test chooses its own."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture(autouse=True)
def fresh_logging() -> Iterator[None]:
    """Commands set the package's handlers and level for the whole process; each test begins with Python's defaults."""
    package = logging.getLogger("elmo_tasks")
    yield
    package.handlers = []
    package.setLevel(logging.NOTSET)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as opened:
        yield opened


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """The test runs in a terminal of 200 columns. The function gives what was shown since, without colours."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    monkeypatch.setenv("COLUMNS", "200")
    return lambda: re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT has Python's own handler, also where a shell has it ignored."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.fixture
def room() -> Callable[[int], AbstractContextManager[None]]:
    """A function for `with` blocks in which a file with more bytes cannot be written, as on a full disk."""

    @contextlib.contextmanager
    def limited(num_bytes: int) -> Iterator[None]:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
        written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # Python would keep truncated code
        try:
            yield
        finally:
            sys.dont_write_bytecode = written
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    return limited


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real benchmark data: `ELMO_TASKS_DATA`, or `../shared/data` next to the repository."""
    chosen = os.environ.get("ELMO_TASKS_DATA")
    folder = Path(chosen) if chosen else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not a folder (set ELMO_TASKS_DATA)")
    return folder


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all processes of the tests."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def shared_trainings(shared_folder: Path) -> Path:
    """Where the pages keep finished trainings for each other, in all processes of the tests."""
    return Path(os.environ.get("SHARED_TRAININGS", shared_folder / "shared_trainings"))


@pytest.fixture(scope="session")
def made_once(shared_folder: Path) -> Callable[[str, Callable[[Path], object]], Path]:
    """A function that has a folder filled by the first process of the tests that asks for it. Not to be changed."""

    def folder(name: str, fill: Callable[[Path], object]) -> Path:
        made, done = shared_folder / name, shared_folder / f"{name}.done"
        with filelock.FileLock(f"{made}.lock"):
            if not done.exists():
                fill(made)
                done.touch()
        return made

    return folder


# A small experiment on sample data, with a tiny ELMo: everything that a run consists of, in a second or two.


@pytest.fixture(scope="session")
def sample_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sample data for the tagger, with documents of five sentences to learn from, and a tiny random biLM in `bilm`."""
    folder = tmp_path_factory.mktemp("sample")
    write_sample_data(folder, "ner", sentences=(50, 12, 12))
    training = folder / "ner_conll2003" / "eng.train"
    sentences = training.read_text(encoding="utf-8").strip().split("\n\n")
    for start in range(0, 50, 5):
        sentences[start] = f"-DOCSTART- -X- -X- O\n\n{sentences[start]}"
    training.write_text("".join(f"{sentence}\n\n" for sentence in sentences), encoding="utf-8")
    random_bilm(TINY_OPTIONS, seed=1).save(folder / "bilm" / "options.json", folder / "bilm" / "weights.hdf5")
    return folder


@pytest.fixture(scope="session")
def settings(sample_folder: Path) -> dict[str, Any]:
    """The experiment's config as plain values, every random thing in use."""
    return {
        "dataset_reader": {"type": "conll2003"},
        "train_data_path": str(sample_folder / "ner_conll2003" / "eng.train"),
        "validation_data_path": str(sample_folder / "ner_conll2003" / "eng.testa"),
        "test_data_path": str(sample_folder / "ner_conll2003" / "eng.testb"),
        "vocabulary": {"lowercase_words": True},
        "model": {
            "type": "crf_tagger",
            "embedder": {
                "words": {"size": 50, "vectors": str(sample_folder / VECTORS), "unknown_probability": 0.1},
                "characters": {"embedding_size": 4, "filters": 6},
                "elmo": {
                    "options": str(sample_folder / "bilm" / "options.json"),
                    "weights": str(sample_folder / "bilm" / "weights.hdf5"),
                },
            },
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": [8, 6], "dropout": 0.3},
            "dropout": 0.3,
        },
        "data_loader": {"batch_size": 8},
        "trainer": {
            "num_epochs": 3,
            "validation_metric": "+f1",
            "optimizer": {"type": "adam", "lr": 0.02},
            "learning_rate_scheduler": {"type": "linear_decay", "warmup_steps": 2},
            "grad_norm": 5.0,
            "moving_average": {"decay": 0.9},
            "regularizers": [{"parameters": "mixes.*weights", "l2": 0.1}],
            "device": "cpu",
        },
        "random_seed": 3,
    }


@pytest.fixture(scope="session")
def short_run(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one epoch. Not to be changed."""
    folder = tmp_path_factory.mktemp("short") / "run"
    elmo_tasks.train(settings, folder, overrides={"trainer.num_epochs": 1})
    return folder


@pytest.fixture
def config_file(settings: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return path


@pytest.fixture
def favour_spans(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """A function that has a tagger, which has hardly learned anything, find a span at each token."""

    def favour(model: Any) -> None:
        single = "U-" if any(tag.startswith("U-") for tag in model.labels) else "B-"
        added = torch.tensor([9.0 * tag.startswith(single) for tag in model.labels])
        monkeypatch.setattr(model.projection.bias, "data", model.projection.bias.data + added)

    return favour


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], tuple[str, list[list[str]]]]:
    """A function that gives what was printed since its last call: the text, and the cells of its tables, by row."""

    def read() -> tuple[str, list[list[str]]]:
        text = capsys.readouterr().out
        rows = [line.replace("┃", "│").strip("│\n") for line in text.splitlines() if line[:1] in ("│", "┃")]
        return text, [[cell.strip() for cell in row.split("│")] for row in rows]

    return read
