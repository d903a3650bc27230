"""The label, the labels or the number of a raw or tokenized text, and the tokens that it depends on."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from elmo_tasks.predictors.fields import one_of, string_field, tokens_field
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.predictors.result_types import BY_LABEL, NUMBERS, PAIRS, WORDS


class ClassifierPredictor(Predictor):
    """Gives texts a label, a set of labels or a number.

    An input is `{"text": "..."}`, raw text, or `{"tokens": ["...", ...]}`, tokenized text. There is one result for each
    input, however many sentences the text has:

    - `tokens`, and for raw text also `text` and the `offsets` of the tokens in it, in characters, ends exclusive;
    - `label`, the most probable one, and `probabilities`, that of every label; or
    - `labels`, those whose probability is at least the run's threshold, and `probabilities`; or
    - `score`, a number;
    - `attention`, the share of each token in the attentive pooling, if the model has one; the shares sum to 1.

    Raises (from `predict`):
        DataError: an input has neither text nor tokens, or both; they are not strings, or there are no tokens.
    """

    read_keys = frozenset({"text", "tokens"})
    most_tokens = 10_000
    result_types = MappingProxyType(
        {"text": pa.string(), "tokens": WORDS, "offsets": PAIRS, "label": pa.string(), "labels": WORDS}
        | {"score": pa.float64(), "probabilities": BY_LABEL, "attention": NUMBERS}
    )

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        if one_of(fields, "text", "tokens") == "tokens":
            yield {"tokens": tokens_field(fields, "tokens")}
            return
        text = string_field(fields, "text")
        if tokens := self.tokenizer.words(text):
            offsets = [[token.start, token.end] for token in tokens]
            yield {"text": text, "tokens": [token.text for token in tokens], "offsets": offsets}

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        return {**example, **prediction}
