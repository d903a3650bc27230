"""Pages of the documentation as readers use them: commands are run, and what a page shows is what they print.

The blocks of a page are run in their order, in one folder:

- A block without a language holds commands of a shell. A block `python` is run too; later blocks see its names.
- A block `text` below either of them is what it prints: on a terminal 100 columns wide, without colours. It may also
  be lines of the log, without their times. A line `…` stands for any lines.
- A block `json` right below commands is the JSON that they print, or some of its keys.
- Any other block is written to the file that the text before it names last, if there is no such file yet. A block
  `text` or `json` right after "`names.tsv`:" is such a file, too.
- Commands of `make` are left out.
- A training after the last output of a page has only one epoch: nobody sees what the others would change.

Times are not compared. Numbers of a biLM or of a trained model that comes with the package may differ by 1 in their
last digit. What the page has trained, commands that name `runs/` or Python that calls `fit`, may differ more, because
processors round differently and training makes such differences larger: see `TRAINED`.

`python -m tests.pages PAGE...` runs pages and writes what is printed today into their blocks. What differs in more than
numbers from a block with `…` or of JSON must be changed by hand. With `SHARED_TRAININGS=DIR`, trainings are kept for
the next call.
"""

import contextlib
import dataclasses
import decimal
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests import command_server

REPOSITORY = Path(__file__).resolve().parent.parent
# How much what a page has trained may differ: by this, and by this part of the number shown. Percentages count as parts
# of 1. Measured between AVX-512 and AVX2: the accuracy of the tutorial on sentiment differs by 2.5 on its validation
# data and by 1 on its test data, that of inference by 3.5, a probability by 0.1; the F1 of two taggers of names by 0
# and 0.9, a loss by 0.05.
TRAINED = (0.08, 0.1)
OUTPUTS = ("text", "json")
# Where a reader's environment has the data of the configs. There are none: a page reads the data that it makes.
OTHER_DATA = "other-data"

Near = Callable[[str, str], bool]  # whether a number that is shown and a printed one are the same

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"`([\w-]+\.(?:csv|json|jsonl|jsonnet|tsv|txt))`")
# Times, bars next to numbers, and the sign of a bound.
_MASKED = re.compile(r"\b[\d.,]+ (s|ms|seconds?|minutes?)\b|[█▉▊▋▌▍▎▏]+ *|[<>](?=\d+\.\d %)")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?: ?%)?")
_FLOAT = re.compile(r"-?\d+\.\d+")
_TRAINS = re.compile(r"\bruns/|\.fit\(")
_ESCAPE = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
_LOG = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+ ", re.MULTILINE)
# Trainings are shared between pages, see `tests/shared_training.py`.
_SHELL = """set -e
elmo-tasks() { "$WARM_PYTHON" -m elmo_tasks "$@"; }
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

    @property
    def is_trained(self) -> bool:
        """Whether what it prints depends on what the page has trained."""
        return bool(_TRAINS.search(self.content))


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    text, end = page.read_text(encoding="utf-8"), 0
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
    is_trained: bool

    def is_right(self) -> bool:
        near = _near_trained if self.is_trained else _near
        if self.block.language == "json":
            return _holds(json.loads(self.block.content), json.loads(self.printed), near)
        return self._aligned(near) is not None

    def updated(self) -> str | None:
        """The block with today's numbers, or what is printed if it has no `…`. None: change it by hand."""
        if self.block.language == "json":
            shown, printed = json.loads(self.block.content), json.loads(self.printed)
            numbers = _numbers(shown, printed) if _holds(shown, printed, _is_any) else None
            if numbers is None:
                return None
            return _FLOAT.sub(lambda shown: _with_digits_of(shown[0], next(numbers)), self.block.content)
        lines = self._aligned(_is_any)
        if lines is None and "…" not in self.block.content:
            lines = _lines(self.printed)
        return None if lines is None else "\n".join(lines) + "\n"

    def _aligned(self, near: Near) -> list[str] | None:
        shown = _lines(self.block.content)
        if (found := _align(shown, _lines(self.printed), near)) is None:
            found = _align(["…", *shown, "…"], _lines(self.log), near)
            found = found and found[1:-1]
        return found


def words(text: str) -> set[str]:
    """The words of a text without numbers."""
    return set(_NUMBER.sub("", text).split())


def same_lines(shown: str, printed: str) -> bool:
    """Whether two texts have the same lines, in any order."""
    return _align(sorted(_lines(shown)), sorted(_lines(printed)), _near) is not None


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
    num_outputs = sum(block.is_output for block in blocks(page))
    for block in blocks(page):
        if block.is_output:
            num_outputs -= 1
            if before is None or not before.is_run:
                raise AssertionError(f"{page}: no commands above the output\n{block.content}")
            yield Shown(block, printed, log, before.is_trained)
        elif block.language == "python":
            printed, log = _run_python(block, page, names), ""
        elif block.language == "":
            printed, log = shell.run(block.content, one_epoch=num_outputs == 0)
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
        settings |= {"WARM_PYTHON": command_server.start(), "ELMO_TASKS_DATA": OTHER_DATA}
        self.folder = folder
        self.environment = {**os.environ, **settings}

    def run(self, script: str, *, colors: bool = False, one_epoch: bool = False) -> tuple[str, str]:
        """What commands print on a terminal, and their log."""
        look = {"COLORTERM": "truecolor", "TERM": "xterm-256color", "COLUMNS": "80"}
        look = look if colors else {"NO_COLOR": "1", "COLUMNS": "100"}
        look |= {"ONE_EPOCH": "1"} if one_epoch else {}
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


def _read(terminal: int) -> Iterator[bytes]:
    with contextlib.suppress(OSError):  # EIO: the other side is closed
        while part := os.read(terminal, 65536):
            yield part


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def _align(shown: list[str], printed: list[str], near: Near) -> list[str] | None:
    """The printed lines in the place of those shown, with `…` as it is; None if they are not the same."""
    if not shown:
        return None if printed else []
    if shown[0] == "…":
        rests = (_align(shown[1:], printed[start:], near) for start in range(len(printed) + 1))
        rest = next((each for each in rests if each is not None), None)
        return None if rest is None else ["…", *rest]
    if not printed or not _same(shown[0], printed[0], near):
        return None
    rest = _align(shown[1:], printed[1:], near)
    return None if rest is None else [printed[0], *rest]


def _same(shown: str, printed: str, near: Near) -> bool:
    """Whether two lines are the same, except for times, bars and small differences of numbers."""
    one, other = (_MASKED.sub("", " ".join(line.split())) for line in (shown, printed))
    if _NUMBER.sub("", one) != _NUMBER.sub("", other):
        return False
    return all(map(near, *(_NUMBER.findall(line) for line in (one, other))))


def _near(one: str, other: str) -> bool:
    """Whether numbers are the same: a count exactly, others up to 1 in the last digit shown."""
    first, second = _value(one), _value(other)
    unit = decimal.Decimal((0, (1,), int(first.as_tuple().exponent)))
    return first == second or (("%" in one or "." in one) and abs(first - second) <= unit)


def _near_trained(one: str, other: str) -> bool:
    first, second = (float(_value(each)) / (100 if "%" in each else 1) for each in (one, other))
    return abs(first - second) <= TRAINED[0] + TRAINED[1] * abs(first)


def _is_any(one: str, other: str) -> bool:
    return True


def _value(number: str) -> decimal.Decimal:
    return decimal.Decimal(number.rstrip(" %").replace(",", ""))


def _holds(shown: Any, printed: Any, near: Near) -> bool:
    """Whether JSON has everything that is shown."""
    if isinstance(shown, dict):
        keys = shown if isinstance(printed, dict) else ()
        return bool(keys) and all(key in printed and _holds(shown[key], printed[key], near) for key in keys)
    if isinstance(shown, list):
        pairs = zip(shown, printed, strict=True) if isinstance(printed, list) and len(shown) == len(printed) else None
        return pairs is not None and all(_holds(one, other, near) for one, other in pairs)
    if isinstance(shown, float):
        return isinstance(printed, float) and near(str(shown), str(printed))
    return bool(shown == printed)


def _numbers(shown: Any, printed: Any) -> Iterator[float]:
    """The printed numbers in the place of those that JSON shows with a decimal point, in their order."""
    if isinstance(shown, dict):
        for key, value in shown.items():
            yield from _numbers(value, printed[key])
    elif isinstance(shown, list):
        for one, other in zip(shown, printed, strict=True):
            yield from _numbers(one, other)
    elif isinstance(shown, float):
        yield printed


def _with_digits_of(shown: str, printed: float) -> str:
    return f"{printed:.{len(shown.partition('.')[2])}f}"


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
                updated = shown.updated()
                if updated is None and not shown.is_right():
                    wrong += 1
                    print(f"{page}: change by hand\n{shown.block.content}\nprinted:\n{shown.printed}{shown.log}")
                elif updated is not None:
                    begin, end = shown.block.span
                    text = text[:begin] + updated + text[end:]
            page.write_text(text, encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
