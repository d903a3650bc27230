"""How similar the vectors of a word are in different sentences.

# N occurrences of the word, L+1 layers
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

from elmo_tasks.elmo.characters import check_sentences
from elmo_tasks.elmo.frozen_layers import LayerSource
from elmo_tasks.errors import ElmoTasksError, check_argument
from elmo_tasks.extras.probes.neighbors import TokenVectors
from elmo_tasks.extras.probes.span_vectors import WordVectorLayer
from elmo_tasks.extras.raw_text import TokenInContext
from elmo_tasks.modules.word_vectors import WordVectorFile


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
