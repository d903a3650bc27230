"""How much each token counts for a prediction, by integrated gradients of its score at the vectors of the tokens.

# B batch, T tokens of the longest text
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from elmo_tasks.elmo.fast.bilm import layers_kept
from elmo_tasks.files.limits import ADVICE, limit
from elmo_tasks.models.embedder import EmbeddedTokens, Embedder
from elmo_tasks.models.model import Prediction, TaskModel
from elmo_tasks.predictors.coreference import CoreferencePredictor
from elmo_tasks.predictors.predictor import ExampleError, Fields, Predictor
from elmo_tasks.predictors.reading import ReadingPredictor
from elmo_tasks.predictors.semantic_roles import SemanticRolesPredictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.tasks import Batch
from elmo_tasks.text.tag_schemes import spans_of_tags
from elmo_tasks.text.tokens import Tokens

STEPS = 32
"""The points at which a gradient is computed."""
_EXPLAINED = "explained prediction"  # the key of what is explained, in an example of its own


class Finding(NamedTuple):
    """Something that a prediction says, whose score can be explained."""

    about: dict[str, Any]  # what the result says of it
    example: Fields  # what the model reads
    prediction: Fields  # what `TaskModel.prediction_scores` scores


def explain(
    predictor: Predictor, examples: Sequence[dict[str, Any]], predictions: Sequence[Fields]
) -> list[dict[str, Any]]:
    """The tokens that predictions depend on; see `Predictor.explain`."""
    explained: list[dict[str, Any]] = [{"saliency": []} for _ in examples]
    rows: list[tuple[int, Finding]] = []
    for row, (example, prediction) in enumerate(zip(examples, predictions, strict=True)):
        found = list(findings(predictor, example, prediction))
        read = cost_of_explaining(predictor, example, prediction)
        if read > (most := limit(predictor.most_explained)):
            problem = f"to explain {len(found)} parts, the model reads {read:,} tokens; expected at most {most:,}"
            raise ExampleError(row, f"{problem}; {ADVICE}")
        rows += [(row, finding) for finding in found]

    def of_batch(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        batch = predictor.collate(given)
        found = saliency(predictor.model, batch, [example[_EXPLAINED] for example in given])
        return [{"score": score} | each for score, each in zip(found.scores.tolist(), found.shares(batch), strict=True)]

    items = predictor.in_batches([{**each.example, _EXPLAINED: each.prediction} for _, each in rows], of_batch)
    for (row, finding), item in zip(rows, items, strict=True):
        explained[row]["saliency"].append(finding.about | item)
    return explained


def cost_of_explaining(predictor: Predictor, example: Fields, prediction: Fields) -> int:
    """How many tokens the model reads to explain a prediction."""
    return len(list(findings(predictor, example, prediction))) * STEPS * predictor.task.length(example)


@dataclasses.dataclass(frozen=True)
class Saliency:
    """The scores of predictions, and what each token contributes to them."""

    scores: Tensor  # (B,)
    contributions: dict[str, Tensor]  # of the batch's tokens, by the names of its fields: the shape of their mask

    def shares(self, batch: Batch) -> list[dict[str, list[list[Any]]]]:
        """The tokens of each example with their shares: `{"tokens": [["Orla", 0.6], ["left", -0.4]]}`.

        A share is a token's part of the sum of the sizes of all contributions to a score. The keys are the names of the
        batch's fields.
        """
        shares: list[dict[str, list[list[Any]]]] = [{} for _ in batch.examples]
        for name, contributions in self.contributions.items():
            tokens: Tokens = getattr(batch, name)
            words = itertools.chain.from_iterable(tokens.texts)
            of_examples = contributions[tokens.mask].split(batch.lengths(tokens))
            for found, values in zip(shares, of_examples, strict=True):
                found[name] = [[next(words), value] for value in values.tolist()]
        for found in shares:
            tokens_of_example = list(itertools.chain.from_iterable(found.values()))
            total = sum(abs(value) for _, value in tokens_of_example) or 1.0
            for each in tokens_of_example:
                each[1] /= total
        return shares


def saliency(
    model: TaskModel[Any, Any],
    batch: Batch,
    predictions: Sequence[Prediction],
    steps: int = STEPS,
) -> Saliency:
    """What the tokens contribute to the scores of predictions (see `TaskModel.prediction_scores`).

    The gradient is taken at the embedder's output, the vectors of words and ELMo's mixes, so that frozen networks run
    once and need no gradient. A contribution is summed over the features of a token, and may be negative.

    Source: Sundararajan et al. (2017), "Axiomatic Attribution for Deep Networks". The gradient's mean on the straight
    way from zero vectors to the input is multiplied by the input. The contributions sum to the score, less the score of
    zero vectors. The integral is a Gauss-Legendre quadrature.

    Arguments:
        model: in evaluation.
        batch: on the model's device.
        predictions: one for each example.
        steps: the points of the quadrature.

    Raises:
        ElmoTasksError: the model does not say what its predictions' scores are.
    """
    texts = {
        field.name: value
        for field in dataclasses.fields(batch)
        if isinstance(value := getattr(batch, field.name), Tokens)
    }
    # The same model, with an embedder that computes a text once. The given one is not changed.
    modules, model = model._modules, copy.copy(model)
    model._modules = {**modules, "embedder": _ConstantVectors(model.embedder)}
    contributions = {name: torch.zeros(tokens.mask.shape, device=tokens.mask.device) for name, tokens in texts.items()}
    # cuDNN has no gradients in evaluation.
    with layers_kept(), torch.inference_mode(False), torch.backends.cudnn.flags(enabled=False):
        with torch.no_grad():
            output = model(batch)
            scores = model.prediction_scores(output, batch, predictions)
            batch = model.with_choices([output], batch)
        points, weights = np.polynomial.legendre.leggauss(steps)  # from -1 to 1
        for point, weight in zip(((points + 1) / 2).tolist(), (weights / 2).tolist(), strict=True):
            scales = {name: torch.full_like(each, point, requires_grad=True) for name, each in contributions.items()}
            scaled = {name: dataclasses.replace(tokens, scales=scales[name]) for name, tokens in texts.items()}
            at_point: Batch = dataclasses.replace(batch, **scaled)  # type: ignore[arg-type]  # these fields are tokens
            with torch.enable_grad():
                total = model.prediction_scores(model(at_point), at_point, predictions).sum()
            # The derivative by the scale of a token is the sum over its features of gradient times input.
            for name, gradient in zip(scales, torch.autograd.grad(total, list(scales.values())), strict=True):
                contributions[name] += weight * gradient
    return Saliency(scores, contributions)


class _ConstantVectors(nn.Module):
    """Computes the vectors of a batch's texts once, without a gradient; then only their scales change."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self.embedder = embedder
        self._known: dict[tuple[tuple[str, ...], ...], EmbeddedTokens] = {}

    def forward(self, tokens: Tokens) -> EmbeddedTokens:
        texts = tuple(map(tuple, tokens.texts))
        if texts not in self._known:
            with torch.no_grad():
                self._known[texts] = self.embedder(dataclasses.replace(tokens, scales=None))
        return self._known[texts].scaled(tokens.scales)


@functools.singledispatch
def findings(predictor: Predictor, example: Fields, prediction: Fields) -> Iterable[Finding]:
    """What there is to explain; for predictors that are not registered, the label or number, or each of the labels."""
    field = predictor.task.predicted_field
    value = prediction[field]
    if isinstance(value, list):
        return [Finding({"of": label}, example, {field: [label]}) for label in value]
    return [Finding({"of": value if isinstance(value, str) else field}, example, prediction)]


@findings.register
def _(predictor: TaggerPredictor, example: Fields, prediction: Fields) -> list[Finding]:
    """Each span; or, if the tags are not spans, the tags of the whole sentence."""
    tags = prediction["tags"]
    if not predictor.task.tag_scheme:
        return [Finding({"of": "tags"}, example, prediction)]
    return [
        Finding(
            {"of": label, "start": start, "end": end, "text": " ".join(example["tokens"][start : end + 1])},
            example,
            {"tags": [tag if start <= token <= end else None for token, tag in enumerate(tags)]},
        )
        for label, start, end in spans_of_tags(tags)
    ]


@findings.register
def _(predictor: SemanticRolesPredictor, example: Fields, prediction: Fields) -> Iterator[Finding]:
    """The roles of each predicate, that is, the tags of its frame."""
    for frame in prediction["frames"]:
        row = {"tokens": example["tokens"], "predicate": frame["predicate"]}
        yield Finding({"of": row["tokens"][row["predicate"]], "predicate": row["predicate"]}, row, frame)


@findings.register
def _(predictor: CoreferencePredictor, example: Fields, prediction: Fields) -> Iterator[Finding]:
    """The link of each mention that has an antecedent; `mention` is its number in the result."""
    tokens = [token for sentence in example["sentences"] for token in sentence]
    mentions = prediction["mentions"]
    for number, antecedent in enumerate(prediction["antecedents"]):
        if antecedent is not None:
            link = (mentions[number], mentions[antecedent])
            names = (" ".join(tokens[first : last + 1]) for first, last in link)
            yield Finding({"of": " → ".join(names), "mention": number}, example, {"link": link})


@findings.register
def _(predictor: ReadingPredictor, example: Fields, prediction: Fields) -> list[Finding]:
    """The answer. Of a passage longer than the model's window, only the window around the answer is read."""
    length, size = len(example["token_starts"]), predictor.model.window
    start, end = prediction["start"], prediction["end"]
    about = {"of": prediction["answer"]}
    if size is not None and length > size:
        first = max(0, min((start or 0) - size // 2, length - size))
        about["first_token"] = first
        example = {**example, **{key: example[key][first : first + size] for key in ("token_starts", "token_ends")}}
        start, end = (None if token is None else token - first for token in (start, end))
    return [Finding(about, example, {"start": start, "end": end})]
