"""Commands of `elmo-tasks` in processes of their own."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from elmo_tasks.pretraining.tokenize_files import num_processors

SECONDS_BETWEEN_LOOKS = 0.1  # whether a process has ended
SECONDS_BETWEEN_CLAIMS = 0.5  # whether another process still trains a run

_PR_SET_PDEATHSIG = 1  # Linux: the signal that a process gets when its parent ends
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


class LoggedProcess:
    """A command of `elmo-tasks` in a process of its own, which appends what it prints to a log.

    On Linux, the process is killed when this one ends.

    Arguments:
        arguments: those of `elmo-tasks`.
        log: the file; its folder is made.
        num_jobs: how many processes share the processor's cores, unless `OMP_NUM_THREADS` is set.
    """

    def __init__(self, arguments: Sequence[str], log: Path, *, num_jobs: int) -> None:
        command = [sys.executable, "-m", "elmo_tasks", *arguments]
        env = {"OMP_NUM_THREADS": str(max(1, num_processors() // num_jobs)), **os.environ}
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stream:
            self.log, self._begin = log, stream.tell()
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=env, preexec_fn=_end_with_parent
            )

    def is_running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends the process if it still runs, and waits until it has ended."""
        self._process.terminate()
        self._process.wait()

    def error(self) -> str | None:
        """Why the process, which has ended, did not finish: its last error. None if it did."""
        code = self._process.wait()
        if code == 0:
            return None
        if code < 0:  # nothing in the log says so
            return f"killed by {signal.Signals(-code).name}"
        return self._last_error() or f"ended with code {code}"

    def _last_error(self) -> str:
        """The last error, or else the last line, of what the process has printed."""
        text = self.log.read_bytes()[self._begin :].decode(errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
        errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return (errors or lines or [""])[-1]


def _end_with_parent() -> None:
    """Called in a new process: it is killed when its parent ends, so that nothing goes on without being asked for."""
    if _libc:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
