"""What a search has found: its trials, tables, the plot of the expected best score, and its report.

Sources of the plot: Dodge et al. (2019), "Show Your Work: Improved Reporting of Experimental Results", section 3; Tang
et al. (2020), "Showing Your Work Doesn't Always Work".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pydantic

from elmo_tasks.config import own_packages, to_json
from elmo_tasks.errors import RunError
from elmo_tasks.evaluation.plots import finish_curves, save_figure
from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.json_lines import read_records
from elmo_tasks.studies.report_pages import Picture, Report, Table, report_commands
from elmo_tasks.studies.searches import Search, SearchConfig, expected_best
from elmo_tasks.studies.study import as_text, train_command

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEARCH, TRIALS = "search.json", "trials.jsonl"

_MOST_SHOWN = 10  # trials in the table
_NOTES = (
    "A trial that was stopped early counts with its best epoch until then; one that failed does not count. The "
    "expected best score of n trials is that of n draws from all trials: with replacement as in Dodge et al. (2019, "
    "section 3), and without, which has no bias (Tang et al. 2020). Both take the trials as independent draws, which "
    "only those of the random sampler are: TPE learns from earlier trials. All scores are those of the validation data."
)


class SearchRecord(pydantic.BaseModel):
    """The contents of `search.json`.

    Arguments:
        experiment: the config that is searched, with its changes.
        changes: as `--set` takes them.
        packages: the users' own packages that the config's parts come from.
    """

    command: str
    config: SearchConfig
    config_file: str
    changes: list[str]
    packages: list[str]
    variables: dict[str, str]
    experiment: dict[str, Any]
    metric: str
    higher_is_better: bool

    @classmethod
    def of(cls, search: Search, command: str) -> SearchRecord:
        trainer = search.experiment.trainer
        return cls(
            command=command,
            config=search.config,
            config_file=search.config_file,
            changes=list(search.changes),
            packages=sorted(own_packages(search.experiment)),
            variables=dict(search.variables),
            experiment=to_json(search.experiment),
            metric=trainer.metric_name,
            higher_is_better=trainer.higher_is_better,
        )

    def train_command(self, trial: TrialResult) -> str:
        """Trains a trial by hand, with its evaluation on the test data."""
        return train_command(self.config_file, [*self.changes, *trial.overrides], self.variables, self.packages)


class TrialResult(pydantic.BaseModel):
    """A line of `trials.jsonl`.

    Arguments:
        number: from 1.
        values: by the keys of the search's space.
        score: the validation metric of the best epoch; None if the trial failed.
        epochs: how many were evaluated.
        folder: of the run, in the folder of the search.
    """

    number: int
    state: Literal["finished", "pruned", "failed"]
    values: dict[str, Any]
    score: float | None
    epochs: int
    error: str | None
    folder: str

    @property
    def overrides(self) -> list[str]:
        return [f"{key}={as_text(value)}" for key, value in self.values.items()]

    def describe(self, metric: str) -> str:
        """How the trial ended, for the log."""
        if self.state == "failed":
            return f"failed: {self.error or 'the score is not a number'}"
        return f"{metric} {self.score:.2f}" if self.state == "finished" else f"stopped after epoch {self.epochs}"


@dataclasses.dataclass(frozen=True)
class SearchResults:
    """What the folder of a search holds."""

    record: SearchRecord
    trials: Sequence[TrialResult]

    @classmethod
    def read(cls, path: str | Path) -> SearchResults:
        """Raises `RunError` if the folder is not that of a search, or no trial of it has a score."""
        path = Path(path)
        record = read_json(path / SEARCH, SearchRecord, "the folder of a search")
        file = path / TRIALS
        trials = list(read_records(file, TrialResult, "a trial")) if file.is_file() else []
        if not any(trial.score is not None for trial in trials):
            errors = "".join(f"\n  trial {trial.number}: {trial.error}" for trial in trials[-3:])
            raise RunError(f"{path}: no trial has a score{errors}")
        return cls(record, trials)

    @property
    def scores(self) -> list[float]:
        return [trial.score for trial in self.trials if trial.score is not None]

    def best(self) -> TrialResult:
        return best_trials(self.trials, self.record.higher_is_better)[0]

    def trial_table(self) -> Table:
        keys = list(self.record.config.space)
        columns = ("trial", *short_names(keys), "state", "epochs", self.record.metric)
        ranked = best_trials(self.trials, self.record.higher_is_better)[:_MOST_SHOWN]
        rows = []
        for each in ranked:
            cells = [_cell(each.values[key]) for key in keys]
            rows.append([f"{each.number}", *cells, each.state, f"{each.epochs}", f"{each.score:.2f}"])
        return Table(f"The best of {len(self.trials)} trials", columns, rows)

    def expected(self, *, replacement: bool) -> list[float]:
        """The expected best score of 1, 2, ... trials."""
        settings = {"higher_is_better": self.record.higher_is_better, "replacement": replacement}
        return [expected_best(self.scores, count, **settings) for count in range(1, len(self.scores) + 1)]

    def expected_table(self) -> Table:
        """Rows for 1, 2, 3, 5, 10, 20, 30, 50 ... and all trials."""
        num = len(self.scores)
        counts = {base * 10**power for power in range(len(str(num))) for base in (1, 2, 3, 5)} | {num}
        curves = [self.expected(replacement=choice) for choice in (True, False)]
        rows = [[str(n), *(f"{curve[n - 1]:.2f}" for curve in curves)] for n in sorted(counts) if n <= num]
        title = f"Expected best validation {self.record.metric} by the number of trials"
        return Table(title, ("trials", "with replacement", "without replacement"), rows)

    def draw_expected(self) -> Figure:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 4.2), layout="constrained")
        axes = figure.subplots()
        counts = range(1, len(self.scores) + 1)
        axes.plot(counts, self.expected(replacement=True), marker=".", label="with replacement")
        axes.plot(counts, self.expected(replacement=False), "--", marker=".", label="without replacement")
        finish_curves(axes, f"expected best validation {self.record.metric}", "trials")
        return figure


def best_trials(trials: Sequence[TrialResult], higher_is_better: bool) -> list[TrialResult]:
    """The trials with a score, the best first; of equal ones those that finished, and then the earlier ones."""
    sign = -1 if higher_is_better else 1
    scored = [
        (sign * each.score, each.state != "finished", each.number, each) for each in trials if each.score is not None
    ]
    return [each for *_, each in sorted(scored, key=lambda entry: entry[:3])]


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else as_text(value)


def short_names(keys: Sequence[str]) -> list[str]:
    """Key paths without the beginnings that are not needed to distinguish them, for the heads of columns."""

    def short(key: str) -> str:
        parts = key.split(".")
        ends = (".".join(parts[-count:]) for count in range(1, len(parts) + 1))
        shared = [f".{other}" for other in keys if other != key]
        named = (end for end in ends if not end.partition(".")[0].isdigit())
        fitting = (end for end in named if not any(each.endswith(f".{end}") for each in shared))
        return next(fitting, key)

    return [short(key) for key in keys]


def write_search_report(folder: str | Path) -> list[Path]:
    """Writes the report of a search into its folder: `report.md`, `report.html` and `plots/expected_best.svg`.

    Raises:
        RunError: the folder is not that of a search, or no trial of it has a score.
    """
    folder = Path(folder)
    results = SearchResults.read(folder)
    record = results.record
    path = folder / "plots" / "expected_best.svg"
    save_figure(results.draw_expected(), path)
    picture = Picture("Expected best score", "By the number of trials, on the validation data.", path)
    note = "the best trial, with its score on the test data"
    commands = report_commands(record.command, folder, note, [record.train_command(results.best())])
    tables = [results.trial_table(), results.expected_table()]
    return Report(record.config, tables, _NOTES, [picture], commands).write(folder)
