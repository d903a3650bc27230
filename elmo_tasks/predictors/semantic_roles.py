"""Predicates and their semantic roles in raw or tokenized text."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from elmo_tasks.errors import ElmoTasksError, some_of
from elmo_tasks.files.limits import ADVICE, limit
from elmo_tasks.metrics.srl import VERB
from elmo_tasks.models.model import TaskModel
from elmo_tasks.predictors.fields import labelled_spans, one_of, sentence_examples, tokens_field
from elmo_tasks.predictors.predictor import ExampleError, Fields, Predictor, rounded
from elmo_tasks.tasks.tagging import TAGS, Tagging
from elmo_tasks.text.tag_schemes import spans_of_tags
from elmo_tasks.text.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

_ENOUGH_ROWS = 32  # a step of the encoder takes hardly longer for this many predicates than for a few
_MOST_TIMES = 8  # a batch may have this many times `batch_tokens`, so that long sentences have enough rows
# What taggers mark predicates with: the reader `predicates`, and the Penn Treebank and Universal Dependencies verbs.
_PREDICATES = {*(f"{letter}-{VERB}" for letter in "BUS"), "MD", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "AUX", "VERB"}
_MANY_PREDICATES = 100  # of a sentence: reported, since the sentence is read once for each


class SemanticRolesPredictor(Predictor):
    """Finds predicates, and who did what to whom.

    An input is `{"text": "..."}`, raw text that is split into sentences and tokens, or `{"tokens": ["...", ...]}`, one
    tokenized sentence. Tokens may come with `"predicates": [index, ...]`; otherwise a tagger finds the predicates.
    There is one result for each sentence:

    - `tokens`;
    - `frames`, one for each predicate, with `predicate`, the index of its token, `predicate_text`, `probability`, the
      product of those of its roles, the `tags` of all tokens in IOB2, `roles` and `description`, the sentence with its
      roles in brackets: `[ARG0 Orla] [V gave] [ARG2 Tavo] [ARG1 the key]`;
    - `roles` of a frame, each with `role`, `start` and `end` (tokens, the end inclusive), `text` and `probability`,
      that of its least certain tag. The span `V` of the predicate is not a role. `C-ARG1` continues an `ARG1`;
    - for raw text also `text`, the sentence as written, and positions in the input (characters, ends exclusive):
      `start_char` and `end_char` of the sentence and of each role, `offsets` of the tokens.

    Arguments:
        predicates: the predictor of a tagger that finds predicates: one that was trained with the reader `predicates`.
            Or one of parts of speech, all of whose verbs are predicates then, as for AllenNLP's predictor.
        settings: those of `Predictor`.

    Raises:
        ElmoTasksError: `predicates` is not the predictor of such a tagger.

    Raises (from `predict`):
        DataError: an input has neither text nor tokens, or both, or no tokens; its predicates are not indices of its
            tokens, or too many; or it has none and there is no tagger.

    Class attributes:
        most_tags: bound of a sentence's tokens times its predicates, times `limits`' factor: there is a tag for each.
    """

    read_keys = frozenset({"text", "tokens", "predicates"})
    most_tags = 200_000  # half a minute to a minute with a small model; 250 tokens x 40 predicates are 10,000
    sample = {"tokens": ["Orla", "sold", "the", "mill", "."], "predicates": [1]}  # noqa: RUF012

    def __init__(
        self,
        model: TaskModel[Any, Any],
        vocabulary: Vocabulary,
        *,
        predicates: Predictor | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(model, vocabulary, **settings)
        if predicates is not None:
            check_tagger(predicates)
        self.predicates = predicates

    def warm_up(self) -> None:
        super().warm_up()
        if self.predicates is not None:
            self(Predictor.sample)

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        kind = one_of(fields, "text", "tokens")
        if "predicates" in fields:
            if kind == "text":
                raise ElmoTasksError("'predicates' are indices of tokens; expected 'tokens' with them, not 'text'")
            tokens = tokens_field(fields, "tokens")
            indices = fields["predicates"]
            if not isinstance(indices, list):
                raise ElmoTasksError(f"'predicates' is {indices!r}; expected a list of indices of tokens, from 0")
            for index in indices:
                if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(tokens):
                    expected = f"indices of tokens, from 0 to {len(tokens) - 1}"
                    raise ElmoTasksError(f"'predicates' has {index!r}; expected {expected}")
            if len(set(indices)) < len(indices):
                raise ElmoTasksError(f"'predicates' is {indices!r}; expected each index once")
            yield {"tokens": tokens, "predicates": indices}
            return
        if self.predicates is None:
            raise ElmoTasksError(
                "no 'predicates', and no tagger that finds them; name the run of one (predicates=RUN in Python, "
                "--predicates RUN on the command line; the installed model 'predicates' is one), or give 'tokens' with "
                "'predicates', the indices of the predicates among the tokens, from 0"
            )
        yield from sentence_examples(fields, self.tokenizer)

    def inputs_of(self, examples: Iterable[Fields]) -> Iterator[dict[str, Any]]:
        """The sentences, each with all of its predicates; those without a predicate are not in a data set."""
        for _, group in itertools.groupby(examples, key=lambda example: self.task.unit(0, example)):
            first, *others = group
            predicates = [example["predicate"] for example in (first, *others)]
            yield {"line": first.get("line"), "tokens": first["tokens"], "predicates": predicates}

    def cost(self, example: Fields) -> int:
        return super().cost(example) * max(1, len(example.get("predicates", ())))

    def with_known_costs(self, examples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The examples with `predicates`: the tagger finds those that are not given."""
        completed = list(examples)
        unknown = [row for row, example in enumerate(examples) if "predicates" not in example]
        if unknown and self.predicates is not None:
            tagged = self.predicates.predictions([examples[row] for row in unknown])
            for row, prediction in zip(unknown, tagged, strict=True):
                found = [token for token, tag in enumerate(prediction["tags"]) if tag in _PREDICATES]
                completed[row] = {**examples[row], "predicates": found}
        return completed

    def predictions(self, examples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """`{"frames": [...]}` for each sentence, with `predicate`, `tags` and `probabilities`.

        The model reads a sentence once for each of its predicates, with up to 32 of them in a batch. The log names
        sentences with more than 100 predicates.

        Raises:
            ExampleError: a sentence has too many predicates.
        """
        predicates: list[list[int]] = [example.get("predicates", []) for example in self.with_known_costs(examples)]
        most = limit(self.most_tags)
        for row, (example, found) in enumerate(zip(examples, predicates, strict=True)):
            sizes = len(example["tokens"]), len(found)
            if (tags := math.prod(sizes)) > most:
                problem = f"{sizes[0]:,} tokens x {sizes[1]:,} predicates are {tags:,} tags; expected at most {most:,}"
                raise ExampleError(row, f"{problem}; {ADVICE}")
            if len(found) > _MANY_PREDICATES:
                logger.info("a sentence of %d tokens has %d predicates, and is read once for each of them", *sizes)
        rows = [
            {"tokens": example["tokens"], "predicate": index}
            for example, found in zip(examples, predicates, strict=True)
            for index in found
        ]
        frames = iter(super().predictions(rows))
        return [{"frames": [{"predicate": index, **next(frames)} for index in found]} for found in predicates]

    def _most_padded(self, lengths: Sequence[int]) -> int:
        enough = _ENOUGH_ROWS * max(lengths, default=0)
        return max(self.batch_tokens, min(enough, _MOST_TIMES * self.batch_tokens))

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        sentence = {key: value for key, value in example.items() if key != "predicates"}
        return {**sentence, "frames": [_frame(example, **frame) for frame in prediction["frames"]]}


def check_tagger(tagger: Predictor) -> None:
    """Raises an `ElmoTasksError` if a predictor is not that of a tagger that finds predicates."""
    if tagger.task.mismatch(Tagging()):
        model = type(tagger.model).__name__
        raise ElmoTasksError(f"predicates are found by a tagger; the model of their run is a {model}")
    labels = tagger.vocabulary.labels[TAGS]
    if not any(tag in _PREDICATES for tag in labels):
        raise ElmoTasksError(
            f"the tagger for predicates has no tag B-{VERB}, only {some_of(labels)}; "
            "expected one that was trained with the reader 'predicates', or of parts of speech"
        )


def _frame(example: Fields, predicate: int, tags: list[str], probabilities: list[float]) -> dict[str, Any]:
    tokens = example["tokens"]
    roles = [span for span in labelled_spans(example, tags, probabilities, "role") if span["role"] != VERB]
    pieces, end_before = [], 0
    for label, start, end in spans_of_tags(tags):
        pieces += [*tokens[end_before:start], f"[{label} {' '.join(tokens[start : end + 1])}]"]
        end_before = end + 1
    return {
        "predicate": predicate,
        "predicate_text": tokens[predicate],
        "probability": rounded(math.prod(role["probability"] for role in roles)),
        "tags": tags,
        "roles": roles,
        "description": " ".join([*pieces, *tokens[end_before:]]),
    }
