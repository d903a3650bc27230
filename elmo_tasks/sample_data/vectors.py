"""Word vectors for the sample data, in the text form of GloVe.

They stand in for vectors that were learned from a large text, and are no match for them: they are made from a few
thousand sentences of the sample data's own grammar, without labels, from how often words stand beside each other.

# N words, C contexts, D numbers of a vector
"""

from __future__ import annotations

import collections
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from elmo_tasks.sample_data.files import write_lines

_BORDER = ""  # what stands beside the first and the last word
_STEPS = 1024  # information is rounded to so many steps of a nat: sums of such numbers are the same in any order
_SCALE = 0.05  # brings the numbers to the size of GloVe's


def write_word_vectors(path: Path, corpus: Iterable[Sequence[str]], dimension: int = 50) -> None:
    """Writes a vector for each word of the corpus in lower case, frequent words first.

    Method: the positive pointwise mutual information of words with their left and right neighbours, projected at random
    (random indexing: Kanerva, Kristoferson and Holst 2000). In place of a singular value decomposition, whose result
    differs between machines where this one gives the same file on all of them.

    Arguments:
        path: the file to write.
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
    write_lines(
        path,
        (
            f"{word} {' '.join(f'{number:.4f}' for number in vector)}"
            for word, vector in zip(words, vectors, strict=True)
        ),
    )


def _neighbour_counts(sentences: Sequence[Sequence[str]], words: Sequence[str]) -> sparse.csr_array:
    """(N, C): how often a word has each word, or the border, to its left (first half) and right (second half)."""
    ids = {word: row for row, word in enumerate([*words, _BORDER])}
    rows: list[int] = []
    columns: list[int] = []
    for sentence in sentences:
        places = [ids[_BORDER], *(ids[token] for token in sentence), ids[_BORDER]]
        rows += 2 * places[1:-1]
        columns += [*places[:-2], *(place + len(ids) for place in places[2:])]
    shape = (len(words), 2 * len(ids))
    return sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape).tocsr()  # adds up what is there repeatedly


def _mutual_information(counts: sparse.csr_array) -> sparse.csr_array:
    """(N, C): the logarithm of how much likelier a word and a context are together than by chance, at least 0."""
    together = counts.tocoo()
    of_words, of_contexts = counts.sum(axis=1), counts.sum(axis=0)  # (N,), (C,)
    ratio = together.data * counts.sum() / (of_words[together.row] * of_contexts[together.col])
    information = np.round(np.log(np.maximum(ratio, 1)) * _STEPS) / _STEPS
    return sparse.csr_array((information, (together.row, together.col)), counts.shape)
