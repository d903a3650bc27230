"""Semantic roles: the roles of a given predicate, as a tag for each token of its sentence.

# B batch, T tokens of the longest sentence
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.metrics import Metric
from elmo_tasks.metrics.srl import SrlF1
from elmo_tasks.tasks.tagging import TAGS, known_tags, span_labels, tag_tensor, tags_mismatch
from elmo_tasks.tasks.task import INTEGER, STRING, STRINGS, Batch, Example, Task
from elmo_tasks.text.tag_schemes import TagScheme, is_tag
from elmo_tasks.text.tokens import Tokens
from elmo_tasks.text.vocabulary import Vocabulary

SCHEME: TagScheme = "IOB2"  # of the tags


@dataclasses.dataclass(frozen=True)
class SemanticRolesBatch(Batch):
    """Sentences, one predicate of each, and a tag for every token."""

    tokens: Tokens
    predicates: Tensor  # (B,) int64, the index of the predicate in its sentence
    tags: Tensor | None  # (B, T) int64, ids of the vocabulary's "tags", 0 for padding; None if not known


@dataclasses.dataclass(frozen=True)
class SemanticRoles(Task):
    """The roles of a given predicate.

    An example is `{"tokens": [str], "predicate": int, "lemma": str, "tags": [str], "document": str | None, "sentence":
    int}`, one for each predicate: `predicate` is the index of its token, `tags` are in IOB2, with a span `V` for the
    predicate. Sentences are numbered from 0 in the whole source: predicates with the same number share their sentence.
    For prediction, `tokens` and `predicate` are enough.

    A label in one tag adds both of its tags to the vocabulary. The words of a sentence count once for each predicate.
    """

    name: ClassVar[str] = "semantic_roles"
    summary: ClassVar[str] = "sentences with a predicate and the tags of its roles"
    features: ClassVar[Mapping[str, Any]] = {
        "tokens": STRINGS,
        "predicate": INTEGER,
        "lemma": STRING,
        "tags": STRINGS,
        "document": STRING,
        "sentence": INTEGER,
    }
    optional: ClassVar[frozenset[str]] = frozenset({"lemma", "document", "sentence"})

    def fault(self, example: Example) -> str | None:
        return super().fault(example) or tags_mismatch(example) or _misplaced(example) or _unknown_tag(example)

    def labels(self, example: Example) -> Mapping[str, Iterable[str]]:
        return {TAGS: known_tags(example[TAGS], SCHEME)}

    def asks(self, example: Example) -> tuple[Any, ...]:
        return (*super().asks(example), example["predicate"])

    def unit(self, row: int, example: Example) -> Hashable:
        """The sentence, with all its predicates; one without a number is known by its tokens."""
        return example.get("document"), example.get("sentence"), *example["tokens"]

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> SemanticRolesBatch:
        """As every task; raises an ElmoTasksError also if a predicate is not the index of a token of its sentence."""
        for example in examples:
            if fault := _misplaced(example):
                raise ElmoTasksError(fault)
        tokens = vocabulary.index_tokens([example["tokens"] for example in examples])
        predicates = torch.tensor([example["predicate"] for example in examples], dtype=torch.int64)  # (B,)
        tags = tag_tensor(examples, tokens, vocabulary)
        return SemanticRolesBatch(examples=examples, tokens=tokens, predicates=predicates, tags=tags)

    def compared_labels(self, record: Mapping[str, Any]) -> Sequence[str]:
        return span_labels(record[TAGS])

    def build_metric(self) -> Metric:
        return SrlF1()


def _misplaced(example: Example) -> str | None:
    """What is wrong unless the predicate is a token of its sentence."""
    predicate, length = example["predicate"], len(example["tokens"])
    if 0 <= predicate < length:
        return None
    return f"no token {predicate} in a sentence of {length} tokens; expected the index of the predicate, from 0"


def _unknown_tag(example: Example) -> str | None:
    """What is wrong unless all tags are of the scheme."""
    wrong = next((tag for tag in example[TAGS] if not is_tag(tag, SCHEME)), None)
    return None if wrong is None else f"{wrong!r} is not a tag of {SCHEME}; expected O or a tag such as B-ARG0"
