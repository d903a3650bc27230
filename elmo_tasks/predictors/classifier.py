"""The label, the labels or the number of a text, or of a pair of texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elmo_tasks.predictors.fields import one_of, string_field, tokens_field, words_field
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.text.tokenizers import Tokenizer


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


class InferencePredictor(Predictor):
    """Decides whether premises entail hypotheses, contradict them or do neither; or gives pairs of texts a number.

    An input is `{"premise": "...", "hypothesis": "..."}`, raw texts. Instead of these keys it may have those of SNLI,
    `sentence1` and `sentence2`, or `premise_tokens` and `hypothesis_tokens`, lists of strings. There is one result for
    each input:

    - `premise_tokens` and `hypothesis_tokens`, and the raw texts under the keys of the input;
    - `label`, the most probable one, and `probabilities`, that of every label; or `score`, a number;
    - `premise_attention`, a row for each token of the premise: its attention to each token of the hypothesis, which
      sums to 1; and `hypothesis_attention`, the same from the other side. If the model adds a token to the end of
      texts, what a row lacks to 1 is the attention to it. Models that do not align the texts have neither.

    Raises (from `predict`):
        DataError: one of the two texts is missing, given twice, or not made of strings, or has no tokens.
    """

    read_keys = frozenset({"premise_tokens", "hypothesis_tokens"})  # raw texts are carried over
    most_tokens = 10_000
    sample = {"premise": "A man sleeps.", "hypothesis": "Nobody is awake."}  # noqa: RUF012

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        premise = _tokens(fields, self.tokenizer, "premise", "sentence1", "premise_tokens")
        hypothesis = _tokens(fields, self.tokenizer, "hypothesis", "sentence2", "hypothesis_tokens")
        yield {"premise": premise, "hypothesis": hypothesis}

    def input_of(self, example: Fields) -> dict[str, Any]:
        return {f"{name}_tokens": example[name] for name in ("premise", "hypothesis")}

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        return {"premise_tokens": example["premise"], "hypothesis_tokens": example["hypothesis"], **prediction}


def _tokens(fields: Fields, tokenizer: Tokenizer, *keys: str) -> list[str]:
    """The tokens of one side of an input, which has one of the keys."""
    key = one_of(fields, *keys)
    return tokens_field(fields, key) if key.endswith("_tokens") else words_field(fields, key, tokenizer)
