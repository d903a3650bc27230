"""What `import-allennlp` says."""

from unittest.mock import Mock

import pytest

import elmo_tasks.extras.allennlp.importing
from elmo_tasks import cli
from elmo_tasks.extras.allennlp.importing import Imported


def test_an_import_says_what_it_made_and_what_it_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    imported = Imported("crf_tagger", notes=("one note", "another"), unread=("a.b", "c"), label_names={})
    monkeypatch.setattr(elmo_tasks.extras.allennlp.importing, "import_allennlp", Mock(return_value=imported))
    assert cli.main(["import-allennlp", "model.tar.gz", "runs/ner"]) == 0
    lines = ["runs/ner: AllenNLP's crf_tagger", "- one note", "- another", "- without a meaning here: a.b, c"]
    assert capsys.readouterr().out.splitlines() == lines
    imported = Imported("crf_tagger", notes=imported.notes, unread=(), label_names={})
    monkeypatch.setattr(elmo_tasks.extras.allennlp.importing, "import_allennlp", Mock(return_value=imported))
    assert cli.main(["import-allennlp", "model.tar.gz", "runs/ner"]) == 0
    assert capsys.readouterr().out.splitlines() == lines[:-1]
