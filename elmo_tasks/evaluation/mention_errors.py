"""Errors of coreference by mention and by link, so that they add up to the counts of the reference scorer.

B-cubed is a sum over mentions. MUC is a sum over links: each mention of a cluster but the first needs one, and it is
right if an earlier mention of its cluster is in the same cluster of the other side too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.evaluation.breakdowns import BucketKey, Item, ranged
from elmo_tasks.metrics.coreference import Mention, ScoredDocument, fractions_of
from elmo_tasks.text.english import PRONOUNS

# Words that do not show whether a mention is a name.
_LEFT_OUT = {"the", "a", "an", "of", "and", "or", "in", "at", "for", "'s", "'", ",", "."}
_DISTANCES = (0, 1, 2, 4, 8)  # in sentences


class MentionErrors:
    """The mentions and links of one document.

    Arguments:
        example: with gold `clusters` and `sentences`.
        clusters: the predicted ones.
    """

    def __init__(self, example: Mapping[str, Any], clusters: Sequence[Sequence[Sequence[int]]]) -> None:
        self._document = ScoredDocument(example["clusters"], clusters)
        self._tokens = [token for sentence in example["sentences"] for token in sentence]
        self._sentences = [number for number, each in enumerate(example["sentences"]) for _ in each]

    def kinds(self) -> Counter[str]:
        """How many mentions are right, missed and spurious: the gold ones are the first two, the predicted ones the
        first and the last. Of gold clusters, how many are split, and of predicted ones, how many are merged.
        """
        document = self._document
        right = document.key_of.keys() & document.response_of.keys()
        counts = Counter(right=len(right))
        counts["missed"] = len(document.key_of) - len(right)
        counts["missed singletons"] = sum(
            document.sizes[0][number] == 1 for mention, number in document.key_of.items() if mention not in right
        )
        counts["spurious"] = len(document.response_of) - len(right)
        parts = Counter(one for one, _ in document.common), Counter(other for _, other in document.common)
        counts["split clusters"], counts["merged clusters"] = (sum(n > 1 for n in each.values()) for each in parts)
        return counts

    def mentions(self) -> Iterator[Item]:
        """Each mention of either side, with its part of the tallies of mentions and of B-cubed: 8 counts."""
        document = self._document
        gold_sizes, found_sizes = document.sizes
        for number, cluster in enumerate(document.key):
            for mention in sorted(cluster):
                is_last = document.key_of[mention] == number  # a mention of several clusters is found in the last one
                other = document.response_of.get(mention) if is_last else None
                found = other is not None
                recalled = 0.0 if other is None else document.common[number, other] / gold_sizes[number]
                yield Item(self._buckets(mention), (found, is_last, 0, 0, recalled, 1, 0, 0))
        for mention, other in sorted(document.response_of.items()):
            key = document.key_of.get(mention)
            confirmed = document.common[key, other] / found_sizes[other] if key is not None else 0.0
            yield Item(self._buckets(mention), (0, 0, key is not None, 1, 0, 0, confirmed, 1))

    def links(self) -> Iterator[Item]:
        """Each mention but the first of its cluster, with its part of MUC's tally."""
        document = self._document
        for number, cluster in enumerate(document.key):
            others = (document.response_of.get(m) if document.key_of[m] == number else None for m in sorted(cluster))
            for buckets, is_right in self._linked(sorted(cluster), others):
                yield Item(buckets, (is_right, 1, 0, 0))
        found: dict[int, list[Mention]] = {}
        for mention, number in document.response_of.items():
            found.setdefault(number, []).append(mention)
        for cluster_found in found.values():
            others = (document.key_of.get(mention) for mention in sorted(cluster_found))
            for buckets, is_right in self._linked(sorted(cluster_found), others):
                yield Item(buckets, (0, 0, is_right, 1))

    def _linked(
        self, mentions: Sequence[Mention], others: Iterable[int | None]
    ) -> Iterator[tuple[dict[str, BucketKey], bool]]:
        """The links of a cluster. `others`: the cluster of each mention on the other side."""
        seen: set[int] = set()
        before = [None, *mentions]
        for mention, previous, other in zip(mentions, before, others, strict=False):
            if previous is not None:
                apart = self._sentences[mention[0]] - self._sentences[previous[0]]
                buckets = {**self._buckets(mention), "sentences to the antecedent": ranged(apart, _DISTANCES)}
                yield buckets, other in seen
            if other is not None:
                seen.add(other)

    def _buckets(self, mention: Mention) -> dict[str, BucketKey]:
        start, end = mention
        return {"type of mention": mention_type(self._tokens[start : end + 1])}


def mention_type(tokens: Sequence[str]) -> BucketKey:
    """Pronoun, name or other noun phrase of English, as far as the words show it.

    A single word of a list is a pronoun. A name has more words that begin with a capital letter than others, articles
    and the like left out.
    """
    if len(tokens) == 1 and tokens[0].lower() in PRONOUNS:
        return BucketKey(0, "pronoun")
    words = [token for token in tokens if token.lower() not in _LEFT_OUT]
    capitals = sum(token[:1].isupper() for token in words)
    return BucketKey(1, "name") if 2 * capitals > len(words) else BucketKey(2, "noun phrase")


def mention_scores(counts: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """The scores of mentions and B-cubed, from 8 counts."""
    return {**_scores("mentions", counts[..., :4]), **_scores("b_cubed", counts[..., 4:])}


def link_scores(counts: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """The scores of MUC, from 4 counts."""
    return _scores("muc", counts)


def _scores(name: str, tally: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    values = 100 * fractions_of(tally)
    return {f"{score}/{name}": value for score, value in zip(("f1", "precision", "recall"), values, strict=True)}
