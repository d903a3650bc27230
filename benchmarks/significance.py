"""Whether the tests and intervals of `elmo-tasks compare` are right on simulated systems, and how fast they are.

    python -m benchmarks.significance [--trials 1000] [--resamples 1000]

Two systems without a true difference are measured on the same units; p should be below 0.05 in 5 % of the trials. The
interval of a sample should contain the score of the population that it was drawn from in 95 %. A unit is harder or
easier for all models. Takes a few minutes on one core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from elmo_tasks.commands.console import print_table
from elmo_tasks.extras.compare.significance import (
    Array,
    Score,
    bootstrap,
    mean_score,
    percentile_interval,
    randomization_p,
)
from elmo_tasks.metrics import Accuracy, CoreferenceScores, SpanF1

Make = Callable[[np.random.Generator, int, int], Array]  # models and units -> (models, units, sums)


def labels(generator: np.random.Generator, models: int, units: int) -> Array:
    """The sums of accuracy."""
    right = generator.random((models, units)) < generator.beta(4, 2, units)
    return np.stack([right, np.ones_like(right)], axis=-1).astype(float)


def sentences(generator: np.random.Generator, models: int, units: int) -> Array:
    """The sums of span F1."""
    gold, skill = generator.poisson(1.6, units), generator.beta(8, 2, units)
    tokens = 3 * gold + generator.poisson(8, units) + 1
    correct = generator.binomial(gold, skill, (models, units))
    spurious = generator.poisson(0.25 * (1.2 - skill), (models, units))
    found = correct + generator.binomial(gold - correct, 0.6) + spurious
    columns = [correct, found, gold, np.maximum(0, tokens - gold + correct - spurious), tokens]
    return np.stack([np.broadcast_to(column, correct.shape) for column in columns], axis=-1).astype(float)


def documents(generator: np.random.Generator, models: int, units: int) -> Array:
    """The sums of the coreference scores. The tallies of a document have the same skill, up to noise."""
    size, skill = generator.integers(10, 200, units), generator.beta(12, 6, units)
    columns = []
    for scale in (1, 0.7, 1, 0.35, 1, 3, 30):  # of the counts of each tally
        gold = np.broadcast_to(np.round(size * scale) + 1, (models, units))
        found = np.round(gold * generator.uniform(0.8, 1.1, (models, units))) + 1
        share = np.clip(skill + generator.normal(0, 0.06, (models, units)), 0.05, 1)
        columns += [share * np.minimum(gold, found), gold, share * np.minimum(gold, found), found]
    return np.stack(columns, axis=-1)


CASES: dict[str, tuple[Make, Score, int]] = {  # with the number of units of the trials
    "accuracy": (labels, lambda sums: Accuracy.scores(sums)["accuracy"], 400),
    "span F1": (sentences, lambda sums: SpanF1.scores(sums)["f1"], 400),
    "CoNLL F1": (documents, lambda sums: CoreferenceScores.scores(sums)["conll_f1"], 60),
}


def false_alarms(make: Make, score: Score, units: int, models: tuple[int, int], trials: int, resamples: int) -> float:
    """In which share of trials p is below 0.05."""
    generator, found = np.random.default_rng(7), 0
    for trial in range(trials):
        one, other = np.split(make(generator, sum(models), units), [models[0]])
        found += randomization_p(one, other, score, resamples, trial) < 0.05
    return found / trials


def coverage(make: Make, score: Score, units: int, trials: int, resamples: int) -> float:
    """In which share of trials the interval contains the score of the population."""
    generator, found = np.random.default_rng(11), 0
    population = make(generator, 1, 200_000)
    truth = mean_score(population, score)
    for trial in range(trials):
        sample = population[:, generator.integers(0, population.shape[1], units)]
        interval = percentile_interval(bootstrap([sample], score, resamples, trial)[0])
        found += interval.low <= truth <= interval.high
    return found / trials


def seconds(make: Make, score: Score, units: int, resamples: int) -> float:
    """Of comparing two systems."""
    one, other = np.split(make(np.random.default_rng(0), 2, units), 2)
    begin = time.perf_counter()
    bootstrap([one, other], score, resamples, 1)
    randomization_p(one, other, score, resamples, 1)
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=1000)
    arguments = parser.parse_args()
    for name, units, resamples in (("span F1", 3453, 10_000), ("CoNLL F1", 348, 20_000)):
        print(f"{name}, {units} units, {resamples} resamples: {seconds(*CASES[name][:2], units, resamples):.1f} s")
    rows = []
    for name, models in [*((name, (1, 1)) for name in CASES), ("span F1", (3, 3)), ("span F1", (3, 2))]:
        make, score, units = CASES[name]
        alarms = false_alarms(make, score, units, models, arguments.trials, arguments.resamples)
        covered = coverage(make, score, units, arguments.trials, arguments.resamples) if models == (1, 1) else None
        shares = [alarms, covered]
        rows.append(
            [f"{name}, {units} units, {models[0]} and {models[1]} seeds"]
            + [f"{each:.1%}" if each is not None else "" for each in shares]
        )
    columns = ("", "randomization: p < 0.05", "95 % interval contains the truth")
    print_table(f"{arguments.trials} trials", columns, rows)


if __name__ == "__main__":
    main()
