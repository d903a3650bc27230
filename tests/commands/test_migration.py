"""What `import-allennlp` says."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import elmo_tasks.migration.importing
from elmo_tasks import cli


def test_an_import_says_what_it_made_and_what_it_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = SimpleNamespace(kind="crf_tagger", notes=["one note", "another"], unread=("a.b", "c"))
    load = Mock(return_value=imported)
    monkeypatch.setattr(elmo_tasks.migration.importing, "import_allennlp", load)
    assert cli.main(["import-allennlp", "model.tar.gz", "runs/ner", "--bilm", "bilm", "--force"]) == 0
    assert load.call_args.args == ("model.tar.gz", "runs/ner")
    assert load.call_args.kwargs == {"bilm": "bilm", "force": True}
    lines = ["runs/ner: AllenNLP's crf_tagger", "- one note", "- another", "- without a meaning here: a.b, c"]
    assert capsys.readouterr().out.splitlines() == lines
    imported.unread = ()
    assert cli.main(["import-allennlp", "model.tar.gz", "runs/ner"]) == 0
    assert load.call_args.kwargs == {"bilm": None, "force": False}
    assert capsys.readouterr().out.splitlines() == lines[:-1]
