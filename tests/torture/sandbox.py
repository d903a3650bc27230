"""Runs cases in a child process with bounds, so that a crash, a hang or a hunger for memory is one failed case.

The child is a copy of a process that has imported the package, so that it starts in milliseconds. It runs case after
case. When it dies, another one goes on with the next case.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import json
import os
import re
import resource
import select
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

CPU_SECONDS = 10  # of a case
WALL_SECONDS = 120  # of a case, which may sleep or wait
ADDRESS_BYTES = 4 << 30  # by which the child may grow
_ERROR = re.compile(r"[\w.]*(Error|Exception|Warning|Exit)\b")
_KEPT_BYTES = 20 << 20  # of a case's files, if they are kept as a reproducer
_CASES_OF_A_PROCESS = 5_000  # which keeps the folders of every cache open that it has used


@dataclasses.dataclass(frozen=True)
class Case:
    """One thing to try.

    Arguments:
        kind: the row of the table that counts it.
        name: says how to make it again.
        run: gets an empty folder of its own. It fails if it raises.
        seconds: of CPU time that it may take. It may wait for another two minutes.
    """

    kind: str
    name: str
    run: Callable[[Path], object]
    seconds: float = CPU_SECONDS


class Part(Protocol):
    """Cases by number, from 0. The same number is always the same case."""

    name: str

    def case(self, number: int) -> Case | None:
        """The case with this number; None behind the last one. A part with random cases has no last one."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Arguments:
        cpu: seconds of the case and of its child processes.
        memory: the peak so far of the process that ran it, in bytes.
        problem: a traceback or another description; empty if the case has passed.
        folder: the case's files, if it has failed.
    """

    number: int
    kind: str
    name: str
    cpu: float
    memory: int
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
    part: Part, scratch: Path, *, first: int = 0, most: int | None = None, until: float | None = None
) -> Iterator[Outcome]:
    """Runs a part's cases in order.

    Arguments:
        scratch: a folder for the cases' files. Those of failed cases stay.
        most: how many; until: the time, by `time.monotonic`, after which no case begins. By default all.
    """
    end = None if most is None else first + most
    while end is None or first < end:
        last = first + _CASES_OF_A_PROCESS if end is None else min(end, first + _CASES_OF_A_PROCESS)
        with _worker(part, scratch, first, last, until) as worker:
            for outcome in worker.outcomes():
                first = outcome.number + 1
                yield outcome
        if worker.finished and first < last:  # no more cases, or no more time
            return


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


class _Worker:
    """The parent's side of a child that runs cases."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self.finished = False
        self._pipe = pipe
        self._buffer = b""
        self._begun: dict[str, Any] | None = None
        self._patience: float = WALL_SECONDS

    def outcomes(self) -> Iterator[Outcome]:
        """Those of the finished cases and, last, that of the case in which the child has died."""
        while (line := self._line()) is not None:
            if line.get("end"):
                self.finished = True
            elif "cpu" in line:
                self._begun = None
                yield Outcome(**line)
            else:
                self._patience = WALL_SECONDS + line.pop("seconds")
                self._begun = line
        status = self._kill()
        if self._begun is not None:
            problem = f"still running after {self._patience:.0f} seconds" if status is None else _death(status)
            used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
            yield Outcome(**self._begun, cpu=0.0, memory=used, problem=problem)
        elif not self.finished:
            raise RuntimeError(f"the child has died between two cases: {status}")

    def _line(self) -> dict[str, Any] | None:
        """The next message; None if the child has died, or does not answer."""
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._pipe], [], [], self._patience)
            chunk = os.read(self._pipe, 1 << 16) if ready else b""
            if not chunk:
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def _kill(self) -> int | None:
        """Ends the child; returns its status, or None if it was still alive."""
        for _ in range(50):  # one that has closed its pipe is about to end
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


@contextlib.contextmanager
def _worker(part: Part, scratch: Path, first: int, end: int, until: float | None) -> Iterator[_Worker]:
    receive, send = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: none of them computes now
        pid = os.fork()
    if pid == 0:
        os.close(receive)
        os._exit(_work(part, scratch, first, end, until, send))
    os.close(send)
    worker = _Worker(pid, receive)
    try:
        yield worker
    finally:
        os.close(receive)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _work(part: Part, scratch: Path, first: int, end: int, until: float | None, pipe: int) -> int:
    """The child: runs cases and reports each before and after."""

    def send(**line: object) -> None:
        data = json.dumps(line).encode() + b"\n"
        while data:
            data = data[os.write(pipe, data) :]

    try:
        os.setpgid(0, 0)
        faulthandler.disable()
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        grown = _address_space() + ADDRESS_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (grown, grown))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = first
        while number < end and (until is None or time.monotonic() < until):
            case = part.case(number)
            if case is None:
                break
            named = {"number": number, "kind": case.kind, "name": case.name}
            folder = Path(tempfile.mkdtemp(prefix=re.sub(r"\W+", "-", f"{case.kind}-"), dir=scratch))
            send(**named, folder=str(folder), seconds=case.seconds)
            send(**named, **_run(case, folder))
            number += 1
        send(end=True)
        return 0
    except BaseException:
        send(number=first, kind="harness", name="", cpu=0.0, memory=0, problem=traceback.format_exc())
        return 1


def _run(case: Case, folder: Path) -> dict[str, object]:
    began = _cpu()
    _limit_cpu(3 * case.seconds)
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
    kept = str(folder) if problem else ""
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) << 10
    return {"cpu": used, "memory": memory, "problem": problem, "folder": kept}


def _limit_cpu(seconds: float) -> None:
    """The kernel kills the child if the case uses far more than its time, even inside C code."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(own.ru_utime + own.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _cpu() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink())


def _death(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        hint = {signal.SIGXCPU: " (too much CPU time)", signal.SIGKILL: " (killed)"}
        return f"the process died by {signal.Signals(number).name}{hint.get(signal.Signals(number), '')}"
    return f"the process ended with {os.WEXITSTATUS(status)} in the middle of the case"
