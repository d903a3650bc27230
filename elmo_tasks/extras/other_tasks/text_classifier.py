"""A plain classifier: it encodes and pools a text, or both texts of a pair, and scores what the task asks for.

# B batch, T tokens of the longest text, D features of a token, P features of a pooled text, K scores
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import pydantic
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.labels import (
    LabelModel,
    LabelModelConfig,
    add_attention,
    label_predictions,
    label_probabilities,
    with_logits,
)
from elmo_tasks.models.model import ModelConfig, Prediction, Probability
from elmo_tasks.modules.dropout import Dropout
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.feed_forward import FeedForwardConfig, make_linear
from elmo_tasks.modules.pooling import AttentivePooling, max_pool, mean_pool
from elmo_tasks.tasks import Classification, MultiLabel, PairRegression, Regression, Task, TextPairs
from elmo_tasks.tasks.classification import LABELS, ClassificationBatch
from elmo_tasks.tasks.task import Example
from elmo_tasks.tasks.text_pairs import TextPairsBatch
from elmo_tasks.text.tokens import TensorRecord, Tokens
from elmo_tasks.text.vocabulary import Vocabulary


def sum_pool(vectors: Tensor, mask: Tensor) -> Tensor:
    """The sum of each feature over a text's tokens; as `max_pool`."""
    return vectors.masked_fill(~mask.unsqueeze(2), 0).sum(1)


def last_pool(vectors: Tensor, mask: Tensor) -> Tensor:
    """The vector of a text's last token and that of its first, where the two directions of an encoder end; (B, 2D)."""
    last = mask.sum(1) - 1  # (B,)
    rows = torch.arange(len(vectors), device=vectors.device)
    return torch.cat([vectors[rows, last], vectors[:, 0]], dim=1)


PoolingName = Literal["mean", "sum", "max", "attention", "last"]
_POOLS = {"mean": mean_pool, "sum": sum_pool, "max": max_pool, "last": last_pool}  # those without parameters


class Pooling(nn.Module):
    """A pooling by its name, of vectors with this size, D, and the weights of the tokens if it has any."""

    def __init__(self, name: PoolingName, size: int) -> None:
        super().__init__()
        self.name = name
        self.attention = AttentivePooling(size) if name == "attention" else None
        self.output_size = 2 * size if name == "last" else size

    def forward(self, vectors: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """(B, T, D), finite in the padding too, and (B, T) bool -> (B, output_size), and the weights (B, T) or None."""
        if self.attention is not None:
            pooled, weights = self.attention(vectors, mask)
            return pooled, weights
        return _POOLS[self.name](vectors, mask), None


TaskName = Literal["classification", "multi_label", "regression", "text_pairs", "pair_regression"]
_TASKS: dict[str, type[Task]] = {
    task.name: task for task in (Classification, MultiLabel, Regression, TextPairs, PairRegression)
}


class TextClassifierConfig(LabelModelConfig):
    """A plain classifier for labels or numbers of texts and of pairs: an encoder, a pooling and a linear layer."""

    model_config = pydantic.ConfigDict(serialize_by_alias=True)

    type: Literal["text_classifier"] = "text_classifier"
    task_name: TaskName | None = Field(
        None, alias="task", description="what is predicted; null: the task of the reader"
    )
    embedding_dropout: Probability = Field(0.0, description="dropout on the token vectors")
    encoder: EncoderConfig | None = Field(None, description="encodes the tokens in their context; null: none does")
    pooling: PoolingName | Literal["cls"] = Field(
        "max",
        description="makes one vector of a text's tokens: their 'mean', their 'sum', their 'max'imum, a sum weighted "
        "by learned 'attention', or the 'last' token's vector together with the first one's, where the directions of "
        "an encoder end; 'cls' is a transformer's vector of its first piece, which reads the text or both of a pair",
    )
    dropout: Probability = Field(0.0, description="dropout on the pooled text or pair")
    output: FeedForwardConfig | None = Field(
        None, description="layers between the pooled text and the linear layer of the scores; null: none"
    )

    @pydantic.model_validator(mode="after")
    def _has_what_it_pools(self) -> TextClassifierConfig:
        is_transformer = set(self.embedder.model_dump(exclude_none=True)) == {"transformer"}
        if self.pooling == "cls" and (self.encoder or not is_transformer):
            raise ValueError("pooling: 'cls' needs an embedder that is only a transformer, and no encoder")
        return self

    @property
    def task(self) -> Task:
        return _TASKS[self.task_name or "classification"]()

    def for_task(self, task: Task) -> ModelConfig:
        if self.class_weights and "score" in task.features:
            raise ValueError(f"class_weights: expected a task with labels, got {type(task).__name__}")
        name = next((name for name in task.names() if name in _TASKS), None)
        return self.model_copy(update={"task_name": name}) if name and not self.task_name else self

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> TextClassifier:
        return _HEADS[self.task.predicted_field](embedder, self, vocabulary)


@dataclasses.dataclass(frozen=True)
class TextClassifierOutput(TensorRecord):
    """The scores and, for texts with attentive pooling, what it attended to."""

    logits: Tensor  # (B, K)
    attention: Tensor | None  # (B, T), zero in the padding


class TextClassifier(LabelModel[ClassificationBatch | TextPairsBatch, TextClassifierOutput]):
    """A plain classifier: what is between the embedder and the linear layer can be left out, except for the pooling.

    It predicts one of K labels, `{"label": ..., "probabilities": {...}}`; its subclasses predict sets of labels and
    numbers.

    A second mix of ELMo is concatenated to the output of the encoder or, without one, to the token vectors. The texts a
    and b of a pair have the same layers; their pooled vectors become [a; b; |a - b|; a * b].

    Source of the features of pairs: Conneau et al. (2017), "Supervised Learning of Universal Sentence Representations
    from Natural Language Inference Data", section 3.1.
    """

    def __init__(self, embedder: Embedder, config: TextClassifierConfig, vocabulary: Vocabulary) -> None:
        super().__init__(embedder, config, vocabulary.labels.get(LABELS, ()))
        self.task = config.task
        self.embedding_dropout = Dropout(config.embedding_dropout)
        self.encoder = config.encoder.build(embedder.output_size) if config.encoder else None
        encoded_size = self.encoder.output_size if self.encoder else embedder.output_size
        self.pooling: Pooling | None = None
        size = embedder.output_size
        if config.pooling != "cls":
            self.pooling = Pooling(config.pooling, embedder.joined_size(encoded_size))
            size = self.pooling.output_size * (4 if "premise" in self.task.features else 1)
        self.dropout = Dropout(config.dropout)
        self.output = config.output.build(size) if config.output else None
        num_scores = len(self.labels) or 1  # a number has no label
        self.scores = make_linear(self.output.output_size if self.output else size, num_scores)

    def embedded_texts(self, example: Example) -> Iterable[Sequence[str]]:
        return super().embedded_texts(example) if self.pooling else []  # a transformer's layers are of word pieces

    def forward(self, batch: ClassificationBatch | TextPairsBatch) -> TextClassifierOutput:
        attention = None
        if self.pooling is None:
            pooled = piece_layers(self.embedder).first_pieces(self.texts(batch))  # (B, D)
        elif isinstance(batch, TextPairsBatch):
            (first, _), (second, _) = self._pool(batch.premise), self._pool(batch.hypothesis)
            pooled = torch.cat([first, second, (first - second).abs(), first * second], dim=1)  # (B, 4P)
        else:
            pooled, attention = self._pool(batch.tokens)
        pooled = self.dropout(pooled)
        logits = self.scores(self.output(pooled) if self.output else pooled)
        return TextClassifierOutput(logits=logits, attention=attention)

    @staticmethod
    def texts(batch: ClassificationBatch | TextPairsBatch) -> list[tuple[Sequence[str], ...]]:
        """The tokens of each text, or of both texts of each pair."""
        both = (batch.premise, batch.hypothesis) if isinstance(batch, TextPairsBatch) else (batch.tokens,)
        return list(zip(*(tokens.texts for tokens in both), strict=True))

    def _pool(self, tokens: Tokens) -> tuple[Tensor, Tensor | None]:
        """The vector of each text, (B, P), and the weights of its tokens, (B, T), if the pooling has any."""
        embedded = self.embedder(tokens)
        vectors = self.embedding_dropout(embedded.inputs)  # (B, T, D)
        encoded = self.encoder(vectors, tokens.mask) if self.encoder else vectors
        assert self.pooling is not None
        pooled, attention = self.pooling(embedded.join(encoded), tokens.mask)
        return pooled, None if attention is None else attention.float()

    def decode(
        self,
        output: TextClassifierOutput,
        batch: ClassificationBatch | TextPairsBatch,
        *,
        probabilities: bool = True,
    ) -> list[dict[str, Any]]:
        """What is predicted, with probabilities where there are any.

        For texts with attentive pooling there is also `attention`, the share of each token; the shares sum to 1.
        """
        predictions = self.predictions(output.logits, self.temperature if probabilities else None)
        if probabilities and output.attention is not None and isinstance(batch, ClassificationBatch):
            add_attention(predictions, output.attention, batch.tokens.mask)
        return predictions

    def predictions(self, scores: Tensor, temperature: float | None) -> list[dict[str, Any]]:
        """The prediction of each example from scores (B, K); with a temperature, also the probabilities."""
        return label_predictions(scores, self.labels, temperature)


class LabelSetClassifier(TextClassifier):
    """Predicts those of K labels whose probability is at least the threshold.

    A prediction is `{"labels": [...], "probabilities": {...}}`. Each label has a sigmoid of its own. The loss is the
    binary cross entropy, the mean over the labels.
    """

    threshold: Tensor

    def __init__(self, embedder: Embedder, config: TextClassifierConfig, vocabulary: Vocabulary) -> None:
        super().__init__(embedder, config, vocabulary)
        self.threshold = torch.tensor(0.5)

    def loss(self, output: TextClassifierOutput, batch: ClassificationBatch | TextPairsBatch) -> Tensor:
        return functional.binary_cross_entropy_with_logits(output.logits.float(), gold_of(batch), self.class_weights)

    def predictions(self, scores: Tensor, temperature: float | None) -> list[dict[str, Any]]:
        chosen = scores.float().sigmoid() >= self.threshold  # (B, K)
        predictions: list[dict[str, Any]] = [
            {"labels": [label for label, is_chosen in zip(self.labels, row, strict=True) if is_chosen]}
            for row in chosen.tolist()
        ]
        if temperature:
            shares = (scores.float() / temperature).sigmoid()  # (B, K)
            for prediction, each in zip(predictions, label_probabilities(shares, self.labels), strict=True):
                prediction["probabilities"] = each
        return predictions

    def prediction_scores(self, output: TextClassifierOutput, batch: Any, predictions: Sequence[Prediction]) -> Tensor:
        """The sum of the log probabilities of the labels in the predicted sets."""
        chosen = torch.tensor([[label in each["labels"] for label in self.labels] for each in predictions])
        likelihoods = functional.logsigmoid(output.logits.float())
        return likelihoods.masked_fill(~chosen.to(likelihoods.device), 0).sum(1)

    def to_average(self, output: TextClassifierOutput) -> TextClassifierOutput:
        return with_logits(output, output.logits.float().sigmoid())

    def from_average(self, output: TextClassifierOutput) -> TextClassifierOutput:
        return with_logits(output, output.logits.logit(eps=1e-7))


class NumberClassifier(TextClassifier):
    """Predicts a number: `{"score": ...}`. The loss is the squared error, in standard deviations of the training data.

    So the scores are near 0, whatever the unit of the numbers is. The numbers are in double precision: in single
    precision, times in seconds would be exact to two minutes.
    """

    target: Any  # has the buffers `mean` and `deviation` of the training data, () float64

    def __init__(self, embedder: Embedder, config: TextClassifierConfig, vocabulary: Vocabulary) -> None:
        super().__init__(embedder, config, vocabulary)
        self.target = nn.Module()
        self.target.register_buffer("mean", torch.tensor(0.0, dtype=torch.float64))
        self.target.register_buffer("deviation", torch.tensor(1.0, dtype=torch.float64))

    def prepare_training(self, examples: Iterable[Example]) -> None:
        numbers = torch.tensor([example["score"] for example in examples], dtype=torch.float64)
        self.target.mean.fill_(numbers.mean())
        self.target.deviation.fill_(numbers.std(correction=0) or 1.0)

    def loss(self, output: TextClassifierOutput, batch: ClassificationBatch | TextPairsBatch) -> Tensor:
        gold = (gold_of(batch) - self.target.mean) / self.target.deviation
        return functional.mse_loss(output.logits.float().squeeze(1), gold.float())

    def predictions(self, scores: Tensor, temperature: float | None) -> list[dict[str, Any]]:
        return [{"score": score} for score in self._numbers(scores).squeeze(1).tolist()]

    def prediction_scores(self, output: TextClassifierOutput, batch: Any, predictions: Sequence[Prediction]) -> Tensor:
        """The numbers themselves."""
        return self._numbers(output.logits).squeeze(1)

    def _numbers(self, scores: Tensor) -> Tensor:
        """In their own unit, (B, 1) float64."""
        return scores.double() * self.target.deviation + self.target.mean

    def to_average(self, output: TextClassifierOutput) -> TextClassifierOutput:
        return with_logits(output, self._numbers(output.logits))

    def from_average(self, output: TextClassifierOutput) -> TextClassifierOutput:
        return with_logits(output, (output.logits - self.target.mean) / self.target.deviation)


# By the column of an example that is predicted.
_HEADS = {"label": TextClassifier, "labels": LabelSetClassifier, "score": NumberClassifier}


def gold_of(batch: ClassificationBatch | TextPairsBatch) -> Tensor:
    """What is to be predicted; raises a `ValueError` if a batch does not have it."""
    if batch.labels is None:
        raise ValueError("the batch has no gold labels")
    return batch.labels


def piece_layers(embedder: nn.Module) -> Any:
    """A frozen transformer's layers, with `first_pieces` and `piece_ids`, for a head that reads word pieces.

    Raises:
        ElmoTasksError: a prediction is explained, which needs vectors of words.
    """
    transformer = getattr(embedder, "transformer", None)
    if not hasattr(transformer, "first_pieces"):
        raise ElmoTasksError("the head reads pieces of a frozen transformer; its predictions are not explained")
    return transformer
