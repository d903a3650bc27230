from __future__ import annotations

from pathlib import Path

import pytest

from elmo_tasks import cli


def test_sample_data_names_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    command = ["sample-data", str(tmp_path), "--task", "ner", "--sentences", "3,2,1"]
    assert cli.main(command) == 0
    paths = capsys.readouterr().out.splitlines()
    assert paths
    assert f"to train on these files instead: ELMO_TASKS_DATA={tmp_path} elmo-tasks train NAME" in caplog.text
    assert all(Path(path).is_file() for path in paths)
    texts = {Path(path).name: Path(path).read_text() for path in paths if "eng." in path}
    sentences = [texts[f"eng.{part}"].strip().split("\n\n") for part in ("train", "testa", "testb")]
    assert list(map(len, sentences)) == [3, 2, 1]
    Path(paths[0]).write_text("my own")
    assert cli.main(command) == 2
    assert Path(paths[0]).read_text() == "my own"
    assert cli.main([*command, "--force"]) == 0
    assert Path(paths[0]).read_text() != "my own"


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "is_said"), [("data", True), ("read", False), ("runs/quickstart-data", False)])
def test_sample_data_says_if_the_configs_read_other_data(
    folder: str, is_said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMO_TASKS_DATA", "read")
    assert cli.main(["sample-data", folder, "--task", "ner", "--sentences", "3,2,1"]) == 0
    assert ("the configs read read; to train on these files instead: ELMO_TASKS_DATA=data" in caplog.text) == is_said
