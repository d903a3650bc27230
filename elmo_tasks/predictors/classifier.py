"""The label of a raw or tokenized text, and which of its tokens the label rests on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elmo_tasks.predictors.fields import one_of, text_field, tokens_field
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.predictors.results import rounded
from elmo_tasks.text.tokenization import tokenize


class ClassifierPredictor(Predictor):
    """Gives texts a label.

    An input is `{"text": "..."}`, raw text, or `{"tokens": ["...", ...]}`, text that is tokenized already. There is one
    result for each input, however many sentences the text has:

    - `tokens`, and for raw text also `text` and the tokens' `offsets` in it, in characters, ends exclusive;
    - `label`, the most probable one, and `probabilities`, that of every label;
    - `attention`, a weight for each token, together 1: its share in the attentive part of the pooled text.

    Raises (from `predict`):
        DataError: an input has neither text nor tokens, or both, or no token at all, or they are not strings.
    """

    read_keys = frozenset({"text", "tokens"})

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        if one_of(fields, "text", "tokens") == "tokens":
            yield {"tokens": tokens_field(fields, "tokens")}
            return
        text = text_field(fields, "text")
        tokens = [token for sentence in tokenize(text) for token in sentence]
        yield {
            "text": text,
            "tokens": [token.text for token in tokens],
            "offsets": [[token.start, token.end] for token in tokens],
        }

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        return {**example, **rounded(prediction)}
