"""What a system gets wrong: kinds of errors, confused labels and the worst examples.

Everything is counted as the task's scorer counts, so that the kinds add up to its scores.

# K sums of the task's metric
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from elmo_tasks.config import Overrides
from elmo_tasks.data_readers.sources import Source
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.compare.significance import equal_below, unit_gains
from elmo_tasks.extras.compare.systems import Predictions, read_predictions
from elmo_tasks.metrics import Accuracy, CoreferenceScores, LabelSetF1, Metric, SpanF1, Squad2Scores, SquadScores, SrlF1
from elmo_tasks.metrics.confusion import ConfusionTable, confusion_table
from elmo_tasks.metrics.coreference import ScoredDocument
from elmo_tasks.metrics.squad import normalize_answer
from elmo_tasks.metrics.srl import VERB, arguments_of_tags
from elmo_tasks.rendering.drawing import Drawing, Mark, MarkedText, Rows
from elmo_tasks.rendering.tasks import NO_ANSWER, located
from elmo_tasks.runs.evaluate import UnknownLabels
from elmo_tasks.tasks import Coreference, Reading, SemanticRoles, Tagging, Task
from elmo_tasks.text.tag_schemes import spans_of_tags

SPAN_KINDS = ("right", "type", "boundary", "both", "missed", "spurious")
ANSWER_KINDS = ("right", "too long", "too short", "overlapping", "elsewhere", "no answer")
UNANSWERABLE = "not answerable"  # where there are questions without an answer


@dataclasses.dataclass(frozen=True)
class WorstExample:
    """An example with gold labels and its prediction. `loss`: how much higher the score would be if it were right.

    `place`: where the example is, such as `file:line`; see `Predictions`.
    """

    loss: float
    example: dict[str, Any]
    prediction: dict[str, Any]
    place: str = ""


@dataclasses.dataclass(frozen=True)
class ErrorReport:
    """The result of `errors`.

    Arguments:
        metric: the name of the task's main score.
        scores: of the whole data, by the task's metric.
        counted: what `kinds` counts, such as spans.
        kinds: how many are right, and how many have each kind of error.
        confusion: which label is taken for which, None if the task does not predict labels.
        worst: the examples that cost the most, the worst first.
    """

    task: Task
    metric: str
    num_examples: int
    scores: dict[str, float]
    counted: str
    kinds: dict[str, int]
    confusion: ConfusionTable | None
    worst: list[WorstExample]

    def to_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "task": type(self.task).__name__}


_Details: TypeAlias = tuple[str, dict[str, int]]
"""What is counted in a task, as in a report: `counted` and `kinds`."""


def errors(
    path: str | Path,
    data: Source | None = None,
    *,
    num_examples: int = 20,
    unknown_labels: UnknownLabels = "error",
    overrides: Overrides = (),
) -> ErrorReport:
    """What a system gets wrong.

    Arguments:
        path: a run (folder or archive), or a file of predictions that `evaluate --predictions` wrote.
        data: what a run is evaluated on; by default, the test data of its config. Not used for files.
        num_examples: how many of the worst examples are kept.
        unknown_labels: `count` scores gold labels that the run does not know as its errors; see `evaluate`.
        overrides: `key.path=value`, in place of the values of the run's config.

    Raises:
        DataError, RunError: the run or the file cannot be read.
    """
    found = read_predictions(Path(path), data, overrides, unknown_labels)
    return error_report(found.without(found.learned), num_examples=num_examples)


def error_report(found: Predictions, *, num_examples: int = 20) -> ErrorReport:
    """The same as `errors`, of the predictions of one model."""
    metric = found.task.build_metric()
    sums = found.sums([[row] for row in range(len(found.examples))])  # (examples, K)
    metric.update(found.predictions, found.examples)
    details = _DETAILS.get(type(metric), lambda *_: ("examples", {}))
    counted, kinds = details(found, metric)
    return ErrorReport(
        found.task,
        metric.main,
        len(found.examples),
        metric.compute(),
        counted,
        kinds,
        _confusion(found),
        _worst(found, sums, num_examples) if num_examples else [],
    )


def _worst(found: Predictions, sums: np.ndarray, count: int) -> list[WorstExample]:
    metric = found.task.build_metric()
    right = dataclasses.replace(found, predictions=[metric.right(example) for example in found.examples])
    best = right.sums([[row] for row in range(len(found.examples))])
    losses = unit_gains(sums[None], best[None], lambda each: metric.scores(each)[metric.main])
    order = np.argsort(-losses, kind="stable")[:count].tolist()
    equal = equal_below(float(metric.scores(best.sum(0))[metric.main]))
    return [
        WorstExample(float(losses[row]), found.examples[row], found.predictions[row], found.places[row])
        for row in order
        if losses[row] > equal
    ]


def side_by_side(task: Task, worst: WorstExample) -> Drawing:
    """What to draw for an example with its gold labels and the predicted ones.

    Only tags that differ are marked, unless they are spans, and only clusters that differ are listed, with the numbers
    of the mentions' first tokens.
    """
    example, metric = worst.example, task.build_metric()
    field = metric.field
    versions = {"gold": metric.right(example)[field], "predicted": worst.prediction[field]}
    if isinstance(task, Tagging | SemanticRoles):
        text, offsets = located(example)
        marks: dict[str, list[Mark]] = {name: [] for name in versions}
        if isinstance(task, Tagging) and not task.tag_scheme:
            for place, tags in zip(offsets, zip(*versions.values(), strict=True), strict=True):
                for name, tag in zip(versions, tags, strict=True):
                    marks[name] += [Mark(*place, tag)] if len(set(tags)) > 1 else []
        else:
            for name, tags in versions.items():
                spans = spans_of_tags(tags)
                marks[name] += [Mark(offsets[start][0], offsets[end][1], label) for label, start, end in spans]
        return [MarkedText(text, found, title=name) for name, found in marks.items()]
    if isinstance(task, Coreference):
        tokens = [token for sentence in example["sentences"] for token in sentence]
        clusters = {name: {frozenset(map(tuple, each)) for each in found} for name, found in versions.items()}
        rows = []
        for name, found in clusters.items():
            for cluster in sorted(map(sorted, found - frozenset.intersection(*map(frozenset, clusters.values())))):
                chain = (f"{' '.join(tokens[start : end + 1])} [{start}]" for start, end in cluster)
                rows.append((name, " → ".join(chain)))
        return [Rows(rows)]
    if isinstance(task, Reading):
        versions["gold"] = " | ".join(dict.fromkeys(example["answers"]))
    texts = [("", " ".join(tokens)) for tokens in task.texts(example)]
    return [Rows([*texts, *((name, _shown(value)) for name, value in versions.items())])]


def _shown(value: Any) -> str:
    """A label, a set of labels, a number or an answer."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    return NO_ANSWER if value in (None, "") else str(value)


def _confusion(found: Predictions) -> ConfusionTable | None:
    task, pairs = found.task, Counter[tuple[str, str]]()
    try:
        for example, prediction in zip(found.examples, found.predictions, strict=True):
            pairs.update(zip(task.compared_labels(example), task.compared_labels(prediction), strict=True))
    except ElmoTasksError:  # the task does not predict labels
        return None
    return confusion_table(pairs)


class LabelledSpan(NamedTuple):
    """A label and the pieces that it spans: first and last token of each, both inclusive."""

    label: str
    pieces: tuple[tuple[int, int], ...]

    def tokens(self) -> list[int]:
        return [token for start, end in self.pieces for token in range(start, end + 1)]


def spans_of(metric: Metric, tags: Sequence[str]) -> set[LabelledSpan]:
    """What the scorer counts: spans, or the arguments of a predicate without the predicate itself."""
    if isinstance(metric, SrlF1):
        return {LabelledSpan(*argument) for argument in arguments_of_tags(tags) if argument.role != VERB}
    return {LabelledSpan(label, ((start, end),)) for label, start, end in spans_of_tags(tags)}


def align(
    found: set[LabelledSpan], gold: set[LabelledSpan]
) -> Iterator[tuple[str, LabelledSpan | None, LabelledSpan | None]]:
    """Pairs predicted and gold spans, each at most once, with the kind of their error.

    - `right`: the same span with the same label, as the scorers want it;
    - `type`: the same span with another label;
    - `boundary`: the same label, and the spans overlap;
    - `both`: another label, and the spans overlap;
    - `missed`, `spurious`: a gold or a predicted span that is left.

    The kinds go in this order, so that a gold span is a boundary error only if no span has exactly its tokens; of
    several that overlap, the pair with the most common tokens comes first. So the gold spans are all kinds but
    `spurious`, and the predicted ones are all kinds but `missed`. The kinds are those of the MUC-5 scorer (Chinchor
    and Sundheim 1993), with its incorrect and partial matches told apart.

    Yields:
        the kind, the predicted and the gold span; None for a span that is missed or spurious.
    """
    pairs = []
    for one in found:
        for other in gold:
            if one == other:
                pairs.append((0, 0, other, one))
            elif common := len({*one.tokens()} & {*other.tokens()}):
                kind = 1 if one.pieces == other.pieces else 2 if one.label == other.label else 3
                pairs.append((kind, -common, other, one))
    left_found, left_gold = set(found), set(gold)
    for kind, _, other, one in sorted(pairs, key=lambda pair: (pair[0], pair[1], pair[2].pieces, pair[3])):
        if one in left_found and other in left_gold:
            left_found.remove(one)
            left_gold.remove(other)
            yield SPAN_KINDS[kind], one, other
    yield from (("missed", None, other) for other in sorted(left_gold))
    yield from (("spurious", one, None) for one in sorted(left_found))


def _spans(found: Predictions, metric: Metric) -> _Details:
    kinds = Counter[str]()
    for example, prediction in zip(found.examples, found.predictions, strict=True):
        predicted, gold = (spans_of(metric, each[metric.field]) for each in (prediction, example))
        kinds.update(kind for kind, _, _ in align(predicted, gold))
    return "spans", {kind: kinds[kind] for kind in SPAN_KINDS}


def answer_kind(answer: str | None, gold: Sequence[str]) -> str:
    """How an answer differs from the gold ones, by the words that the scorer compares.

    `right`: an exact match of the scorer; `too long`: it contains a gold answer; `too short`: a gold answer contains
    it; `overlapping`: it has a word of a gold answer; `elsewhere`: it has none; `not answerable`: there is none.
    """
    if not gold:
        return UNANSWERABLE if answer else "right"
    if not answer:
        return "no answer"
    words, golds = normalize_answer(answer).split(), [normalize_answer(each).split() for each in gold]
    if words in golds:
        return "right"
    if any(_contains(words, each) for each in golds if each):
        return "too long"
    if any(_contains(each, words) for each in golds if words):
        return "too short"
    return "overlapping" if any({*words} & {*each} for each in golds) else "elsewhere"


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    return any(words[start : start + len(part)] == part for start in range(len(words) - len(part) + 1))


def _answers(found: Predictions, metric: Metric) -> _Details:
    kinds = Counter(
        answer_kind(prediction[metric.field], example["answers"])
        for example, prediction in zip(found.examples, found.predictions, strict=True)
    )
    names = (*ANSWER_KINDS, UNANSWERABLE) if isinstance(metric, Squad2Scores) else ANSWER_KINDS
    return "answers", {kind: kinds[kind] for kind in names}


def mention_kinds(
    gold: Sequence[Sequence[Sequence[int]]], predicted: Sequence[Sequence[Sequence[int]]]
) -> Counter[str]:
    """How many mentions of a document are right, missed and spurious: the gold ones are the first two, the predicted
    ones the first and the last. Of gold clusters, how many are split, and of predicted ones, how many are merged.
    """
    document = ScoredDocument(gold, predicted)
    right = document.key_of.keys() & document.response_of.keys()
    counts = Counter(right=len(right))
    counts["missed"] = len(document.key_of) - len(right)
    counts["missed singletons"] = sum(
        document.sizes[0][number] == 1 for mention, number in document.key_of.items() if mention not in right
    )
    counts["spurious"] = len(document.response_of) - len(right)
    parts = Counter(one for one, _ in document.common), Counter(other for _, other in document.common)
    counts["split clusters"], counts["merged clusters"] = (sum(n > 1 for n in each.values()) for each in parts)
    return counts


def _mentions(found: Predictions, metric: Metric) -> _Details:
    kinds = Counter[str]()
    for example, prediction in zip(found.examples, found.predictions, strict=True):
        kinds.update(mention_kinds(example["clusters"], prediction[metric.field]))
    return "mentions", dict(kinds)


def _labels(found: Predictions, metric: Metric) -> _Details:
    right, every = metric.sums()
    return "labels", {"right": int(right), "wrong": int(every - right)}


def _label_sets(found: Predictions, metric: Metric) -> _Details:
    right, predicted, gold, *_ = map(int, metric.sums())
    return "labels", {"right": right, "missing": gold - right, "extra": predicted - right}


_DETAILS: dict[type[Metric], Callable[[Predictions, Metric], _Details]] = {
    Accuracy: _labels,
    CoreferenceScores: _mentions,
    LabelSetF1: _label_sets,
    SpanF1: _spans,
    SquadScores: _answers,
    Squad2Scores: _answers,
    SrlF1: _spans,
}
