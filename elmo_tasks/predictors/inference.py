"""Whether a premise entails a hypothesis, raw or tokenized, and what in the one is aligned with what in the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from elmo_tasks.predictors.fields import one_of, text_field, tokens_field
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.predictors.results import rounded
from elmo_tasks.text.tokenization import tokenize_to_strings

# Under which keys an input has either side: raw text, raw text as in SNLI's files, or tokens.
PREMISE_KEYS = ("premise", "sentence1", "premise_tokens")
HYPOTHESIS_KEYS = ("hypothesis", "sentence2", "hypothesis_tokens")


class InferencePredictor(Predictor):
    """Tells whether premises entail hypotheses, contradict them or do neither.

    An input is `{"premise": "...", "hypothesis": "..."}`, raw texts; SNLI's own keys `sentence1` and `sentence2` mean
    the same, and `premise_tokens` and `hypothesis_tokens` are lists of strings, text that is tokenized already. There
    is one result for each input:

    - `premise_tokens` and `hypothesis_tokens`, and the raw texts under the keys that they came with;
    - `label`, the most probable one, and `probabilities`, that of every label;
    - `premise_attention`, a row for each token of the premise: how its attention is spread over the tokens of the
      hypothesis, together 1; and `hypothesis_attention`, the same from the other side.

    Raises (from `predict`):
        DataError: an input lacks one of the two texts or has it twice, or without any token, or not as strings.
    """

    read_keys = frozenset({"premise_tokens", "hypothesis_tokens"})  # raw texts are carried over as they came

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        yield {"premise": _tokens(fields, PREMISE_KEYS), "hypothesis": _tokens(fields, HYPOTHESIS_KEYS)}

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        tokens = {f"{side}_tokens": example[side] for side in ("premise", "hypothesis")}
        return {**tokens, **rounded(prediction)}


def _tokens(fields: Fields, keys: tuple[str, ...]) -> list[str]:
    """The tokens of one side of an input."""
    key = one_of(fields, *keys)
    if key.endswith("_tokens"):
        return tokens_field(fields, key)
    return [token for sentence in tokenize_to_strings(text_field(fields, key)) for token in sentence]
