"""What is read but is probably not what it seems: header rows, and sentences without an end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MAX_SENTENCE = 1000  # tokens; what is longer is hardly one sentence
_COLUMN_NAMES = re.compile(
    "(gold_)?labels?|class|category|(ner_?)?tags?|ner|[ux]?pos|rating|score|sentiment|stars|premise|hypothesis|review|"
    "sentence[12]?|text|tweet|tokens?|words?|form",
    re.IGNORECASE,
)


def long_sentences(examples: datasets.Dataset, columns: Iterable[str]) -> Iterator[tuple[int, int, int]]:
    """The sentences of more than `MAX_SENTENCE` tokens: the number of the example, of the sentence in it, of tokens."""
    for column in set(columns).intersection(examples.features):
        first = 0  # example of the chunk
        for chunk in examples.data.column(column).chunks:
            is_nested = pa.types.is_list(chunk.type.value_type)  # a list of sentences
            lengths = pc.list_value_length(pc.list_flatten(chunk) if is_nested else chunk).to_numpy()
            for index in np.flatnonzero(lengths > MAX_SENTENCE).tolist():
                parents = pc.list_parent_indices(chunk).to_pylist() if is_nested else []
                example = parents[index] if is_nested else index
                yield first + example, index - parents.index(example) if is_nested else 0, int(lengths[index])
            first += len(chunk)


def is_header(example: Mapping[str, Any]) -> bool:
    """Whether an example is a header row: its only words and its label, or its first word and tag, name columns."""
    texts = [example[column] for column in ("tokens", "premise", "hypothesis") if column in example]
    if "tags" in example:
        words = [*texts[0][:1], *example["tags"][:1]]
    elif "label" in example and all(len(text) == 1 for text in texts):
        words = [*(text[0] for text in texts), example["label"]]
    else:
        return False
    return all(_COLUMN_NAMES.fullmatch(word) for word in words)
