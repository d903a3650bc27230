"""How near the score that `train` prints on a small table comes to the score on rows that nobody has used.

    python -m benchmarks.honest_scores [--sets genre sst5 questions web] [--size 120] [--draws 3]

For each set and draw, a run of `small/classification` or `small/text_pairs` learns from that many random training
examples of the data in $ELMO_TASKS_DATA, by its cross-validation, and predicts 1,000 others of them. The test files of
these sets are no measure: they are of other documents. The table has both scores, the interval and, for comparison,
what a model that has learned from all rows scores on them.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import statistics
import tempfile
from pathlib import Path

import torch

import elmo_tasks
from benchmarks.common import markdown_table
from benchmarks.small_data_sets import Example, read_set

NEW = 1000


def measure(name: str, size: int, draw: int) -> dict[str, float]:
    training, _ = read_set(name)
    drawn: list[Example] = random.Random(draw).sample(training, size + NEW)
    examples, test = drawn[:size], drawn[size:]
    config = "small/text_pairs" if "premise" in examples[0] else "small/classification"
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        elmo_tasks.train(config, run, train=examples)
        found = json.loads((run / "cross_validation.json").read_text(encoding="utf-8"))
        new = elmo_tasks.evaluate(run, test, unknown_labels="count")["accuracy"]
        (run / "learned.safetensors").unlink()
        learned = elmo_tasks.evaluate(run, examples)["accuracy"]
    return {"folds": found["score"], **found["interval"], "new": new, "learned": learned}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["genre", "sst5", "questions", "web"])
    parser.add_argument("--size", type=int, default=120)
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    rows, differences = [], []
    for name in arguments.sets:
        found = [measure(name, arguments.size, draw) for draw in range(1, arguments.draws + 1)]
        for draw, each in enumerate(found, start=1):
            interval = f"{each['low']:.1f} to {each['high']:.1f}"
            cells = [f"{each[key]:.1f}" for key in ("folds", "new", "learned")]
            rows.append([f"{name}, draw {draw}", cells[0], interval, *cells[1:]])
            print(rows[-1], flush=True)
        means = [statistics.fmean(each[key] for each in found) for key in ("folds", "new", "learned")]
        differences.append(means[0] - means[1])
        rows.append([f"**{name}**", *(f"**{means[0]:.1f}**", "", f"**{means[1]:.1f}**", f"**{means[2]:.1f}**")])
    print(markdown_table(["", "by folds", "95 % interval", "1,000 new rows", "learned rows"], rows))
    print(f"mean difference {statistics.fmean(differences):+.1f}")


if __name__ == "__main__":
    main()
