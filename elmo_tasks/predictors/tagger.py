"""Tags and labelled spans of raw or tokenized text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.crf_tagger import CrfTagger
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.tag_schemes import Span, spans_of_tags
from elmo_tasks.tokenization import Token, tokenize

_DIGITS = 6  # of printed probabilities


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

    model: CrfTagger
    read_keys = frozenset({"text", "tokens"})

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        if ("text" in fields) == ("tokens" in fields):
            raise ElmoTasksError(f"the keys are {sorted(fields)}; wanted either 'text' or 'tokens' among them")
        if "tokens" in fields:
            yield {"tokens": _checked_tokens(fields["tokens"])}
            return
        text = fields["text"]
        if not isinstance(text, str):
            raise ElmoTasksError(f"'text' is {text!r}; wanted a string")
        for sentence in tokenize(text):
            yield _raw_example(text, sentence)

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        probabilities = [round(probability, _DIGITS) for probability in prediction["probabilities"]]
        result = {**example, "tags": prediction["tags"], "probabilities": probabilities}
        if self.model.tag_scheme:
            spans = spans_of_tags(prediction["tags"])
            result["spans"] = [_span_result(example, span, probabilities) for span in spans]
        return result


def _checked_tokens(tokens: Any) -> list[str]:
    if not isinstance(tokens, list) or not tokens:
        raise ElmoTasksError(f"'tokens' is {tokens!r}; wanted a list of at least one string")
    for position, token in enumerate(tokens):
        if not isinstance(token, str) or not token:
            raise ElmoTasksError(f"'tokens' has {token!r} at position {position}; wanted strings that are not empty")
    return tokens


def _raw_example(text: str, sentence: list[Token]) -> dict[str, Any]:
    start, end = sentence[0].start, sentence[-1].end
    return {
        "text": text[start:end],
        "start_char": start,
        "end_char": end,
        "tokens": [token.text for token in sentence],
        "offsets": [[token.start, token.end] for token in sentence],
    }


def _span_result(example: Fields, span: Span, probabilities: list[float]) -> dict[str, Any]:
    label, start, end = span
    result = {"label": label, "start": start, "end": end}
    if "offsets" in example:
        first, last = example["offsets"][start][0], example["offsets"][end][1]
        shift = example["start_char"]
        result |= {"start_char": first, "end_char": last, "text": example["text"][first - shift : last - shift]}
    else:
        result["text"] = " ".join(example["tokens"][start : end + 1])
    return result | {"probability": min(probabilities[start : end + 1])}
