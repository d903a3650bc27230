"""The vectors of spans of tokens, for the probes: of each layer of a biLM, of their mean, and of word vectors.

# B sentences of a batch, T tokens of a sentence, L+1 layers, N spans of a sentence, D features of a layer
# R rows: the layers, and their mean if there are several
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.elmo.frozen_layers import LayerSource
from elmo_tasks.progress import progress_bar
from elmo_tasks.text.tokens import batches_of_like_lengths, mask_of_lengths

if TYPE_CHECKING:
    from elmo_tasks.modules.word_vectors import WordVectorFile

TokenSpan = tuple[int, int]  # first and last token; both ends are inclusive

_BATCH_TOKENS = 4096


class WordVectorLayer:
    """Word vectors as a source with a single layer: a word has the same vector wherever it occurs.

    Arguments:
        file: the vectors. A word that it lacks gets the vector of its lower-cased form, or else zeros.
        words: all words that will be asked for.
    """

    def __init__(self, file: WordVectorFile, words: Iterable[str]) -> None:
        distinct = sorted(set(words))
        vectors = file.rows(distinct)  # (words, D)
        lacking = np.isnan(vectors[:, 0]).nonzero()[0]
        vectors[lacking] = np.nan_to_num(file.rows([distinct[row].lower() for row in lacking]), nan=0.0)
        self._rows = {word: row for row, word in enumerate(distinct)}
        self._vectors = torch.from_numpy(vectors)

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        """The vectors of the words as layers (B, 1, T, D)."""
        lengths = [len(tokens) for tokens in sentences]
        mask = mask_of_lengths(lengths, max(lengths))  # (B, T)
        layers = torch.zeros(*mask.shape, self._vectors.shape[1])
        layers[mask] = self._vectors[[self._rows[token] for tokens in sentences for token in tokens]]
        return LayerOutput(layers[:, None], mask)


def sources(
    bilm: LayerSource, vectors: WordVectorFile | None, sentences: Iterable[Sequence[str]]
) -> Iterator[tuple[LayerSource, str]]:
    """What is probed: the biLM, whose rows have the name `layer`, and the word vectors of the sentences, if given."""
    yield bilm, "layer"
    if vectors is not None:
        yield WordVectorLayer(vectors, (token for tokens in sentences for token in tokens)), vectors.path.name


def row_names(name: str, num_rows: int) -> list[str]:
    """The names of a source's rows: `layer 0` to `layer L` and `mean of layers`; a single row has the plain name."""
    return [name] if num_rows == 1 else [*(f"{name} {number}" for number in range(num_rows - 1)), f"mean of {name}s"]


def span_vectors(
    source: LayerSource,
    sentences: Sequence[Sequence[str]],
    spans: Sequence[Sequence[TokenSpan]],
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Streams the vectors of spans, a sentence at a time, the longest sentences first; those without spans are skipped.

    The layers are computed once, in batches of bounded size.

    Yields:
        the number of a sentence and the vectors of its spans, (R, N, D), which are the means of their tokens' vectors.
    """
    lengths = [len(tokens) for tokens in sentences]
    numbers = sorted((number for number, found in enumerate(spans) if found), key=lambda number: -lengths[number])
    with progress_bar() as bar:
        task = bar.add_task("computing vectors", total=len(numbers), note="sentences")
        for batch in batches_of_like_lengths(lengths, numbers, max_padded=_BATCH_TOKENS):
            output = source.layers([sentences[number] for number in batch]).layers  # (B, L+1, T, D)
            for number, layers in zip(batch, output.float().cpu().numpy(), strict=True):
                rows = layers if len(layers) == 1 else np.concatenate([layers, layers.mean(axis=0, keepdims=True)])
                yield number, pool_spans(rows, np.array(spans[number]))
            bar.advance(task, len(batch))


def pool_spans(rows: NDArray[np.float32], spans: NDArray[np.int64]) -> NDArray[np.float32]:
    """(R, T, D), (N, 2) -> (R, N, D); see `span_vectors`."""
    first, last = spans.T
    if (first == last).all():
        return rows[:, first]
    totals = np.cumsum(rows, axis=1, dtype=np.float64)
    totals = np.concatenate([np.zeros_like(totals[:, :1]), totals], axis=1)  # (R, T+1, D)
    means = (totals[:, last + 1] - totals[:, first]) / (last + 1 - first)[:, None]
    return means.astype(np.float32)
