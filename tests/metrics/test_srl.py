"""Span F1 of semantic roles: the official scorer's verdicts, brute force, joined pieces."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.metrics.srl import SrlF1, arguments_of_tags


def score(predicted: str, gold: str) -> dict[str, float]:
    metric = SrlF1()
    metric.update([{"tags": predicted.split()}], [{"tags": gold.split()}])
    return metric.compute()


@pytest.mark.parametrize("tag", ["", "V", "B-", "U-A0", "(V*)"])
def test_what_is_not_a_tag_is_named(tag: str) -> None:
    with pytest.raises(ElmoTasksError, match="is not a tag of IOB2"):
        arguments_of_tags(["O", tag])


def test_the_predicate_counts_nowhere_but_in_its_own_row() -> None:
    scores = score("B-A0 B-V O O", "B-A0 O B-V B-C-V")
    assert (scores["f1"], scores["perfect"], scores["f1/V"]) == (100, 100, 0)
    assert "f1/C-V" not in scores


def test_srl_eval_s_verdict_is_reproduced_to_the_printed_digit(data_folder: Path) -> None:
    folder = data_folder / "scorer_cases"
    expected = json.loads((folder / "srl_expected.json").read_text())
    cases = [json.loads(line) for line in (folder / "srl_cases.jsonl").read_text().splitlines()]
    metric = SrlF1()
    metric.update([{"tags": case["predicted"]} for case in cases], [{"tags": case["gold"]} for case in cases])
    scores = metric.compute()
    assert {name for name in scores if name.startswith("f1")} == {f"f1{ending}" for ending in map(_ending, expected)}
    for name, values in expected.items():
        for key in ("precision", "recall", "f1"):
            assert f"{scores[key + _ending(name)]:.2f}" == f"{values[key]:.2f}"


def _ending(name: str) -> str:
    """What follows the names of the scores of one row of srl-eval.pl's table."""
    return "" if name == "Overall" else f"/{name}"


def brute_force(tags: list[str]) -> Counter[tuple[str, frozenset[tuple[int, ...]]]]:
    """The arguments, found by trying every run of tokens and, for every piece, every argument before it."""
    runs = []  # (label, tokens)
    for start in range(len(tags)):
        for end in range(start, len(tags)):
            label = tags[start][2:]
            inside = all(tag == f"I-{label}" for tag in tags[start + 1 : end + 1])
            stops = end + 1 == len(tags) or tags[end + 1] != f"I-{label}"
            starts = tags[start][0] == "B" or (tags[start][0] == "I" and (start == 0 or tags[start - 1][2:] != label))
            if inside and stops and starts:
                runs.append((label, tuple(range(start, end + 1))))
    owners: list[int] = []  # for each run, the run that its argument begins with
    for index, (label, _) in enumerate(runs):
        heads = []
        if label[:2] == "C-":
            for earlier in range(index):
                name = runs[earlier][0]
                is_orphan = name == label and owners[earlier] == earlier
                if owners[earlier] == earlier and (name == label[2:] or is_orphan):
                    heads.append(earlier)
        owners.append(heads[-1] if heads else index)
    found: Counter[tuple[str, frozenset[tuple[int, ...]]]] = Counter()
    for head in set(owners):
        label = runs[head][0]
        pieces = frozenset(run for (_, run), owner in zip(runs, owners, strict=True) if owner == head)
        found[label[2:] if label[:2] == "C-" else label, pieces] += 1
    return found


TAGS = ["O", *(f"{letter}-{label}" for letter in "BI" for label in ("A0", "C-A0", "R-A0", "V", "C-V"))]


@given(pairs=st.lists(st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), max_size=8), max_size=3))
def test_equals_brute_force(pairs: list[list[tuple[str, str]]]) -> None:
    metric = SrlF1()
    correct = found = expected = perfect = 0
    for pair in pairs:
        predicted, gold = [one for one, _ in pair], [other for _, other in pair]
        metric.update([{"tags": predicted}], [{"tags": gold}])
        ours, theirs = brute_force(predicted), brute_force(gold)
        for arguments in (ours, theirs):
            for argument in [argument for argument in arguments if argument[0] == "V"]:
                del arguments[argument]
        correct += sum((ours & theirs).values())
        found += sum(ours.values())
        expected += sum(theirs.values())
        perfect += ours == theirs
    scores = metric.compute()
    assert scores["precision"] == pytest.approx(100 * correct / found if found else 0)
    assert scores["recall"] == pytest.approx(100 * correct / expected if expected else 0)
    assert scores["f1"] == pytest.approx(200 * correct / (found + expected) if correct else 0)
    assert scores["perfect"] == pytest.approx(100 * perfect / len(pairs) if pairs else 0)
