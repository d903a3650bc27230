"""Models that need no training, and a predictor for each task."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from elmo_tasks.models.biattentive_classifier import BiattentiveClassifierConfig
from elmo_tasks.models.inference import EsimConfig
from elmo_tasks.models.model import TaskModel
from elmo_tasks.models.reading import ReadingModel, ReadingOutput
from elmo_tasks.predictors import Predictor
from elmo_tasks.predictors.classifier import ClassifierPredictor, InferencePredictor
from elmo_tasks.predictors.coreference import CoreferencePredictor
from elmo_tasks.predictors.reading import ReadingPredictor
from elmo_tasks.predictors.semantic_roles import SemanticRolesPredictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.tasks import Batch, Coreference, Reading, SemanticRoles, Tagging
from elmo_tasks.tasks.reading import ReadingBatch, unanswered
from elmo_tasks.text.tag_schemes import Span, TagScheme, tags_of_spans
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import SPECIAL, Counts, Vocabulary, VocabularyConfig


@dataclasses.dataclass(frozen=True)
class NoOutput(TensorRecord):
    pass


class StubModel(TaskModel[Batch, NoOutput]):
    """Predicts by a rule, and remembers its batches."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(1, 1))  # type: ignore[arg-type]
        self.batches: list[Batch] = []

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """How many sentences the batches had, and how many tokens the longest of each."""
        return [(len(batch), max(len(example["tokens"]) for example in batch.examples)) for batch in self.batches]

    def forward(self, batch: Batch) -> NoOutput:
        assert not self.training
        assert torch.is_inference_mode_enabled()
        assert all(getattr(batch, gold, None) is None for gold in ("tags", "mentions"))
        self.batches.append(batch)
        return NoOutput()

    def loss(self, output: NoOutput, batch: Batch) -> Tensor:
        raise NotImplementedError

    def decode(self, output: NoOutput, batch: Batch, *, probabilities: bool = True) -> list[dict[str, Any]]:
        return [self.prediction(example) for example in batch.examples]

    def prediction(self, example: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError


class SpanModel(StubModel):
    """Finds spans. The probability of a tag depends on the length of its token."""

    scheme: TagScheme = "IOB2"

    def prediction(self, example: dict[str, Any]) -> dict[str, Any]:
        tokens = example["tokens"]
        tags = tags_of_spans(self.spans(example), len(tokens), self.scheme)
        return {"tags": tags, "probabilities": [1 / (1 + len(token)) for token in tokens]}

    def spans(self, example: dict[str, Any]) -> list[Span]:
        raise NotImplementedError


class CapitalTagger(SpanModel):
    """Names are runs of capitalized tokens."""

    task = Tagging("BIOUL")
    scheme = "BIOUL"

    def spans(self, example: dict[str, Any]) -> list[Span]:
        spans, start = [], 0
        for is_name, run in itertools.groupby(example["tokens"], lambda token: token[0].isupper()):
            end = start + len(list(run))
            spans += [Span("NAME", start, end - 1)] * is_name
            start = end
        return spans


class PastTagger(SpanModel):
    """Takes words in -ed for predicates."""

    task = Tagging("IOB2")

    def spans(self, example: dict[str, Any]) -> list[Span]:
        return [Span("V", index, index) for index, token in enumerate(example["tokens"]) if token.endswith("ed")]


class Neighbours(SpanModel):
    """What stands before the predicate has done it to the next two words."""

    task = SemanticRoles()

    def spans(self, example: dict[str, Any]) -> list[Span]:
        index, last = example["predicate"], len(example["tokens"]) - 1
        spans = [Span("V", index, index)]
        if index > 0:
            spans.append(Span("ARG0", index - 1, index - 1))
        if index < last:
            spans.append(Span("ARG1", index + 1, min(index + 2, last)))
        return spans


class EqualWords(StubModel):
    """Links each capitalized word to the one of the same form before it."""

    task = Coreference()

    def prediction(self, example: dict[str, Any]) -> dict[str, Any]:
        indices: dict[str, list[int]] = {}
        for index, token in enumerate(itertools.chain(*example["sentences"])):
            if token[0].isupper():
                indices.setdefault(token, []).append(index)
        clusters = [found for found in indices.values() if len(found) > 1]
        mentions = sorted(itertools.chain(*clusters))
        before = {later: mentions.index(index) for found in clusters for index, later in itertools.pairwise(found)}
        return {
            "clusters": [[[index, index] for index in cluster] for cluster in clusters],
            "mentions": [[index, index] for index in mentions],
            "antecedents": [before.get(index) for index in mentions],
            "probabilities": [1 / 3] * len(mentions),
        }


class CapitalReader(ReadingModel):
    """Starts and ends at tokens in capitals, the longer the better; asked "Middle", at those far from both ends.

    Remembers the shapes of the batches and the texts that it read.
    """

    def __init__(self, window: int = 12, *, no_answer: bool = False) -> None:
        embedder: Any = nn.Linear(1, 1)
        super().__init__(embedder, max_answer_length=3, window=window, no_answer=no_answer)
        self.shapes: list[tuple[int, ...]] = []
        self.read: list[list[str]] = []

    def forward(self, batch: ReadingBatch) -> ReadingOutput:
        mask = batch.passage.mask
        self.shapes.append(tuple(mask.shape))
        self.read += batch.passage.texts
        logits = torch.full(mask.shape, 1e6)  # in the padding, where nothing counts
        for row, (tokens, question) in enumerate(zip(batch.passage.texts, batch.question.texts, strict=True)):
            logits[row, : len(tokens)] = self.score(tokens, question)
        return ReadingOutput(start_logits=logits, end_logits=logits, mask=mask)

    def score(self, tokens: list[str], question: list[str]) -> Tensor:
        if question[0] == "Middle":
            return torch.tensor([float(min(index, len(tokens) - 1 - index)) for index in range(len(tokens))])
        return torch.tensor([float(len(token)) if token.isupper() else 0.0 for token in tokens])


def vocabulary(*tags: str) -> Vocabulary:
    return Vocabulary(words=SPECIAL, num_trained_words=len(SPECIAL), characters=SPECIAL, labels={"tags": tags})


def make_tagger() -> TaggerPredictor:
    return TaggerPredictor(CapitalTagger(), vocabulary("O", "U-NAME"), batch_tokens=12)


def make_predicate_tagger(*tags: str) -> TaggerPredictor:
    return TaggerPredictor(PastTagger(), vocabulary(*tags), batch_tokens=12)


def make_roles(tagger: TaggerPredictor | None) -> SemanticRolesPredictor:
    return SemanticRolesPredictor(Neighbours(), vocabulary("O"), batch_tokens=12, predicates=tagger)


def make_coreference() -> CoreferencePredictor:
    examples = [{"sentences": [["Ann", "left"]], "genre": genre} for genre in ("story", "talk")]
    return CoreferencePredictor(
        EqualWords(), VocabularyConfig().build(Counts.of(Coreference(), examples), []), batch_tokens=12
    )


def make_reader() -> ReadingPredictor:
    known = VocabularyConfig().build(Counts.of(Reading(), [unanswered("Who left?", "Orla left.")]), [])
    return ReadingPredictor(CapitalReader(), known, batch_tokens=30)


def untrained(
    kind: type[BiattentiveClassifierConfig | EsimConfig],
    layers: tuple[str, str],
    encoders: tuple[str, str],
    examples: list[dict[str, Any]],
) -> tuple[TaskModel, Vocabulary]:
    """A small network with random weights, and its vocabulary."""
    torch.manual_seed(2)
    parts: dict[str, Any] = {key: {"hidden_sizes": (5,)} for key in layers}
    parts |= {key: {"type": "stacked_bilstm", "hidden_sizes": (4,)} for key in encoders}
    config = kind.model_validate({"embedder": {"characters": {"embedding_size": 4, "filters": 6}}, **parts})
    known = VocabularyConfig().build(Counts.of(config.task, examples), [])
    return config.build(known, config.embedder.build(known)), known


def make_classifier() -> ClassifierPredictor:
    examples = [{"tokens": ["Orla", "left"], "label": "good"}, {"tokens": ["Rain"], "label": "bad"}]
    parts = ("pre_encoder", "output"), ("encoder", "integrator")
    return ClassifierPredictor(*untrained(BiattentiveClassifierConfig, *parts, examples), batch_tokens=12)


def make_inference() -> InferencePredictor:
    labels = ("contradiction", "entailment", "neutral")
    examples = [{"premise": ["Orla", "left"], "hypothesis": ["Rain"], "label": label} for label in labels]
    parts = ("projection", "output"), ("encoder", "composition")
    return InferencePredictor(*untrained(EsimConfig, *parts, examples), batch_tokens=12)


MAKERS: dict[str, Callable[[], Predictor]] = {
    "tagging": make_tagger,
    "classification": make_classifier,
    "text_pairs": make_inference,
    "reading": make_reader,
    "semantic_roles": lambda: make_roles(make_predicate_tagger("O", "B-V")),
    "coreference": make_coreference,
}
