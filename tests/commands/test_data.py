from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

import elmo_tasks.sample_data
from elmo_tasks import cli


@pytest.mark.slow
def test_sample_data_names_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sample-data", str(tmp_path), "--task", "ner", "--sentences", "3,2,1"]) == 0
    paths = capsys.readouterr().out.splitlines()
    assert paths
    assert all(Path(path).is_file() for path in paths)
    assert cli.main(["sample-data", str(tmp_path), "--task", "ner", "--sentences", "3,2"]) == 2
    assert "expected three" in capsys.readouterr().err


def test_sample_data_passes_on_its_arguments(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = Mock(return_value=[Path("d/one"), Path("d/two")])
    monkeypatch.setattr(elmo_tasks.sample_data, "write_sample_data", write)
    assert cli.main(["sample-data", "d"]) == 0
    assert (write.call_args.args, write.call_args.kwargs) == (("d", "all", 13, (1000, 200, 200)), {"force": False})
    assert capsys.readouterr().out == "d/one\nd/two\n"
    assert cli.main(["sample-data", "d", "--task", "ner", "--seed", "2", "--sentences", "3,2,1", "--force"]) == 0
    assert (write.call_args.args, write.call_args.kwargs) == (("d", "ner", 2, (3, 2, 1)), {"force": True})
    for wrong in ("3,2", "4,3,2,1"):
        assert cli.main(["sample-data", "d", "--sentences", wrong]) == 2
        assert "expected three: training, development, test" in capsys.readouterr().err
    assert write.call_count == 2
