from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

import pytest

from elmo_tasks import __version__, cli
from elmo_tasks.commands.command import Command
from elmo_tasks.errors import DataError

COMMANDS = [
    *("train", "evaluate", "predict", "config", "archive", "pretrain", "perplexity"),
    *("embed", "neighbors", "cache", "random-bilm", "sample-data"),
]


def run_python(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, **settings)


def help_of(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as exit:
        cli.main([*arguments, "--help"])
    assert exit.value.code == 0
    return capsys.readouterr().out


def fail(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code when a command raises an error."""

    def run(arguments: argparse.Namespace) -> None:
        raise error

    monkeypatch.setattr(cli, "_COMMANDS", {"fail": Command("fails", "fail", lambda parser: None, run)})
    return cli.main(["fail"])


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom elmo_tasks.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = run_python("-c", program)
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)
    heavy = {"torch", "datasets", "pydantic", "numpy", "nltk", "seqeval", "sklearn", "accelerate", "rich", "h5py"}
    assert not heavy & set(done.stderr.split())


@pytest.mark.slow
def test_a_run_imports_only_what_it_uses() -> None:
    """scikit-learn, which seqeval and NLTK import, takes a second or more."""
    done = run_python("-c", "import sys, elmo_tasks.experiment\nprint(*sys.modules)")
    assert done.returncode == 0
    assert not {"sklearn", "seqeval", "nltk", "scipy"} & set(done.stdout.split())


def test_the_module_is_the_command() -> None:
    done = run_python("-m", "elmo_tasks", "--version")
    assert (done.returncode, done.stdout) == (0, f"elmo-tasks {__version__}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_s_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(command, capsys=capsys)
    assert "example:\n  " in text
    assert f"elmo-tasks {command} " in text.partition("example:")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["train"],
        ["train", "a.jsonnet", "--seeds", "1,x"],
        ["train", "a.jsonnet", "--ext-var", "A"],
        ["train", "a.jsonnet", "--resume", "--force"],
        ["predict", "run", "-", "--format", "xml"],
        ["predict", "run", "-", "--batch-tokens", "0"],
        ["evaluate", "run", "data", "--verbose", "--quiet"],
    ],
)
def test_wrong_arguments_end_with_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        cli.main(arguments)
    assert exit.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_errors_of_users_have_a_message_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(DataError("some.txt", "no such file", 3), monkeypatch) == 2
    assert capsys.readouterr() == ("", "error: some.txt:3: no such file\n")


def test_files_that_cannot_be_written_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(PermissionError(13, "Permission denied", "/out"), monkeypatch) == 2
    assert capsys.readouterr().err == "error: /out: Permission denied\n"


def test_defects_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        fail(ZeroDivisionError(), monkeypatch)
    with pytest.raises(OSError, match="odd"):
        fail(OSError("odd"), monkeypatch)


def test_an_interrupt_ends_with_code_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert fail(KeyboardInterrupt(), monkeypatch) == 130
    assert capsys.readouterr() == ("", "")


def test_a_closed_pipe_is_not_an_error() -> None:
    program = (
        "import sys\nfrom elmo_tasks import cli\nfrom elmo_tasks.commands.command import Command\n"
        "def run(arguments):\n    for _ in range(100_000):\n        sys.stdout.buffer.write(b'a line\\n')\n"
        "cli._COMMANDS = {'talk': Command('talks', 'talk', lambda parser: None, run)}\n"
        "sys.exit(cli.main(['talk']))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"a line\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
