"""Word vectors for the sample data, in the text format of GloVe.

They replace vectors that were learned from a large text, but are much weaker: they are computed from how often words
are neighbours in a few thousand unlabelled sentences of the sample data.

# N words, C contexts, D numbers of a vector
"""

from __future__ import annotations

import collections
import random
from collections.abc import Iterable, Sequence

import numpy as np
from scipy import sparse

from elmo_tasks.sample_data.task import join_lines

_BORDER = ""  # the neighbour before the first word and after the last
_STEPS = 1024  # per nat; information is rounded to such steps, so that sums do not depend on the order of addition
_SCALE = 0.05  # makes the numbers about as large as those of GloVe


def word_vectors_text(corpus: Iterable[Sequence[str]], dimension: int = 50) -> str:
    """A line with a vector for each lower-case word of the corpus, most frequent words first.

    Method: the positive pointwise mutual information of words with their left and right neighbours, followed by a
    random projection (random indexing: Kanerva, Kristoferson and Holst 2000). Unlike a singular value decomposition,
    it gives the same file on all machines.

    Arguments:
        corpus: tokenized sentences.
        dimension: D.
    """
    sentences = [[token.lower() for token in sentence] for sentence in corpus]
    counts = collections.Counter(token for sentence in sentences for token in sentence)
    words = sorted(counts, key=lambda word: (-counts[word], word))
    information = _mutual_information(_neighbour_counts(sentences, words))  # (N, C)
    generator = random.Random(0)
    signs = [[generator.choice((-1.0, 1.0)) for _ in range(dimension)] for _ in range(information.shape[1])]
    vectors = information @ np.array(signs) * _SCALE  # (N, D)
    return join_lines(
        f"{word} {' '.join(f'{number:.4f}' for number in vector)}" for word, vector in zip(words, vectors, strict=True)
    )


def _neighbour_counts(sentences: Sequence[Sequence[str]], words: Sequence[str]) -> sparse.csr_array:
    """(N, C): how often each word, or the border, is to the left (first half) or right (second half) of a word."""
    ids = {word: row for row, word in enumerate([*words, _BORDER])}
    rows: list[int] = []
    columns: list[int] = []
    for sentence in sentences:
        neighbours = [ids[_BORDER], *(ids[token] for token in sentence), ids[_BORDER]]
        rows += 2 * neighbours[1:-1]
        columns += [*neighbours[:-2], *(row + len(ids) for row in neighbours[2:])]
    shape = (len(words), 2 * len(ids))
    return sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape).tocsr()  # adds up repeated entries


def _mutual_information(counts: sparse.csr_array) -> sparse.csr_array:
    """(N, C): the logarithm of how much more often a word and a context occur together than by chance, at least 0."""
    together = counts.tocoo()
    of_words, of_contexts = counts.sum(axis=1), counts.sum(axis=0)  # (N,), (C,)
    ratio = together.data * counts.sum() / (of_words[together.row] * of_contexts[together.col])
    information = np.round(np.log(np.maximum(ratio, 1)) * _STEPS) / _STEPS
    return sparse.csr_array((information, (together.row, together.col)), counts.shape)
