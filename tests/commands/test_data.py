from __future__ import annotations

from pathlib import Path

import pytest

from elmo_tasks import cli


@pytest.mark.slow
def test_sample_data_names_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sample-data", str(tmp_path), "--task", "ner", "--sentences", "3,2,1"]) == 0
    paths = capsys.readouterr().out.splitlines()
    assert paths
    assert all(Path(path).is_file() for path in paths)
