"""What models that read a passage and find the answer to a question in it have in common.

# B batch, T tokens of the longest passage or question, N spans that are told of, D features of a token
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
from elmo_tasks.modules.encoders import Encoder, EncoderConfig
from elmo_tasks.modules.spans import best_spans
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.reading import Reading, ReadingBatch, character_span
from elmo_tasks.text.tokens import TensorRecord, Tokens

_NUM_BEST = 5  # spans that are told of with their probabilities
_SPANS_IN_WINDOW = 4  # longest spans that a window holds at least, so that each one has its context there


class ReadingConfig(ModelConfig):
    """What all models that read have: an encoder of both texts, and limits of the answer."""

    task: ClassVar[Task] = Reading()
    encoder: EncoderConfig = Field(description="reads the passage and the question, each by itself")
    dropout: Probability = Field(
        0.0, description="variational dropout between the layers; that on an encoder's input is the encoder's"
    )
    max_answer_length: PositiveInt = Field(17, description="most tokens of a predicted answer")
    window: PositiveInt = Field(
        400,
        description="the predictor reads longer passages in windows of this many tokens, each overlapping half of the "
        "next; the model itself reads any passage as a whole",
    )

    @model_validator(mode="after")
    def _has_context(self) -> ReadingConfig:
        if self.window < (least := _SPANS_IN_WINDOW * self.max_answer_length):
            raise ValueError(f"window {self.window}; wanted at least {least}, {_SPANS_IN_WINDOW} x max_answer_length")
        return self


@dataclasses.dataclass(frozen=True)
class ReadingOutput(TensorRecord):
    """The scores of a batch's answers: that of a span is the sum of its first token's and its last token's."""

    start_logits: Tensor  # (B, T)
    end_logits: Tensor  # (B, T)
    mask: Tensor  # (B, T) bool, True at the passage's tokens


class TextEncoder(nn.Module):
    """Encodes passage and question alike: highway layers, if any, an encoder, and ELMo's second mix beside its output.

    Arguments:
        embedder: what the tokens are read with.
        encoder: of inputs of the embedder's size.
        dropout: probability of variational dropout on the encoder's output.
        num_highway_layers: before the encoder; they begin by letting most of their inputs pass.
    """

    def __init__(self, embedder: Embedder, encoder: Encoder, dropout: float, num_highway_layers: int = 0) -> None:
        super().__init__()
        highways = [Highway(embedder.output_size) for _ in range(num_highway_layers)]
        for highway in highways:
            nn.init.constant_(highway.carry.bias, -1.0)
        self.highways = nn.Sequential(*highways)
        self.encoder = encoder
        self.dropout = VariationalDropout(dropout)
        self.output_size = embedder.joined_size(encoder.output_size)

    def forward(self, embedder: Embedder, tokens: Tokens) -> Tensor:
        """The tokens' vectors in their context, (B, T, D); finite in the padding."""
        embedded = embedder(tokens)
        return embedded.join(self.dropout(self.encoder(self.highways(embedded.inputs), tokens.mask)))


class ReadingModel(TaskModel[ReadingBatch, ReadingOutput]):
    """Finds the answer to a question in a passage, as a span of its tokens.

    Arguments:
        embedder: what passage and question are read with.
        max_answer_length: most tokens of a predicted answer.
        window: tokens of a passage that are well read at once; see `ReadingConfig.window`.
    """

    task = Reading()

    def __init__(self, embedder: Embedder, max_answer_length: int, window: int) -> None:
        super().__init__(embedder)
        self.max_answer_length = max_answer_length
        self.window = window

    def loss(self, output: ReadingOutput, batch: ReadingBatch) -> Tensor:
        """The negative log-likelihoods of an answer's first and of its last token, each among all tokens, summed."""
        if batch.starts is None or batch.ends is None:
            raise ValueError("the batch has no gold answers")
        start = _negative_log_likelihood(output.start_logits, batch.starts, output.mask)
        return start + _negative_log_likelihood(output.end_logits, batch.ends, output.mask)

    def decode(self, output: ReadingOutput, batch: ReadingBatch, *, probabilities: bool = True) -> list[dict[str, Any]]:
        """The most probable answer to each question:

            {"answer": str, "start_char": int, "end_char": int, "start": int, "end": int, "best": [{...}, ...]}

        `start` and `end` are its first and its last token in the passage, `passage[start_char:end_char]` is its text.
        `best` are the most probable answers, five where there are as many, the best first, each with its `probability`
        among all spans of at most `max_answer_length` tokens.
        """
        count = _NUM_BEST if probabilities else 1
        spans = best_spans(
            output.start_logits, output.end_logits, output.mask, max_length=self.max_answer_length, num_spans=count
        )
        columns = zip(spans.starts.tolist(), spans.ends.tolist(), spans.probabilities.tolist(), strict=True)
        predictions = []
        for example, rows in zip(batch.examples, columns, strict=True):
            found = [(first, last, probability) for first, last, probability in zip(*rows, strict=True) if first >= 0]
            prediction = _answer(example, *found[0][:2])
            if probabilities:
                prediction["best"] = [
                    _answer(example, first, last) | {"probability": probability} for first, last, probability in found
                ]
            predictions.append(prediction)
        return predictions


def _negative_log_likelihood(logits: Tensor, places: Tensor, mask: Tensor) -> Tensor:
    """Of the tokens at `places` (B,), the mean over the batch; logits (B, T)."""
    logits = logits.float().masked_fill(~mask, torch.finfo(torch.float32).min)
    return functional.cross_entropy(logits, places)


def _answer(example: dict[str, Any], first: int, last: int) -> dict[str, Any]:
    start, end = character_span(example, first, last)
    text = example["passage"][start:end]
    return {"answer": text, "start_char": start, "end_char": end, "start": first, "end": last}
