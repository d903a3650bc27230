"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmo_tasks import cli
from elmo_tasks.commands.arguments import default_run_folder


@pytest.mark.parametrize("command", ["embed", "neighbors", "perplexity", "predict"])
def test_commands_that_read_text_have_the_same_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--tokenizer NAME how raw text is split into sentences and tokens: treebank (English), unicode" in text
    assert "--tokenized the text is not raw: one sentence per line, with spaces between its tokens" in text


@pytest.mark.parametrize(
    ("config", "folder"),
    [
        ("x.jsonnet", "runs/x"),
        ("elsewhere/x.jsonnet", "runs/x"),
        ("configs/cpu/x.jsonnet", "runs/cpu/x"),
        ("configs/old/configs/cpu/x.json", "runs/cpu/x"),
    ],
)
def test_a_run_folder_is_the_path_of_its_config_below_the_last_configs(config: str, folder: str) -> None:
    assert default_run_folder(config) == Path(folder)


def test_an_unknown_tokenizer(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["embed", "in.txt", "--output", "out.npz", "--tokenizer", "unicod"]) == 2
    assert "the tokenizer 'unicod': unknown type; wanted one of regex, treebank, unicode" in capsys.readouterr().err
