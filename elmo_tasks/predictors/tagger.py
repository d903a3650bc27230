"""Tags and labelled spans of raw or tokenized text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elmo_tasks.predictors.fields import located_sentence, located_span, one_of, string_field, tokens_field
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.predictors.results import rounded
from elmo_tasks.tasks import Tagging
from elmo_tasks.text.tag_schemes import Span, spans_of_tags
from elmo_tasks.text.tokenization import tokenize


class TaggerPredictor(Predictor):
    """Tags sentences.

    An input is `{"text": "..."}`, raw text that is split into sentences and tokens, or `{"tokens": ["...", ...]}`, one
    sentence that is tokenized already. There is one result for each sentence:

    - `tokens`, `tags` and `probabilities`, each tag's marginal probability, one for each token;
    - `spans`, each with `label`, `start` and `end` (tokens, the end inclusive), `text` and `probability`, that of the
      span's least certain tag (not for tags that are no spans, such as parts of speech);
    - for raw text also `text`, the sentence as written, and where things are in the input's text, in characters, ends
      exclusive: `start_char` and `end_char` of the sentence and of each span, `offsets` of the tokens.

    Raises (from `predict`):
        DataError: an input has neither text nor tokens, or both, or no token at all, or they are not strings.
    """

    task: Tagging
    read_keys = frozenset({"text", "tokens"})

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        if one_of(fields, "text", "tokens") == "tokens":
            yield {"tokens": tokens_field(fields, "tokens")}
            return
        text = string_field(fields, "text")
        for sentence in tokenize(text):
            yield located_sentence(text, sentence)

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        probabilities = rounded(prediction["probabilities"])
        result = {**example, "tags": prediction["tags"], "probabilities": probabilities}
        if self.task.tag_scheme:
            spans = spans_of_tags(prediction["tags"])
            result["spans"] = [_span_result(example, span, probabilities) for span in spans]
        return result


def _span_result(example: Fields, span: Span, probabilities: list[float]) -> dict[str, Any]:
    label, start, end = span
    probability = min(probabilities[start : end + 1])
    return {"label": label, **located_span(example, start, end), "probability": probability}
