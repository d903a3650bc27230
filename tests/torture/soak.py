"""Whether a process that predicts for hours keeps its memory: three models and sentences with ever new words.

Memory may grow while caches fill: during the first sixth of the time, and at most the first ten minutes.
"""

import contextlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmo_tasks.errors import DataError
from elmo_tasks.modules.devices import release_memory
from elmo_tasks.runs.load import load_predictor
from tests.torture.sandbox import Case, Cases

_MOST_GROWTH, _MOST_IN_SHORT = 0.02, 0.2  # of the memory after the warm-up
_SHORT = 300  # seconds, in which caches still fill
_WARM_UP_SECONDS = 600.0  # at most
_NEW_WORDS = 60_000  # more than any cache of words holds
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-.äéñøß日本語中文字"
_PREPARATION = 300  # seconds, for loading the models and filling the caches


def soak(seconds: float, seed: int) -> Cases:
    """A single case, which takes this long."""
    case = Case("predict", lambda folder: _soak(seconds, seed), seconds + _PREPARATION)
    return lambda number: None if number else case


def _soak(seconds: float, seed: int) -> None:
    """Predicts for this long, and fails if memory has grown.

    Single values go up and down with the last input. So the means of the first and the last quarter are compared.
    """
    generator = random.Random(seed)
    predictors = [load_predictor(name) for name in ("ner", "sentiment", "roles")]
    for predictor in predictors:  # fills the caches of words, which takes longest
        for _ in predictor.predict({"tokens": _words(generator, 100)} for _ in range(_NEW_WORDS // 100)):
            pass
    start, measured = time.monotonic(), list[int]()
    while (passed := time.monotonic() - start) < seconds:
        stream = list(_stream(generator))
        for predictor in predictors:
            with contextlib.suppress(DataError):
                for _ in predictor.predict(stream):
                    pass
        if passed >= min(_WARM_UP_SECONDS, seconds / 6):
            measured.append(_resident_bytes())
    quarter = max(1, len(measured) // 4)
    growth = sum(measured[-quarter:]) / sum(measured[:quarter]) - 1
    assert growth <= (_MOST_GROWTH if seconds >= _SHORT else _MOST_IN_SHORT), f"grown by {growth:.1%}: {measured}"


def _stream(generator: random.Random) -> Iterator[dict[str, Any] | None]:
    """Inputs of many lengths that all of these predictors read. Every second stream ends with a wrong one."""
    for _ in range(100):
        length = 1 + int(generator.expovariate(1 / 15)) if generator.random() < 0.99 else 300
        words = _words(generator, length)
        yield generator.choice([{"tokens": words}, {"text": " ".join(words) + "."}, None])
    if generator.random() < 0.5:
        yield {"text": "a", "tokens": ["a"]}


def _words(generator: random.Random, count: int) -> list[str]:
    """Words that have hardly ever been seen, at times a very long one."""
    lengths = [generator.randrange(1, 16) if generator.random() < 0.99 else 3000 for _ in range(count)]
    return ["".join(generator.choices(_LETTERS, k=length)) for length in lengths]


def _resident_bytes() -> int:
    """The main memory that this process keeps between two inputs; Linux only."""
    release_memory()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
