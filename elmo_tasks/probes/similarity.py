"""How similar the vectors of a word are in different sentences.

# N occurrences of the word, L+1 layers
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import Tensor

from elmo_tasks.elmo.characters import check_sentences
from elmo_tasks.elmo.layers import LayerSource
from elmo_tasks.errors import ElmoTasksError, check_argument
from elmo_tasks.probes.neighbors import TokenVectors
from elmo_tasks.text.token_in_context import TokenInContext


@dataclasses.dataclass(frozen=True)
class WordSimilarities:
    """The cosine similarities of a word's vectors, between all of its occurrences.

    Attributes:
        layers: (L+1, N, N), from the token layer up.
    """

    occurrences: list[TokenInContext]
    layers: Tensor


def word_similarities(bilm: LayerSource, word: str, sentences: Sequence[Sequence[str]]) -> WordSimilarities:
    """Compares the vectors of a word, each time that it occurs in tokenized sentences.

    Arguments:
        word: a token of each sentence, whatever its case.

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
    cosines = torch.einsum("nld,mld->lnm", embedded.vectors, embedded.vectors)  # of vectors of length 1
    return WordSimilarities(embedded.tokens, cosines)
