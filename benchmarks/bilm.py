"""Words per second of the biLM's fast path, compared to AllenNLP's `Elmo`.

    python -m benchmarks.bilm [--allennlp CHECKOUT] [--sizes small,original] [--json FILE]
    python -m benchmarks.bilm --sizes default --precisions float32 --batches 1 --threads 1 --words known|new

BiLMs of the published sizes with random weights, or the one in the package, compute the vectors of real sentences, in
batches of n in the order of the file. Each repeat of the fast path starts with an empty cache of word vectors, unless
`--words` says that all words are known or new. AllenNLP reads every k-th of the same
batches, as many as fit into the time, in turns with the fast path. Ratios are computed only on these batches.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from benchmarks import common
from benchmarks.allennlp_elmo import AllenNlpElmo
from benchmarks.common import Clock, Measurement
from elmo_tasks.elmo import PUBLISHED_OPTIONS, BiLM
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM
from elmo_tasks.elmo.fast import FastBiLM, Precision
from tests.random_bilm import random_bilm

Sentences = list[list[str]]

_BATCHES_COMPARED = 4
_ATTEMPTS = 3  # if other load disturbs a repeat


@dataclasses.dataclass(frozen=True)
class Run:
    """A repeat: the time of each batch that was read, by the number of the batch."""

    seconds: dict[int, float]
    measurement: Measurement

    def words_per_second(self, batches: Sequence[Sentences], chosen: set[int] | None = None) -> float:
        numbers = self.seconds.keys() if chosen is None else self.seconds.keys() & chosen
        return sum(common.count_words(batches[number]) for number in numbers) / sum(
            self.seconds[number] for number in numbers
        )


@dataclasses.dataclass(frozen=True)
class Result:
    """A row of the table. Words per second are medians over repeats."""

    size: str
    precision: str
    batch: int
    threads: int
    words_per_second: float
    allennlp_words_per_second: float | None
    ratio: float | None
    largest_difference: float | None
    relative_difference: float | None
    quiet_repeats: int
    repeats: int


class Bench:
    """Measures biLMs of one size.

    Arguments:
        size: a published size.
        arguments: the arguments of the command line.
        sentences: the sentences to read.
    """

    def __init__(self, size: str, arguments: argparse.Namespace, sentences: Sentences) -> None:
        self.size = size
        self.sentences = sentences
        self.seconds, self.repeats, self.words = arguments.seconds, arguments.repeats, arguments.words
        self.bilm = BiLM.load() if size == DEFAULT_BILM else random_bilm(PUBLISHED_OPTIONS[size])
        self.allennlp: AllenNlpElmo | None = None
        if arguments.allennlp is not None:
            with tempfile.TemporaryDirectory() as folder:
                files = Path(folder) / "options.json", Path(folder) / "weights.hdf5"
                self.bilm.save(*files)
                self.allennlp = AllenNlpElmo(arguments.allennlp, *files)

    def measure(self, batch_size: int, threads: int, precisions: Sequence[Precision]) -> list[Result]:
        """The rows for a batch size and a number of threads. Everything that is compared runs in turns."""
        torch.set_num_threads(threads)
        starts = range(0, len(self.sentences), batch_size)
        batches = [self.sentences[start : start + batch_size] for start in starts]
        runs: dict[Precision, list[Run]] = {precision: [] for precision in precisions}
        allennlp_runs: list[Run] = []
        for repeat in range(self.repeats):
            for precision in precisions:
                runs[precision].append(self._run_fast(precision, batches))
            if self.allennlp is not None:
                read = min(len(run.seconds) for each in runs.values() for run in each)
                allennlp_runs.append(self._run_allennlp(self.allennlp, batches[:read], repeat))
        return [
            self._result(precision, batch_size, threads, batches, runs[precision], allennlp_runs)
            for precision in precisions
        ]

    def _run_fast(self, precision: Precision, batches: Sequence[Sentences]) -> Run:
        def run() -> Run:
            fast = FastBiLM(self.bilm, precision)
            fast.layers([["warming", "up"]] * 2)
            if self.words == "known":
                fast.layers(self.sentences)

            def read(batch: Sentences) -> object:
                if self.words == "new":
                    fast.forget_words()
                return fast.layers(batch)

            return _timed(read, batches, range(len(batches)), self.seconds)

        return _quiet(run)

    def _run_allennlp(self, elmo: AllenNlpElmo, batches: Sequence[Sentences], repeat: int) -> Run:
        first = _timed(elmo, batches, [repeat % len(batches)], self.seconds)
        stride = max(1, round(len(batches) * sum(first.seconds.values()) / self.seconds))
        return _quiet(lambda: _timed(elmo, batches, range(repeat % stride, len(batches), stride), 2 * self.seconds))

    def _result(
        self,
        precision: Precision,
        batch_size: int,
        threads: int,
        batches: Sequence[Sentences],
        runs: Sequence[Run],
        allennlp_runs: Sequence[Run],
    ) -> Result:
        kept = [run for run in runs if run.measurement.quiet] or runs
        speed = statistics.median(run.words_per_second(batches) for run in kept)
        read = set(kept[0].seconds)
        kept_allennlp = [run for run in allennlp_runs if run.measurement.quiet] or allennlp_runs
        allennlp_speed = ratio = largest = relative = None
        if self.allennlp is not None:
            allennlp_speed = statistics.median(run.words_per_second(batches) for run in kept_allennlp)
            ratio = statistics.median(
                run.words_per_second(batches, set(other.seconds)) / other.words_per_second(batches)
                for run, other in zip(kept, kept_allennlp, strict=False)
            )
            largest, relative = _differences(
                self.bilm, precision, self.allennlp, batches[: min(len(read), _BATCHES_COMPARED)]
            )
        return Result(
            self.size, precision, batch_size, threads, speed, allennlp_speed, ratio, largest, relative,
            sum(run.measurement.quiet for run in (*runs, *allennlp_runs)), len(runs) + len(allennlp_runs),
        )  # fmt: skip


def _timed(
    read: Callable[[Sentences], object], batches: Sequence[Sentences], numbers: Sequence[int], seconds: float
) -> Run:
    """Reads batches in order until all are read or the time is over."""
    spent: dict[int, float] = {}
    whole = Clock()
    for number in numbers:
        clock = Clock()
        read(batches[number])
        spent[number] = clock.stop().seconds
        if sum(spent.values()) > seconds:
            break
    return Run(spent, whole.stop())


def _quiet(run: Callable[[], Run]) -> Run:
    """Repeats a run that other load disturbs. Returns an undisturbed one, or the least disturbed one."""
    attempts: list[Run] = []
    while len(attempts) < _ATTEMPTS and not (attempts and attempts[-1].measurement.quiet):
        attempts.append(run())
    return min(attempts, key=lambda attempt: attempt.measurement.other_load)


def _differences(
    bilm: BiLM, precision: Precision, elmo: AllenNlpElmo, batches: Sequence[Sentences]
) -> tuple[float, float]:
    """The largest difference to AllenNLP's layers, and the norm of the differences relative to that of the layers."""
    fast = FastBiLM(bilm, precision)
    largest, squares, all_squares = 0.0, 0.0, 0.0
    for batch in batches:
        output = fast.layers(batch)
        wanted = elmo.layers(batch) * output.mask[:, None, :, None]  # without the borders after shorter sentences
        difference = output.layers - wanted
        largest = max(largest, float(difference.abs().max()))
        squares += float(difference.square().sum())
        all_squares += float(wanted.square().sum())
    return largest, (squares / all_squares) ** 0.5


def main() -> None:
    arguments = _parse()
    sentences = common.read_sentences(arguments)
    results: list[Result] = []
    for size in arguments.sizes:
        bench = Bench(size, arguments, sentences)
        for threads in arguments.threads:
            for batch_size in arguments.batches:
                results += bench.measure(batch_size, threads, arguments.precisions)
                print(".", end="", flush=True)
    print("\n" + _table(results))
    common.write_results(arguments.json, results=[dataclasses.asdict(each) for each in results])


def _table(results: Sequence[Result]) -> str:
    header = ("size", "precision", "threads", "batch", "words/s", "AllenNLP words/s", "ratio",
              "largest difference", "relative difference", "undisturbed")  # fmt: skip

    def cells(result: Result) -> list[str]:
        return [
            result.size,
            result.precision,
            str(result.threads),
            str(result.batch),
            f"{result.words_per_second:,.0f}",
            *(
                "" if value is None else form.format(value)
                for form, value in (
                    ("{:,.0f}", result.allennlp_words_per_second),
                    ("{:.1f}", result.ratio),
                    ("{:.1e}", result.largest_difference),
                    ("{:.1e}", result.relative_difference),
                )
            ),
            f"{result.quiet_repeats} of {result.repeats}",
        ]

    return common.markdown_table(header, [cells(result) for result in results])


def _parse() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser = common.make_parser(__doc__, sentences=2000)
    parser.add_argument("--allennlp", type=Path, metavar="CHECKOUT", help="a checkout of AllenNLP 2.10.1")
    parser.add_argument("--sizes", type=names, default=["small", "medium", "original"])
    parser.add_argument("--words", choices=["mixed", "known", "new"], default="mixed", help="(default: %(default)s)")
    parser.add_argument("--precisions", type=names, default=list(common.PRECISIONS))
    parser.add_argument("--batches", type=numbers, default=[1, 32, 64], help="sentences per batch")
    parser.add_argument("--threads", type=numbers, default=[torch.get_num_threads()])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="the approximate time of a repeat")
    return parser.parse_args()


if __name__ == "__main__":
    main()
