"""Coreference scores equal to those of the CoNLL reference scorer v8.01: MUC, B-cubed, CEAF, BLANC and their CoNLL F1.

Sources: Pradhan et al. (2014), "Scoring Coreference Partitions of Predicted Mentions", and Luo et al. (2014), "An
Extension of BLANC to System Mentions". As there, the gold clusters of a document are called the key, the predicted
ones the response. A mention that only one of the two has is kept: it makes the counts of its own side larger and is
never correct.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.metrics.metric import Metric, f1_score, quotient

Mention = tuple[int, int]  # first and last token in the document, the end inclusive
Clusters = Iterable[Iterable[Sequence[int]]]

# What recall and precision are made of: recalled, of how many gold; confirmed, of how many found.
Tally = tuple[float, ...]

_GOLD = 1  # the index in a tally
_SCORES = ("f1", "precision", "recall")
_TALLIES = ("mentions", "muc", "b_cubed", "ceaf_e", "ceaf_m", "coreference_links", "non_coreference_links")
_CONLL_METRICS = ("muc", "b_cubed", "ceaf_e")


class CoreferenceScores(Metric):
    """How well predicted clusters of mentions agree with the gold ones, by every metric of the CoNLL shared tasks.

    Predictions and examples, one for each document, hold under `field` a list of clusters, each a list of mentions
    `[first token, last token]`, the end inclusive. Mentions agree if both ends do. Counts are added up over the
    documents before recall and precision are computed, as the reference scorer does; singletons and documents without
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
    the last of them for MUC and B-cubed; here, for BLANC too.

    Departures: the scorer drops the second occurrence of a mention in the response only if the key has that mention,
    and refuses a response with many; here every second occurrence is dropped. The scorer counts a mention that is twice
    in one cluster of the key twice; here it counts once.
    """

    main: ClassVar[str] = "conll_f1"
    field = "clusters"

    def _add(self, prediction: Mapping[str, Any], example: Mapping[str, Any]) -> None:
        for name, tally in ScoredDocument(example[self.field], prediction[self.field]).tallies().items():
            self._tallies[name] = tuple(map(add, self._tallies[name], tally))

    def sums(self) -> Sequence[float]:
        """The tallies of `_TALLIES`, one after the other."""
        return [count for name in _TALLIES for count in self._tallies[name]]

    @classmethod
    def scores(cls, sums: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        tallies = dict(zip(_TALLIES, np.split(sums, len(_TALLIES), axis=-1), strict=True))  # (..., 4) each
        fractions = {name: fractions_of(tallies[name]) for name in ("mentions", *_CONLL_METRICS, "ceaf_m")}
        kinds = [tallies[name] for name in ("coreference_links", "non_coreference_links")]
        present = [kind[..., _GOLD] > 0 for kind in kinds]
        of_kinds = sum(np.where(there, fractions_of(kind), 0) for there, kind in zip(present, kinds, strict=True))
        fractions["blanc"] = quotient(of_kinds, np.broadcast_to(np.sum(present, axis=0), np.shape(of_kinds)))
        scores = {"conll_f1": 100 * (sum(fractions[name][0] for name in _CONLL_METRICS) / len(_CONLL_METRICS))}
        for name, values in fractions.items():
            scores |= {f"{score}/{name}": 100 * value for score, value in zip(_SCORES, values, strict=True)}
        return scores

    def reset(self) -> None:
        self._tallies: defaultdict[str, Tally] = defaultdict(lambda: (0, 0, 0, 0))


def fractions_of(tally: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1, precision and recall, between 0 and 1: (3, ...) from (..., 4)."""
    recalled, gold, confirmed, found = np.moveaxis(tally, -1, 0)
    recall, precision = quotient(recalled, gold), quotient(confirmed, found)
    return np.stack([f1_score(precision, recall), precision, recall])


class ScoredDocument:
    """The clusters of one document, and what key and response have in common.

    Empty clusters are left out, and so are mentions of the response that an earlier cluster already has.

    Attributes:
        key_of, response_of: the number of the last gold cluster, and of the predicted cluster, of each mention.
        sizes: of the gold and of the predicted clusters.
        common: how many mentions a gold and a predicted cluster have in common, where it is not 0.
    """

    def __init__(self, key: Clusters, response: Clusters) -> None:
        gold = [mentions for cluster in key if (mentions := {(start, end) for start, end in cluster})]
        self.key_of = {mention: number for number, cluster in enumerate(gold) for mention in cluster}
        self.response_of: dict[Mention, int] = {}
        found_sizes: list[int] = []
        for cluster in response:
            if new := {(start, end) for start, end in cluster} - self.response_of.keys():
                self.response_of |= dict.fromkeys(new, len(found_sizes))
                found_sizes.append(len(new))
        self.sizes = [len(cluster) for cluster in gold], found_sizes
        # First with all clusters of a mention, then only with its last cluster in the key.
        in_key = ((number, mention) for number, cluster in enumerate(gold) for mention in cluster)
        self.common = self._pairs_of_clusters(in_key)
        self._common_of_last = self._pairs_of_clusters((number, mention) for mention, number in self.key_of.items())

    def _pairs_of_clusters(self, in_key: Iterable[tuple[int, Mention]]) -> Counter[tuple[int, int]]:
        found = self.response_of
        return Counter((number, found[mention]) for number, mention in in_key if mention in found)

    def tallies(self) -> dict[str, Tally]:
        """The counts of every metric, by its name; BLANC's as two kinds of links."""
        gold, found = self.sizes
        mentions = self._common_of_last.total()
        links = mentions - len(self._common_of_last)  # that join these mentions in the clusters of both
        recalled = confirmed = 0.0
        for (one, other), number in self._common_of_last.items():
            recalled += number * self.common[one, other] / gold[one]
            confirmed += number * self.common[one, other] / found[other]
        dice = {(one, other): 2 * common / (gold[one] + found[other]) for (one, other), common in self.common.items()}
        by_entity = _best_alignment(dice, len(gold), len(found))
        by_mention = _best_alignment(self.common, len(gold), len(found))
        return {
            "mentions": (mentions, len(self.key_of), mentions, len(self.response_of)),
            "muc": (links, sum(gold) - len(gold), links, sum(found) - len(found)),
            "b_cubed": (recalled, sum(gold), confirmed, sum(found)),
            "ceaf_e": (by_entity, len(gold), by_entity, len(found)),
            "ceaf_m": (by_mention, sum(gold), by_mention, sum(found)),
            **self._blanc(),
        }

    def _blanc(self) -> dict[str, Tally]:
        """Counts pairs of mentions by the sizes of clusters, without listing them."""
        links, found_links = _pairs(Counter(self.key_of.values()).values()), _pairs(self.sizes[1])
        common_links = _pairs(self._common_of_last.values())
        shared: tuple[Counter[int], Counter[int]] = Counter(), Counter()  # each cluster's mentions that both sides have
        for clusters, mentions in self._common_of_last.items():
            for counts, cluster in zip(shared, clusters, strict=True):
                counts[cluster] += mentions
        common_alone = _pairs([shared[0].total()]) - sum(_pairs(each.values()) for each in shared) + common_links
        alone, found_alone = _pairs([len(self.key_of)]) - links, _pairs([len(self.response_of)]) - found_links
        return {
            "coreference_links": (common_links, links, common_links, found_links),
            "non_coreference_links": (common_alone, alone, common_alone, found_alone),
        }


def _best_alignment(similarity: Mapping[tuple[int, int], float], num_rows: int, num_columns: int) -> float:
    """The largest possible sum of similarities when rows and columns are aligned one to one.

    Arguments:
        similarity: of the pairs where it is not 0.
    """
    from scipy.optimize import linear_sum_assignment  # here, as only this metric needs scipy

    table = np.zeros((num_rows, num_columns))
    for pair, value in similarity.items():
        table[pair] = value
    return float(table[linear_sum_assignment(table, maximize=True)].sum())


def _pairs(sizes: Iterable[int]) -> int:
    """The number of pairs within groups of these sizes, each in both orders."""
    return sum(size * (size - 1) for size in sizes)
