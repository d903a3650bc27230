"""Text to measure a language model on: read whole into memory, as nothing but numbers of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elmo_tasks.errors import DataError
from elmo_tasks.pretraining.corpora import find_files, read_chunks
from elmo_tasks.pretraining.corpus_files import CorpusPart
from elmo_tasks.pretraining.tokenized_chunk import tokenize_chunk


def read_text(paths: Sequence[str], *, tokenized: bool) -> tuple[CorpusPart, list[str]]:
    """The sentences of text files, as one document, and the distinct tokens that their numbers stand for.

    Arguments:
        paths: files or globs, compressed or not.
        tokenized: a line is a sentence with white space between its tokens; otherwise it is a paragraph of raw text.

    Raises:
        DataError: a file is missing, damaged or no UTF-8 text, or there is no token in any of them.
    """
    types: dict[str, int] = {}
    tokens: list[np.ndarray] = []
    lengths: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]
    for file in find_files(paths):
        for chunk in read_chunks(file):
            tokenized_chunk = tokenize_chunk(chunk, tokenized, lines_are_documents=False)
            numbers = [types.setdefault(token, len(types)) for token in tokenized_chunk.types]
            tokens.append(np.array(numbers, dtype=np.uint32)[tokenized_chunk.tokens])
            lengths.append(tokenized_chunk.lengths.astype(np.int64))
    if not types:
        raise DataError(", ".join(paths), "holds no text; wanted at least one sentence")
    sentences = np.cumsum(np.concatenate(lengths))  # (S+1,)
    return CorpusPart(np.concatenate(tokens), sentences, np.array([0, len(sentences) - 1])), list(types)
