"""Code that the benchmarks share: real sentences, a clock that measures other load, the machine's peak, and tables."""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

import torch

from elmo_tasks.config.data_folder import DATA_VARIABLE, DEFAULT_DATA_FOLDER
from elmo_tasks.elmo.fast.products import Precision, build_product
from elmo_tasks.elmo.fast.threads import run_together
from elmo_tasks.files.json_files import write_json

PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "int8")
_ResultT = TypeVar("_ResultT")

_MAX_OTHER_LOAD = 0.05  # as a share of one processor, averaged over a measurement
_DEFAULT_SENTENCES = Path("ner_conll2003") / "eng.train"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """How long something took, and how many processors other programs used at the same time."""

    seconds: float
    other_load: float

    @property
    def quiet(self) -> bool:
        return self.other_load <= _MAX_OTHER_LOAD


class Clock:
    """Measures time and the load of other processes."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._others = _busy_seconds_of_others()

    def stop(self) -> Measurement:
        seconds = time.perf_counter() - self._start
        return Measurement(seconds, max(0.0, _busy_seconds_of_others() - self._others) / seconds)


def _busy_seconds_of_others() -> float:
    """The processor time of other programs and of other virtual machines; 0 if the system does not report it."""
    try:
        fields = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    except OSError:
        return 0.0
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = map(int, fields[:8])
    busy = (user + nice + system + interrupts + soft_interrupts + stolen) / os.sysconf("SC_CLK_TCK")
    own = os.times()
    return busy - own.user - own.system


def median_of_quiet(measurements: Sequence[Measurement]) -> tuple[float, int]:
    """The median seconds of the undisturbed measurements, or of all if there are none, and their number."""
    quiet = [each.seconds for each in measurements if each.quiet]
    return statistics.median(quiet or [each.seconds for each in measurements]), len(quiet)


def best_seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """The processor seconds of a call, the fastest of several."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return best


def in_own_process(call: Callable[..., _ResultT], *arguments: object) -> _ResultT:
    """Calls a function in a new process, whose peak memory is only its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(call, *arguments).result()


def peak_gigabytes() -> float:
    """The peak memory of this process, with Python and torch."""
    return _gigabytes(resource.getrusage(resource.RUSAGE_SELF))


@dataclasses.dataclass(frozen=True)
class CommandCost:
    """What a command has taken."""

    seconds: float
    processor_seconds: float
    peak_gigabytes: float


def run_commands(*commands: Sequence[str]) -> list[CommandCost]:
    """Runs commands at the same time, each with one thread."""
    begin, found = time.perf_counter(), []
    processes = [subprocess.Popen(each, env={**os.environ, "OMP_NUM_THREADS": "1"}) for each in commands]
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"a process failed: {process.args!r}")
        seconds = time.perf_counter() - begin
        found.append(CommandCost(seconds, usage.ru_utime + usage.ru_stime, _gigabytes(usage)))
    return found


def _gigabytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def make_parser(text: str | None, *, sentences: int | None = None) -> argparse.ArgumentParser:
    """A parser whose help is the text of a module as it is.

    Arguments:
        sentences: how many real ones are read by default; None if none are read.
    """
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    if sentences is not None:
        parser.add_argument(
            "--sentences",
            type=Path,
            metavar="FILE",
            help=f"a file of CoNLL columns with tokens in the first (default: $ELMO_TASKS_DATA/{_DEFAULT_SENTENCES})",
        )
        parser.add_argument(
            "--number", type=int, default=sentences, help="how many of its sentences to read (default: %(default)s)"
        )
    return parser


def read_sentences(arguments: argparse.Namespace) -> list[list[str]]:
    """The sentences that the options of `make_parser` choose, without document separators."""
    path, number = arguments.sentences or real_data() / _DEFAULT_SENTENCES, arguments.number
    if not path.is_file():
        raise SystemExit(f"{path}: no such file; use --sentences or set ELMO_TASKS_DATA")
    sentences: list[list[str]] = [[]]
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            columns = line.split()
            if columns and columns[0] != "-DOCSTART-":
                sentences[-1].append(columns[0])
            elif sentences[-1]:
                if len(sentences) == number:
                    break
                sentences.append([])
    return [tokens for tokens in sentences if tokens]


def real_data() -> Path:
    """The folder of the real data."""
    return Path(os.environ.get(DATA_VARIABLE, DEFAULT_DATA_FOLDER))


def count_words(sentences: Iterable[Sequence[str]]) -> int:
    return sum(map(len, sentences))


def product_peak(precision: Precision, seconds: float = 1.0) -> float:
    """The peak rate of matrix products of this precision on all threads, in operations per second.

    Two products run at once, each on half of the threads, like the two directions of a biLM.
    """
    rows, inputs, outputs = 512, 4096, 512
    product = build_product(torch.randn(outputs, inputs), None, precision)
    factors = torch.randn(rows, inputs)
    device = torch.device("cpu")
    best = float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        run_together([lambda: product(factors)] * 2, device)
        best = min(best, time.perf_counter() - start)
    return 2 * 2 * rows * inputs * outputs / best


def machine() -> dict[str, object]:
    """The machine and the versions that the numbers were measured with."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return {
        "processor": model,
        "processors": os.cpu_count(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown. All columns except the first are aligned to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def write_results(path: Path | None, **results: object) -> None:
    """Writes the machine and the results as JSON, if there is a path."""
    if path is not None:
        write_json(path, {"machine": machine(), **results})
