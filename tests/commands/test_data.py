from __future__ import annotations

from pathlib import Path

import pytest

from elmo_tasks import cli


def test_sample_data_names_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sample-data", str(tmp_path), "--task", "ner", "--sentences", "3,2,1"]
    assert cli.main(command) == 0
    paths = capsys.readouterr().out.splitlines()
    assert paths
    assert all(Path(path).is_file() for path in paths)
    texts = {Path(path).name: Path(path).read_text() for path in paths if "eng." in path}
    sentences = [
        texts[f"eng.{part}"].partition("\n\n")[2].strip().split("\n\n") for part in ("train", "testa", "testb")
    ]
    assert list(map(len, sentences)) == [3, 2, 1]
    Path(paths[0]).write_text("my own")
    assert cli.main(command) == 2
    assert Path(paths[0]).read_text() == "my own"
    assert cli.main([*command, "--force"]) == 0
    assert Path(paths[0]).read_text() != "my own"


@pytest.mark.parametrize("wrong", ["3,2", "4,3,2,1"])
def test_sample_data_has_three_sizes(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sample-data", str(tmp_path), "--sentences", wrong]) == 2
    assert "expected three: training, development, test" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
