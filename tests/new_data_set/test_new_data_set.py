"""The data set that CONTRIBUTING.md adds to a task that is there: one file, from outside of the package."""

import json
import random
from pathlib import Path

import pytest

from elmo_tasks import cli

HERE = Path(__file__).parent
INCLUDE = ("--include-package", "fasttext_labels")

WORDS = {"good": ("lovely", "bright", "clever"), "bad": ("dull", "slow", "noisy")}


def write_data(path: Path, count: int) -> None:
    generator = random.Random(path.name)
    labels = [generator.choice(list(WORDS)) for _ in range(count)]
    lines = [f"__label__{label} A {generator.choice(WORDS[label])} film .\n" for label in labels]
    path.write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_data(tmp_path / "train.txt", 64)
    write_data(tmp_path / "dev.txt", 32)
    monkeypatch.chdir(HERE)
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("REVIEWS", str(tmp_path))
    return tmp_path


def test_a_head_and_a_predictor_that_are_there_use_it(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(data / "run")
    assert cli.main(["train", "reviews.jsonnet", "-s", run, *INCLUDE]) == 0
    capsys.readouterr()
    assert cli.main(["evaluate", run, str(data / "dev.txt"), "--json", *INCLUDE]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 95
    texts = data / "in.txt"
    texts.write_text("A bright film.\n", encoding="utf-8")
    assert cli.main(["predict", run, str(texts), *INCLUDE]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == "good"


def test_a_line_without_a_label_is_named(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data / "train.txt").write_text("__label__good A film .\nA film .\n", encoding="utf-8")
    assert cli.main(["train", "reviews.jsonnet", "-s", str(data / "run"), *INCLUDE]) == 2
    assert "train.txt:2: 'A film .'; expected __label__LABEL and a text" in capsys.readouterr().err


def test_it_is_named_among_the_readers_that_fit(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change = ("--set", 'dataset_reader={"type": "conllu"}')
    assert cli.main(["train", "reviews.jsonnet", "-s", str(data / "run"), *change, *INCLUDE]) == 2
    assert "Readers that fit: 'delimited', 'fasttext', 'hub', 'jsonl', 'spans', 'sst'" in capsys.readouterr().err
