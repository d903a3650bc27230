"""One rule for text without a token, in all commands that read text."""

import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from elmo_tasks import cli

RESULTS = {  # commands with a result for each text
    "predict": "predict {run} {text} --output {out}.jsonl",
    "predict, a folder": "predict {run} {text} --output {out}/",
    "embed": "embed {text} --output {out}.hdf5",
    "embed, a folder": "embed {text} --output {out}/",
    "score": "score {text} --output {out}.tsv",
}
ONE_RESULT = {  # commands with one result for all of a text
    "perplexity": "perplexity {text}",
    "similarity": "similarity dog - < {text}",
    "neighbors": "neighbors 'The dog barked.' --word dog --pool {text}",
}
BLANK = ("", " \n\n\t\n")


class Commands:
    """Runs commands; `out` is where they write."""

    def __init__(self, run: Path, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.run, self.folder, self.patch, self.out = run, folder, patch, folder / "out"

    def __call__(self, command: str, text: str, name: str = "text.txt") -> int:
        path = self.folder / name
        path.write_text(text)
        words = shlex.split(command.format(run=self.run, text=path, out=self.out).partition(" < ")[0])
        with path.open() as stream:
            self.patch.setattr("sys.stdin", stream)
            return cli.main(words)


@pytest.fixture
def commands(short_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    return Commands(short_run, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("command", RESULTS.values(), ids=RESULTS)
def test_a_text_without_a_token_has_no_result_and_blank_lines_between_others_are_left_out(
    command: str, commands: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, text in enumerate(BLANK):
        commands.out = commands.folder / str(number)
        assert commands(command, text) == 0
        assert f"text.txt: no text in {text.count(chr(10))} line(s)" in capsys.readouterr().err
        for part in commands.out.glob("*.parquet"):
            assert pq.read_table(part).num_rows == 0
    commands.out = commands.folder / "out"
    assert commands(command, "Mary left.\n \nShe came.\n") == 0
    assert "WARNING" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("command", ONE_RESULT.values(), ids=ONE_RESULT)
def test_one_result_of_no_text_is_an_error(
    command: str, commands: Commands, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in BLANK:
        assert commands(command, text) == 2
        assert "error: " in (shown := capsys.readouterr().err)
        assert "Traceback" not in shown


@pytest.mark.slow
@pytest.mark.parametrize("command", [RESULTS["predict"], RESULTS["predict, a folder"], RESULTS["embed, a folder"]])
def test_inputs_without_text_are_counted(command: str, commands: Commands, capsys: pytest.CaptureFixture[str]) -> None:
    lines = '{"text": "Mary left."}\n{"text": " "}\n\n{"text": ""}\n{"text": "She came."}\n'
    assert commands(command, lines, "text.jsonl") == 0
    of_folder = "2 lines have no results; the column `error` says why"
    expected = of_folder if "{out}/" in command else "text.jsonl: no result for 2 input(s) without text: number 2, 4"
    assert expected in capsys.readouterr().err
