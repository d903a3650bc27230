"""Tags and labelled spans of raw or tokenized text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elmo_tasks.predictors.fields import labelled_spans, sentence_examples
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.tasks import Tagging


class TaggerPredictor(Predictor):
    """Tags sentences.

    An input is `{"text": "..."}`, raw text that is split into sentences and tokens, or `{"tokens": ["...", ...]}`, one
    tokenized sentence. There is one result for each sentence:

    - `tokens`, `tags` and `probabilities`, each tag's marginal probability;
    - `spans`, each with `label`, `start` and `end` (tokens, the end inclusive), `text` and `probability`, that of the
      span's least certain tag; missing if the tags are not spans, such as parts of speech;
    - for raw text also `text`, the sentence as written, and positions in the input (characters, ends exclusive):
      `start_char` and `end_char` of the sentence and of each span, `offsets` of the tokens.

    Raises (from `predict`):
        DataError: an input has neither text nor tokens, or both; they are not strings, or there are no tokens.
    """

    task: Tagging
    read_keys = frozenset({"text", "tokens"})

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        return sentence_examples(fields, self.tokenizer)

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        tags, probabilities = prediction["tags"], prediction["probabilities"]
        result = {**example, "tags": tags, "probabilities": probabilities}
        if self.task.tag_scheme:
            result["spans"] = labelled_spans(example, tags, probabilities, "label")
        return result
