"""Whether a process that predicts for hours keeps its memory: a stream of sentences with ever new words.

One process predicts with three trained models in turn, as `elmo-tasks predict` does: names, sentiment and semantic
roles. Most words have never been seen before. Inputs have many lengths. Some are blank, some are very long, and some
are wrong, so that their stream ends with an error.

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
from elmo_tasks.predictors.predictor import release_memory
from elmo_tasks.runs.load import load_predictor
from tests.torture.sandbox import Case, Cases

_MOST_GROWTH, _MOST_IN_SHORT = 0.02, 0.2  # of the memory after the warm-up
_SHORT = 300  # seconds, in which caches still fill
_WARM_UP_SECONDS = 600.0  # at most
_MEASURED_SECONDS = 60.0  # between two measurements, or a twentieth of the time
_NEW_WORDS = 60_000  # more than any cache of words holds
_STREAM = 200  # inputs, about
_WORDS = (
    "the", "a", "of", "in", "and", "he", "she", "said", "went", "to", "gave", "told", "left", "when", "it", ",", "'",
)  # fmt: skip
_PREPARATION = 300  # seconds, for loading the models and filling the caches


def soak(seconds: float, seed: int) -> Cases:
    """A single case, which takes this long."""
    case = Case("predict", lambda folder: _soak(seconds, seed), seconds + _PREPARATION)
    return lambda number: None if number else case


def _soak(seconds: float, seed: int) -> None:
    """Predicts for this long, and fails if memory has grown."""
    generator = random.Random(seed)
    predictors = [load_predictor(name) for name in ("ner", "sentiment", "roles")]
    for predictor in predictors:  # fills the caches of words, which takes longest
        words = ({"tokens": [_word(generator) for _ in range(100)]} for _ in range(_NEW_WORDS // 100))
        for _ in predictor.predict(words):
            pass
    start = time.monotonic()
    measured = [(0.0, _resident_bytes())]
    while (passed := time.monotonic() - start) < seconds:
        stream = list(_stream(generator))
        for predictor in predictors:
            with contextlib.suppress(DataError):
                for _ in predictor.predict(stream):
                    pass
        if passed - measured[-1][0] >= min(_MEASURED_SECONDS, seconds / 20):
            measured.append((passed, _resident_bytes()))
    found = _growth(measured)
    assert found <= (_MOST_GROWTH if seconds >= _SHORT else _MOST_IN_SHORT), f"grown by {found:.1%}: {measured}"


def _growth(measured: list[tuple[float, int]]) -> float:
    """How much memory has grown since the end of the warm-up, as a share of what it was then.

    Single values go up and down with the last input. So the means of the first and the last quarter are compared.
    """
    warm = min(_WARM_UP_SECONDS, measured[-1][0] / 6)
    values = [resident for passed, resident in measured if passed >= warm]
    quarter = max(1, len(values) // 4)
    return sum(values[-quarter:]) / sum(values[:quarter]) - 1


def _stream(generator: random.Random) -> Iterator[dict[str, Any] | None]:
    """Inputs that all of these predictors read. Every second stream ends with a wrong one."""
    for _ in range(generator.randrange(1, _STREAM)):
        kind = generator.random()
        if kind < 0.05:
            yield None  # a blank line
        elif kind < 0.06:
            yield {"tokens": [_word(generator) for _ in range(generator.randrange(100, 300))]}
        elif kind < 0.2:
            yield {"tokens": _sentence(generator)}
        else:
            sentences = [" ".join(_sentence(generator)) for _ in range(generator.randrange(1, 5))]
            yield {"text": ". ".join(sentences) + "."}
    if generator.random() < 0.5:
        wrong: list[dict[str, Any]] = [{}, {"tokens": []}, {"text": 3}, {"text": "a", "tokens": ["a"]}]
        yield generator.choice(wrong)


def _sentence(generator: random.Random) -> list[str]:
    """Common words, and as many that have never been seen."""
    length = 1 + int(generator.expovariate(1 / 15))
    return [generator.choice(_WORDS) if generator.random() < 0.5 else _word(generator) for _ in range(length)]


def _word(generator: random.Random) -> str:
    """A word of up to 16 letters, at times of far more, from several alphabets."""
    letters = generator.choice(
        ["abcdefghijklmnopqrstuvwxyz", "aeiourstlnm", "абвгдежзиклмн", "0123456789-.", "日本語中文字"]
    )
    length = generator.randrange(1, 16) if generator.random() < 0.99 else generator.randrange(16, 3000)
    return "".join(generator.choices(letters, k=length))


def _resident_bytes() -> int:
    """The main memory that this process keeps between two inputs; Linux only."""
    release_memory()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
