"""What `import-allennlp` says."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import elmo_tasks.migration.importing
from elmo_tasks import cli
from tests.migration.heads import write


def test_an_import_says_what_it_made_and_what_it_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = SimpleNamespace(kind="crf_tagger", notes=["one note", "another"], unread=("a.b", "c"))
    monkeypatch.setattr(elmo_tasks.migration.importing, "import_allennlp", Mock(return_value=imported))
    assert cli.main(["import-allennlp", "model.tar.gz", "runs/ner"]) == 0
    lines = ["runs/ner: AllenNLP's crf_tagger", "- one note", "- another", "- without a meaning here: a.b, c"]
    assert capsys.readouterr().out.splitlines() == lines
    imported.unread = ()
    assert cli.main(["import-allennlp", "model.tar.gz", "runs/ner"]) == 0
    assert capsys.readouterr().out.splitlines() == lines[:-1]


def test_a_folder_of_archives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "old"
    old.mkdir()
    write("srl", old / "roles.tar.gz")
    (old / "0f3a.e51b").write_bytes((old / "roles.tar.gz").read_bytes())  # a file of AllenNLP's cache
    write("srl", old / "parser.tar.gz", {"model.type": "biaffine_parser"})
    (old / "notes.txt").write_text("no archive")
    (old / "table.gz").write_bytes(gzip.compress(b"no archive"))
    assert cli.main(["import-allennlp", str(old), str(tmp_path / "runs")]) == 2
    found = capsys.readouterr()
    first, second, third = [line for line in found.out.splitlines() if not line.startswith("- ")]
    assert first == f"{tmp_path}/runs/0f3a.e51b: AllenNLP's srl"
    assert second.startswith(f"{old}/parser.tar.gz: ")
    assert "biaffine_parser" in second
    assert third == f"{tmp_path}/runs/roles: AllenNLP's srl"
    assert found.err == "error: 1 of 3 archives cannot be imported\n"
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["0f3a.e51b", "roles"]
    (old / "parser.tar.gz").unlink()
    assert cli.main(["import-allennlp", str(old), str(tmp_path / "runs"), "--force"]) == 0
