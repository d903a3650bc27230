"""Whether a process that predicts for hours keeps its memory: a stream of sentences with ever new words.

    python -m tests.torture.soak [SECONDS]

Three small runs are trained on sample data, with the biLM of the package: names, sentiment and semantic roles (with
the run that finds the predicates). One process then predicts with all of them in turn, as `elmo-tasks predict` does.
Most words have never been seen before. Inputs have many lengths. Some are blank, some are very long, and some are
wrong, so that their stream ends with an error.

The table has a row for each minute. Memory may grow while caches fill: during the first sixth of the time, and at most
the first ten minutes. If it then grows by more than 2 %, the exit status is 1.
"""

from __future__ import annotations

import dataclasses
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmo_tasks.errors import DataError
from elmo_tasks.predictors import Predictor
from elmo_tasks.predictors.free_memory import release_memory
from elmo_tasks.runs.load import load_predictor
from elmo_tasks.runs.train import train
from elmo_tasks.sample_data import write_sample_data
from tests.torture.sandbox import Case

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
MOST_GROWTH = 0.02
_WARM_UP_SECONDS = 600.0  # at most
_REPORT_SECONDS = 60.0  # or a twentieth of the time
_NEW_WORDS = 60_000  # more than any cache of words holds
_STREAM = 200  # inputs, about
_WORDS = (
    "the", "a", "of", "in", "and", "he", "she", "said", "went", "to", "gave", "told", "left", "when", "it", ",", "'",
)  # fmt: skip
_PREPARATION = 600  # seconds, for training
_SHORT = 300  # seconds, in which caches still fill
_GROWTH_OF_SHORT = 0.2


@dataclasses.dataclass(frozen=True)
class Row:
    """What was done and used up to a moment."""

    seconds: float
    inputs: int
    errors: int
    resident: int  # bytes


class Soak:
    """A single case of the torture.

    Arguments:
        seconds: how long.
    """

    name = "soak"

    def __init__(self, seconds: float, seed: int) -> None:
        self._seconds = seconds
        self._seed = seed

    def case(self, number: int) -> Case | None:
        if number > 0:
            return None
        return Case("predict", f"{self._seconds:.0f} seconds", self._soak, self._seconds + _PREPARATION)

    def _soak(self, folder: Path) -> None:
        rows = soak(self._seconds, self._seed)
        most = MOST_GROWTH if self._seconds >= _SHORT else _GROWTH_OF_SHORT
        assert growth(rows) <= most, f"memory has grown by {growth(rows):.1%}: {rows}"


def soak(seconds: float, seed: int = 1) -> list[Row]:
    """Predicts for this long, and returns a row for each minute, or for each twentieth of a shorter time."""
    generator = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        predictors = train_predictors(Path(folder))
        for predictor in predictors:  # fills the caches of words, which takes longest
            words = ({"tokens": [random_word(generator) for _ in range(100)]} for _ in range(_NEW_WORDS // 100))
            for _ in predictor.predict(words):
                pass
        start = time.monotonic()
        rows, inputs, errors = [Row(0.0, 0, 0, resident_bytes())], 0, 0
        while (passed := time.monotonic() - start) < seconds:
            stream = list(random_stream(generator))
            for predictor in predictors:
                try:
                    for _ in predictor.predict(stream):
                        pass
                except DataError:
                    errors += 1
                inputs += len(stream)
            if passed - rows[-1].seconds >= min(_REPORT_SECONDS, seconds / 20):
                rows.append(Row(passed, inputs, errors, resident_bytes()))
                print_row(rows[-1])
    return rows


def growth(rows: list[Row]) -> float:
    """How much memory has grown since the end of the warm-up, as a share of what it was then.

    Single values go up and down with the last input. So the means of the first and the last quarter are compared.
    """
    warm = min(_WARM_UP_SECONDS, rows[-1].seconds / 6)
    values = [row.resident for row in rows if row.seconds >= warm]
    quarter = max(1, len(values) // 4)
    return sum(values[-quarter:]) / sum(values[:quarter]) - 1


def train_predictors(folder: Path) -> list[Predictor]:
    """The predictors of runs that have learned for one epoch."""
    for task in ("ner", "sst5", "srl"):
        write_sample_data(folder, task, sentences=(60, 20, 20))

    def trained(name: str, **settings: Any) -> Predictor:
        run = folder / "runs" / name
        overrides = ["trainer.num_epochs=1", "trainer.precision=float32", "model.embedder.elmo.layer_cache=null"]
        train(CONFIGS / f"{name}.jsonnet", run, overrides=overrides, variables={"ELMO_TASKS_DATA": str(folder)})
        return load_predictor(run, **settings)

    predicates = trained("predicates_ewt")
    return [trained("ner_conll03"), trained("cpu/sst5"), trained("cpu/srl_ewt", predicates=predicates)]


def random_stream(generator: random.Random) -> Iterator[dict[str, Any] | None]:
    """Inputs that all of these predictors read. Every second stream ends with a wrong one."""
    for _ in range(generator.randrange(1, _STREAM)):
        kind = generator.random()
        if kind < 0.05:
            yield None  # a blank line
        elif kind < 0.06:
            yield {"tokens": [random_word(generator) for _ in range(generator.randrange(100, 300))]}
        elif kind < 0.2:
            yield {"tokens": random_sentence(generator)}
        else:
            sentences = [" ".join(random_sentence(generator)) for _ in range(generator.randrange(1, 5))]
            yield {"text": ". ".join(sentences) + "."}
    if generator.random() < 0.5:
        wrong: list[dict[str, Any]] = [{}, {"tokens": []}, {"text": 3}, {"text": "a", "tokens": ["a"]}]
        yield generator.choice(wrong)


def random_sentence(generator: random.Random) -> list[str]:
    """Common words, and as many that have never been seen."""
    length = 1 + int(generator.expovariate(1 / 15))
    return [generator.choice(_WORDS) if generator.random() < 0.5 else random_word(generator) for _ in range(length)]


def random_word(generator: random.Random) -> str:
    """A word of up to 16 letters, at times of far more, from several alphabets."""
    letters = generator.choice(
        ["abcdefghijklmnopqrstuvwxyz", "aeiourstlnm", "абвгдежзиклмн", "0123456789-.", "日本語中文字"]
    )
    length = generator.randrange(1, 16) if generator.random() < 0.99 else generator.randrange(16, 3000)
    return "".join(generator.choices(letters, k=length))


def resident_bytes() -> int:
    """The main memory that this process keeps between two inputs; Linux only."""
    release_memory()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def print_row(row: Row) -> None:
    columns = f"{row.seconds / 60:8.1f} {row.inputs:10,} {row.errors:8,} {row.resident / 1e6:10,.1f}"
    print(columns, flush=True)


def main(arguments: list[str]) -> int:
    seconds = float(arguments[0]) if arguments else 3600.0
    print(f"{'minute':>8} {'inputs':>10} {'errors':>8} {'memory MB':>10}")
    found = growth(soak(seconds))
    print(f"growth after the warm-up: {found:.1%} (at most {MOST_GROWTH:.0%})")
    return int(found > MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
