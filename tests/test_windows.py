"""Commands in processes that find what Windows has, and are refused what it refuses; see `windows/sitecustomize.py`."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.commands.command import COMMANDS
from elmo_tasks.files.paths import portable_name

REPOSITORY = Path(__file__).resolve().parent.parent
PROGRAM = """import json, sys
from elmo_tasks import cli
for command in json.loads(sys.argv[1]):
    print("$", *command, file=sys.stderr)
    if code := cli.main(command):
        raise SystemExit(code)
"""
MODULES = """import contextlib, importlib, pkgutil
import elmo_tasks
from elmo_tasks import cli
for module in pkgutil.walk_packages(elmo_tasks.__path__, "elmo_tasks."):
    if module.name != "elmo_tasks.__main__":
        importlib.import_module(module.name)
for name in cli.COMMANDS:
    with contextlib.suppress(SystemExit):
        cli.main([name, "--help"])
"""
TOKENIZE = """import pathlib
from elmo_tasks.extras.pretraining.tokenize_files import tokenize_files
from elmo_tasks.text.tokenizers import WhitespaceTokenizer
print(*map(ascii, next(tokenize_files([pathlib.Path("in.txt")], WhitespaceTokenizer(), workers=2)).types))
"""


class Computer:
    """A folder with data, in which commands run."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        self.refused = folder / "refused"  # the files that could not be replaced or removed
        path = [str(REPOSITORY / "tests" / "windows"), str(REPOSITORY)]
        own = {"PYTHONPATH": os.pathsep.join(path), "REFUSED_FILES": str(self.refused), "OMP_NUM_THREADS": "1"}
        own |= {"ELMO_TASKS_CACHE": str(folder / "cache"), "PYTHONIOENCODING": "cp437:strict"}
        self.environment = {**os.environ, **own}
        trainer = {**settings["trainer"], "learning_rate_scheduler": {"type": "constant"}}
        (folder / "config.json").write_text(json.dumps({**settings, "trainer": trainer}), encoding="utf-8")
        self.data = settings["test_data_path"]
        (folder / "in.txt").write_text("Alan met Zo\u00eb.\nShe \u201cleft\u201d.\n", encoding="utf-8")

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with (self.folder / "in.txt").open("rb") as stream:
            done = subprocess.run(
                [sys.executable, *arguments],
                stdin=stream,
                capture_output=True,
                encoding="cp437",
                cwd=self.folder,
                env=self.environment,
                timeout=600,
            )
        assert done.returncode == 0, done.stderr
        return done

    def run(self, *commands: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Runs commands one after the other in one process."""
        return self.python("-c", PROGRAM, json.dumps(commands))


@pytest.fixture(scope="module")
def computer(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Computer:
    """A computer with a run of two epochs, of which the second one was trained after the run was resumed."""
    own = Computer(tmp_path_factory.mktemp("windows"), settings)
    train = ("train", "config.json", "-s", "run", "--predictions", "validation", "--set")
    own.run(
        (*train, "trainer.num_epochs=1"),
        (*train, "trainer.num_epochs=2", "--resume"),
        (*train, "trainer.num_epochs=1", "--force"),
        (*train, "trainer.num_epochs=2", "--resume"),
    )
    return own


@pytest.fixture(scope="module")
def printed(computer: Computer) -> list[str]:
    """The lines that a process prints which predicts, tokenizes and imports all modules one after the other."""
    predict = json.dumps([["predict", "run", "-", "--output-format", "jsonl"]])
    return computer.python("-c", f"{PROGRAM}\n{TOKENIZE}\n{MODULES}", predict).stdout.splitlines()


def check_files(computer: Computer) -> None:
    """No file was replaced or removed while it was open, except for locks, and no lock or temporary file is left."""
    refused = computer.refused.read_text(encoding="utf-8").split() if computer.refused.exists() else []
    assert {Path(name).suffix or Path(name).name for name in refused} <= {".lock"}  # which filelock removes on Windows
    assert not [*computer.folder.rglob(".elmo-tasks.*"), *computer.folder.rglob(".lock")]


@pytest.mark.slow
def test_a_run_is_trained_resumed_and_replaced(computer: Computer) -> None:
    metrics = (computer.folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["epoch"] for line in metrics] == [1, 2]
    check_files(computer)


@pytest.mark.slow
def test_files_are_written_twice(computer: Computer) -> None:
    commands = [
        ("predict", "run", "in.txt", "--output", "out.jsonl"),
        ("evaluate", "run", computer.data, "--predictions", "predictions.jsonl"),
        ("archive", "run", "run.tar.gz"),
        ("embed", "in.txt", "--output", "vectors.hdf5"),
    ]
    others = [
        ("models",),
        ("predict", "run", "in.txt", "--output", "parts/"),
        ("predict", "run.tar.gz", "in.txt", "--html", "page.html"),
        ("train", "config.json", "-s", "folds", "--folds", "2", "--set", "trainer.num_epochs=1"),
        ("train", "config.json", "-s", "helped", "--set", "data_loader.num_workers=1", "--set", "trainer.num_epochs=1"),
    ]
    computer.run(*commands, *others, *((*command, "--force") for command in commands))
    assert len((computer.folder / "out.jsonl").read_bytes().splitlines()) == 2
    check_files(computer)


@pytest.mark.slow
def test_lines_are_answered_as_they_come(printed: list[str]) -> None:
    results = [json.loads(line.encode("cp437"))["tokens"][:2] for line in printed[:2]]
    assert results == [["Alan", "met"], ["She", "\u201c"]]


@pytest.mark.slow
def test_damaged_files_of_the_cache_are_replaced(computer: Computer) -> None:
    caches = [*computer.folder.glob("cache/datasets/*/**/*.arrow"), *computer.folder.glob("cache/word_vectors/*")]
    for path in caches:
        content = bytearray(path.read_bytes())
        content[len(content) // 4 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 4)
        path.write_bytes(content)
    done = computer.run(("train", "config.json", "-s", "other", "--set", "trainer.num_epochs=1"))
    assert "damaged" in done.stderr
    check_files(computer)


@pytest.mark.slow
def test_tokens_are_numbered_in_several_processes(printed: list[str]) -> None:
    assert printed[2].split()[:2] == ["'Alan'", "'met'"]


def test_a_checkout_has_names_that_every_system_allows() -> None:
    folders = ("benchmarks", "docs", "elmo_tasks", "notebooks", "tests", "trained_models")
    names = {path.name for folder in folders for path in (REPOSITORY / folder).rglob("*")}
    assert "test_windows.py" in names
    assert [name for name in names if portable_name(name) != name] == []


@pytest.mark.slow
def test_every_module_is_imported_and_every_help_is_printed(printed: list[str]) -> None:
    assert sum(line.startswith("usage: ") for line in printed) == len(COMMANDS)
