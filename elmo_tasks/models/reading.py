"""What the models that find the answer to a question in a passage share.

# B batch, T tokens of the longest passage or question, D features of a token, L tokens of the longest answer,
# N answers that are asked for
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo.token_encoder import Highway
from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.model import ModelConfig, Prediction, Probability, TaskModel
from elmo_tasks.modules.attention import masked_softmax
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.feed_forward import make_linear
from elmo_tasks.modules.pooling import AttentivePooling
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.reading import NO_SPAN, Reading, ReadingBatch, character_span
from elmo_tasks.text.tokens import TensorRecord, Tokens

_NUM_BEST = 5  # answers in a prediction
_NO_ANSWER_UNITS = 80
_SPANS_IN_WINDOW = 4  # a window is at least this many times the longest answer, so that answers have context
_NONE = float("-inf")


class ReadingConfig(ModelConfig):
    """The settings that all of these models share."""

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
    no_answer: bool = Field(
        False,
        description="scores that a question has no answer in its passage, as in SQuAD 2.0; `dataset_reader.no_answer` "
        "must be the same",
    )

    @property
    def task(self) -> Task:
        return Reading(self.no_answer)

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
    no_answer_logits: Tensor | None = None  # (B,), the score of no answer; None if the model always answers


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


class NoAnswerScore(nn.Module):
    """The score that a question has no answer, to be compared with the scores of spans.

    Source: the no-answer option of Clark and Gardner (2018), "Simple and Effective Multi-Paragraph Reading
    Comprehension": with ELMo, the best baseline of SQuAD 2.0 (Rajpurkar et al. 2018). The vectors of the passage are
    summed with the probabilities of starts, with those of ends and with learned attention. A layer of 80 units with
    ReLU reads the three sums, and a linear layer gives the score.

    Arguments:
        start_size, end_size: features of a token from which starts and ends are scored.
        size: features of a token that the attention reads.
    """

    def __init__(self, start_size: int, end_size: int, size: int) -> None:
        super().__init__()
        self.pooling = AttentivePooling(size)
        self.hidden = make_linear(start_size + end_size + size, _NO_ANSWER_UNITS)
        self.score = make_linear(_NO_ANSWER_UNITS, 1)

    def forward(self, passage: Tensor, mask: Tensor, *scored: tuple[Tensor, Tensor]) -> Tensor:
        """(B, T, size), (B, T); of starts and of ends the logits (B, T) and the vectors (B, T, ...) -> (B,)."""
        sums = [(masked_softmax(logits, mask).unsqueeze(1) @ vectors).squeeze(1) for logits, vectors in scored]
        pooled, _ = self.pooling(passage, mask)
        return self.score(self.hidden(torch.cat([*sums, pooled], dim=1)).relu()).squeeze(1)


class ReadingModel(TaskModel[ReadingBatch, ReadingOutput]):
    """Finds the answer to a question in a passage, as a span of its tokens.

    With `no_answer`, it gives no answer where the score of that is above the score of the best span by more than the
    `threshold`.

    Arguments:
        embedder: reads passage and question.
        max_answer_length, window, no_answer: see `ReadingConfig`.
    """

    def __init__(
        self, embedder: Embedder, max_answer_length: int | None, window: int | None, no_answer: bool = False
    ) -> None:
        super().__init__(embedder)
        self.task = Reading(no_answer)
        self.max_answer_length = max_answer_length
        self.window = window
        self.no_answer: NoAnswerScore | None = None
        if no_answer:
            self.threshold = torch.zeros(())

    def loss(self, output: ReadingOutput, batch: ReadingBatch) -> Tensor:
        """The negative log-likelihoods of the answer's first and last token, summed; the mean over the batch.

        With `no_answer`, one softmax covers all pairs of a first and a last token, and no answer.
        """
        if batch.starts is None or batch.ends is None:
            raise ValueError("the batch has no gold answers")
        return -_log_likelihood(output, batch.starts, batch.ends).mean()

    def prediction_scores(
        self, output: ReadingOutput, batch: ReadingBatch, predictions: Sequence[Prediction]
    ) -> Tensor:
        """The log-likelihood of the predicted answers, as in the loss."""
        spans = [NO_SPAN if each["start"] is None else (each["start"], each["end"]) for each in predictions]
        starts, ends = torch.tensor(spans, device=output.mask.device).unbind(dim=1)
        return _log_likelihood(output, starts, ends)

    def decode(self, output: ReadingOutput, batch: ReadingBatch, *, probabilities: bool = True) -> list[dict[str, Any]]:
        """The most probable answer to each question:

            {"answer": str, "start_char": int, "end_char": int, "start": int, "end": int, "best": [{...}, ...]}

        `start` and `end` are its first and last token in the passage, `passage[start_char:end_char]` is its text.
        `best` are the five most probable answers, or fewer in a very short passage, the best first, each with its
        `probability` among all spans of at most `max_answer_length` tokens.

        With `no_answer`, the probabilities are those of these spans and of no answer, which has the
        `no_answer_probability`. `no_answer_score` is how far its score is above that of the best span, with the text
        `best_answer`. If it is above the threshold, `answer` is the empty string, its position is None, and its
        `probability` that of no answer.
        """
        spans = best_spans(
            output.start_logits,
            output.end_logits,
            output.mask,
            max_length=self.max_answer_length or output.mask.shape[1],
            num_spans=_NUM_BEST if probabilities else 1,
            temperature=self.temperature,
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
        if output.no_answer_logits is None:
            return predictions
        scores = output.no_answer_logits.float() - _span_score(output, spans.starts[:, 0], spans.ends[:, 0])  # (B,)
        # The first is the best span's share of all spans.
        shares = (scores / self.temperature + spans.probabilities[:, 0].log()).sigmoid()
        return list(map(self._with_no_answer, predictions, scores.tolist(), shares.tolist()))

    def _with_no_answer(self, prediction: dict[str, Any], score: float, probability: float) -> dict[str, Any]:
        """A prediction of an answer with the score and the probability of no answer, which may take its place."""
        added: dict[str, Any] = {"best_answer": prediction["answer"], "no_answer_score": score}
        is_given = self.threshold is None or score <= self.threshold
        if "best" in prediction:
            best = [{**each, "probability": each["probability"] * (1 - probability)} for each in prediction["best"]]
            added |= {"best": best, "no_answer_probability": probability}
            added |= {} if is_given else {"probability": probability}
        return {**prediction, **added} if is_given else {**dict.fromkeys(prediction), "answer": "", **added}

    def output(
        self, start: tuple[Tensor, Tensor], end: tuple[Tensor, Tensor], passage: Tensor, mask: Tensor
    ) -> ReadingOutput:
        """The output for the logits (B, T) and vectors (B, T, ...) of starts and ends, and the passage's vectors."""
        no_answer = self.no_answer(passage, mask, start, end) if self.no_answer else None
        return ReadingOutput(start_logits=start[0], end_logits=end[0], mask=mask, no_answer_logits=no_answer)


def _log_likelihood(output: ReadingOutput, starts: Tensor, ends: Tensor) -> Tensor:
    """The log-likelihoods of a span's first and last token, summed, or that of no answer (-1); (B,) each."""
    least = torch.finfo(torch.float32).min
    sides = [logits.float().masked_fill(~output.mask, least) for logits in (output.start_logits, output.end_logits)]
    every_span = sides[0].logsumexp(1) + sides[1].logsumexp(1)
    chosen = _span_score(output, starts.clamp(min=0), ends.clamp(min=0))
    if output.no_answer_logits is None:
        return chosen - every_span
    no_answer = output.no_answer_logits.float()  # (B,)
    return torch.where(starts < 0, no_answer, chosen) - torch.logaddexp(every_span, no_answer)


def _span_score(output: ReadingOutput, first: Tensor, last: Tensor) -> Tensor:
    """The score of a span in each passage, from its first and last token, (B,) each; (B,)."""
    sides = (output.start_logits, first), (output.end_logits, last)
    start, end = (logits.float().gather(1, tokens.unsqueeze(1)).squeeze(1) for logits, tokens in sides)
    return start + end


def _answer(example: dict[str, Any], first: int, last: int) -> dict[str, Any]:
    start, end = character_span(example, first, last)
    text = example["passage"][start:end]
    return {"answer": text, "start_char": start, "end_char": end, "start": first, "end": last}


@dataclasses.dataclass(frozen=True)
class BestSpans(TensorRecord):
    """The most probable spans of each sequence, the best first.

    If a sequence has fewer spans than that, the rest have the tokens -1 and the probability 0.
    """

    starts: Tensor  # (B, N) int64, first tokens
    ends: Tensor  # (B, N) int64, last tokens: ends are inclusive
    probabilities: Tensor  # (B, N)


@torch.no_grad()
def best_spans(
    start_logits: Tensor, end_logits: Tensor, mask: Tensor, max_length: int, num_spans: int = 1, temperature: float = 1
) -> BestSpans:
    """Finds the best spans by the sum of their first token's start logit and their last token's end logit.

    A span is allowed if it has at most `max_length` tokens and its first and last tokens are real. The probability of a
    span is the softmax of the sums over all allowed spans, that is, the product of independent probabilities of start
    and end, given that they make an allowed span. Of spans with equal scores, the one that starts first comes first,
    then the shorter one, so that padding and the other sequences of a batch change nothing.

    Source: the search over answers of limited length of Clark and Gardner 2017, and of Seo et al. 2017 without a limit;
    their probabilities are not renormalized. Time and memory grow with T x max_length, never with T x T.

    Arguments:
        start_logits: (B, T), floating point; half precision is computed in single.
        end_logits: (B, T).
        mask: (B, T) bool, with a real token in each sequence; logits outside of it may be anything.
        max_length: most tokens in a span, at least 1.
        num_spans: N, at least 1.
        temperature: divides the sums of which the softmax is taken.
    """
    longest = min(max_length, mask.shape[1])  # L
    dtype = torch.promote_types(start_logits.dtype, torch.float32)
    start_logits, end_logits = (logits.to(dtype).masked_fill(~mask, _NONE) for logits in (start_logits, end_logits))
    behind = functional.pad(end_logits, (0, longest - 1), value=_NONE).unfold(1, longest, 1)  # (B, T, L), a view
    scores = (start_logits.unsqueeze(2) + behind).flatten(1)  # (B, T * L), by start, then by length
    log_partition = (scores / temperature).logsumexp(dim=1, keepdim=True)  # (B, 1)
    maxima = []
    for _ in range(num_spans):  # `topk` would be free to choose any of equal scores; `max` takes the first
        maxima.append(scores.max(dim=1, keepdim=True))  # (B, 1), (B, 1)
        scores.scatter_(1, maxima[-1].indices, _NONE)
    best, indices = (torch.cat(columns, dim=1) for columns in zip(*maxima, strict=True))  # (B, N), (B, N)
    is_span = best > _NONE
    starts = indices // longest
    return BestSpans(
        starts=starts.masked_fill(~is_span, -1),
        ends=(starts + indices % longest).masked_fill(~is_span, -1),
        probabilities=(best / temperature - log_partition).exp().clamp(max=1),
    )
