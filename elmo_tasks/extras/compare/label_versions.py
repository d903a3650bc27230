"""What is drawn for an example with several versions of its labels, such as gold and predicted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from elmo_tasks import tasks
from elmo_tasks.rendering.drawing import Drawing, Mark, MarkedText, Rows
from elmo_tasks.rendering.tasks import NO_ANSWER, located
from elmo_tasks.tasks.reading import character_span
from elmo_tasks.text.tag_schemes import spans_of_tags

Example = Mapping[str, Any]
Versions = Mapping[str, Any]  # by their names, what the task's metric compares: tags, a label, an answer, clusters


def describe_versions(task: tasks.Task, example: Example, predictions: Mapping[str, Mapping[str, Any]]) -> Drawing:
    """What to draw for an example with its gold labels and the predictions of systems, by their names.

    A task without a description, its own or that of a base class, gets its texts and its labels.
    """
    metric = task.build_metric()
    named = {"gold": metric.right(example), **predictions}
    versions = {name: each[metric.field] for name, each in named.items()}
    description = DESCRIPTIONS_OF_VERSIONS.find(task)
    if description is None:
        texts = [("", " ".join(tokens)) for tokens in task.texts(example)]
        return [Rows([*texts, *((name, json.dumps(each, ensure_ascii=False)) for name, each in versions.items())])]
    if isinstance(task, tasks.Tagging) and not task.tag_scheme:
        return _tags(example, versions)
    return description(example, versions)


def _tags(example: Example, versions: Versions) -> Drawing:
    """Only the tags that differ are marked."""
    text, offsets = located(example)
    differing = [index for index, tags in enumerate(zip(*versions.values(), strict=True)) if len(set(tags)) > 1]
    return [
        MarkedText(text, [Mark(*offsets[index], tags[index]) for index in differing], title=name)
        for name, tags in versions.items()
    ]


def _spans(example: Example, versions: Versions) -> Drawing:
    text, offsets = located(example)
    return [
        MarkedText(
            text,
            [Mark(offsets[start][0], offsets[end][1], label) for label, start, end in spans_of_tags(tags)],
            name,
        )
        for name, tags in versions.items()
    ]


def _classification(example: Example, versions: Versions) -> Drawing:
    return [MarkedText(located(example)[0], title="text"), _rows(versions)]


def _rows(versions: Versions) -> Rows:
    """Labels, sets of labels and numbers by the names of their versions."""
    shown = {name: ", ".join(each) or "none" if isinstance(each, list) else each for name, each in versions.items()}
    return Rows([(name, each if isinstance(each, str) else f"{each:.6g}") for name, each in shown.items()])


def _text_pairs(example: Example, versions: Versions) -> Drawing:
    texts = [MarkedText(" ".join(example[name]), title=name) for name in ("premise", "hypothesis")]
    return [*texts, _rows(versions)]


def _reading(example: Example, versions: Versions) -> Drawing:
    spans = [character_span(example, first, last) for first, last in example["answer_spans"][:1]]
    answers = [("gold", " | ".join(dict.fromkeys(example["answers"]))), *list(versions.items())[1:]]
    return [
        MarkedText(example["question"], title="question"),
        MarkedText(example["passage"], [Mark(*span, "gold") for span in spans], title="passage"),
        Rows([(name, answer or NO_ANSWER) for name, answer in answers]),
    ]


def _coreference(example: Example, versions: Versions) -> Drawing:
    """Only the clusters that not all versions have, as chains of mentions with the numbers of their first tokens."""
    tokens = [token for sentence in example["sentences"] for token in sentence]
    clusters = {name: {frozenset(map(tuple, each)) for each in found} for name, found in versions.items()}
    shared = frozenset.intersection(*map(frozenset, clusters.values()))
    rows = []
    for name, found in clusters.items():
        for cluster in sorted(map(sorted, found - shared)):
            chain = " → ".join(f"{' '.join(tokens[start : end + 1])} [{start}]" for start, end in cluster)
            rows.append((name, chain))
    return [Rows(rows)]


DESCRIPTIONS_OF_VERSIONS = tasks.TaskRegistry[Callable[[Example, Versions], Drawing]](
    {
        tasks.Classification.name: _classification,
        tasks.Coreference.name: _coreference,
        tasks.MultiLabel.name: _classification,
        tasks.PairRegression.name: _text_pairs,
        tasks.Reading.name: _reading,
        tasks.Regression.name: _classification,
        tasks.SemanticRoles.name: _spans,
        tasks.Tagging.name: _spans,
        tasks.TextPairs.name: _text_pairs,
    }
)
