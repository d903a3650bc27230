"""How speed and memory of the fast path depend on the length of sentences and the size of batches and of a corpus.

    python -m benchmarks.growth [--size original] [--json FILE]

Each line is measured in a separate process. Peak memory is that of the whole process, including weights, Python and
torch. Sentences of a given length are made from the words of real sentences.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import multiprocessing
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

import torch

from benchmarks import common
from benchmarks.common import Clock, Measurement
from elmo_tasks.elmo import PUBLISHED_OPTIONS, random_bilm
from elmo_tasks.elmo.fast import FastBiLM, Precision

Sentences = list[list[str]]

_MIN_WORDS = 2000  # of a measurement
_CORPUS_BATCH = 512  # sentences


@dataclasses.dataclass(frozen=True)
class Case:
    """A line of the table: `count` words per sentence, sentences per batch, or sentences in a corpus."""

    kind: str  # "length", "batch" or "corpus"
    count: int


@dataclasses.dataclass(frozen=True)
class Growth:
    """The result of a case."""

    kind: str
    count: int
    words: int
    words_per_second: float
    peak_gigabytes: float
    other_load: float


def measure(case: Case, size: str, precision: Precision, sentences: Sentences, threads: int) -> Growth:
    """Runs a case. Call it in a new process, because peak memory is measured for the whole process."""
    torch.set_num_threads(threads)
    fast = FastBiLM(random_bilm(PUBLISHED_OPTIONS[size]), precision)
    fast.layers([["warming", "up"]] * 2)
    words, measurement = _MEASURES[case.kind](fast, case.count, sentences)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Growth(case.kind, case.count, words, words / measurement.seconds, peak / 1e9, measurement.other_load)


def _read_sentences_of_length(fast: FastBiLM, length: int, sentences: Sentences) -> tuple[int, Measurement]:
    """Reads one sentence at a time."""
    words = itertools.chain.from_iterable(itertools.cycle(sentences))
    return _read_all(fast, ([list(itertools.islice(words, length))] for _ in itertools.count()))


def _read_batches(fast: FastBiLM, batch_size: int, sentences: Sentences) -> tuple[int, Measurement]:
    """Reads batches of sentences in the order of the file."""
    source = itertools.cycle(sentences)
    return _read_all(fast, (list(itertools.islice(source, batch_size)) for _ in itertools.count()))


def _read_all(fast: FastBiLM, batches: Iterator[Sentences]) -> tuple[int, Measurement]:
    words = 0
    clock = Clock()
    while words < _MIN_WORDS:
        batch = next(batches)
        fast.layers(batch)
        words += common.count_words(batch)
    return words, clock.stop()


def _read_corpus(fast: FastBiLM, num_sentences: int, sentences: Sentences) -> tuple[int, Measurement]:
    """Reads this many sentences in large batches. Each time the file is repeated, a third of its words are new."""

    def corpus() -> Iterator[list[str]]:
        rounds = (_renamed(sentences, number) for number in itertools.count())
        return itertools.islice(itertools.chain.from_iterable(rounds), num_sentences)

    words = 0
    clock = Clock()
    rest = corpus()
    while batch := list(itertools.islice(rest, _CORPUS_BATCH)):
        fast.layers(batch)
        words += common.count_words(batch)
    return words, clock.stop()


def _renamed(sentences: Sentences, number: int) -> Iterable[list[str]]:
    for tokens in sentences:
        yield [f"{token}{number}" if number and len(token) % 3 == 0 else token for token in tokens]


_MEASURES: dict[str, Callable[[FastBiLM, int, Sentences], tuple[int, Measurement]]] = {
    "length": _read_sentences_of_length,
    "batch": _read_batches,
    "corpus": _read_corpus,
}


def main() -> None:
    arguments = _parse()
    sentences = common.read_sentences(arguments.sentences, arguments.number)
    cases = [
        *(Case("length", count) for count in arguments.lengths),
        *(Case("batch", count) for count in arguments.batches),
        *(Case("corpus", count) for count in arguments.corpora),
    ]
    results: list[Growth] = []
    for case in cases:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
            call = (measure, case, arguments.size, arguments.precision, sentences, torch.get_num_threads())
            results.append(process.submit(*call).result())
    names = {"length": "words of a sentence", "batch": "sentences of a batch", "corpus": "sentences of a corpus"}
    header = ("what varies", "value", "words read", "words/s", "peak memory (GB)", "other load")
    rows = [
        (
            names[result.kind],
            f"{result.count:,}",
            f"{result.words:,}",
            f"{result.words_per_second:,.0f}",
            f"{result.peak_gigabytes:.2f}",
            f"{result.other_load:.0%}",
        )
        for result in results
    ]
    print(f"{arguments.size}, {arguments.precision}\n\n{common.markdown_table(header, rows)}")
    found = {"machine": common.machine(), "size": arguments.size, "precision": arguments.precision}
    common.write_json(arguments.json, found | {"results": [dataclasses.asdict(result) for result in results]})


def _parse() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",") if part]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=sorted(PUBLISHED_OPTIONS), default="original")
    parser.add_argument("--precision", choices=common.PRECISIONS, default="float32")
    parser.add_argument("--lengths", type=numbers, default=[10, 100, 1000, 10_000, 50_000])
    parser.add_argument("--batches", type=numbers, default=[1, 4, 16, 64, 256, 1024])
    parser.add_argument("--corpora", type=numbers, default=[1000, 4000], help="sentences that are read as a stream")
    parser.add_argument("--number", type=int, default=2000, help="the number of sentences to take words from")
    common.add_common_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
