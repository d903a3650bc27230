"""A linear classifier of texts or pairs of texts: frozen vectors, pooled, and a logistic regression fitted in one go.

# B batch, T tokens of the longest text, S those of the other texts, D features of a token, P features of a text or pair
# N training examples, K labels
"""

from __future__ import annotations

import dataclasses
import logging
import warnings
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pydantic
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.labels import LabelModel, LabelModelConfig, label_predictions
from elmo_tasks.models.model import ModelConfig
from elmo_tasks.modules.pooling import max_pool, mean_pool, min_pool
from elmo_tasks.tasks import Classification, Task, TextPairs
from elmo_tasks.tasks.classification import LABELS, ClassificationBatch
from elmo_tasks.tasks.task import Example
from elmo_tasks.tasks.text_pairs import TextPairsBatch
from elmo_tasks.text.tokens import TensorRecord, Tokens, batches_of_like_lengths
from elmo_tasks.text.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

_FOLDS = 5
_FACTORS = np.geomspace(0.1, 10, 21)  # of the scores, so that held-out examples have the smallest loss
_BATCH_TOKENS = 8192
_COSINES = 6  # of a pair, each of which counts more than one of the many other features
_COSINE_FACTOR = 5.0
_ABSENT = -30.0  # the score of a label without training examples


class LinearClassifierConfig(LabelModelConfig):
    """A logistic regression on the pooled vectors of frozen models, for small data: fitted in seconds, not in steps."""

    model_config = pydantic.ConfigDict(serialize_by_alias=True)
    trained_by_steps: ClassVar[bool] = False

    type: Literal["linear_classifier"] = "linear_classifier"
    task_name: Literal["classification", "text_pairs"] | None = Field(
        None, alias="task", description="what is predicted; null: the task of the reader"
    )
    strengths: Annotated[tuple[Annotated[float, Field(gt=0)], ...], Field(min_length=1)] = Field(
        (100.0, 400.0, 1200.0, 4000.0, 12000.0),
        description="how closely the training data may be followed: scikit-learn's C, times the number of examples and "
        "of features; the value with the smallest loss in a cross-validation of the training data is taken",
    )

    @pydantic.model_validator(mode="after")
    def _is_frozen(self) -> LinearClassifierConfig:
        elmo = self.embedder.elmo
        if self.embedder.words or self.embedder.characters or (elmo and elmo.requires_grad):
            raise ValueError("embedder: nothing in it is trained; expected only a frozen elmo or transformer")
        return self

    @property
    def task(self) -> Task:
        return TextPairs() if self.task_name == "text_pairs" else Classification()

    def for_task(self, task: Task) -> ModelConfig:
        is_pair = "text_pairs" in task.names() and self.task_name is None
        return self.model_copy(update={"task_name": "text_pairs"}) if is_pair else self

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> LinearClassifier:
        return LinearClassifier(embedder, self, vocabulary)


@dataclasses.dataclass(frozen=True)
class LinearScores(TensorRecord):
    """The scores of the labels."""

    logits: Tensor  # (B, K)


class LinearClassifier(LabelModel[ClassificationBatch | TextPairsBatch, LinearScores]):
    """A logistic regression on features of frozen vectors. It has no parameters: `prepare_training` fits its buffers.

    The features of a text are the means of its tokens' vectors. Those of a pair are the means of both texts and what
    `compare` finds, in both directions. The embedder's mixes of layers stay as they begin, so that all layers count the
    same.
    """

    weight: Tensor  # (K, P)
    bias: Tensor  # (K,)

    def __init__(self, embedder: Embedder, config: LinearClassifierConfig, vocabulary: Vocabulary) -> None:
        super().__init__(embedder.requires_grad_(False), config, vocabulary.labels[LABELS])
        self.task = config.task
        self.vocabulary = vocabulary
        self.strengths = sorted(config.strengths, reverse=True)
        size = embedder.joined_size(embedder.output_size)
        size = 8 * size + _COSINES if config.task_name == "text_pairs" else size
        self.register_buffer("weight", torch.zeros(len(self.labels), size))
        self.register_buffer("bias", torch.zeros(len(self.labels)))

    @torch.no_grad()
    def prepare_training(self, examples: Iterable[Example]) -> None:
        """Fits the weights; see `fit`."""
        super().prepare_training(examples)
        rows, was_training = list(map(dict, examples)), self.training
        self.eval()
        features = np.empty((len(rows), self.weight.shape[1]))
        gold = np.empty(len(rows), dtype=np.int64)
        for part in batches_of_like_lengths([self.task.length(each) for each in rows], max_padded=_BATCH_TOKENS):
            batch: Any = self.task.collate([rows[row] for row in part], self.vocabulary).to(self.weight.device)
            features[part] = self.features(batch).double().cpu().numpy()
            gold[part] = batch.labels.cpu().numpy()
        self.train(was_training)
        weights = None if self.class_weights is None else self.class_weights.double().cpu().numpy()
        factors = np.ones(features.shape[1])
        if isinstance(self.task, TextPairs):
            factors[-_COSINES:] = _COSINE_FACTOR
        fitted = fit(features, gold, self.strengths, weights, factors)
        logger.info("%d features of %d examples; strength %g", features.shape[1], len(rows), fitted.strength)
        self.weight.zero_()
        self.bias.fill_(_ABSENT)
        self.weight[fitted.labels] = torch.as_tensor(fitted.weight).to(self.weight)
        self.bias[fitted.labels] = torch.as_tensor(fitted.bias).to(self.bias)

    def features(self, batch: ClassificationBatch | TextPairsBatch) -> Tensor:
        """(B, P)."""
        if isinstance(batch, ClassificationBatch):
            return mean_pool(self._vectors(batch.tokens), batch.tokens.mask)
        both, masks = (batch.premise, batch.hypothesis), (batch.premise.mask, batch.hypothesis.mask)
        first, second = map(self._vectors, both)
        # Of the tokens as they are, so that a cosine falls with the scale of a token that an explanation hides.
        units = [functional.normalize(self._vectors(dataclasses.replace(each, scales=None)), dim=2) for each in both]
        units = [
            unit if each.scales is None else unit * each.scales.unsqueeze(2)
            for unit, each in zip(units, both, strict=True)
        ]
        cosines = units[0] @ units[1].mT  # (B, T, S)
        compared = [compare(first, second, cosines, *masks), compare(second, first, cosines.mT, *masks[::-1])]
        means = [mean_pool(first, masks[0]), mean_pool(second, masks[1])]
        return torch.cat([*means, *(each for each, _ in compared), *(each for _, each in compared)], dim=1)

    def _vectors(self, tokens: Tokens) -> Tensor:
        """(B, T, D)."""
        embedded = self.embedder(tokens)
        return embedded.join(embedded.inputs)

    def forward(self, batch: ClassificationBatch | TextPairsBatch) -> LinearScores:
        features = self.features(batch).float()
        with torch.autocast(features.device.type, enabled=False):  # sums of many products that cancel each other
            return LinearScores(logits=functional.linear(features, self.weight.float(), self.bias.float()))

    def decode(
        self, output: LinearScores, batch: ClassificationBatch | TextPairsBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The most probable label of each example: `{"label": ..., "probabilities": {...}}`."""
        return label_predictions(output.logits, self.labels, self.temperature if probabilities else None)


def compare(
    first: Tensor, second: Tensor, cosines: Tensor, first_mask: Tensor, second_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Compares each token of a text with the most similar token of the other text.

    Arguments:
        first: (B, T, D).
        second: (B, S, D).
        cosines: (B, T, S).

    Returns:
        the means and maxima of the differences and the means of the products, (B, 3D).
        the mean, the smallest and the largest of the cosines, (B, 3).
    """
    best, nearest = cosines.masked_fill(~second_mask.unsqueeze(1), -2).max(2)  # (B, T)
    aligned = second.gather(1, nearest.unsqueeze(2).expand(-1, -1, second.shape[2]))  # (B, T, D)
    differences, products = (first - aligned).abs(), first * aligned
    pooled = [mean_pool(differences, first_mask), max_pool(differences, first_mask), mean_pool(products, first_mask)]
    similar = [pool(best.unsqueeze(2), first_mask) for pool in (mean_pool, min_pool, max_pool)]
    return torch.cat(pooled, dim=1), torch.cat(similar, dim=1)


@dataclasses.dataclass(frozen=True)
class Fitted:
    """The weights of the labels that the training data has."""

    labels: NDArray[np.int64]  # (L,), which of the K labels
    weight: NDArray[np.float64]  # (L, P)
    bias: NDArray[np.float64]  # (L,)
    strength: float


def fit(
    features: NDArray[np.float64],
    gold: NDArray[np.int64],
    strengths: list[float],
    label_weights: NDArray[np.float64] | None = None,
    factors: NDArray[np.float64] | float = 1.0,
) -> Fitted:
    """A logistic regression with an L2 penalty on standardised features, by scikit-learn.

    The strength is that with the smallest loss of held-out examples in a cross-validation, if the scores are multiplied
    with the best factor. Without the factor, the loss would favour a weak penalty, since a strong one makes
    probabilities more even. The weights are multiplied with this factor, too, so that the probabilities are as certain
    as held-out examples allow.
    Examples of a label that the rest of the data lacks are not held out. If none is left, the largest strength is used.

    Arguments:
        features: (N, P).
        gold: the label of each example, (N,).
        strengths: C N P of scikit-learn's C, the largest first.
        label_weights: what an example of each label counts, (K,).
        factors: what the standardised features are multiplied with: it makes some of them count more.
    """
    from sklearn.linear_model import LogisticRegression

    labels, places = np.unique(gold, return_inverse=True)
    if len(labels) == 1:
        return Fitted(labels, np.zeros((1, features.shape[1])), np.zeros(1), strengths[0])
    weights = np.ones(len(gold)) if label_weights is None else label_weights[gold]
    mean, deviation = features.mean(0), features.std(0)
    scale = factors / np.where(deviation > 1e-6, deviation, np.inf)  # what does not vary is left out
    rows, basis = (features - mean) * scale, None
    if len(rows) < rows.shape[1]:  # the weights lie in the span of the rows: a rotation has the same result, faster
        basis = np.linalg.svd(rows, full_matrices=False)[2]  # (N, P)
        rows = rows @ basis.T

    def regressions(part: NDArray[np.bool_], chosen: list[float]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """The weights (L, .) and biases (L,) for each strength, -30 for labels that the part lacks."""
        model, found = LogisticRegression(warm_start=True, max_iter=1000, tol=1e-4), []
        for strength in chosen:
            with warnings.catch_warnings():  # of many labels for few examples
                warnings.filterwarnings("ignore", "The number of unique classes")
                model.set_params(C=strength / features.size).fit(rows[part], places[part], weights[part])
            weight, bias = np.zeros((len(labels), rows.shape[1])), np.full(len(labels), _ABSENT)
            own_weight, own_bias = model.coef_, model.intercept_
            if len(own_weight) == 1:  # one row for two labels
                own_weight, own_bias = (np.concatenate([-each, each]) / 2 for each in (own_weight, own_bias))
            weight[model.classes_], bias[model.classes_] = own_weight, own_bias
            found.append((weight, bias))
        return found

    order = np.random.default_rng(1).permutation(len(rows))
    folds = np.empty(len(rows), dtype=np.int64)
    folds[order[np.argsort(places[order], kind="stable")]] = np.arange(len(rows)) % _FOLDS  # each label in all folds
    losses = np.tile(np.log(_FACTORS) ** 2, (len(strengths), 1))  # a few examples do not make the factor extreme
    for fold in range(_FOLDS):
        part = folds != fold
        held_out = ~part & np.isin(places, places[part])
        if len(np.unique(places[part])) > 1 and held_out.any():
            for number, (weight, bias) in enumerate(regressions(part, strengths)):
                logits = _FACTORS[:, None, None] * (rows[held_out] @ weight.T + bias)  # (factors, held out, L)
                likelihoods = logits[:, np.arange(held_out.sum()), places[held_out]] - np.logaddexp.reduce(logits, 2)
                losses[number] -= likelihoods @ weights[held_out]
    best, factor = np.unravel_index(losses.argmin(), losses.shape)
    ((weight, bias),) = regressions(np.full(len(rows), True), [strengths[best]])
    weight, bias = _FACTORS[factor] * weight, _FACTORS[factor] * bias
    weight = (weight if basis is None else weight @ basis) * scale
    return Fitted(labels, weight, bias - weight @ mean, strengths[best])
