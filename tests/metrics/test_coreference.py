"""Coreference scores: the reference scorer's verdict, counts by hand, and brute force written from the definitions."""

import json
from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.metrics.coreference import CoreferenceScores

Clusters = Sequence[Sequence[Any]]


def score(response: Clusters, key: Clusters) -> dict[str, float]:
    return score_documents([(response, key)])


def score_documents(documents: Sequence[tuple[Clusters, Clusters]]) -> dict[str, float]:
    metric = CoreferenceScores()
    metric.update([{"clusters": each} for each, _ in documents], [{"clusters": each} for _, each in documents])
    return metric.compute()


def letters(*clusters: str) -> list[list[list[int]]]:
    """Clusters of mentions of one token, a letter each."""
    return [[[ord(letter), ord(letter)] for letter in cluster] for cluster in clusters]


def recall_precision_f1(scores: dict[str, float], name: str) -> list[float]:
    return [scores[f"{part}/{name}"] for part in ("recall", "precision", "f1")]


def test_mentions_agree_only_if_both_ends_do() -> None:
    scores = score([[[0, 1], [5, 5]]], [[[0, 1], [4, 5]]])
    assert recall_precision_f1(scores, "mentions") == [50, 50, 50]
    assert recall_precision_f1(scores, "muc") == [0, 0, 0]


def test_a_mention_that_the_response_repeats_counts_where_it_stands_first() -> None:
    key = letters("abc", "de")
    assert score(letters("abc", "dea", "b"), key) == score(letters("abc", "de"), key)
    assert score(letters("aabc", "de"), key) == score(letters("abc", "de"), key)


def test_thousands_of_mentions_in_one_document() -> None:
    key = [[[token, token] for token in range(first, first + 3)] for first in range(0, 3000, 3)]
    response = [[[token, token] for token in range(first, first + 3)] for first in range(1, 3001, 3)]
    scores = score(response, key)
    assert recall_precision_f1(scores, "ceaf_m") == pytest.approx([200 * 1000 / 3000] * 3)
    assert recall_precision_f1(scores, "muc") == pytest.approx([50] * 3)


def test_the_reference_scorer_s_verdict_is_reproduced_to_the_printed_digit(data_folder: Path) -> None:
    folder = data_folder / "scorer_cases"
    expected = json.loads((folder / "coref_expected.json").read_text())
    cases = [json.loads(line) for line in (folder / "coref_cases.jsonl").read_text().splitlines()]
    metric = CoreferenceScores()
    for case in cases:
        metric.update([{"clusters": case["predicted"]}], [{"clusters": case["gold"]}])
    # The reference scorer cuts numbers off after the second digit.
    scores = {name: f"{int(100 * score + 1e-6) / 100:.2f}" for name, score in metric.compute().items()}
    for name, theirs in {"bcub": "b_cubed", "ceafe": "ceaf_e", "ceafm": "ceaf_m"}.items():
        expected[theirs] = expected.pop(name)
    for name in ("muc", "b_cubed", "ceaf_e", "ceaf_m", "blanc"):
        for key in ("recall", "precision", "f1"):
            assert scores[f"{key}/{name}"] == f"{expected[name][key]:.2f}"
    assert scores["conll_f1"] == f"{expected['conll_f1']:.2f}"


# Brute force: every metric as its definition reads, for documents of a few mentions.

Sets = list[set[str]]
Counts = tuple[float, float, float, float]  # numerator and denominator of recall, then of precision


def muc_counts(key: Sets, response: Sets) -> Counts:
    """Links that join each cluster, less those that are missing between its parts in the other partition."""

    def one_way(clusters: Sets, others: Sets) -> tuple[int, int]:
        parts = [
            sum(bool(cluster & other) for other in others) + len(cluster.difference(*others)) for cluster in clusters
        ]
        return sum(map(len, clusters)) - sum(parts), sum(map(len, clusters)) - len(clusters)

    return *one_way(key, response), *one_way(response, key)


def b_cubed_counts(key: Sets, response: Sets) -> Counts:
    def one_way(clusters: Sets, others: Sets) -> tuple[float, int]:
        correct = [
            len(cluster & other) / len(cluster)
            for cluster in clusters
            for mention in cluster
            for other in others
            if mention in other
        ]
        return sum(correct), sum(map(len, clusters))

    return *one_way(key, response), *one_way(response, key)


def best_alignment(key: Sets, response: Sets, similarity: Callable[[set[str], set[str]], float]) -> float:
    fewer, more = sorted((key, response), key=len)
    return max(sum(map(similarity, fewer, chosen)) for chosen in permutations(more, len(fewer)))


def ceaf_e_counts(key: Sets, response: Sets) -> Counts:
    best = best_alignment(key, response, lambda one, other: 2 * len(one & other) / (len(one) + len(other)))
    return best, len(key), best, len(response)


def ceaf_m_counts(key: Sets, response: Sets) -> Counts:
    best = best_alignment(key, response, lambda one, other: len(one & other))
    return best, sum(map(len, key)), best, sum(map(len, response))


def fractions(counts: Counts) -> list[float]:
    correct_of_key, key, correct_of_response, response = counts
    recall, precision = correct_of_key / key if key else 0, correct_of_response / response if response else 0
    return [recall, precision, 2 * recall * precision / (recall + precision) if recall + precision else 0]


def links(clusters: Sets) -> tuple[set[tuple[str, ...]], set[tuple[str, ...]]]:
    """Pairs of mentions in the same cluster, and pairs in two."""
    same = {tuple(sorted(pair)) for cluster in clusters for pair in combinations(cluster, 2)}
    across = {
        tuple(sorted((mention, other)))
        for one, another in combinations(clusters, 2)
        for mention in one
        for other in another
    }
    return same, across


def blanc_fractions(key: Sets, response: Sets) -> list[float]:
    kinds = [
        fractions((len(gold & found), len(gold), len(gold & found), len(found)))
        for gold, found in zip(links(key), links(response), strict=True)
        if gold
    ]
    return [sum(values) / len(kinds) for values in zip(*kinds, strict=True)] if kinds else [0, 0, 0]


@st.composite
def partitions(draw: st.DrawFn) -> list[str]:
    """Some of eight mentions, in up to five clusters, singletons among them."""
    numbers = draw(st.lists(st.integers(-1, 4), min_size=8, max_size=8))  # -1: the mention is in no cluster
    clusters = [
        "".join(each for each, number in zip("abcdefgh", numbers, strict=True) if number == n) for n in range(5)
    ]
    return [cluster for cluster in clusters if cluster]


COUNTS = {"ceaf_e": ceaf_e_counts, "ceaf_m": ceaf_m_counts, "muc": muc_counts, "b_cubed": b_cubed_counts}
SHARING = st.lists(st.sets(st.sampled_from("abcde"), min_size=1).map("".join), max_size=4)  # clusters share mentions


@settings(deadline=None, max_examples=80)
@given(key=partitions() | SHARING, response=partitions())
def test_brute_force_agrees(key: list[str], response: list[str]) -> None:
    scores = score(letters(*response), letters(*key))
    key_sets, response_sets = [set(cluster) for cluster in key], [set(cluster) for cluster in response]
    is_partition = len(set().union(*key_sets)) == sum(map(len, key_sets))
    for name in COUNTS if is_partition else ("ceaf_e", "ceaf_m"):
        expected = [100 * value for value in fractions(COUNTS[name](key_sets, response_sets))]
        assert recall_precision_f1(scores, name) == pytest.approx(expected), name
    in_last = [cluster.difference(*key_sets[number:]) for number, cluster in enumerate(key_sets, start=1)]
    expected = [100 * value for value in blanc_fractions(in_last, response_sets)]
    assert recall_precision_f1(scores, "blanc") == pytest.approx(expected)
