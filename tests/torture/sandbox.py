"""Runs cases in child processes with bounds, so that a crash, a hang or a hunger for memory is one failed case.

A child is a copy of a process that has imported the package, so that it starts in milliseconds. It runs case after case
and writes the outcome of each to a file. When it dies, another one goes on with the next case.
"""

import contextlib
import dataclasses
import faulthandler
import json
import os
import re
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

CPU_SECONDS = 10  # of a case
WALL_SECONDS = 120  # of a case, which may sleep or wait
ADDRESS_BYTES = 4 << 30  # by which a child may grow
_ERROR = re.compile(r"[\w.]*(Error|Exception|Warning|Exit)\b")
_KEPT_BYTES = 20 << 20  # of a case's files, if they are kept as a reproducer
_CASES_OF_A_CHILD = 500  # then another child goes on
_NO_MORE = 3  # the exit code of a child that has run out of cases or of time


@dataclasses.dataclass(frozen=True)
class Case:
    """One thing to try.

    Arguments:
        kind: what is tried.
        run: gets an empty folder of its own. It fails if it raises.
        seconds: of CPU time that it may take. It may wait for another two minutes.
    """

    kind: str
    run: Callable[[Path], object]
    seconds: float = CPU_SECONDS


Cases: TypeAlias = Callable[[int], Case | None]
"""The cases of a part by number, from 0: the same number is always the same case. None is behind the last one."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Arguments:
        problem: a traceback or another description; empty if the case has passed.
        folder: the case's files, if it has failed.
    """

    number: int
    kind: str
    problem: str = ""
    folder: str = ""

    @property
    def signature(self) -> str:
        """What equal faults have in common: the last place in the package and the class of the error, or its text."""
        lines = [line.strip() for line in self.problem.splitlines() if line.strip()]
        error = next((line for line in reversed(lines) if _ERROR.match(line)), lines[-1] if lines else "")
        frames = [line for line in lines if line.startswith("File ") and "/elmo_tasks/" in line]
        if frames:
            return f"{frames[-1].partition('/elmo_tasks/')[2].replace(chr(34), '')}: {error.partition(':')[0][:60]}"
        return re.sub(r"[0-9]+", "N", error)[:160]


def run_cases(
    cases: Cases, scratch: Path, *, first: int = 0, most: int | None = None, until: float | None = None
) -> Iterator[Outcome]:
    """Runs cases in order.

    Arguments:
        scratch: a folder for the cases' files. Those of failed cases stay.
        most: how many; until: the time, by `time.monotonic`, after which no case begins. By default all.
    """
    end = None if most is None else first + most
    while end is None or first < end:
        last = min(first + _CASES_OF_A_CHILD, first + _CASES_OF_A_CHILD if end is None else end)
        status, lines = _child(cases, scratch, first, last, until)
        for line in lines:
            if "problem" not in line and line is lines[-1]:
                line["problem"] = _death(status)
            if "problem" in line:
                yield Outcome(**line)
                first = line["number"] + 1
        if os.waitstatus_to_exitcode(status) == _NO_MORE:
            return
        if status and not lines:
            raise RuntimeError(f"a child has died before its first case: {_death(status)}")


def allowed(action: Callable[[], object]) -> None:
    """Runs what may end in one of the errors of which the command line makes one line."""
    from elmo_tasks.errors import ElmoTasksError

    message = None
    try:
        action()
    except ElmoTasksError as error:
        message = str(error)
    except OSError as error:
        if error.filename is None:
            raise
    assert message != "", "an error without a message"
    assert message is None or len(message) < 50_000, f"a message of {len(message)} characters: {message[:300]!r}"


def _child(cases: Cases, scratch: Path, first: int, end: int, until: float | None) -> tuple[int, list[dict[str, Any]]]:
    """The status with which a child has ended, and the lines that it wrote: before each case, and after it."""
    outcomes = scratch / "outcomes.jsonl"
    outcomes.write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: none of them computes now
        pid = os.fork()
    if pid == 0:
        os._exit(_work(cases, scratch, first, end, until, outcomes))
    try:
        status = os.waitpid(pid, 0)[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # the processes that the last case has started
    return status, [json.loads(line) for line in outcomes.read_text().splitlines()]


def _work(cases: Cases, scratch: Path, first: int, end: int, until: float | None, outcomes: Path) -> int:
    """The child; returns its exit code."""
    os.setpgid(0, 0)
    faulthandler.disable()
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    grown = _address_space() + ADDRESS_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (grown, grown))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    number = first
    with outcomes.open("w", buffering=1) as lines:

        def write(**line: object) -> None:
            lines.write(json.dumps({"number": number, **line}) + "\n")

        try:
            for number in range(first, end):
                case = cases(number) if until is None or time.monotonic() < until else None
                if case is None:
                    return _NO_MORE
                folder = Path(tempfile.mkdtemp(prefix=re.sub(r"\W+", "-", f"{case.kind}-"), dir=scratch))
                write(kind=case.kind, folder=str(folder))
                write(kind=case.kind, **_run(case, folder))
        except BaseException:
            write(kind="harness", problem=traceback.format_exc())
    return 0


def _run(case: Case, folder: Path) -> dict[str, str]:
    began = _cpu()
    _limit_time(case.seconds)
    problem = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            case.run(folder)
    except Exception:
        problem = traceback.format_exc()
    used = _cpu() - began
    if not problem and used > case.seconds:
        problem = f"{used:.0f} seconds of CPU time"
    if not problem or _size(folder) > _KEPT_BYTES:
        shutil.rmtree(folder, ignore_errors=True)
    return {"problem": problem, "folder": str(folder) if problem else ""}


def _limit_time(seconds: float) -> None:
    """The kernel kills the child if the case uses far more than its time, even inside C code, or waits for long."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(own.ru_utime + own.ru_stime + 3 * seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS + seconds)


def _cpu() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink())


def _death(status: int) -> str:
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        hints = {"SIGXCPU": " (too much CPU time)", "SIGALRM": " (still running)", "SIGKILL": " (killed)"}
        return f"the process died by {name}{hints.get(name, '')}"
    return f"the process ended with {os.WEXITSTATUS(status)} in the middle of the case"
