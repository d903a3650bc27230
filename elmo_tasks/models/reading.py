"""What the models that find the answer to a question in a passage share.

# B batch, T tokens of the longest passage or question, D features of a token
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo.token_encoder import Highway
from elmo_tasks.models.model import ModelConfig, Probability, TaskModel
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.embedder import Embedder
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.spans import best_spans
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.reading import Reading, ReadingBatch, character_span
from elmo_tasks.text.tokens import TensorRecord, Tokens

_NUM_BEST = 5  # answers in a prediction
_SPANS_IN_WINDOW = 4  # a window is at least this many times the longest answer, so that answers have context


class ReadingConfig(ModelConfig):
    """The settings that all of these models share."""

    task: ClassVar[Task] = Reading()
    encoder: EncoderConfig = Field(description="encodes the passage and the question separately")
    dropout: Probability = Field(
        0.0, description="variational dropout between the layers (encoders have their own for their inputs)"
    )
    max_answer_length: PositiveInt | None = Field(
        17,
        description="the most tokens of a predicted answer; null: no limit, as in AllenNLP, with the window null too; "
        "memory then grows with the square of the passage's length",
    )
    window: PositiveInt | None = Field(
        400,
        description="the predictor reads longer passages in windows of this many tokens, each of which overlaps half "
        "of the next; null: it reads every passage as a whole, which is what training does",
    )

    @model_validator(mode="after")
    def _has_context(self) -> ReadingConfig:
        if self.window is None:
            return self
        if self.max_answer_length is None:
            raise ValueError(f"window {self.window}, but max_answer_length is null; expected a window of null too")
        if self.window < (least := _SPANS_IN_WINDOW * self.max_answer_length):
            raise ValueError(f"window {self.window}; expected at least {least}, {_SPANS_IN_WINDOW} x max_answer_length")
        return self


@dataclasses.dataclass(frozen=True)
class ReadingOutput(TensorRecord):
    """The scores of answers: the score of a span is the sum of those of its first and its last token."""

    start_logits: Tensor  # (B, T)
    end_logits: Tensor  # (B, T)
    mask: Tensor  # (B, T) bool, True at the passage's tokens


class TextEncoder(nn.Module):
    """Encodes passage and question: highway layers, an encoder with dropout, and ELMo's second mix, concatenated.

    New highway layers let most of their inputs pass.
    """

    def __init__(self, embedder: Embedder, config: ReadingConfig, num_highway_layers: int = 0) -> None:
        super().__init__()
        encoder = config.encoder.build(embedder.output_size)
        highways = [Highway(embedder.output_size) for _ in range(num_highway_layers)]
        for highway in highways:
            nn.init.constant_(highway.carry.bias, -1.0)
        self.highways = nn.Sequential(*highways)
        self.encoder = encoder
        self.dropout = VariationalDropout(config.dropout)
        self.output_size = embedder.joined_size(encoder.output_size)

    def forward(self, embedder: Embedder, tokens: Tokens) -> Tensor:
        """The vectors of the tokens in their context, (B, T, D); finite in the padding."""
        embedded = embedder(tokens)
        return embedded.join(self.dropout(self.encoder(self.highways(embedded.inputs), tokens.mask)))


class ReadingModel(TaskModel[ReadingBatch, ReadingOutput]):
    """Finds the answer to a question in a passage, as a span of its tokens.

    Arguments:
        embedder: reads passage and question.
        max_answer_length, window: see `ReadingConfig`.
    """

    task = Reading()

    def __init__(self, embedder: Embedder, max_answer_length: int | None, window: int | None) -> None:
        super().__init__(embedder)
        self.max_answer_length = max_answer_length
        self.window = window

    def loss(self, output: ReadingOutput, batch: ReadingBatch) -> Tensor:
        """The negative log-likelihoods of the answer's first and last token, summed; the mean over the batch."""
        if batch.starts is None or batch.ends is None:
            raise ValueError("the batch has no gold answers")
        least = torch.finfo(torch.float32).min
        start, end = (
            functional.cross_entropy(logits.float().masked_fill(~output.mask, least), gold)
            for logits, gold in ((output.start_logits, batch.starts), (output.end_logits, batch.ends))
        )
        return start + end

    def decode(self, output: ReadingOutput, batch: ReadingBatch, *, probabilities: bool = True) -> list[dict[str, Any]]:
        """The most probable answer to each question:

            {"answer": str, "start_char": int, "end_char": int, "start": int, "end": int, "best": [{...}, ...]}

        `start` and `end` are its first and last token in the passage, `passage[start_char:end_char]` is its text.
        `best` are the five most probable answers, or fewer in a very short passage, the best first, each with its
        `probability` among all spans of at most `max_answer_length` tokens.
        """
        spans = best_spans(
            output.start_logits,
            output.end_logits,
            output.mask,
            max_length=self.max_answer_length or output.mask.shape[1],
            num_spans=_NUM_BEST if probabilities else 1,
        )
        columns = zip(spans.starts.tolist(), spans.ends.tolist(), spans.probabilities.tolist(), strict=True)
        predictions = []
        for example, rows in zip(batch.examples, columns, strict=True):
            best = [
                {**_answer(example, first, last), "probability": probability}
                for first, last, probability in zip(*rows, strict=True)
                if first >= 0
            ]
            prediction = {key: value for key, value in best[0].items() if key != "probability"}
            predictions.append(prediction | ({"best": best} if probabilities else {}))
        return predictions


def _answer(example: dict[str, Any], first: int, last: int) -> dict[str, Any]:
    start, end = character_span(example, first, last)
    text = example["passage"][start:end]
    return {"answer": text, "start_char": start, "end_char": end, "start": first, "end": last}
