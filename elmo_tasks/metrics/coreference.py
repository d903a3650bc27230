"""Coreference scores equal to those of the CoNLL reference scorer v8.01: MUC, B-cubed, CEAF, BLANC and their CoNLL F1.

Sources: Pradhan et al. (2014), "Scoring Coreference Partitions of Predicted Mentions", and Luo et al. (2014), "An
Extension of BLANC to System Mentions". As there, the gold clusters of a document are called the key, the predicted
ones the response. A mention that only one of the two has is kept: it makes the counts of its own side larger and is
never correct.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from elmo_tasks.metrics.metric import Metric, f1_score

Mention = tuple[int, int]  # first and last token in the document, the end inclusive
Clusters = Iterable[Iterable[Sequence[int]]]

_CONLL_METRICS = ("muc", "b_cubed", "ceaf_e")


class CoreferenceScores(Metric):
    """How well predicted clusters of mentions agree with the gold ones, by every metric of the CoNLL shared tasks.

    Predictions and examples, one for each document, hold under `field` a list of clusters, each a list of mentions
    `[first token, last token]`, the end inclusive. Mentions agree if both ends do. Counts are added up over the
    documents before recall and precision are taken, as the reference scorer does; singletons and documents without
    clusters count as they come.

    Names of the scores: `conll_f1`, the mean of the F1 of MUC, B-cubed and CEAF-e; and `f1/NAME`, `precision/NAME` and
    `recall/NAME` for each NAME of

    - `mentions`: finding the mentions, whatever their clusters;
    - `muc`: links that are needed to join the clusters (Vilain et al. 1995);
    - `b_cubed`: for each mention, how much of its cluster is right (Bagga and Baldwin 1998);
    - `ceaf_e`, `ceaf_m`: the similarity of clusters aligned one to one in the best way, by the Dice coefficient or by
      the number of common mentions (Luo 2005);
    - `blanc`: the mean over pairs of mentions that corefer and pairs that do not (Luo et al. 2014); a kind of pair that
      the key does not have is left out.

    The order of clusters matters only if a mention of the key is in two clusters: as in the scorer, it then belongs to
    the last of them for MUC and B-cubed.

    Departures: the scorer drops the second occurrence of a mention in the response only if the key has that mention,
    and refuses a response with many; here every second occurrence is dropped. The scorer counts a mention that is twice
    in one cluster of the key twice; here it counts once.
    """

    def __init__(self, field: str = "clusters") -> None:
        self.field = field
        self.reset()

    def update(self, predictions: Sequence[Mapping[str, Any]], examples: Sequence[Mapping[str, Any]]) -> None:
        for prediction, example in zip(predictions, examples, strict=True):
            document = _Document.from_clusters(example[self.field], prediction[self.field])
            for name, tally in document.tallies().items():
                self._tallies[name] = self._tallies.get(name, _Tally()) + tally

    def compute(self) -> dict[str, float]:
        fractions = self._fractions()
        scores = {"conll_f1": 100 * _conll_f1(fractions)}
        for name, fraction in fractions.items():
            scores[f"f1/{name}"] = 100 * fraction.f1
            scores[f"precision/{name}"] = 100 * fraction.precision
            scores[f"recall/{name}"] = 100 * fraction.recall
        return scores

    def reset(self) -> None:
        self._tallies: dict[str, _Tally] = {}

    def _fractions(self) -> dict[str, _Fractions]:
        tallies = {name: self._tallies.get(name, _Tally()) for name in ("mentions", *_CONLL_METRICS, "ceaf_m")}
        fractions = {name: tally.fractions() for name, tally in tallies.items()}
        kinds = [self._tallies.get(name, _Tally()) for name in ("coreference_links", "non_coreference_links")]
        fractions["blanc"] = _mean([kind.fractions() for kind in kinds if kind.gold])
        return fractions


@dataclass(frozen=True)
class _Fractions:
    """Scores between 0 and 1."""

    recall: float
    precision: float
    f1: float


@dataclass(frozen=True)
class _Tally:
    """What recall and precision are made of."""

    recalled: float = 0  # of `gold`
    gold: int = 0
    confirmed: float = 0  # of `found`
    found: int = 0

    def __add__(self, other: _Tally) -> _Tally:
        return _Tally(
            self.recalled + other.recalled,
            self.gold + other.gold,
            self.confirmed + other.confirmed,
            self.found + other.found,
        )

    def fractions(self) -> _Fractions:
        recall = self.recalled / self.gold if self.gold else 0.0
        precision = self.confirmed / self.found if self.found else 0.0
        return _Fractions(recall, precision, f1_score(precision, recall))


@dataclass(frozen=True)
class _Document:
    """The clusters of one document, and what key and response have in common."""

    key: list[set[Mention]]
    response: list[set[Mention]]

    @classmethod
    def from_clusters(cls, key: Clusters, response: Clusters) -> _Document:
        """Leaves out empty clusters, and mentions of the response that an earlier cluster already has."""
        seen: set[Mention] = set()
        distinct = []
        for cluster in _sets_of_mentions(response):
            if new := cluster - seen:
                distinct.append(new)
                seen |= new
        return cls([cluster for cluster in _sets_of_mentions(key) if cluster], distinct)

    def tallies(self) -> dict[str, _Tally]:
        """The counts of every metric, by its name; BLANC's as two kinds of links."""
        return {
            "mentions": self._mentions(),
            "muc": self._muc(),
            "b_cubed": self._b_cubed(),
            **self._ceaf(),
            **self._blanc(),
        }

    @cached_property
    def _key_of(self) -> dict[Mention, int]:
        return {mention: number for number, cluster in enumerate(self.key) for mention in cluster}

    @cached_property
    def _response_of(self) -> dict[Mention, int]:
        return {mention: number for number, cluster in enumerate(self.response) for mention in cluster}

    @cached_property
    def _common(self) -> Counter[tuple[int, int]]:
        """How many mentions a cluster of the key and one of the response have in common, where it is not 0."""
        pairs = ((number, mention) for number, cluster in enumerate(self.key) for mention in cluster)
        found = self._response_of
        return Counter((number, found[mention]) for number, mention in pairs if mention in found)

    @cached_property
    def _common_of_last(self) -> Counter[tuple[int, int]]:
        """The same; a mention in several clusters of the key counts only in the last of them."""
        found = self._response_of
        return Counter((number, found[mention]) for mention, number in self._key_of.items() if mention in found)

    @cached_property
    def _sizes(self) -> tuple[list[int], list[int]]:
        return [len(cluster) for cluster in self.key], [len(cluster) for cluster in self.response]

    def _mentions(self) -> _Tally:
        common = self._common_of_last.total()
        return _Tally(common, len(self._key_of), common, len(self._response_of))

    def _muc(self) -> _Tally:
        gold, found = (sum(sizes) - len(sizes) for sizes in self._sizes)
        correct = self._common_of_last.total() - len(self._common_of_last)
        return _Tally(correct, gold, correct, found)

    def _b_cubed(self) -> _Tally:
        gold, found = self._sizes
        recalled = confirmed = 0.0
        for (one, other), mentions in self._common_of_last.items():
            recalled += mentions * self._common[one, other] / gold[one]
            confirmed += mentions * self._common[one, other] / found[other]
        return _Tally(recalled, sum(gold), confirmed, sum(found))

    def _ceaf(self) -> dict[str, _Tally]:
        gold, found = self._sizes
        dice = {(one, other): 2 * common / (gold[one] + found[other]) for (one, other), common in self._common.items()}
        by_entity = _best_alignment(dice, len(gold), len(found))
        by_mention = _best_alignment(self._common, len(gold), len(found))
        return {
            "ceaf_e": _Tally(by_entity, len(gold), by_entity, len(found)),
            "ceaf_m": _Tally(by_mention, sum(gold), by_mention, sum(found)),
        }

    def _blanc(self) -> dict[str, _Tally]:
        """Counts pairs of mentions by the sizes of clusters, without listing them."""
        gold, found = self._sizes
        shared = {
            mention for mention, times in Counter(m for cluster in self.key for m in cluster).items() if times > 1
        }
        twice, twice_common = self._links_in_several_clusters(shared)
        links, common_links = _pairs(gold) - twice, _pairs(self._common.values()) - twice_common

        # A mention of several clusters has its links and also a non-coreference link to all mentions and to itself.
        group: dict[Mention, int | Mention] = {**self._key_of, **{mention: mention for mention in shared}}
        of_both = [mention for mention in self._response_of if mention in group]
        alone = _pairs([len(group)]) - _pairs(Counter(group.values()).values()) + len(shared)
        response_alone = _pairs([sum(found)]) - _pairs(found)
        common_alone = (
            _pairs([len(of_both)])
            - _pairs(Counter(group[mention] for mention in of_both).values())
            - _pairs(Counter(self._response_of[mention] for mention in of_both).values())
            + _pairs(Counter((group[mention], self._response_of[mention]) for mention in of_both).values())
        )
        return {
            "coreference_links": _Tally(common_links, links, common_links, _pairs(found)),
            "non_coreference_links": _Tally(common_alone, alone, common_alone, response_alone),
        }

    def _links_in_several_clusters(self, shared: set[Mention]) -> tuple[int, int]:
        """By how many links the clusters' sizes overstate those of the key, and those that the response has too."""
        links = Counter(pair for cluster in self.key for pair in combinations(sorted(cluster & shared), 2))
        in_response = [
            times - 1
            for (one, other), times in links.items()
            if one in self._response_of and self._response_of[one] == self._response_of.get(other)
        ]
        return links.total() - len(links), sum(in_response)


def _best_alignment(similarity: Mapping[tuple[int, int], float], num_rows: int, num_columns: int) -> float:
    """The largest possible sum of similarities when rows and columns are aligned one to one.

    Arguments:
        similarity: of the pairs where it is not 0. These are few, which makes large documents fast.
    """
    # Imported here, as only this metric needs scipy.
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    if not similarity:
        return 0.0
    rows, columns = np.array(list(similarity)).T
    # The solver aligns every row, so each gets an additional column of its own with similarity 0. For the solver a
    # weight of 0 means that the two cannot be aligned, so 1 is added to all.
    own = np.arange(num_rows)
    places = (np.concatenate([rows, own]), np.concatenate([columns, num_columns + own]))
    weights = np.concatenate([1.0 + np.array(list(similarity.values())), np.ones(num_rows)])
    table = csr_array((weights, places), shape=(num_rows, num_columns + num_rows))
    return float(table[min_weight_full_bipartite_matching(table, maximize=True)].sum()) - num_rows


def _sets_of_mentions(clusters: Clusters) -> list[set[Mention]]:
    return [{(start, end) for start, end in cluster} for cluster in clusters]


def _pairs(sizes: Iterable[int]) -> int:
    """The number of pairs within groups of these sizes."""
    return sum(size * (size - 1) // 2 for size in sizes)


def _mean(fractions: Sequence[_Fractions]) -> _Fractions:
    if not fractions:
        return _Fractions(0.0, 0.0, 0.0)
    recall, precision, f1 = np.mean([(each.recall, each.precision, each.f1) for each in fractions], axis=0).tolist()
    return _Fractions(recall, precision, f1)


def _conll_f1(fractions: Mapping[str, _Fractions]) -> float:
    return sum(fractions[name].f1 for name in _CONLL_METRICS) / len(_CONLL_METRICS)
