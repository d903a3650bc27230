"""What a study's report says beyond means: tests of significance, and what each arm gets wrong.

Both use the predictions that the runs have stored, so no model runs again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.evaluation.breakdowns import Breakdown, Bucket
from elmo_tasks.evaluation.comparison import Comparison, compare_predictions, corrected
from elmo_tasks.evaluation.error_report import ErrorReport, error_report
from elmo_tasks.evaluation.significance import seed_difference
from elmo_tasks.evaluation.systems import Predictions, System, read_predictions
from elmo_tasks.metrics.confusion import cells
from elmo_tasks.rendering import describe_versions
from elmo_tasks.rendering.drawing import Drawing
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.studies.report_pages import Table
from elmo_tasks.studies.study_plots import common_start
from elmo_tasks.studies.study_runs import Summary
from elmo_tasks.text.vocabulary import Vocabulary

_RESAMPLES = 10_000
_WORST = 20  # the examples of an arm that the page shows
_SAME_SCORE = 0.01  # scores in percent that differ by less are those of the same predictions

ArmAtShare = tuple[str, float]  # the name of an arm, and the share of the data


@dataclasses.dataclass(frozen=True)
class Details:
    """What an arm gets wrong, or several arms next to each other, and examples of it."""

    title: str
    tables: Sequence[Table]
    examples: Sequence[Drawing] = ()


@dataclasses.dataclass(frozen=True)
class Findings:
    """The result of `analyze`.

    Arguments:
        p_values: two-sided, by test, of each arm against its baseline at the same share; with Holm's correction over
            all arms that have this baseline.
        errors: of the arms with their largest share of the data, next to their baseline.
        problems: why tests over the examples, and errors, are missing.
    """

    p_values: dict[ArmAtShare, dict[str, float]]
    errors: list[Details]
    problems: list[str]


def analyze(summaries: Sequence[Summary], folder: Path) -> Findings:
    """Tests the arms of a study in a folder against their baselines, and counts their errors."""
    found, missing = Findings({}, [], []), list[str]()
    shares = {each.arm.name: each.share for each in sorted(summaries, key=lambda each: each.share)}
    for arms in _compared(summaries):
        head, *others = arms
        having = [each for each in arms if all(file.is_file() for _, file in _runs(each, folder))]
        missing += [each.arm.name for each in arms if each not in having]
        p_values = {each.arm.name: _over_seeds(head, each) for each in others}
        shown = [each.arm.name for each in having if each.share == shares[each.arm.name]]
        tested = len(having) > 1 and having[0] is head
        try:
            if tested or shown:
                comparison, reports = _examine(having, folder, shown, resamples=_RESAMPLES if tested else 1)
                found.errors.extend(_errors(reports, head))
                for each in comparison.differences if tested else ():
                    p_values[each.name] |= {test: each.p_values[test] for test in ("randomization", "bootstrap")}
        except ElmoTasksError as error:
            found.problems.append(str(error))
        for name, tests in zip(p_values, corrected([*p_values.values()]), strict=True):
            found.p_values[name, head.share] = tests
    if missing:
        arms_missing = "any arm" if {*missing} == {*shares} else "; ".join(dict.fromkeys(missing))
        found.problems.insert(0, f"not all runs of {arms_missing} have stored their predictions")
    return found


def _compared(summaries: Sequence[Summary]) -> list[list[Summary]]:
    """The arms in sets, at the same share of the data: a baseline, and all that are compared with it."""
    sets: dict[ArmAtShare, list[Summary]] = {}
    for each in summaries:
        head = each.baseline or each
        members = sets.setdefault((head.arm.name, each.share), [head])
        if each.baseline:
            members.append(each)
    return list(sets.values())


def _runs(summary: Summary, folder: Path) -> list[tuple[RunFolder, Path]]:
    """The runs of an arm, with the files of their predictions."""
    runs = [(RunFolder(folder / result.folder), result.split) for result in summary.results]
    return [(run, run.predictions_for(split)) for run, split in runs]


def _over_seeds(head: Summary, other: Summary) -> dict[str, float]:
    same = [each.seed for each in head.results] == [each.seed for each in other.results]
    found = seed_difference(head.scores, other.scores, paired=same)
    return {} if found is None or found.p_value is None else {"seeds": found.p_value}


def _examine(
    arms: Sequence[Summary], folder: Path, shown: Sequence[str], *, resamples: int
) -> tuple[Comparison, dict[str, list[ErrorReport]]]:
    """Compares arms with the first one, and counts the errors of those to show, for each seed.

    Raises:
        ElmoTasksError: the predictions cannot be compared, or are not those that the study reports.
    """
    reports: dict[str, list[ErrorReport]] = {name: [] for name in shown}

    def models(arm: Summary) -> Iterator[Predictions]:
        """One after the other, because those of thousands of passages are large."""
        for run, file in _runs(arm, folder):
            vocabulary = Vocabulary.load(run.vocabulary)
            yield (found := dataclasses.replace(read_predictions(file), vocabulary=vocabulary))
            if (own := reports.get(arm.arm.name)) is not None:
                own.append(error_report(found, num_examples=0 if own else _WORST))

    systems = [(System(each.arm.name, (), [result.seed for result in each.results]), models(each)) for each in arms]
    comparison = compare_predictions(systems, metric=arms[0].results[0].metric, resamples=resamples)
    for each, system in zip(arms, comparison.systems, strict=True):
        for result, score in zip(each.results, system.scores, strict=True):
            if abs(result.score - score) > _SAME_SCORE:
                raise ElmoTasksError(
                    f"{result.folder}: the {result.metric} of its stored predictions is {score:.2f}, that of the "
                    f"run on its {result.split} data {result.score:.2f}"
                )
    return comparison, reports


def _errors(reports: Mapping[str, Sequence[ErrorReport]], head: Summary) -> list[Details]:
    """The errors of arms next to each other; then, for each but the baseline, those of its first run in detail."""
    if not reports:
        return []
    start = common_start(list(reports))
    brief = {name[len(start) :]: own for name, own in reports.items()}
    title = start.rstrip(",: ") or head.arm.group or ", ".join(brief)
    details = [Details(title, _side_by_side(brief, head.results[0].metric))]
    for name, (report, *_) in reports.items():
        if len(reports) > 1 and name == head.arm.name:
            continue
        tables = []
        if report.confusion:
            columns, *rows = cells(report.confusion)
            tables = [Table("labels, gold (rows) and predicted (columns)", columns, rows)]
        drawings = [
            describe_versions(report.task, each.example, {"predicted": each.prediction}) for each in report.worst
        ]
        details.append(Details(f"{name}: the first run", tables, drawings))
    return details


def _side_by_side(reports: Mapping[str, Sequence[ErrorReport]], metric: str) -> list[Table]:
    """A column for each arm: how many it has of each kind of error, and its score on each part of the data. These are
    means over the seeds.
    """
    first = next(iter(reports.values()))[0]
    kinds = [
        [kind, *(_number([each.kinds.get(kind, 0) for each in own]) for own in reports.values())]
        for kind in first.kinds
    ]
    tables = [Table(first.counted, ("", *reports), kinds)] if kinds else []
    for kind in first.breakdowns:
        found = {arm: [_buckets_of(report, kind) for report in own] for arm, own in reports.items()}
        scores = kind.buckets[0].scores
        name = metric if metric in scores else next(iter(scores))
        parts = dict.fromkeys(part for own in found.values() for buckets in own for part in buckets)
        rows = [[part, *(_score([each.get(part) for each in own], name) for own in found.values())] for part in parts]
        tables.append(Table(f"{name} of {kind.items} by {kind.by}", ("", *reports), rows))
    return tables


def _buckets_of(report: ErrorReport, kind: Breakdown) -> dict[str, Bucket]:
    """The buckets of a report's breakdown of this kind, by their names."""
    alike = (each for each in report.breakdowns if (each.items, each.by) == (kind.items, kind.by))
    return {bucket.name: bucket for each in alike for bucket in each.buckets}


def _score(buckets: Sequence[Bucket | None], name: str) -> str:
    """The mean of a part of the data over the runs that have it, with its mean size over all runs."""
    if not (found := [each for each in buckets if each is not None]):
        return ""
    sizes = [0 if each is None else each.size for each in buckets]
    return f"{fmean(each.scores[name] for each in found):.2f} ({_number(sizes)})"


def _number(values: Sequence[float]) -> str:
    """The mean of counts, with a decimal place only if it needs one."""
    return f"{fmean(values):.1f}".removesuffix(".0")
