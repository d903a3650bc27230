"""What a study's report says beyond means: tests of significance.

Those over the examples use the predictions that the runs have stored, so no model runs again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.compare.comparison import Comparison, compare_predictions, corrected
from elmo_tasks.extras.compare.significance import seed_difference
from elmo_tasks.extras.compare.systems import Predictions, System, read_predictions
from elmo_tasks.extras.studies.study_runs import Summary
from elmo_tasks.runs.folder import RunFolder

_SAME_SCORE = 0.01  # scores in percent that differ by less are those of the same predictions

ArmAtShare = tuple[str, float]  # the name of an arm, and the share of the data


@dataclasses.dataclass(frozen=True)
class Findings:
    """The result of `analyze`.

    Arguments:
        p_values: two-sided, by test, of each arm against its baseline at the same share; with Holm's correction over
            all arms that have this baseline.
        problems: why tests over the examples are missing.
    """

    p_values: dict[ArmAtShare, dict[str, float]]
    problems: list[str]


def analyze(summaries: Sequence[Summary], folder: Path) -> Findings:
    """Tests the arms of a study in a folder against their baselines."""
    found, missing = Findings({}, []), list[str]()
    sets = [arms for arms in _compared(summaries) if len(arms) > 1]
    for arms in sets:
        head, *others = arms
        having = [each for each in arms if all(file.is_file() for file in _predictions(each, folder))]
        missing += [each.arm.name for each in arms if each not in having]
        p_values = {each.arm.name: _over_seeds(head, each) for each in others}
        try:
            if len(having) > 1 and having[0] is head:
                for each in _compare(having, folder).differences:
                    p_values[each.name] |= {test: each.p_values[test] for test in ("randomization", "bootstrap")}
        except ElmoTasksError as error:
            found.problems.append(str(error))
        for name, tests in zip(p_values, corrected([*p_values.values()]), strict=True):
            found.p_values[name, head.share] = tests
    if missing:
        every = {each.arm.name for arms in sets for each in arms}
        arms_missing = "any arm" if {*missing} == every else "; ".join(dict.fromkeys(missing))
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


def _predictions(summary: Summary, folder: Path) -> list[Path]:
    """The files with the predictions of an arm's runs."""
    return [RunFolder(folder / each.folder).predictions_for(each.split) for each in summary.results]


def _over_seeds(head: Summary, other: Summary) -> dict[str, float]:
    same = [each.seed for each in head.results] == [each.seed for each in other.results]
    found = seed_difference(head.scores, other.scores, paired=same)
    return {} if found is None or found.p_value is None else {"seeds": found.p_value}


def _compare(arms: Sequence[Summary], folder: Path) -> Comparison:
    """Compares arms with the first one.

    Raises:
        ElmoTasksError: the predictions cannot be compared, or are not those that the study reports.
    """

    def models(arm: Summary) -> Iterator[Predictions]:
        """One after the other, because those of thousands of passages are large."""
        return map(read_predictions, _predictions(arm, folder))

    systems = [(System(each.arm.name, (), [result.seed for result in each.results]), models(each)) for each in arms]
    comparison = compare_predictions(systems, metric=arms[0].results[0].metric)
    for each, system in zip(arms, comparison.systems, strict=True):
        for result, score in zip(each.results, system.scores, strict=True):
            if abs(result.score - score) > _SAME_SCORE:
                raise ElmoTasksError(
                    f"{result.folder}: the {result.metric} of its stored predictions is {score:.2f}, that of the "
                    f"run on its {result.split} data {result.score:.2f}"
                )
    return comparison
