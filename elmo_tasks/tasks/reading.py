"""Reading: questions about a passage, each answered by a piece of it.

# B batch, Q tokens of the longest question, T tokens of the longest passage
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.metrics import Metric, Squad2Scores, SquadScores
from elmo_tasks.tasks.task import INTEGERS, STRING, STRINGS, Batch, Example, Task
from elmo_tasks.text.tokenization import Token
from elmo_tasks.text.tokenizers import TREEBANK, Tokenizer
from elmo_tasks.text.tokens import Tokens
from elmo_tasks.text.vocabulary import Vocabulary

NO_ANSWER = (
    "no answer; expected one, as in SQuAD v1.1. For questions without an answer, as in SQuAD 2.0, set "
    "dataset_reader.no_answer and model.no_answer to true"
)
NO_SPAN = (-1, -1)  # of a question without an answer, in a batch


@dataclasses.dataclass(frozen=True)
class ReadingBatch(Batch):
    """Questions, each with its passage and the position of its answer."""

    question: Tokens  # (B, Q)
    passage: Tokens  # (B, T)
    starts: Tensor | None  # (B,) int64, the answer's first token in the passage, -1 for no answer; None if not known
    ends: Tensor | None  # (B,) int64, its last token: ends are inclusive


@dataclasses.dataclass(frozen=True)
class Reading(Task):
    """The answer to a question, as a span of tokens of a passage. An example is

        {"id": str, "question": str, "question_tokens": [str],
         "passage": str, "token_starts": [int], "token_ends": [int],
         "answers": [str], "answer_spans": [[int, int]]}

    Token i of the passage is `passage[token_starts[i]:token_ends[i]]`, in characters: tokens as strings would make a
    data set half as large again. The passage is one sequence of tokens, so that a biLM reads the whole of it.

    `answers` are all gold answers as the source has them, for evaluation; `answer_spans` the first and last token
    (inclusive) of each. `unanswered` makes an example to predict, without `id` and answers.

    Arguments:
        no_answer: questions may have no answer in their passage, as in SQuAD 2.0: then both lists are empty.
    """

    name: ClassVar[str] = "reading"
    summary: ClassVar[str] = "questions, each with a passage and the position of its answer"
    features: ClassVar[Mapping[str, Any]] = {
        "id": STRING,
        "question": STRING,
        "question_tokens": STRINGS,
        "passage": STRING,
        "token_starts": INTEGERS,
        "token_ends": INTEGERS,
        "answers": STRINGS,
        "answer_spans": [INTEGERS],
    }
    optional: ClassVar[frozenset[str]] = frozenset({"id"})
    sentence_columns: ClassVar[tuple[str, ...]] = ("question_tokens",)  # a passage can be long

    no_answer: bool = False

    def texts(self, example: Example) -> Iterable[Sequence[str]]:
        return (example["question_tokens"], passage_tokens(example))

    def fault(self, example: Example) -> str | None:
        starts, ends, length = example["token_starts"], example["token_ends"], len(example["passage"])
        borders = [0, *itertools.chain.from_iterable(zip(starts, ends, strict=False)), length]
        is_token = [start < end for start, end in zip(starts, ends, strict=False)]
        if len(starts) != len(ends) or borders != sorted(borders) or not all(is_token):
            return f"expected a start and an end for each token, in order, in a passage of {length} characters"
        answers, spans = example["answers"], example["answer_spans"]
        if not (answers or spans or self.no_answer):
            return NO_ANSWER
        if len(answers) != len(spans):
            return f"{len(answers)} answers and {len(spans)} spans; expected a span for each answer"
        for span in spans:
            if len(span) != 2 or not 0 <= span[0] <= span[1] < len(starts):
                expected = f"[first, last token] in a passage of {len(starts)} tokens, the last inclusive"
                return f"the answer span {list(span)}; expected {expected}"
        return super().fault(example)

    def labels(self, example: Example) -> Mapping[str, Iterable[str]]:
        return {}

    def document(self, example: Example) -> str:
        """The passage, which several questions can share."""
        return example["passage"]

    def length(self, example: Example) -> int:
        """The length of the passage or of the question, whichever is longer."""
        return max(len(example["token_starts"]), len(example["question_tokens"]))

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> ReadingBatch:
        """As every task. Of several gold answers a batch has the most frequent one, the first of equally frequent."""
        starts = ends = None
        if all(example.get("answer_spans") is not None for example in examples):
            gold = (example["answer_spans"] or [NO_SPAN] for example in examples)
            spans = [Counter(map(tuple, each)).most_common(1)[0][0] for each in gold]
            starts, ends = torch.tensor(spans).unbind(dim=1)  # (B,) each
        return ReadingBatch(
            examples=examples,
            question=vocabulary.index_tokens([example["question_tokens"] for example in examples]),
            passage=vocabulary.index_tokens([passage_tokens(example) for example in examples]),
            starts=starts,
            ends=ends,
        )

    def build_metric(self) -> Metric:
        return Squad2Scores() if self.no_answer else SquadScores()

    def mismatch(self, expected: Task) -> str | None:
        problem = super().mismatch(expected)
        if problem is None and isinstance(expected, Reading) and expected.no_answer != self.no_answer:
            kinds = "questions that all have an answer", "questions that may have no answer"
            return f"{kinds[self.no_answer]}; expected {kinds[expected.no_answer]}"
        return problem


class Passage(NamedTuple):
    """A passage and the positions of its tokens, in characters."""

    text: str
    starts: list[int]
    ends: list[int]  # exclusive

    @classmethod
    def of(cls, text: str, tokenizer: Tokenizer = TREEBANK) -> Passage:
        """Tokenizes a passage. Raises an ElmoTasksError if it has no token."""
        tokens = _tokens(text, tokenizer, "passage")
        return cls(text, [token.start for token in tokens], [token.end for token in tokens])

    def columns(self) -> dict[str, Any]:
        """The columns of the passage in an example."""
        return {"passage": self.text, "token_starts": self.starts, "token_ends": self.ends}

    def covering_span(self, start: int, end: int) -> tuple[int, int]:
        """The first and last tokens, inclusive, that share a character with text[start:end]."""
        return bisect.bisect_right(self.ends, start), bisect.bisect_left(self.starts, end) - 1


def question_columns(text: str, tokenizer: Tokenizer = TREEBANK) -> dict[str, Any]:
    """The columns of a question in an example. Raises an ElmoTasksError if it has no token."""
    return {"question": text, "question_tokens": [token.text for token in _tokens(text, tokenizer, "question")]}


def unanswered(question: str, passage: str, tokenizer: Tokenizer = TREEBANK) -> dict[str, Any]:
    """An example without id and answers, for prediction. Raises an ElmoTasksError if one of the texts has no token."""
    return {**question_columns(question, tokenizer), **Passage.of(passage, tokenizer).columns()}


def passage_tokens(example: Example) -> list[str]:
    """The tokens of an example's passage."""
    passage = example["passage"]
    return [passage[start:end] for start, end in zip(example["token_starts"], example["token_ends"], strict=True)]


def character_span(example: Example, first: int, last: int) -> tuple[int, int]:
    """The characters of the tokens from `first` to `last` (inclusive): (start, end) in the passage, end exclusive."""
    return example["token_starts"][first], example["token_ends"][last]


def _tokens(text: str, tokenizer: Tokenizer, name: str) -> list[Token]:
    """The tokens of all sentences of a text; at least one, or an error that names the text."""
    if not (tokens := tokenizer.words(text)):
        raise ElmoTasksError(f"a {name} without any token")
    return tokens
