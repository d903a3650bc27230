"""Pages of the documentation as readers use them: commands are run, and what a page shows is what they print.

The blocks of a page are run in their order, in one folder:

- A block without a language holds commands of a shell. A block `python` is run too; later blocks see its names.
- A block `text` below either of them is what it prints: on a terminal 100 columns wide, without colours. It may also
  be lines of the log, without their times. A line `…` stands for any lines.
- A block `json` right below commands is the JSON that they print, or some of its keys.
- Any other block is written to the file that the text before it names last, if there is no such file yet. A block
  `text` or `json` right after "`names.tsv`:" is such a file, too.
- Commands of `make` are left out.

Times are not compared. Scores and probabilities may differ, because processors round differently and training makes
such differences larger: see `TOLERANCE`. So choose examples of which the model is sure.

`python -m tests.pages PAGE...` runs pages and writes what is printed today into their blocks `text` without `…`. With
`SHARED_TRAININGS=DIR`, trainings are kept for the next call.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import functools
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
# How much numbers may differ: those with a decimal point by this share of 1 or, if one is larger, of 100; the others,
# which count something, by this part of them.
TOLERANCE = (0.15, 0.04)
OUTPUTS = ("text", "json")

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`([\w-]+\.(?:csv|json|jsonl|jsonnet|tsv|txt))`")
_MASKED = re.compile(r"\b[\d.,]+ (s|ms|seconds?|minutes?)\b|[█▉▊▋▌▍▎▏]+ *|[<>](?=\d+\.\d %)")
# ^ times, bars next to numbers, and the sign of a bound
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_ESCAPE = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
_LOG = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+ ", re.MULTILINE)
# Trainings are shared between pages, see `tests/shared_training.py`.
_SHELL = """set -e
elmo-tasks() { "$PYTHON" -I -S "$PYTHONPATH/tests/command_server.py" "$COMMAND_SERVER" "$@"; }
python() { "$PYTHON" "$@"; }
make() { :; }
"""


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of code of a page."""

    language: str
    content: str
    span: tuple[int, int]  # of the content in the page's text
    file: str | None  # that the text before it names
    is_output: bool

    @property
    def is_run(self) -> bool:
        return self.language in ("", "python")


def blocks(page: Path) -> list[Block]:
    text, found, end = page.read_text(encoding="utf-8"), [], 0
    for match in _BLOCK.finditer(text):
        before = text[end : match.start()].rstrip()
        files = _FILE.findall(before) if match[1] not in OUTPUTS or before.endswith("`:") else []
        below = not before and bool(found) and found[-1].is_run
        is_output = not files and (match[1] == "text" or (match[1] == "json" and below))
        found.append(Block(match[1], match[2], match.span(2), files[-1] if files else None, is_output))
        end = match.end()
    return found


@dataclasses.dataclass(frozen=True)
class Shown:
    """What a page shows, and what its commands printed."""

    block: Block
    printed: str
    log: str

    def is_right(self) -> bool:
        if self.block.language == "json":
            return _holds(json.loads(self.block.content), json.loads(self.printed))
        shown = _lines(self.block.content)
        return _matches(shown, _lines(self.printed)) or _matches(["…", *shown, "…"], _lines(self.log))


def words(text: str) -> set[str]:
    """The words of a text without numbers."""
    return set(_NUMBER.sub("", text).split())


def same_lines(shown: str, printed: str) -> bool:
    """Whether two texts have the same lines, in any order."""
    return _matches(sorted(_lines(shown)), sorted(_lines(printed)))


def run(page: Path, folder: Path, shared: Path) -> Iterator[Shown]:
    """Runs a page, and yields each of its outputs.

    Arguments:
        folder: where it is run.
        shared: where finished trainings are kept for the next page.

    Raises:
        AssertionError: a block failed, or an output is not below a block that is run.
    """
    names: dict[str, Any] = {}
    before, printed, log = None, "", ""
    shell = Shell(folder, shared)
    for block in blocks(page):
        if block.is_output:
            if before is None or not before.is_run:
                raise AssertionError(f"{page}: no commands above the output\n{block.content}")
            yield Shown(block, printed, log)
        elif block.language == "python":
            printed, log = _run_python(block, page, names), ""
        elif block.language == "":
            printed, log = shell.run(block.content)
        elif block.file and not (folder / block.file).exists():
            (folder / block.file).write_text(block.content, encoding="utf-8")
        before = block


def _run_python(block: Block, page: Path, names: dict[str, Any]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(block.content, str(page), "exec"), names)
    return printed.getvalue()


class Shell:
    """Runs commands in a folder.

    Arguments: those of `run`.
    """

    def __init__(self, folder: Path, shared: Path) -> None:
        settings = {"PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY), "ELMO_TASKS_CACHE": str(folder / ".cache")}
        settings |= {"OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", "SHARED_TRAININGS": str(shared)}
        settings |= {"COMMAND_SERVER": _command_server()}
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if name != "ELMO_TASKS_DATA"} | settings

    def run(self, script: str, *, colors: bool = False) -> tuple[str, str]:
        """What commands print on a terminal, and their log."""
        look = {"COLORTERM": "truecolor", "TERM": "xterm-256color", "COLUMNS": "80"}
        look = look if colors else {"NO_COLOR": "1", "COLUMNS": "100"}
        master, slave = pty.openpty()
        with tempfile.TemporaryFile() as log:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": slave, "stderr": log}
            command = ["bash", "-c", _SHELL + script]
            process = subprocess.Popen(command, cwd=self.folder, env=self.environment | look, **streams)
            os.close(slave)
            printed = b"".join(_read(master)).decode().replace("\r", "")
            os.close(master)
            code = process.wait()
            log.seek(0)
            logged = _LOG.sub("", log.read().decode())
        assert code == 0, f"{script}\n{printed}\n{logged}"
        return printed if colors else _ESCAPE.sub("", printed), logged


@functools.cache
def _command_server() -> str:
    """The address of the server for all commands of this process, see `tests/command_server.py`."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    command = [sys.executable, "-m", "tests.command_server", address := f"{folder}/socket"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    atexit.register(server.kill)
    assert server.stdout
    assert server.stdout.readline()
    return address


def _read(terminal: int) -> Iterator[bytes]:
    with contextlib.suppress(OSError):  # EIO: the other side is closed
        while part := os.read(terminal, 65536):
            yield part


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def _matches(shown: list[str], printed: list[str]) -> bool:
    if not shown:
        return not printed
    if shown[0] == "…":
        return any(_matches(shown[1:], printed[start:]) for start in range(len(printed) + 1))
    return bool(printed) and _same(shown[0], printed[0]) and _matches(shown[1:], printed[1:])


def _same(shown: str, printed: str) -> bool:
    """Whether two lines are the same, except for times, bars and small differences of numbers."""
    one, other = (_MASKED.sub("", " ".join(line.split())) for line in (shown, printed))
    if _NUMBER.sub("", one) != _NUMBER.sub("", other):
        return False
    return all(map(_near, *(_NUMBER.findall(line) for line in (one, other))))


def _near(one: str, other: str) -> bool:
    first, second = (float(each.replace(",", "")) for each in (one, other))
    if "." in one or "." in other:
        return abs(first - second) <= TOLERANCE[0] * (100 if max(first, second) > 1 else 1)
    return abs(first - second) <= TOLERANCE[1] * first


def _holds(shown: Any, printed: Any) -> bool:
    """Whether JSON has everything that is shown."""
    if isinstance(shown, dict):
        return isinstance(printed, dict) and all(key in printed and _holds(shown[key], printed[key]) for key in shown)
    if isinstance(shown, list):
        return isinstance(printed, list) and len(shown) == len(printed) and all(map(_holds, shown, printed))
    if isinstance(shown, float):
        return isinstance(printed, float) and _near(str(shown), str(printed))
    return bool(shown == printed)


def main(pages: list[str]) -> int:
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        shared = os.environ.get("SHARED_TRAININGS", temporary)
        for page in map(Path, pages):
            text, here = page.read_text(encoding="utf-8"), Path.cwd()
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                try:
                    outputs = list(run(here / page, Path(folder), Path(shared)))
                except Exception:
                    traceback.print_exc()
                    wrong, outputs = wrong + 1, []
                os.chdir(here)
            for shown in reversed(outputs):
                if not shown.is_right() and (shown.block.language == "json" or "…" in shown.block.content):
                    wrong += 1
                    print(f"{page}: change by hand\n{shown.block.content}\nprinted:\n{shown.printed}{shown.log}")
                elif shown.block.language == "text" and "…" not in shown.block.content:
                    begin, end = shown.block.span
                    text = f"{text[:begin]}{chr(10).join(_lines(shown.printed))}\n{text[end:]}"
            page.write_text(text, encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
