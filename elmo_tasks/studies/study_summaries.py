"""The numbers of a study's report: means over seeds, compared with the baseline and with the paper."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

from elmo_tasks.runs.repeated import deviation
from elmo_tasks.studies.study import Arm
from elmo_tasks.studies.study_runs import Result, StudyRecord


@dataclasses.dataclass(frozen=True)
class Summary:
    """An arm at a share of the training data.

    Arguments:
        results: of its seeds.
        num_seeds: how many there are when the study is complete.
        baseline: the arm that it is compared with, at the same share; None without any.
    """

    arm: Arm
    share: float
    results: Sequence[Result]
    num_seeds: int
    baseline: Summary | None

    @property
    def scores(self) -> list[float]:
        return [result.score for result in self.results]

    @property
    def metric(self) -> str:
        return f"{self.results[0].split} {self.results[0].metric}"

    @property
    def mean(self) -> float:
        return statistics.fmean(self.scores)

    @property
    def std(self) -> float | None:
        """The sample standard deviation (n - 1) over the seeds; None for a single one."""
        return deviation(self.scores)

    @property
    def minutes(self) -> float:
        return statistics.fmean(result.seconds for result in self.results) / 60

    def error_reduction(self) -> float | None:
        """The share of the baseline's error that is gone; None without a baseline."""
        if self.baseline is None:
            return None
        return _error_reduction(self.baseline.mean, self.mean, higher_is_better=self.results[0].higher_is_better)

    def paper_error_reduction(self) -> float | None:
        """The same of the scores that the paper reports."""
        if self.baseline is None or self.arm.paper is None or self.baseline.arm.paper is None:
            return None
        higher_is_better = self.results[0].higher_is_better
        return _error_reduction(self.baseline.arm.paper, self.arm.paper, higher_is_better=higher_is_better)


def _error_reduction(before: float, after: float, *, higher_is_better: bool) -> float | None:
    """Scores where higher is better are in percent, so that the error is what is missing to 100."""
    error, other = (100 - before, 100 - after) if higher_is_better else (before, after)
    return (error - other) / error if error > 0 else None


def summarize(record: StudyRecord, results: Sequence[Result]) -> list[Summary]:
    """What a study has found, in the order of its arms and shares. Where no run has finished, there is no summary."""
    config = record.config
    arms = {arm.name: arm for arm in config.arms}

    def summary(arm: Arm, share: float, baseline: Summary | None) -> Summary | None:
        own = [each for each in results if (each.arm, each.share) == (arm.name, share)]
        return Summary(arm, share, own, len(arm.seeds or config.seeds), baseline) if own else None

    found = []
    for arm in config.arms:
        for point in arm.share_points(config):
            baseline = summary(arms[arm.baseline], point.share, None) if arm.baseline else None
            found.append(summary(arm, point.share, baseline))
    return [each for each in found if each]
