"""Whether a premise entails a hypothesis, or another label or number of a pair of texts, and how they are aligned."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from elmo_tasks.predictors.fields import one_of, tokens_field, words_field
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.predictors.result_types import BY_LABEL, MATRIX, WORDS
from elmo_tasks.text.tokenizers import Tokenizer


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
    result_types = MappingProxyType(
        {"premise_tokens": WORDS, "hypothesis_tokens": WORDS}
        | {"label": pa.string(), "score": pa.float64(), "probabilities": BY_LABEL}
        | {"premise_attention": MATRIX, "hypothesis_attention": MATRIX}
    )
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
