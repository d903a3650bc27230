"""Tags and labelled spans of raw or tokenized text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from elmo_tasks.predictors.fields import labelled_spans, sentence_examples
from elmo_tasks.predictors.predictor import Fields, Finding, Predictor
from elmo_tasks.tasks import Tagging
from elmo_tasks.text.tag_schemes import spans_of_tags


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

    def findings(self, example: Fields, prediction: Fields) -> list[Finding]:
        """Each span; or, if the tags are not spans, the tags of the whole sentence."""
        tags = prediction["tags"]
        if not self.task.tag_scheme:
            return [Finding({"of": "tags"}, example, prediction)]
        return [
            Finding(
                {"of": label, "start": start, "end": end, "text": " ".join(example["tokens"][start : end + 1])},
                example,
                {"tags": [tag if start <= token <= end else None for token, tag in enumerate(tags)]},
            )
            for label, start, end in spans_of_tags(tags)
        ]

    def details(self, examples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """`tag_probabilities`: for each token its most probable tags, at most five; only of models that have them."""
        return self.in_batches(examples, self._batch_details)

    @torch.inference_mode()
    def _batch_details(self, examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        batch = self.collate(examples)
        return self.model.details(self.model(batch), batch)

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        tags, probabilities = prediction["tags"], prediction["probabilities"]
        result = {**example, "tags": tags, "probabilities": probabilities}
        if self.task.tag_scheme:
            result["spans"] = labelled_spans(example, tags, probabilities, "label")
        return result
