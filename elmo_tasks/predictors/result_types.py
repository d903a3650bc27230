"""The types of results in Arrow tables, for predictors to choose from."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

WORDS = pa.list_(pa.string())
NUMBERS = pa.list_(pa.float64())
MATRIX = pa.list_(NUMBERS)
PAIRS = pa.list_(pa.list_(pa.int64(), 2))
BY_LABEL = pa.map_(pa.string(), pa.float64())

_RANGE = {"start_char": pa.int64(), "end_char": pa.int64()}

SENTENCE: Mapping[str, pa.DataType] = {"text": pa.string(), **_RANGE, "tokens": WORDS, "offsets": PAIRS}
"""The keys of `fields.sentence_examples`."""


def spans(own: Mapping[str, pa.DataType]) -> pa.DataType:
    """A list of spans in a text, with keys of their own in addition."""
    ends = {"start": pa.int64(), "end": pa.int64(), **_RANGE, "text": pa.string(), "probability": pa.float64()}
    return pa.list_(pa.struct({**own, **ends}))


ANSWER: Mapping[str, pa.DataType] = {
    "answer": pa.string(), "probability": pa.float64(), "start": pa.int64(), "end": pa.int64(), **_RANGE
}  # fmt: skip
