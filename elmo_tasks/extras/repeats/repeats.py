"""Several runs of one experiment: one for each random seed, or one for each fold of a cross-validation."""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_tasks.commands.console import print_metrics, print_table, shown_number
from elmo_tasks.config import Overrides, load_config, override_list
from elmo_tasks.files.json_files import read_records, write_json
from elmo_tasks.files.paths import check_kind
from elmo_tasks.progress import is_main_process
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.train import train
from elmo_tasks.training.callbacks import flatten

logger = logging.getLogger(__name__)

_ELSEWHERE = "-s names another folder"


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
    check_kind(folder, remedy=_ELSEWHERE)
    results: list[dict[str, Any]] = []
    for seed in seeds:
        logger.info("seed %d (%d of %d)", seed, len(results) + 1, len(seeds))
        seeded = (*override_list(overrides), f"random_seed={seed}")
        results.append(train(config, Path(folder) / f"seed_{seed}", overrides=seeded, **settings))
    summary = {"seeds": list(seeds), **mean_and_deviation(results)}
    if is_main_process():
        write_json(Path(folder) / "seeds.json", summary)
    return summary


def train_folds(
    config: str | Path | Mapping[str, Any],
    folder: str | Path,
    num_folds: int,
    *,
    overrides: Overrides = (),
    **settings: Any,
) -> dict[str, Any]:
    """Cross-validation: trains once for each fold of the training data, each run in the folder `fold_N`.

    The validation data still chooses the best epoch of each run. Arguments and errors are those of `train`.

    Returns:
        the contents of `folds.json`: the metrics over the predictions of all folds together (`pooled`), and the means
        and standard deviations of the runs.
    """
    check_kind(folder, remedy=_ELSEWHERE)
    results: list[dict[str, Any]] = []
    runs = [RunFolder(Path(folder) / f"fold_{number}") for number in range(1, num_folds + 1)]
    for number, run in enumerate(runs, start=1):
        logger.info("fold %d of %d", number, num_folds)
        held_out = (*override_list(overrides), f"fold.number={number}", f"fold.of={num_folds}", "test_data_path=null")
        results.append(train(config, run.path, overrides=held_out, **settings))
    summary = {"folds": num_folds, **mean_and_deviation(results)}
    if is_main_process():
        metric = load_config(runs[0].config, ExperimentConfig).model.task.build_metric()
        for run in runs:
            for pair in read_records(run.predictions, dict[str, dict[str, Any]], "a prediction"):
                metric.update([pair["prediction"]], [pair["example"]])
        summary["pooled"] = metric.compute()
        write_json(Path(folder) / "folds.json", summary)
    return summary


def print_summary(summary: Mapping[str, Any]) -> None:
    """Prints what `train_seeds` or `train_folds` returned: validation data (best epoch) and test data."""
    if "pooled" in summary:
        print_metrics(summary["pooled"], title=f"predictions of all {summary['folds']} folds together")
    runs = f"{summary['folds']} folds" if "folds" in summary else f"{len(summary['seeds'])} seeds"
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
