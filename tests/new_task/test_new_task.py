"""The task that CONTRIBUTING.md adds, from outside of the package: it is trained, evaluated and predicted with."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from elmo_tasks import cli
from tests import command_server

HERE = Path(__file__).parent
INCLUDE = ("--include-package", "topics")

TOPICS = {"weather": ("rain", "snow", "wind", "frost"), "kitchen": ("bread", "soup", "salt", "butter")}


def write_data(path: Path, count: int) -> None:
    generator = random.Random(path.name)
    lines = []
    for _ in range(count):
        topic = generator.choice(list(TOPICS))
        one, other = generator.sample(TOPICS[topic], 2)
        lines.append(f"{topic}\tThere was {one} and more {other} .")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_data(tmp_path / "train.tsv", 64)
    write_data(tmp_path / "dev.tsv", 32)
    monkeypatch.chdir(HERE)
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("TOPICS", str(tmp_path))


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(tmp_path / "run")
    assert cli.main(["train", "topics.jsonnet", "-s", run, *INCLUDE]) == 0
    capsys.readouterr()
    assert cli.main(["evaluate", run, str(tmp_path / "dev.tsv"), "--json", *INCLUDE]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 95
    texts = tmp_path / "in.txt"
    texts.write_text("There was soup and more bread.\n", encoding="utf-8")
    assert cli.main(["predict", run, str(texts), *INCLUDE]) == 0
    assert json.loads(capsys.readouterr().out)["topic"] == "kitchen"


@pytest.mark.slow
def test_a_run_names_the_package_that_it_needs_and_does_not_import_it(tmp_path: Path) -> None:
    write_data(tmp_path / "train.tsv", 4)
    run = str(tmp_path / "run")
    changes = ["--set", "trainer.num_epochs=1", "--set", "model.embedder.elmo=null"]
    assert cli.main(["train", "topics.jsonnet", "-s", run, *INCLUDE, *changes]) == 0
    assert json.loads((tmp_path / "run" / "versions.json").read_text())["include-package"] == ["topics"]
    assert cli.main(["archive", run, f"{run}.tar.gz"]) == 0

    # A stranger's file could name any module, or something else.
    shutil.copytree(run, odd := f"{run}_odd")
    (tmp_path / "run_odd" / "versions.json").write_text('{"include-package": ["--set", 1, "this"]}')
    program = (
        "import sys, elmo_tasks\n"
        "for folder in sys.argv[1:]:\n"
        "    try: elmo_tasks.load(folder)\n"
        "    except elmo_tasks.errors.RunError as error: print(error)\n"
        "elmo_tasks.include_packages(['topics'])\n"
        "elmo_tasks.load(sys.argv[1])\n"
    )
    command = [command_server.start(), "-c", program, run, f"{run}.tar.gz", odd]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    wanted = (
        "has parts of other packages; add --include-package topics (in Python, elmo_tasks.include_packages(['topics']))"
    )
    *errors, last = done.stdout.splitlines()
    assert errors == [f"{folder}: {wanted}" for folder in (run, f"{run}.tar.gz")]
    assert "add --include-package this (" in last


def test_a_line_without_a_topic_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.tsv").write_text("kitchen\tSoup .\nSoup .\n", encoding="utf-8")
    assert cli.main(["train", "topics.jsonnet", "-s", str(tmp_path / "run"), *INCLUDE]) == 2
    assert "train.tsv:2: 'Soup .'; expected a topic, a tab and a sentence" in capsys.readouterr().err
