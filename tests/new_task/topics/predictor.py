"""The topic of raw text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elmo_tasks.predictors import Predictor, register_predictor
from elmo_tasks.predictors.fields import text_field
from elmo_tasks.predictors.predictor import Fields
from topics.task import Topics


class TopicPredictor(Predictor):
    """An input is `{"text": "..."}`; its result has the text, its `topic` and the `probability` of this."""

    read_keys = frozenset({"text"})

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        text = text_field(fields, "text")
        yield {"text": text, "tokens": [token.text for token in self.tokenizer.words(text)]}

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        return {"text": example["text"], **prediction}


register_predictor(Topics, TopicPredictor)
