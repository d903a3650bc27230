import argparse
import errno
import io
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import __version__, cli
from elmo_tasks.commands.command import Command
from elmo_tasks.errors import DataError
from elmo_tasks.hooks import CommandRow
from elmo_tasks.runs.archive import archive


def run_python(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, **settings)


def fail(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit code when a command raises an error."""

    def run(arguments: argparse.Namespace) -> None:
        raise error

    monkeypatch.setattr(cli, "COMMANDS", {"fail": Command(CommandRow("", "fails", "fail"), lambda parser: None, run)})
    return cli.main(["fail"])


HELP = """from elmo_tasks.cli import main
try:
    main(["--help"])
except SystemExit:
    pass"""
HEAVY = "torch datasets pydantic numpy nltk seqeval sklearn accelerate rich h5py matplotlib"


@pytest.mark.parametrize(
    ("program", "without"),
    [
        (HELP, f"{HEAVY} tempfile shlex hashlib zipfile"),  # the last ones double the time
        ("import elmo_tasks; assert 'load' in dir(elmo_tasks)", f"{HEAVY} elmo_tasks.api"),
        ("import elmo_tasks.config", "torch datasets numpy"),
        ("from elmo_tasks.cli import main; main(['tune', '--list'])", "torch optuna"),
        (HELP.replace("--help", 'serve", "--help'), "torch fastapi uvicorn pydantic prometheus_client"),
        pytest.param("from elmo_tasks import load", "datasets accelerate pyarrow scipy", marks=pytest.mark.slow),
        pytest.param(
            "import elmo_tasks.runs.train, elmo_tasks.extras.pretraining.pretrain",
            "sklearn seqeval nltk scipy tensorboard",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["help", "package", "configs", "list", "serve", "load", "training"],
)
def test_only_what_is_used_is_imported(program: str, without: str) -> None:
    done = run_python("-c", f"import sys\n{program}\nprint(*sys.modules, file=sys.stderr)")
    assert done.returncode == 0
    assert not {*without.split()} & {*done.stderr.split()}


# What takes long to import, or is for other commands. A run's own reader is imported: its config is in the same file.
NOT_FOR_ANSWERS = """
    accelerate datasets matplotlib nltk pandas pyarrow scipy seqeval sklearn sympy tensorboard transformers
    elmo_tasks.data_readers.snli elmo_tasks.data_readers.sst elmo_tasks.runs.evaluate elmo_tasks.runs.train
    elmo_tasks.training.evaluation elmo_tasks.training.processes elmo_tasks.training.trainer
    elmo_tasks.extras.advice.data_analysis elmo_tasks.extras.compare elmo_tasks.extras.repeats elmo_tasks.extras.studies
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["predict {run} {text}", "embed {text} --output {out}", "score {text}", "serve {run}"]
)
def test_an_answer_comes_without_what_it_does_not_need(command: str, short_run: Path, tmp_path: Path) -> None:
    run, text = tmp_path / "run.tar.gz", tmp_path / "text.txt"
    archive(short_run, run)
    text.write_text("Tavo Melin left Brusk.\n", encoding="utf-8")
    words = command.format(run=run, text=text, out=tmp_path / "out.npz").split()
    words += ["--port", "0"] if words[0] == "serve" else []
    imported = set()
    command_line = [sys.executable, "-X", "importtime", "-m", "elmo_tasks", *words]  # names modules on standard error
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command_line, text=True, **pipes) as process:
        for line in process.stderr or ():
            imported.add(line.rpartition("|")[2].strip())
            if "serving at" in line:
                process.send_signal(signal.SIGINT)
        assert process.wait() == (130 if words[0] == "serve" else 0)
    assert "torch" in imported
    assert not {*NOT_FOR_ANSWERS.split()} & imported


def test_the_module_is_the_command() -> None:
    done = run_python("-m", "elmo_tasks", "--version")
    assert (done.returncode, done.stdout) == (0, f"elmo-tasks {__version__}\n")


@pytest.mark.parametrize(("line", "completed"), [("elmo-tasks tra", "train "), ("elmo-tasks train --see", "--seeds ")])
def test_the_shell_completes_commands_and_options(line: str, completed: str, tmp_path: Path) -> None:
    shell = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9"}
    output = {"_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "completions")}
    subprocess.run([sys.executable, "-m", "elmo_tasks"], env={**os.environ, **shell, **output}, check=True, timeout=60)
    assert (tmp_path / "completions").read_text() == completed


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fly", "error:"),
        ("evaluate run data --verbose --quiet", "error:"),
        ("evalute run", "'evalute' is not a command. Did you mean 'evaluate'? Commands: train, "),
        ("train a.jsonnet --set model.dropout 0.3", "write --set model.dropout=VALUE, with '='"),
        (
            "train a.jsonnet --dropout 0.3",
            "arguments: --dropout 0.3; settings of a config are changed by --set KEY=VALUE",
        ),
        ("serve run --what", "unrecognized arguments: --what\n"),
    ],
)
def test_wrong_arguments_end_with_code_2_and_say_what_was_meant(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        cli.main(line.split())
    assert exit.value.code == 2
    assert message in capsys.readouterr().err


MODELS = {
    "50": ["list the installed trained", "models, or print the model", "card of one"],
    "20": ["list the installed", "trained models, or", "print the model card", "of one"],
}


@pytest.mark.parametrize("columns", MODELS)
def test_without_arguments_the_help_is_shown(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit) as exit:
        cli.main([])
    assert exit.value.code == 0
    shown = capsys.readouterr().out
    assert "\ntrain and evaluate:\n  train           train a model " in shown
    summary = f"\n{' ' * 18}".join(MODELS[columns])
    assert f"\n  models          {summary}\n  archive  " in shown


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DataError("some.txt", "no such file", 3), 2, "error: some.txt:3: no such file\n"),
        (PermissionError(13, "Permission denied", "/out"), 2, "error: /out: Permission denied\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_errors_of_users_have_a_message_and_no_traceback(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail(error, monkeypatch) == code
    assert capsys.readouterr() == ("", message)


def test_defects_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        fail(ZeroDivisionError(), monkeypatch)
    with pytest.raises(OSError, match="odd"):
        fail(OSError("odd"), monkeypatch)


# Runs a command whose code is the first argument.
COMMAND = """
import sys
from elmo_tasks import cli
from elmo_tasks.commands.command import Command
from elmo_tasks.hooks import CommandRow
cli.COMMANDS = {"do": Command(CommandRow("", "does it", "do"), lambda parser: None, lambda _: exec(sys.argv[1]))}
sys.exit(cli.main(["do"]))
"""
BYTES = "for _ in range(100_000): sys.stdout.buffer.write(b'a line\\n')"
TABLE = "from elmo_tasks.commands.console import print_table; print_table('title', ('a', 'b'), [('c', 'd')] * 1000)"
TEXT = "print('a line')"


@pytest.mark.parametrize(("code", "unbuffered"), [(BYTES, ""), (TABLE, "1")])
def test_a_closed_pipe_is_not_an_error(code: str, unbuffered: str) -> None:
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    pipes["env"] = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen([sys.executable, "-c", COMMAND, code], **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # before the command can have started
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize(("code", "unbuffered"), [(BYTES, ""), (TABLE, ""), (TEXT, ""), (TEXT, "1")])
def test_an_output_without_room_is_an_error(code: str, unbuffered: str) -> None:
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", COMMAND, code]
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, "error: standard output: No space left on device\n")


@pytest.mark.parametrize(
    ("encoding", "code", "printed"),
    [
        ("ascii", "print_table('été', ('a', 'b'), [['漢', '1']])", b"\\xe9t\\xe9\n+--------+"),
        ("latin-1", "print_table('été', ('a', 'b'), [['漢', '1']])", b"\xe9t\xe9\n+--------+"),
        ("utf-8", "print_table('été', ('a', 'b'), [['漢', '1']])", "été\n┏━━".encode()),
        ("latin-1", "print_json({'漢': 'é'})", b'{\n  "\\u6f22": "\\u00e9"\n}\n'),
        ("utf-8", "print_json({'漢': 'é'})", '{\n  "漢": "é"\n}\n'.encode()),
        ("ascii", "print('é 漢')", b"\\xe9 \\u6f22\n"),
    ],
)
def test_output_on_a_terminal_that_lacks_characters(
    encoding: str, code: str, printed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"from elmo_tasks.commands.console import print_json, print_table; {code}"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written := io.BytesIO(), encoding))
    monkeypatch.setattr(
        cli, "COMMANDS", {"do": Command(CommandRow("", "does", "do"), lambda parser: None, lambda _: exec(code))}
    )
    assert cli.main(["do"]) == 0
    assert written.getvalue().startswith(printed)


@pytest.mark.parametrize(
    ("closed", "code", "returned", "message"),
    [
        (">&-", TEXT, 2, "error: standard output: Bad file descriptor\n"),
        (">&-", "pass", 0, ""),
        (">&- 2>&-", TEXT, 2, ""),
        ("<&- >&- 2>&-", "import sys; print('lost', file=sys.stderr)", 0, ""),
        ("2>&-", "from elmo_tasks.errors import DataError; raise DataError('x', 'bad')", 2, ""),
        ("2>/dev/full", "from elmo_tasks.errors import DataError; raise DataError('x', 'bad')", 2, ""),
        (">&-", "open('file', 'w').write('x'); assert open('file').fileno() > 2", 0, ""),
    ],
)
def test_closed_streams(closed: str, code: str, returned: int, message: str, tmp_path: Path) -> None:
    code = f"import warnings; warnings.simplefilter('ignore'); {code}"
    command = ["sh", "-c", f'"$0" "$@" {closed}', sys.executable, "-c", COMMAND, code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (returned, "", message)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)],
    ids=["SIGTERM", "SIGHUP", "SIGINT"],
)
def test_a_signal_ends_a_command_without_leftovers(number: signal.Signals, code: int, tmp_path: Path) -> None:
    waiting = (
        "import os, time\nfrom elmo_tasks.files.atomic import atomic_folder, atomic_write\n"
        "with atomic_write('file') as stream, atomic_folder('made'):\n"
        "    print(len(os.listdir()), flush=True)\n    time.sleep(60)"
    )

    def like_a_terminal() -> None:
        signal.signal(number, signal.SIG_DFL)  # in the background, shells let commands ignore signals

    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": tmp_path}
    pipes["preexec_fn"] = like_a_terminal
    with subprocess.Popen([sys.executable, "-c", COMMAND, waiting], **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"2\n"
        process.send_signal(number)
        assert process.communicate() == (b"", b"interrupted\n")
    assert process.returncode == code
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "shown"), [(errno.ENOSPC, False), (errno.EACCES, True)])
def test_a_thread_says_what_has_happened_unless_a_disk_is_full(
    number: int, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail_in_thread() -> None:
        raise OSError(number, "what has happened")

    def run(arguments: argparse.Namespace) -> None:
        thread = threading.Thread(target=fail_in_thread)
        thread.start()
        thread.join()

    seen: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    monkeypatch.setattr(cli, "COMMANDS", {"do": Command(CommandRow("", "does", "do"), lambda parser: None, run)})
    assert cli.main(["do"]) == 0
    assert [problem.exc_type for problem in seen] == [PermissionError] * shown
    assert threading.excepthook == seen.append


@pytest.mark.parametrize(("given", "shown"), [([], "IW"), (["--quiet"], "W"), (["--verbose"], "DIW")])
def test_how_much_is_said(
    given: list[str], shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(arguments: argparse.Namespace) -> None:
        logger = logging.getLogger("elmo_tasks.anything")
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            logger.log(level, "a message")

    monkeypatch.setattr(cli, "COMMANDS", {"do": Command(CommandRow("", "does", "do"), lambda parser: None, run)})
    assert cli.main(["do", *given]) == 0
    assert [line.split()[2][0] for line in capsys.readouterr().err.splitlines()] == list(shown)


def test_signals_are_left_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        fail(DataError("some.txt", "bad"), monkeypatch)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
