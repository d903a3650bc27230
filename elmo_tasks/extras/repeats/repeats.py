"""Several runs of one experiment, one for each random seed."""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_tasks.commands.console import print_table, shown_number
from elmo_tasks.config import Overrides, override_list
from elmo_tasks.extras.trackers.trackers import flatten
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.paths import check_kind
from elmo_tasks.progress import is_main_process
from elmo_tasks.runs.train import train

logger = logging.getLogger(__name__)


def train_seeds(
    config: str | Path | Mapping[str, Any],
    folder: str | Path,
    seeds: Sequence[int],
    *,
    overrides: Overrides = (),
    **settings: Any,
) -> dict[str, Any]:
    """Trains once for each seed, each run in the folder `seed_N`; arguments and errors are those of `train`.

    Returns:
        the means and standard deviations of `seeds.json`.
    """
    check_kind(folder, remedy="-s names another folder")
    results: list[dict[str, Any]] = []
    for seed in seeds:
        logger.info("seed %d (%d of %d)", seed, len(results) + 1, len(seeds))
        seeded = (*override_list(overrides), f"random_seed={seed}")
        results.append(train(config, Path(folder) / f"seed_{seed}", overrides=seeded, folds=1, **settings))
    summary = {"seeds": list(seeds), **mean_and_deviation(results)}
    if is_main_process():
        write_json(Path(folder) / "seeds.json", summary)
    return summary


def print_summary(summary: Mapping[str, Any]) -> None:
    """Prints what `train_seeds` returned: validation data (best epoch) and test data."""
    runs = f"{len(summary['seeds'])} seeds"
    for title, prefix in (("validation", "best/validation/"), ("test", "test/")):
        names = [name for name in summary["mean"] if name.startswith(prefix) and "/" not in name[len(prefix) :]]
        rows = [[name[len(prefix) :], *(shown_number(summary[key][name]) for key in ("mean", "std"))] for name in names]
        if rows:
            print_table(f"{title}, {runs}", ("metric", "mean", "std"), rows)


def mean_and_deviation(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """The mean and the sample standard deviation (n - 1) of each metric that all runs have."""
    flat = [flatten(result) for result in results]
    names = [name for name in flat[0] if all(name in other for other in flat)]
    values = {name: [result[name] for result in flat] for name in names}
    return {
        "mean": {name: statistics.fmean(each) for name, each in values.items()},
        "std": {name: deviation(each) or 0.0 for name, each in values.items()},
    }


def deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation (n - 1): None of a single value, and NaN if one of them is not finite."""
    if len(values) < 2:
        return None
    return statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan
