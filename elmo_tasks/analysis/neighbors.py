"""Nearest neighbours of a token by its contextual vectors.

Source: Peters et al. 2018, section 5.3 and table 4.

# L+1 layers, T tokens of a batch of sentences without padding, D features of a layer, K neighbours
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from elmo_tasks.elmo.bilm import LayerSource
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
    for sentences in _batches(sentence for sentence in map(tuple, pool) if sentence != query.sentence):
        tokens = [
            TokenInContext(sentence, place)
            for sentence in sentences
            for place, word in enumerate(sentence)
            if not same_word or word.lower() == query.word.lower()
        ]
        if not tokens:
            continue
        similarities = _similarities(bilm, sentences, tokens, wanted)  # (L+1, T)
        values, places = similarities.topk(min(count, len(tokens)), dim=1)
        for layer, found in enumerate(best):
            found += [
                Neighbor(tokens[place], value)
                for value, place in zip(values[layer].tolist(), places[layer].tolist(), strict=True)
            ]
            found.sort(key=lambda neighbor: -neighbor.similarity)
            del found[count:]
    if not best[0]:
        what = f"no other sentence with the word {query.word!r}" if same_word else "no other sentence"
        raise ElmoTasksError(f"the pool has {what}; wanted tokens to compare with")
    return best


def _similarities(
    bilm: LayerSource, sentences: Sequence[tuple[str, ...]], tokens: Sequence[TokenInContext], wanted: Tensor
) -> Tensor:
    """The cosine similarities of tokens to the wanted vectors, (L+1, T)."""
    layers = bilm.layers(sentences).layers  # (B, L+1, T', D)
    rows = {id(sentence): row for row, sentence in enumerate(sentences)}
    index = torch.tensor([[rows[id(token.sentence)], token.place] for token in tokens])
    vectors = layers.transpose(1, 2)[index[:, 0], index[:, 1]]  # (T, L+1, D)
    return torch.einsum("tld,ld->lt", functional.normalize(vectors, dim=-1), wanted)


def _batches(sentences: Iterable[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    iterator = (sentence for sentence in sentences if sentence)
    while batch := list(itertools.islice(iterator, _SENTENCES_AT_ONCE)):
        yield batch
