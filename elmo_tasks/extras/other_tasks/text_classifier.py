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
    label_loss,
    label_predictions,
    label_probabilities,
    label_scores,
    log_of,
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
    """A pooling by its name, and the weights of the tokens if it has any.

    Arguments:
        name: which one.
        size: D.
    """

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
        return TextClassifier(embedder, self, vocabulary)


class Target(nn.Module):
    """What is learned and predicted: here, one of K labels, `{"label": ..., "probabilities": {...}}`.

    Arguments:
        labels: the names of the labels; none for a number.

    Attributes:
        num_scores: K.
        threshold: what the probabilities of a set's labels are compared with at first; None for other targets.
    """

    threshold: float | None = None

    def __init__(self, labels: tuple[str, ...]) -> None:
        super().__init__()
        self.labels = labels
        self.num_scores = len(labels)

    def prepare_training(self, examples: Iterable[Example]) -> None:
        """Takes from the training data what the loss needs; by default nothing."""

    def loss(self, scores: Tensor, gold: Tensor, weights: Tensor | None) -> Tensor:
        """The mean loss of the examples, in single precision.

        Arguments:
            scores: (B, K).
            gold: what the batch has as `labels`.
            weights: of the labels in the loss, (K,); None if all count the same, or there are none.
        """
        return label_loss(scores, gold, weights)

    def predictions(self, scores: Tensor, temperature: float | None, threshold: Tensor | None) -> list[dict[str, Any]]:
        """The prediction of each example from scores (B, K); with a temperature, also the probabilities."""
        return label_predictions(scores, self.labels, temperature)

    def prediction_scores(self, scores: Tensor, predictions: Sequence[Prediction]) -> Tensor:
        """The score of a given prediction of each example, (B,), from scores (B, K)."""
        return label_scores(scores, predictions, self.labels)

    def to_average(self, scores: Tensor) -> Tensor:
        """What an ensemble averages, (B, K): probabilities, or numbers."""
        return scores.float().softmax(1)

    def from_average(self, means: Tensor) -> Tensor:
        """The scores (B, K) that stand for such means."""
        return log_of(means)


class LabelSetTarget(Target):
    """Those of K labels whose probability is at least the threshold: `{"labels": [...], "probabilities": {...}}`.

    Each label has a sigmoid of its own. The loss is the binary cross entropy, the mean over the labels.
    """

    threshold = 0.5

    def loss(self, scores: Tensor, gold: Tensor, weights: Tensor | None) -> Tensor:
        return functional.binary_cross_entropy_with_logits(scores.float(), gold, weights)

    def predictions(self, scores: Tensor, temperature: float | None, threshold: Tensor | None) -> list[dict[str, Any]]:
        assert threshold is not None  # the head has one, because the target has
        chosen = scores.float().sigmoid() >= threshold  # (B, K)
        predictions: list[dict[str, Any]] = [
            {"labels": [label for label, is_chosen in zip(self.labels, row, strict=True) if is_chosen]}
            for row in chosen.tolist()
        ]
        if temperature:
            shares = (scores.float() / temperature).sigmoid()  # (B, K)
            for prediction, each in zip(predictions, label_probabilities(shares, self.labels), strict=True):
                prediction["probabilities"] = each
        return predictions

    def prediction_scores(self, scores: Tensor, predictions: Sequence[Prediction]) -> Tensor:
        """The sum of the log probabilities of the labels in the predicted sets."""
        chosen = torch.tensor([[label in each["labels"] for label in self.labels] for each in predictions])
        return functional.logsigmoid(scores.float()).masked_fill(~chosen.to(scores.device), 0).sum(1)

    def to_average(self, scores: Tensor) -> Tensor:
        return scores.float().sigmoid()

    def from_average(self, means: Tensor) -> Tensor:
        return means.logit(eps=1e-7)


class NumberTarget(Target):
    """A number: `{"score": ...}`. The loss is the squared error, in standard deviations of the training data.

    So the scores are near 0, whatever the unit of the numbers is. The numbers are in double precision: in single
    precision, times in seconds would be exact to two minutes.
    """

    mean: Tensor  # () float64
    deviation: Tensor  # () float64

    def __init__(self, labels: tuple[str, ...]) -> None:
        super().__init__(labels)
        self.num_scores = 1
        self.register_buffer("mean", torch.tensor(0.0, dtype=torch.float64))
        self.register_buffer("deviation", torch.tensor(1.0, dtype=torch.float64))

    def prepare_training(self, examples: Iterable[Example]) -> None:
        numbers = torch.tensor([example["score"] for example in examples], dtype=torch.float64)
        self.mean.fill_(numbers.mean())
        self.deviation.fill_(numbers.std(correction=0) or 1.0)

    def loss(self, scores: Tensor, gold: Tensor, weights: Tensor | None) -> Tensor:
        return functional.mse_loss(scores.float().squeeze(1), ((gold - self.mean) / self.deviation).float())

    def predictions(self, scores: Tensor, temperature: float | None, threshold: Tensor | None) -> list[dict[str, Any]]:
        return [{"score": score} for score in self.prediction_scores(scores, ()).tolist()]

    def prediction_scores(self, scores: Tensor, predictions: Sequence[Prediction]) -> Tensor:
        """The numbers themselves."""
        return self.to_average(scores).squeeze(1)

    def to_average(self, scores: Tensor) -> Tensor:
        return scores.double() * self.deviation + self.mean

    def from_average(self, means: Tensor) -> Tensor:
        return (means - self.mean) / self.deviation


# By the column of an example that is predicted.
TARGETS = {"label": Target, "labels": LabelSetTarget, "score": NumberTarget}


@dataclasses.dataclass(frozen=True)
class TextClassifierOutput(TensorRecord):
    """The scores and, for texts with attentive pooling, what it attended to."""

    logits: Tensor  # (B, K)
    attention: Tensor | None  # (B, T), zero in the padding


class TextClassifier(LabelModel[ClassificationBatch | TextPairsBatch, TextClassifierOutput]):
    """A plain classifier: what is between the embedder and the linear layer can be left out, except for the pooling.

    A second mix of ELMo is concatenated to the output of the encoder or, without one, to the token vectors. The texts a
    and b of a pair have the same layers; their pooled vectors become [a; b; |a - b|; a * b].

    Source of the features of pairs: Conneau et al. (2017), "Supervised Learning of Universal Sentence Representations
    from Natural Language Inference Data", section 3.1.

    Arguments:
        embedder: reads the tokens.
        config: the settings of the layers.
        vocabulary: has the labels.
    """

    def __init__(self, embedder: Embedder, config: TextClassifierConfig, vocabulary: Vocabulary) -> None:
        target = TARGETS[config.task.predicted_field](vocabulary.labels.get(LABELS, ()))
        super().__init__(embedder, config, target.labels)
        self.task = config.task
        self.target = target
        self.threshold = None if self.target.threshold is None else torch.tensor(self.target.threshold)
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
        self.scores = make_linear(self.output.output_size if self.output else size, self.target.num_scores)

    def prepare_training(self, examples: Iterable[Example]) -> None:
        super().prepare_training(examples)
        self.target.prepare_training(examples)

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

    def loss(self, output: TextClassifierOutput, batch: ClassificationBatch | TextPairsBatch) -> Tensor:
        if batch.labels is None:
            raise ValueError("the batch has no gold labels")
        return self.target.loss(output.logits, batch.labels, self.class_weights)

    def to_average(self, output: TextClassifierOutput) -> TextClassifierOutput:
        return with_logits(output, self.target.to_average(output.logits))

    def from_average(self, output: TextClassifierOutput) -> TextClassifierOutput:
        return with_logits(output, self.target.from_average(output.logits))

    def prediction_scores(
        self,
        output: TextClassifierOutput,
        batch: ClassificationBatch | TextPairsBatch,
        predictions: Sequence[Prediction],
    ) -> Tensor:
        return self.target.prediction_scores(output.logits, predictions)

    def decode(
        self,
        output: TextClassifierOutput,
        batch: ClassificationBatch | TextPairsBatch,
        *,
        probabilities: bool = True,
    ) -> list[dict[str, Any]]:
        """What the target predicts, see `Target`, with probabilities where it has any.

        For texts with attentive pooling there is also `attention`, the share of each token; the shares sum to 1.
        """
        temperature = self.temperature if probabilities else None
        predictions = self.target.predictions(output.logits, temperature, self.threshold)
        if probabilities and output.attention is not None and isinstance(batch, ClassificationBatch):
            add_attention(predictions, output.attention, batch.tokens.mask)
        return predictions


def piece_layers(embedder: nn.Module) -> Any:
    """A frozen transformer's layers, with `first_pieces` and `piece_ids`, for a head that reads word pieces.

    Raises:
        ElmoTasksError: a prediction is explained, which needs vectors of words.
    """
    transformer = getattr(embedder, "transformer", None)
    if not hasattr(transformer, "first_pieces"):
        raise ElmoTasksError("the head reads pieces of a frozen transformer; its predictions are not explained")
    return transformer
