"""Names that are not ASCII, of files, labels and runs, in what commands write and say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import elmo_tasks.runs.train
from elmo_tasks import cli

LABEL, WORD = "GEBÄUDE", "Überlingen"
SENTENCE = f"Mary B-PER\nsaw O\n{WORD} B-{LABEL}\n. O\n\n"


@pytest.fixture
def folder(config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run and files whose names are not ASCII."""
    folder = tmp_path / "größe"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ELMO_TASKS_DATA", "dåta")
    Path("dänisch.txt").write_text(SENTENCE * 20, encoding="utf-8")
    Path("förmchen.jsonl").write_text(json.dumps({"text": f"Mary saw {WORD}.", "ключ": "å"}) + "\n", encoding="utf-8")
    Path("bücher.txt").write_text(f"Mary saw {WORD} .\n", encoding="utf-8")
    trees = (f"1\t{WORD}{number}\t_\tÄDJ{number % 2}\t_\t_\t_\t_\t_\t_\n\n" for number in range(20))
    Path("bäume.conllu").write_text("".join(trees), encoding="utf-8")
    changes = [
        *(f"{name}_data_path=dänisch.txt" for name in ("train", "validation", "test")),
        "trainer.num_epochs=1",
        "dataset_reader.columns=[0, 1]",
    ]
    elmo_tasks.runs.train.train(config_file, "läufe/äpfel", overrides=changes)
    return folder


@pytest.mark.slow
def test_every_command_takes_names_that_are_not_ascii(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, bilm = "läufe/äpfel", "--bilm wälder"
    assert cli.main(["random-bilm", "wälder", "--size", "tiny"]) == 0
    for command, shown in (
        (f"evaluate {run} dänisch.txt --predictions vorhersägen.jsonl --json", f"f1/{LABEL}"),
        (f"predict {run} förmchen.jsonl --json", '"ключ": "å"'),
        (f"errors {run} dänisch.txt --json", LABEL),
        ("errors vorhersägen.jsonl --json", LABEL),
        (f"compare vorhersägen.jsonl {run} dänisch.txt --resamples 10 --json", "vorhersägen.jsonl"),
        (f"neighbors {WORD} --word {WORD} --pool bücher.txt {bilm} --tokenized --json", WORD),
        (f"probe bäume.conllu {bilm} --json", "bäume.conllu"),
    ):
        capsys.readouterr()
        assert cli.main(command.split()) == 0, command
        output = capsys.readouterr().out
        assert shown in output, command
        json.loads(output)
    for command, shown in (
        (f"predict {run} förmchen.jsonl --output prüfung.jsonl", "prüfung.jsonl: 1 result"),
        (f"predict {run} förmchen.jsonl --html säite.html", "säite.html: 1 result"),
        (f"embed bücher.txt --output vektören.npz {bilm}", "vektören.npz: vectors of 1 sentence\n"),
    ):
        assert cli.main(command.split()) == 0, command
        assert shown in capsys.readouterr().err
    for command in (f"archive {run} ärchiv.tar.gz", f"plot {run} --output kürve.svg"):
        assert cli.main(command.split()) == 0, command
        assert capsys.readouterr().out.strip() == command.split()[-1]
    for command in (
        "predict läufe/fehlt_ö bücher.txt", f"predict {run} fehlt_ö", f"evaluate {run} fehlt_ö",
        "train fehlt_ö.jsonnet", "compare fehlt_ö", "errors fehlt_ö", f"embed fehlt_ö --output a.npz {bilm}",
        f"neighbors Mary --word Mary --pool fehlt_ö {bilm}", "probe fehlt_ö", "perplexity fehlt_ö bücher.txt",
        "study fehlt_ö", "report fehlt_ö", "archive fehlt_ö a.tar.gz", "plot fehlt_ö --output a.svg",
        "import-allennlp fehlt_ö run", "config fehlt_ö",
    ):  # fmt: skip
        assert cli.main(command.split()) == 2, command
        assert "fehlt_ö" in capsys.readouterr().err, command
