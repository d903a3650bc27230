"""Nearest neighbours of a token by its contextual vectors.

Source: Peters et al. 2018, section 5.3 and table 4.

# B sentences of a batch, T tokens of them without padding, L+1 layers, D features of a layer, K neighbours
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

import torch
from torch.nn import functional

from elmo_tasks.elmo.layers import LayerSource
from elmo_tasks.errors import ElmoTasksError

_SENTENCES_AT_ONCE = 512


@dataclasses.dataclass(frozen=True)
class TokenInContext:
    """A token of a sentence. `place` is its index, from 0."""

    sentence: tuple[str, ...]
    place: int

    @property
    def word(self) -> str:
        return self.sentence[self.place]

    def marked(self) -> str:
        """The sentence with the token in brackets: `The dog let out a sharp [bark] .`"""
        before, after = self.sentence[: self.place], self.sentence[self.place + 1 :]
        return " ".join([*before, f"[{self.word}]", *after])


@dataclasses.dataclass(frozen=True)
class Neighbor:
    """A token of the pool and the cosine similarity of its vector to that of the query."""

    token: TokenInContext
    similarity: float


def find_token(sentence: Sequence[str], word: str) -> TokenInContext:
    """Finds a word in a sentence, ignoring case.

    Raises:
        ElmoTasksError: the word does not occur exactly once.
    """
    places = [place for place, token in enumerate(sentence) if token.lower() == word.lower()]
    if len(places) != 1:
        count = "is not" if not places else f"occurs {len(places)} times"
        raise ElmoTasksError(f"{word!r} {count} in {' '.join(sentence)!r}; wanted a token that occurs once")
    return TokenInContext(tuple(sentence), places[0])


def nearest_tokens(
    bilm: LayerSource,
    query: TokenInContext,
    pool: Iterable[Sequence[str]],
    *,
    count: int = 5,
    same_word: bool = False,
) -> list[list[Neighbor]]:
    """Finds the tokens of a pool that are nearest to the query, for each layer from the token layer up, nearest first.

    The pool can have any size: it is read once, and only the best tokens are kept.

    Arguments:
        query: the token to find neighbours for. Its own sentence is skipped if it is in the pool.
        pool: tokenized sentences.
        count: K, the number of neighbours per layer.
        same_word: search only for other occurrences of the query's word, ignoring case.

    Raises:
        ElmoTasksError: the pool does not contain a token to compare with.
    """
    wanted = functional.normalize(bilm.layers([query.sentence]).layers[0, :, query.place], dim=-1)  # (L+1, D)
    best: list[list[Neighbor]] = [[] for _ in wanted]
    others = (sentence for sentence in map(tuple, pool) if sentence and sentence != query.sentence)
    while sentences := list(itertools.islice(others, _SENTENCES_AT_ONCE)):
        tokens = [
            (row, place)
            for row, sentence in enumerate(sentences)
            for place, word in enumerate(sentence)
            if not same_word or word.lower() == query.word.lower()
        ]
        if not tokens:
            continue
        layers = bilm.layers(sentences).layers.transpose(1, 2)  # (B, longest sentence, L+1, D)
        rows, places = torch.tensor(tokens).unbind(1)
        vectors = functional.normalize(layers[rows, places], dim=-1)  # (T, L+1, D)
        similarities = torch.einsum("tld,ld->lt", vectors, wanted)
        values, nearest = similarities.topk(min(count, len(tokens)), dim=1)
        for layer, found in enumerate(best):
            for value, number in zip(values[layer].tolist(), nearest[layer].tolist(), strict=True):
                row, place = tokens[number]
                found.append(Neighbor(TokenInContext(sentences[row], place), value))
            found.sort(key=lambda neighbor: -neighbor.similarity)
            del found[count:]
    if not best[0]:
        what = f"no other sentence with the word {query.word!r}" if same_word else "no other sentence"
        raise ElmoTasksError(f"the pool has {what}; wanted tokens to compare with")
    return best
