"""What a prediction says, part by part: what there is to explain, for the predictor of each task."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from elmo_tasks.predictors.coreference import CoreferencePredictor
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.predictors.reading import ReadingPredictor
from elmo_tasks.predictors.semantic_roles import SemanticRolesPredictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.text.tag_schemes import spans_of_tags


class Finding(NamedTuple):
    """Something that a prediction says, whose score can be explained."""

    about: dict[str, Any]  # what the result says of it
    example: Fields  # what the model reads
    prediction: Fields  # what `TaskModel.prediction_scores` scores


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
