"""How speed and memory of the fast path, and the time of predictors and readers, grow with the size of what they read.

    python -m benchmarks.growth [--size original] [--json FILE]

Each line is measured in a separate process. Peak memory is that of the whole process, including weights, Python and
torch. Sentences of a given length are made from the words of real sentences.

Predictors have random weights and the sizes of the packaged configs. Each predicts one input, which doubles in length;
each reader parses the beginning of a training file in $ELMO_TASKS_DATA, which doubles in length. Their times are
processor seconds, the best of three.
The exponent is the binary logarithm of how much longer the doubled input takes: 1 is linear, 2 quadratic.

`embed --output DIR/` reads many files of one short line, a file of many lines, or a file of one long line, with the
default biLM and one thread. Its processor seconds and memory, and those of `--check` afterwards, are those of whole
commands.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import common
from benchmarks.common import Clock, Measurement, in_own_process, peak_gigabytes
from elmo_tasks.config import load_config
from elmo_tasks.config.data_folder import DATA_VARIABLE
from elmo_tasks.elmo import PUBLISHED_OPTIONS, random_bilm
from elmo_tasks.elmo.fast import FastBiLM, Precision
from elmo_tasks.files.paths import plain_name
from elmo_tasks.files.text import open_binary
from elmo_tasks.predictors import build_predictor
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.model_building import build_model
from elmo_tasks.sample_data import ALL_TASKS, write_sample_data
from elmo_tasks.sample_data.first_sentences import first_sentences

Sentences = list[list[str]]

_MIN_WORDS = 2000  # of a measurement
_CORPUS_BATCH = 512  # sentences
_REPEATS = 3  # of a predictor or reader; the fastest counts
_LARGEST_EXPONENT = 1.3  # of what is called linear
_FEW_PREDICATES = 8

# The config of each predictor, and the input that is made of this many words.
PREDICTORS: dict[str, tuple[str, Callable[[list[str]], dict[str, Any]]]] = {
    "tagging": ("ner_conll03", lambda words: {"tokens": words}),
    "classification": ("cpu/sst5", lambda words: {"tokens": words}),
    "text pairs, both texts": ("cpu/snli", lambda words: {"premise_tokens": words, "hypothesis_tokens": words}),
    "reading": ("cpu/squad", lambda words: {"passage": " ".join(words), "question": "Who was it?"}),
    "semantic roles, 8 predicates": (
        "cpu/srl_ewt",
        lambda words: {"tokens": words, "predicates": list(range(_FEW_PREDICATES))},
    ),
    "semantic roles, every 32nd token a predicate": (
        "cpu/srl_ewt",
        lambda words: {"tokens": words, "predicates": list(range(0, len(words), 32))},
    ),
    "coreference": (
        "cpu/coref_ontogum",
        lambda words: {"sentences": [words[start : start + 20] for start in range(0, len(words), 20)]},
    ),
}
READERS = (
    "ner_conll03",
    "pos_ewt",
    "cpu/sst5",
    "cpu/snli",
    "cpu/squad",
    "cpu/srl_ewt",
    "predicates_ewt",
    "cpu/coref_ontogum",
)


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
    return Growth(case.kind, case.count, words, words / measurement.seconds, peak_gigabytes(), measurement.other_load)


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


def time_predictor(name: str, lengths: Sequence[int], sentences: Sentences) -> list[float]:
    """The processor seconds that a predictor takes for one input of each of these numbers of words."""
    torch.set_num_threads(1)
    config_name, make_input = PREDICTORS[name]
    with tempfile.TemporaryDirectory() as folder:
        write_sample_data(folder, ALL_TASKS, sentences=(100, 10, 10))
        config = load_config(config_name, ExperimentConfig, variables={DATA_VARIABLE: folder})
        vocabulary = Data.read(config).vocabulary(config)
        predictor = build_predictor(build_model(config, vocabulary, pretrained=False), vocabulary)
    words = list(itertools.islice(itertools.cycle(itertools.chain.from_iterable(sentences)), max(lengths)))
    inputs = [make_input(words[:length]) for length in lengths]
    predictor(inputs[0])  # the first call compiles
    return [_seconds(functools.partial(predictor, each)) for each in inputs]


def time_reader(name: str, sizes: Sequence[int]) -> list[float]:
    """The processor seconds that the reader of a config takes for the first sentences of its training file."""
    config = load_config(name, ExperimentConfig)
    path = Path(str(config.train_data_path))
    reader = config.dataset_reader.build()
    with open_binary(path) as stream:
        text = stream.read().decode()
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        beginning = Path(folder, plain_name(path))
        for size in sizes:
            beginning.write_text(first_sentences(path, text, size), encoding="utf-8")
            seconds.append(_seconds(lambda: sum(1 for _ in reader.examples(beginning))))
    return seconds


def _seconds(call: Callable[[], object]) -> float:
    best = math.inf
    for _ in range(_REPEATS):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return best


def exponents(sizes: Sequence[int], seconds: Sequence[float]) -> list[float]:
    """How fast the time grows from each size to the next: 1 is linear, 2 quadratic."""
    growth = zip(itertools.pairwise(sizes), itertools.pairwise(seconds), strict=True)
    return [math.log(later / earlier) / math.log(larger / smaller) for (smaller, larger), (earlier, later) in growth]


def embed_parts(kind: str, count: int, sentences: Sentences) -> tuple[str, ...]:
    """The cells of a row: what `embed --output DIR/` and then `--check` take for one of the texts of `_write_texts`."""
    with tempfile.TemporaryDirectory() as folder:
        words = _write_texts(kind, count, sentences, Path(folder, "texts"))
        command = [sys.executable, "-m", "elmo_tasks", "embed", f"{folder}/texts", "--output", f"{folder}/parts/"]
        costs = [common.run_commands([*command, "--quiet", *more])[0] for more in ([], ["--check"])]
        parts = sum(path.suffix == ".parquet" for path in Path(folder, "parts").iterdir())
    cells = (cell for cost in costs for cell in (f"{cost.processor_seconds:.1f}", f"{cost.peak_gigabytes:.2f}"))
    return kind, f"{count:,}", f"{words:,}", f"{parts:,}", *cells


def _write_texts(kind: str, count: int, sentences: Sentences, folder: Path) -> int:
    """Writes `count` files of a sentence, or a file of this many sentences or words; returns the number of words."""
    folder.mkdir()
    texts: Iterable[Sequence[str]] = itertools.islice(itertools.cycle(sentences), count)
    if kind == "words of a line":
        texts = [list(itertools.islice(itertools.cycle(itertools.chain.from_iterable(sentences)), count))]
    words = 0
    for number, tokens in enumerate(texts):
        with Path(folder, f"{number if kind == 'files' else 0:05}.txt").open("a", encoding="utf-8") as stream:
            stream.write(f"{' '.join(tokens)}\n")
        words += len(tokens)
    return words


def _show_growth(
    title: str, unit: str, names: Iterable[str], call: Callable[..., list[float]], sizes: Sequence[int]
) -> dict[str, list[float]]:
    """Prints a table of times and exponents, and returns the times."""
    if not sizes:
        return {}
    times = {name: in_own_process(call, name, sizes) for name in names}
    header = [title, *(f"{size:,} {unit}, s" for size in sizes), *(f"exponent to {size:,}" for size in sizes[1:]), ""]
    rows = []
    for name, seconds in times.items():
        found = exponents(sizes, seconds)
        verdict = f"above {_LARGEST_EXPONENT}" if max(found, default=0) > _LARGEST_EXPONENT else ""
        rows.append((name, *(f"{each:.3f}" for each in seconds), *(f"{each:.2f}" for each in found), verdict))
    print(f"\n{common.markdown_table(header, rows)}")
    return times


def main() -> None:
    arguments = _parse()
    sentences = common.read_sentences(arguments.sentences, arguments.number)
    cases = [
        *(Case("length", count) for count in arguments.lengths),
        *(Case("batch", count) for count in arguments.batches),
        *(Case("corpus", count) for count in arguments.corpora),
    ]
    settings = (arguments.size, arguments.precision, sentences, torch.get_num_threads())
    results: list[Growth] = [in_own_process(measure, case, *settings) for case in cases]
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
    if rows:
        print(f"{arguments.size}, {arguments.precision}\n\n{common.markdown_table(header, rows)}")
    found = {"machine": common.machine(), "size": arguments.size, "precision": arguments.precision}
    found |= {"results": [dataclasses.asdict(result) for result in results]}
    time_of_words = functools.partial(time_predictor, sentences=sentences)
    found["predictors"] = _show_growth("predictors", "words", PREDICTORS, time_of_words, arguments.predictors)
    found["readers"] = _show_growth("readers", "sentences", READERS, time_reader, arguments.readers)
    kinds = {"files": arguments.files, "lines of a file": arguments.lines, "words of a line": arguments.line_words}
    parts = [embed_parts(kind, count, sentences) for kind, counts in kinds.items() for count in counts]
    columns = ("`embed --output DIR/`", "value", "words", "parts", "s", "GB", "`--check`, s", "GB")
    print(f"\n{common.markdown_table(columns, parts)}" if parts else "")
    found["parts"] = parts
    common.write_json(arguments.json, found)


def _parse() -> argparse.Namespace:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(",") if part]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=sorted(PUBLISHED_OPTIONS), default="original")
    parser.add_argument("--precision", choices=common.PRECISIONS, default="float32")
    parser.add_argument("--lengths", type=numbers, default=[10, 100, 1000, 10_000, 50_000])
    parser.add_argument("--batches", type=numbers, default=[1, 4, 16, 64, 256, 1024])
    parser.add_argument("--corpora", type=numbers, default=[1000, 4000], help="sentences that are read as a stream")
    parser.add_argument("--predictors", type=numbers, default=[250, 500, 1000, 2000], help="words of one input")
    parser.add_argument("--readers", type=numbers, default=[1000, 2000, 4000, 8000], help="sentences of a file")
    parser.add_argument("--files", type=numbers, default=[100, 1000, 10_000], help="of `embed --output DIR/`")
    parser.add_argument("--lines", type=numbers, default=[1000, 10_000, 40_000, 160_000], help="of one such file")
    parser.add_argument("--line-words", type=numbers, default=[1000, 10_000, 50_000], help="of the only line of a file")
    parser.add_argument("--number", type=int, default=2000, help="the number of sentences to take words from")
    common.add_common_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
