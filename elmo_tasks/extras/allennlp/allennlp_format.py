"""Inputs and results in the keys of AllenNLP's predictors, for programs that were written for them."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.other_tasks.text_classifier import TextClassifier, piece_layers
from elmo_tasks.models.model import TaskModel
from elmo_tasks.predictors.fields import one_of, text_field, words_field
from elmo_tasks.predictors.predictor import Fields, Origin, Predictor
from elmo_tasks.tasks import Classification, Coreference, Reading, SemanticRoles, Tagging, TaskRegistry, TextPairs
from elmo_tasks.tasks.classification import LABELS
from elmo_tasks.tasks.reading import passage_tokens
from elmo_tasks.text.tag_schemes import OUTSIDE, label_of_tag

InnerValues = Callable[[Any, Any, Any], list[dict[str, Any]]]
"""What a model's output has for each example, from the model, its output and the batch, as values for JSON."""

FindPredicates = Callable[[list[str]], Iterable[int]]
"""Finds the predicates of a tokenized sentence: the indices of their tokens, from 0."""


class AllenNlpPredictor(Predictor):
    """Predicts as the predictor of a task does, from inputs and with results in the keys of AllenNLP's predictors.

    Source: AllenNLP 0.9 and 2.10, their predictors and the `forward` of their models. There is one result for each
    input, with the keys in the table of docs/reference/predictions.md. A `sentence` is one sequence of tokens, as in
    AllenNLP: it is not split into sentences.

    Lists of scores are in the order of the run's labels, which are in `labels`; AllenNLP's results do not have them.
    Those of an imported model are as its archive has them. Probabilities are not calibrated, and numbers not rounded.
    Places of `antecedent_indices` that stand for no antecedent may hold other numbers than AllenNLP's. Inputs may have
    the keys of the task's own predictor instead; the `tokens` of semantic roles may come with `predicates`.

    Arguments:
        predictor: that of the task.
        find_predicates: for semantic roles, finds the predicates of inputs that do not have them, instead of a tagger.
            AllenNLP takes all verbs, by spaCy's parts of speech.

    Attributes:
        inner: that predictor.

    Raises:
        TypeError: no such format is known for the task.
        ElmoTasksError: `find_predicates` is given for another task.
    """

    keys = "AllenNLP's"

    def __init__(self, predictor: Predictor, find_predicates: FindPredicates | None = None) -> None:
        super().__init__(
            predictor.model,
            predictor.vocabulary,
            batch_tokens=predictor.batch_tokens,
            tokenizer=predictor.tokenizer,
            origin=Origin(predictor.origin.about, label_names=predictor.origin.label_names),
        )
        kind = FORMATS.find(self.task)
        if kind is None:
            raise TypeError(f"AllenNLP has no predictor for the task {type(self.task).__name__}")
        if find_predicates is not None and not isinstance(self.task, SemanticRoles):
            raise ElmoTasksError(f"predicates are for semantic roles; the model is a {type(self.model).__name__}")
        self.arguments = kind.arguments
        self.names = kind.names
        self._format = kind
        self.inner = predictor.with_model(_uncalibrated(predictor.model, kind))
        self.inner.digits = None
        self._find_predicates = find_predicates
        self.most_tokens = predictor.most_tokens
        self.sample = predictor.sample
        self.read_keys = predictor.read_keys | set(kind.arguments) | {"text"}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.inner, self._find_predicates)

    def examples(self, fields: Fields) -> Iterable[dict[str, Any]]:
        fields = self._own_fields(fields)
        if self._find_predicates and "predicates" not in fields:
            fields = {**fields, "predicates": list(self._find_predicates(fields["tokens"]))}
        return self.inner.examples(fields)

    def _own_fields(self, fields: Fields) -> Fields:
        """The input in the keys of the task's own predictor."""
        if len(self.arguments) > 1:
            return fields
        (argument,) = self.arguments
        key = one_of(fields, argument, *sorted(self.inner.read_keys & {"text", "tokens", "sentences"}))
        if key not in {argument, "text"}:
            return fields
        others = {name: value for name, value in fields.items() if name != key}
        if not self._format.one_sentence:
            return {**others, "text": text_field(fields, key)}
        if "predicates" in fields:
            raise ElmoTasksError(f"'predicates' are indices of tokens; expected 'tokens' with them, not {key!r}")
        return {**others, "tokens": words_field(fields, key, self.tokenizer)}

    def predictions(self, examples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return self.inner.predictions(examples)

    def explain(self, examples: Sequence[dict[str, Any]], predictions: Sequence[Fields]) -> list[dict[str, Any]]:
        return self.inner.explain(examples, predictions)

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        if isinstance(shares := prediction.get("probabilities"), Mapping):  # AllenNLP has them by the labels' ids
            names = {label: self.origin.label_names.get(label, label) for label in self.vocabulary.labels[LABELS]}
            ordered = {name: shares[label] for label, name in names.items()}
            prediction = {**prediction, "label": names[prediction["label"]], "probabilities": ordered}
        return self._format.result(example, prediction)


def _uncalibrated(model: TaskModel[Any, Any], kind: _Format) -> TaskModel[Any, Any]:
    """The same model without its calibration, whose predictions have inner values in addition."""
    twin = copy.copy(model)
    twin.temperature = 1.0
    decode = twin.decode

    def decode_all(output: Any, batch: Any, **settings: Any) -> list[dict[str, Any]]:
        found = decode(output, batch, **settings)
        if kind.inner_values is None or not hasattr(output, kind.needed):
            return found
        return [each | more for each, more in zip(found, kind.inner_values(twin, output, batch), strict=True)]

    twin.decode = decode_all  # type: ignore[method-assign]
    return twin


def _tags(example: Fields, prediction: Fields) -> dict[str, Any]:
    words = example["tokens"]
    values = _among(prediction, "logits", "class_probabilities")
    return {"words": words, "tags": prediction["tags"], "mask": [True] * len(words), **values}


def _among(prediction: Fields, *keys: str) -> dict[str, Any]:
    """Those of the keys that a prediction has."""
    return {key: prediction[key] for key in keys if key in prediction}


def _tag_values(model: Any, output: Any, batch: Any) -> list[dict[str, Any]]:
    """The scores and probabilities of the tags of each token."""
    logits, lengths = output.logits.float(), output.mask.sum(dim=1).tolist()
    values = {"logits": logits, "class_probabilities": logits.softmax(dim=2)}
    return [{name: each[row, :length].tolist() for name, each in values.items()} for row, length in enumerate(lengths)]


def _label_values(model: Any, output: Any, batch: Any) -> list[dict[str, Any]]:
    """The scores of the labels, and the ids of the words or word pieces of a text or a pair that is read as one."""
    ids: list[dict[str, Any]] = [{} for _ in batch.examples]
    if isinstance(model, TextClassifier) and model.pooling is None:
        layers = piece_layers(model.embedder)
        ids = [{"token_ids": layers.piece_ids(texts)} for texts in model.texts(batch)]
    elif hasattr(batch, "tokens"):
        rows = zip(batch.tokens.words.tolist(), batch.tokens.mask.sum(dim=1).tolist(), strict=True)
        ids = [{"token_ids": row[:length]} for row, length in rows]
    return [{"logits": row, **each} for row, each in zip(output.logits.float().tolist(), ids, strict=True)]


def _span_values(model: Any, output: Any, batch: Any) -> list[dict[str, Any]]:
    """The scores and probabilities of each token as the first and as the last of the answer."""
    lengths = output.mask.sum(dim=1).tolist()
    logits = {"span_start": output.start_logits.float(), "span_end": output.end_logits.float()}
    return [
        {f"{name}_logits": values[row, :length].tolist() for name, values in logits.items()}
        | {f"{name}_probs": values[row, :length].softmax(0).tolist() for name, values in logits.items()}
        for row, length in enumerate(lengths)
    ]


def _link_values(model: Any, output: Any, batch: Any) -> list[dict[str, Any]]:
    """The kept spans of each document, their candidates, the nearest first unless they are chosen, and the choices."""
    found: list[dict[str, Any]] = []
    choices = output.antecedent_scores.argmax(dim=1)
    is_chosen = model.antecedents.coarse is not None
    first_token = 0
    for document, lengths in enumerate(batch.sentence_lengths()):
        rows = (output.documents == document).nonzero().squeeze(1)
        spans = torch.stack([output.starts[rows], output.ends[rows]], dim=1) - first_token
        first_token += sum(lengths)
        count, first = min(model.antecedents.max_antecedents, len(rows)), int(rows[0])
        columns, predicted = [], []
        for row, numbers in zip(rows.tolist(), output.antecedents[rows].tolist(), strict=True):
            candidates = [number - first for number in numbers if number >= 0]
            fill = sorted(-1 - number - first for number in numbers if number < 0) if is_chosen else [0] * count
            chosen = int(choices[row]) - (len(numbers) - len(candidates))
            if not is_chosen:
                candidates, chosen = candidates[::-1], len(candidates) - 1 - chosen
            predicted.append(-1 if choices[row] == len(numbers) else chosen)
            columns.append((candidates + fill)[:count])
        found.append({"top_spans": spans.tolist(), "antecedent_indices": columns, "predicted_antecedents": predicted})
    return found


def _verbs(example: Fields, prediction: Fields) -> dict[str, Any]:
    words = example["tokens"]
    found = [(words[frame["predicate"]], frame["tags"]) for frame in prediction["frames"]]
    verbs = [{"verb": verb, "description": _description(words, tags), "tags": tags} for verb, tags in found]
    return {"verbs": verbs, "words": words}


def _description(words: Sequence[str], tags: Sequence[str]) -> str:
    """The words with their roles in brackets, also where an I- has no B- before it, as first word pieces may have."""
    parts: list[list[str]] = []
    for word, tag in zip(words, tags, strict=True):
        if tag.startswith("I-") and parts and parts[-1][0] == "[":
            parts[-1].append(word)
        elif tag == OUTSIDE:
            parts.append(["", word])
        else:
            parts.append(["[", f"{label_of_tag(tag)}: {word}" if tag.startswith("B-") else word])
    return " ".join(f"[{' '.join(inner)}]" if kind else inner[0] for kind, *inner in parts)


def _label(prediction: Fields, *keys: str) -> dict[str, Any]:
    """The label, and the probabilities of all labels under each of the keys."""
    probabilities: Mapping[str, float] = prediction["probabilities"]
    lists = {key: list(probabilities.values()) for key in keys}
    more = _among(prediction, "logits", "token_ids")
    return {"label": prediction["label"], **lists, "labels": list(probabilities), **more}


def _class(example: Fields, prediction: Fields) -> dict[str, Any]:
    return {**_label(prediction, "probs", "class_probabilities"), "tokens": example["tokens"]}


def _entailment(example: Fields, prediction: Fields) -> dict[str, Any]:
    others = {"p2h_attention": "premise_attention", "h2p_attention": "hypothesis_attention", "label_logits": "logits"}
    return {
        **_label(prediction, "label_probs"),
        "premise_tokens": example["premise"],
        "hypothesis_tokens": example["hypothesis"],
        **{theirs: prediction[ours] for theirs, ours in others.items() if ours in prediction},
    }


def _answer(example: Fields, prediction: Fields) -> dict[str, Any]:
    return {
        "best_span": [prediction["start"], prediction["end"]],
        "best_span_str": prediction["answer"],
        "question_tokens": example["question_tokens"],
        "passage_tokens": passage_tokens(dict(example)),
        "token_offsets": [list(span) for span in zip(example["token_starts"], example["token_ends"], strict=True)],
        **_among(prediction, *(f"span_{end}_{kind}" for end in ("start", "end") for kind in ("logits", "probs"))),
    }


def _clusters(example: Fields, prediction: Fields) -> dict[str, Any]:
    values = _among(prediction, "top_spans", "antecedent_indices", "predicted_antecedents")
    clusters = sorted(prediction["clusters"], key=lambda cluster: cluster[1])  # a cluster begins with its first link
    return {"document": list(itertools.chain(*example["sentences"])), "clusters": clusters, **values}


class _Format(NamedTuple):
    """How AllenNLP's predictor of a task reads and writes."""

    names: tuple[str, ...]  # that it is registered under
    arguments: tuple[str, ...]  # of its `predict`, in their order
    result: Callable[[Fields, Fields], dict[str, Any]]  # from an example and its prediction
    inner_values: InnerValues | None = None  # of AllenNLP's model, which are in the prediction
    needed: str = "logits"  # of a model's output for them, which a head of users may lack
    one_sentence: bool = False  # whether its text is one sequence of tokens for our predictor too


FORMATS = TaskRegistry[_Format](
    {
        Tagging.name: _Format(("sentence_tagger",), ("sentence",), _tags, _tag_values, one_sentence=True),
        SemanticRoles.name: _Format(("semantic_role_labeling",), ("sentence",), _verbs, one_sentence=True),
        Classification.name: _Format(("text_classifier",), ("sentence",), _class, _label_values),
        TextPairs.name: _Format(("textual_entailment",), ("premise", "hypothesis"), _entailment, _label_values),
        Reading.name: _Format(
            ("reading_comprehension", "machine_comprehension"),
            ("question", "passage"),
            _answer,
            _span_values,
            needed="start_logits",
        ),
        Coreference.name: _Format(
            ("coreference_resolution",), ("document",), _clusters, _link_values, needed="antecedents"
        ),
    }
)
