"""Words per second of a tagger from raw text to JSON, as `elmo-tasks predict` works, and what takes the time.

    OMP_NUM_THREADS=1 python -m benchmarks.prediction RUN [--words 60000] [--repeats 3]

The text is the beginning of the real one in $ELMO_TASKS_DATA/lm. All layers are computed: no sentence is in the cache,
and each repetition computes each word anew. The times are processor seconds of the fastest repetition. The share of the
biLM is the speed of the whole, compared with that of the biLM alone.
"""

from __future__ import annotations

import argparse
import collections
import functools
import gc
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.large_texts import write_text
from elmo_tasks.elmo import FastBiLM
from elmo_tasks.elmo.fast import forget_words
from elmo_tasks.files.json_files import json_text
from elmo_tasks.predictors import Predictor
from elmo_tasks.predictors.inputs import read_inputs
from elmo_tasks.runs.load import load_predictor


class Stopwatch:
    """Measures the seconds of parts of a program, without those of other parts that they call."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self._running = ["the rest: batches, results, JSON"]
        self._begin = time.process_time()

    def switch(self) -> None:
        """Adds the seconds since the last call to the part that is running."""
        now = time.process_time()
        self.seconds[self._running[-1]] += now - self._begin
        self._begin = now

    def time(self, owner: Any, name: str, part: str) -> None:
        """Replaces a method with one that is measured as a part."""
        method: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(method)
        def measured(*arguments: Any, **options: Any) -> Any:
            self.switch()
            self._running.append(part)
            try:
                return method(*arguments, **options)
            finally:
                self.switch()
                self._running.pop()

        setattr(owner, name, measured)


def parts_of(predictor: Predictor) -> Stopwatch:
    """A stopwatch for the parts of a predictor."""
    model: Any = predictor.model
    watch = Stopwatch()
    watch.time(FastBiLM, "layers", "biLM")
    watch.time(model.embedder, "forward", "mix and other vectors")
    watch.time(model.encoder, "forward", "the head's encoder")
    watch.time(model, "decode", "decoding")
    watch.time(predictor, "checked_examples", "sentences and tokens")
    return watch


def predict(predictor: Predictor, path: Path) -> int:
    """Makes the JSON of a text's results; returns the number of their words."""
    words = 0
    with open(os.devnull, "wb") as stream:
        for result in predictor.predict(read_inputs(path)):
            stream.write(f"{json_text(result)}\n".encode())
            words += len(result["tokens"])
    return words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the folder of a tagger's run, for example of ner_conll03")
    parser.add_argument("--words", type=int, default=60_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    predictor = load_predictor(arguments.run)
    gc.freeze()  # as the command
    watch = parts_of(predictor)
    predictor.warm_up()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        write_text(text, arguments.words)
        for _ in range(arguments.repeats):
            forget_words()
            watch.switch()
            watch.seconds.clear()
            words = predict(predictor, text)
            watch.switch()
            found.append(dict(watch.seconds))
    best = min(found, key=lambda seconds: sum(seconds.values()))
    total = sum(best.values())
    print(f"{words:,} words, {words / total:,.0f} words/s\n\n| part | share of the time |\n|---|---:|")
    for part, seconds in sorted(best.items(), key=lambda item: -item[1]):
        print(f"| {part} | {100 * seconds / total:.1f}% |")


if __name__ == "__main__":
    main()
