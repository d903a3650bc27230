"""Nearest neighbours of a token by its contextual vectors, and how similar those of a word are in different sentences.

Source: Peters et al. 2018, section 5.3 and table 4.

# B sentences of a batch, T tokens of them without padding, L+1 layers, D features of a layer, N occurrences of a word
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elmo_tasks.elmo.characters import check_sentences
from elmo_tasks.elmo.frozen_layers import LayerSource
from elmo_tasks.errors import ElmoTasksError, check_argument
from elmo_tasks.extras.probes.span_vectors import WordVectorLayer
from elmo_tasks.extras.raw_text import TokenInContext
from elmo_tasks.text.tokens import batches_of_like_lengths

if TYPE_CHECKING:
    from elmo_tasks.modules.word_vectors import WordVectorFile

_SENTENCES_AT_ONCE = 512
_TOKENS_AT_ONCE = 8192


@dataclasses.dataclass(frozen=True)
class Neighbor:
    """A token of the pool and the cosine similarity of its vector to that of the query."""

    token: TokenInContext
    similarity: float


@dataclasses.dataclass(frozen=True)
class TokenVectors:
    """Tokens of sentences with their vectors, to be compared with others."""

    tokens: list[TokenInContext]
    vectors: Tensor  # (T, L+1, D), each of length 1, in main memory

    @classmethod
    def of(cls, bilm: LayerSource, sentences: Sequence[tuple[str, ...]], word: str | None = None) -> TokenVectors:
        """All tokens of sentences, or only the occurrences of a word, ignoring case; there must be at least one."""
        indices = [
            [index for index, token in enumerate(sentence) if word is None or token.lower() == word.lower()]
            for sentence in sentences
        ]
        vectors: dict[int, Tensor] = {}
        for rows in batches_of_like_lengths(list(map(len, sentences)), max_padded=_TOKENS_AT_ONCE):
            layers = bilm.layers([sentences[row] for row in rows]).layers.transpose(1, 2)  # (B, longest, L+1, D)
            vectors |= {
                row: functional.normalize(each[indices[row]], dim=-1).cpu()
                for row, each in zip(rows, layers, strict=True)
            }
        tokens = [
            TokenInContext(sentence, index)
            for sentence, chosen in zip(sentences, indices, strict=True)
            for index in chosen
        ]
        return cls(tokens, torch.cat([vectors[row] for row in range(len(sentences))]))

    def nearest(self, vectors: Tensor, count: int) -> list[list[Neighbor]]:
        """For each layer, the `count` tokens (or all) that are nearest to its vector (L+1, D), nearest first."""
        query = functional.normalize(vectors, dim=-1).to(self.vectors)
        similarities = torch.einsum("tld,ld->lt", self.vectors, query)
        values, indices = similarities.topk(min(count, len(self.tokens)), dim=1)
        return [
            [Neighbor(self.tokens[index], value) for value, index in zip(*layer, strict=True)]
            for layer in zip(values.tolist(), indices.tolist(), strict=True)
        ]


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
        query: its own sentence is skipped if it is in the pool.
        same_word: search only for other occurrences of the query's word, ignoring case.

    Raises:
        ElmoTasksError: the pool does not contain a token to compare with.
    """
    vectors = bilm.layers([query.sentence]).layers[0, :, query.index]  # (L+1, D)
    best: list[list[Neighbor]] = [[] for _ in vectors]
    word = query.word if same_word else None
    others = (
        sentence
        for sentence in map(tuple, pool)
        if sentence != query.sentence and any(word is None or token.lower() == word.lower() for token in sentence)
    )
    while sentences := list(itertools.islice(others, _SENTENCES_AT_ONCE)):
        found = TokenVectors.of(bilm, sentences, word).nearest(vectors, count)
        best = [
            sorted([*earlier, *new], key=lambda neighbor: -neighbor.similarity)[:count]
            for earlier, new in zip(best, found, strict=True)
        ]
    if not best[0]:
        what = f"no other sentence with the word {query.word!r}" if same_word else "no other sentence"
        raise ElmoTasksError(f"the pool has {what}; expected tokens to compare with")
    return best


def nearest_words(file: WordVectorFile, word: str, count: int) -> list[tuple[str, float]]:
    """The words of a file whose vectors are nearest to that of a word, with their cosine similarities, nearest first.

    Arguments:
        word: if the file lacks it, its lower-cased form counts.

    Raises:
        ElmoTasksError: the file lacks both forms.
    """
    forms = [word, word.lower()]
    found = [(form, row) for form, row in zip(forms, file.rows(forms), strict=True) if not np.isnan(row[0])]
    if not found:
        raise ElmoTasksError(f"{file.path}: has no vector for {word!r}; expected a word in the file")
    form, vector = found[0]
    tiny = np.finfo(np.float32).tiny  # vectors can be zero
    vector /= max(float(np.linalg.norm(vector)), tiny)
    cosines = np.concatenate(
        [chunk @ vector / np.maximum(np.linalg.norm(chunk, axis=1), tiny) for chunk in file.chunks()]
    )
    words, rows = file.words, np.argsort(-cosines, kind="stable").tolist()
    others = ((words[row], float(cosines[row])) for row in rows if words[row] != form)
    return list(itertools.islice(others, count))


@dataclasses.dataclass(frozen=True)
class WordSimilarities:
    """The cosine similarities of a word's vectors, between all of its occurrences.

    Attributes:
        layers: (L+1, N, N), from the token layer up.
        static: (N, N), of the word vectors of a file: 1 for equal words. None if there is no file, or if it lacks the
            word.
    """

    occurrences: list[TokenInContext]
    layers: Tensor
    static: Tensor | None


def word_similarities(
    bilm: LayerSource, word: str, sentences: Sequence[Sequence[str]], static: WordVectorFile | None = None
) -> WordSimilarities:
    """Compares the vectors of a word, each time that it occurs in tokenized sentences.

    Arguments:
        word: a token of each sentence, whatever its case.
        static: word vectors. A word that the file lacks gets the vector of its lower-cased form.

    Raises:
        ElmoTasksError: there is no sentence, or one does not have the word, or the word occurs only once.
        ArgumentError: the word is not a string, or a sentence is not a list of strings.
    """
    check_argument("word", word, str, "a token of each sentence")
    check_sentences(sentences)
    if not sentences:
        raise ElmoTasksError(f"no sentence is given; expected two with {word!r}, or more")
    for sentence in sentences:
        if word.lower() not in (token.lower() for token in sentence):
            raise ElmoTasksError(f"{word!r} is not in {' '.join(sentence)!r}; expected a token of each sentence")
    embedded = TokenVectors.of(bilm, list(map(tuple, sentences)), word)
    if len(embedded.tokens) < 2:
        raise ElmoTasksError(f"{word!r} occurs once; expected two sentences with it, or more")
    of_words = None
    if static is not None:
        layer = WordVectorLayer(static, (token.word for token in embedded.tokens))
        vectors = TokenVectors.of(layer, [(token.word,) for token in embedded.tokens], word).vectors
        of_words = _cosines(vectors)[0] if vectors.any(dim=-1).all() else None
    return WordSimilarities(embedded.tokens, _cosines(embedded.vectors), of_words)


def _cosines(vectors: Tensor) -> Tensor:
    """(N, L+1, D), of length 1 -> (L+1, N, N)"""
    return torch.einsum("nld,mld->lnm", vectors, vectors)
