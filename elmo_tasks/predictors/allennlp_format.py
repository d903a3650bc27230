"""Inputs and results in the keys of AllenNLP's predictors, for programs that were written for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.saliency import Method
from elmo_tasks.predictors.fields import one_of, text_field, words_field
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.tasks import Classification, Coreference, Reading, SemanticRoles, Tagging, TaskRegistry, TextPairs
from elmo_tasks.tasks.classification import LABELS
from elmo_tasks.tasks.reading import passage_tokens
from elmo_tasks.text.tag_schemes import OUTSIDE, label_of_tag

FindPredicates = Callable[[list[str]], Iterable[int]]
"""Finds the predicates of a tokenized sentence: the indices of their tokens, from 0."""


class AllenNlpPredictor(Predictor):
    """Predicts as the predictor of a task does, from inputs and with results in the keys of AllenNLP's predictors.

    Source: AllenNLP 0.9 and 2.10, their predictors and the `forward` of their models. There is one result for each
    input. A `sentence` is one sequence of tokens, as in AllenNLP: it is not split into sentences.

    | task | input | result |
    |---|---|---|
    | tagging | `sentence` | `words`, `tags`, `mask` |
    | semantic roles | `sentence` | `words`; `verbs`, each with `verb`, `description`, `tags` |
    | classification | `sentence` | `tokens`, `label`; `probs` and the same as `class_probabilities` |
    | inference | `premise`, `hypothesis` | `label`, `label_probs`, the tokens, `p2h_attention`, `h2p_attention` |
    | reading | `passage`, `question` | `best_span`, `best_span_str`, the tokens, `token_offsets` of the passage |
    | coreference | `document` | `document`, the tokens; `clusters` |

    Lists of probabilities are in the order of the run's labels, which are in `labels`; AllenNLP's results do not have
    them. `logits` and other inner values of AllenNLP's models are not there. Inputs may have the keys of the task's own
    predictor instead; the `tokens` of semantic roles may come with `predicates`.

    Arguments:
        predictor: that of the task.
        find_predicates: for semantic roles, finds the predicates of inputs that do not have them, instead of a tagger.
            AllenNLP takes all verbs, by spaCy's parts of speech.

    Raises:
        TypeError: no such format is known for the task.
        ElmoTasksError: `find_predicates` is given for another task.
    """

    def __init__(self, predictor: Predictor, find_predicates: FindPredicates | None = None) -> None:
        tokenizer = predictor.tokenizer
        super().__init__(
            predictor.model, predictor.vocabulary, batch_tokens=predictor.batch_tokens, tokenizer=tokenizer
        )
        kind = FORMATS.find(self.task)
        if kind is None:
            raise TypeError(f"AllenNLP has no predictor for the task {type(self.task).__name__}")
        if find_predicates is not None and not isinstance(self.task, SemanticRoles):
            raise ElmoTasksError(f"predicates are for semantic roles; the model is a {type(self.model).__name__}")
        self.arguments = kind.arguments
        self.names = kind.names
        self._format = kind
        self._inner = predictor
        self._find_predicates = find_predicates
        self.origin = predictor.origin
        self.most_tokens = predictor.most_tokens
        self.sample = predictor.sample
        self.read_keys = predictor.read_keys | set(kind.arguments) | {"text"}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._inner, self._find_predicates)

    def examples(self, fields: Fields) -> Iterable[dict[str, Any]]:
        fields = self._own_fields(fields)
        if self._find_predicates and "predicates" not in fields:
            fields = {**fields, "predicates": list(self._find_predicates(fields["tokens"]))}
        return self._inner.examples(fields)

    def _own_fields(self, fields: Fields) -> Fields:
        """The input in the keys of the task's own predictor."""
        if len(self.arguments) > 1:
            return fields
        (argument,) = self.arguments
        key = one_of(fields, argument, *sorted(self._inner.read_keys & {"text", "tokens", "sentences"}))
        if key not in {argument, "text"}:
            return fields
        others = {name: value for name, value in fields.items() if name != key}
        if not self._format.one_sentence:
            return {**others, "text": text_field(fields, key)}
        if "predicates" in fields:
            raise ElmoTasksError(f"'predicates' are indices of tokens; expected 'tokens' with them, not {key!r}")
        return {**others, "tokens": words_field(fields, key, self.tokenizer)}

    def predictions(self, examples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return self._inner.predictions(examples)

    def explain(
        self, examples: Sequence[dict[str, Any]], predictions: Sequence[Fields], method: Method
    ) -> list[dict[str, Any]]:
        return self._inner.explain(examples, predictions, method)

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        if isinstance(shares := prediction.get("probabilities"), Mapping):  # AllenNLP has them by the labels' ids
            ordered = {label: shares[label] for label in self.vocabulary.labels[LABELS]}
            prediction = {**prediction, "probabilities": ordered}
        return self._format.result(example, prediction)


def _tags(example: Fields, prediction: Fields) -> dict[str, Any]:
    words = example["tokens"]
    return {"words": words, "tags": prediction["tags"], "mask": [True] * len(words)}


def _verbs(example: Fields, prediction: Fields) -> dict[str, Any]:
    words = example["tokens"]
    verbs = [
        {
            "verb": words[frame["predicate"]],
            "description": _description(words, frame["tags"]),
            "tags": frame["tags"],
        }
        for frame in prediction["frames"]
    ]
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
    return {"label": prediction["label"], **lists, "labels": list(probabilities)}


def _class(example: Fields, prediction: Fields) -> dict[str, Any]:
    return {**_label(prediction, "probs", "class_probabilities"), "tokens": example["tokens"]}


def _entailment(example: Fields, prediction: Fields) -> dict[str, Any]:
    attention = {"p2h_attention": "premise_attention", "h2p_attention": "hypothesis_attention"}
    return {
        **_label(prediction, "label_probs"),
        "premise_tokens": example["premise"],
        "hypothesis_tokens": example["hypothesis"],
        **{theirs: prediction[ours] for theirs, ours in attention.items() if ours in prediction},
    }


def _answer(example: Fields, prediction: Fields) -> dict[str, Any]:
    return {
        "best_span": [prediction["start"], prediction["end"]],
        "best_span_str": prediction["answer"],
        "question_tokens": example["question_tokens"],
        "passage_tokens": passage_tokens(dict(example)),
        "token_offsets": [list(span) for span in zip(example["token_starts"], example["token_ends"], strict=True)],
    }


def _clusters(example: Fields, prediction: Fields) -> dict[str, Any]:
    return {"document": list(itertools.chain(*example["sentences"])), "clusters": prediction["clusters"]}


class _Format(NamedTuple):
    """How AllenNLP's predictor of a task reads and writes."""

    names: tuple[str, ...]  # that it is registered under
    arguments: tuple[str, ...]  # of its `predict`, in their order
    result: Callable[[Fields, Fields], dict[str, Any]]  # from an example and its prediction
    one_sentence: bool = False  # whether its text is one sequence of tokens for our predictor too


FORMATS = TaskRegistry[_Format](
    {
        Tagging.name: _Format(("sentence_tagger",), ("sentence",), _tags, one_sentence=True),
        SemanticRoles.name: _Format(("semantic_role_labeling",), ("sentence",), _verbs, one_sentence=True),
        Classification.name: _Format(("text_classifier",), ("sentence",), _class),
        TextPairs.name: _Format(("textual_entailment",), ("premise", "hypothesis"), _entailment),
        Reading.name: _Format(("reading_comprehension", "machine_comprehension"), ("question", "passage"), _answer),
        Coreference.name: _Format(("coreference_resolution",), ("document",), _clusters),
    }
)
