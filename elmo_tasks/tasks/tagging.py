"""Tagging: a tag for each token of a sentence, such as named entities or parts of speech.

# B batch, T tokens of the longest sentence
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from elmo_tasks.metrics import Accuracy, Metric, SpanF1
from elmo_tasks.tasks.task import INTEGER, STRINGS, Batch, Example, Task
from elmo_tasks.text.tag_schemes import OUTSIDE, TagScheme, label_of_tag, tags_of_label
from elmo_tasks.text.tokens import Tokens
from elmo_tasks.text.vocabulary import Vocabulary

TAGS = "tags"  # the column of the tags, and the namespace of the labels


@dataclasses.dataclass(frozen=True)
class TaggingBatch(Batch):
    """Sentences with a tag for every token."""

    tokens: Tokens
    tags: Tensor | None  # (B, T) int64, ids of the vocabulary's "tags", 0 for padding; None if not known


@dataclasses.dataclass(frozen=True)
class Tagging(Task):
    """A tag for each token of a sentence.

    An example is `{"tokens": [str], "tags": [str], "document": int, "sentence": int}`. Documents are numbered from 0 in
    the source, sentences from 0 in their document. For prediction, `tokens` are enough.

    If the tags are spans, a label in one tag adds all of its tags to the vocabulary: every valid sequence can be
    predicted.

    Arguments:
        tag_scheme: the scheme of the tags; None if they are not spans, such as parts of speech. A head that wants None
            takes tags of any scheme.
        single_tokens: every span is one token long. Then only the tags of examples are added to the vocabulary.
    """

    name: ClassVar[str] = "tagging"
    summary: ClassVar[str] = "sentences with a tag for every token"
    features: ClassVar[Mapping[str, Any]] = {
        "tokens": STRINGS,
        "tags": STRINGS,
        "document": INTEGER,
        "sentence": INTEGER,
    }
    optional: ClassVar[frozenset[str]] = frozenset({"document", "sentence"})

    tag_scheme: TagScheme | None = None
    single_tokens: bool = False

    def fault(self, example: Example) -> str | None:
        return super().fault(example) or tags_mismatch(example)

    def labels(self, example: Example) -> Mapping[str, Iterable[str]]:
        if self.tag_scheme is None or self.single_tokens:
            return {TAGS: example[TAGS]}
        return {TAGS: known_tags(example[TAGS], self.tag_scheme)}

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> TaggingBatch:
        tokens = vocabulary.index_tokens([example["tokens"] for example in examples])
        return TaggingBatch(examples=examples, tokens=tokens, tags=tag_tensor(examples, tokens, vocabulary))

    def compared_labels(self, record: Mapping[str, Any]) -> Sequence[str]:
        """The tags of the tokens; of tags in a scheme only their labels, such as PER."""
        return span_labels(record[TAGS]) if self.tag_scheme else record[TAGS]

    def build_metric(self) -> Metric:
        return SpanF1(TAGS) if self.tag_scheme else Accuracy(TAGS)

    def mismatch(self, expected: Task) -> str | None:
        problem = super().mismatch(expected)
        if problem is None and isinstance(expected, Tagging) and expected.tag_scheme not in (None, self.tag_scheme):
            given = f"tags in {self.tag_scheme}" if self.tag_scheme else "tags that are not spans"
            return f"{given}; expected tags in {expected.tag_scheme}"
        return problem


def tags_mismatch(example: Example) -> str | None:
    """What is wrong unless there is a tag for every token."""
    tags, tokens = example[TAGS], example["tokens"]
    return None if len(tags) == len(tokens) else f"{len(tags)} tags for {len(tokens)} tokens"


def span_labels(tags: Iterable[str]) -> list[str]:
    """The label of each token's span, O outside of spans."""
    return [label_of_tag(tag) or OUTSIDE for tag in tags]


def known_tags(tags: Iterable[str], scheme: TagScheme) -> set[str]:
    """Every tag of the labels of these tags, and O."""
    labels = {label for tag in tags if (label := label_of_tag(tag)) is not None}
    return {OUTSIDE, *(tag for label in labels for tag in tags_of_label(label, scheme))}


def tag_tensor(examples: Sequence[Example], tokens: Tokens, vocabulary: Vocabulary) -> Tensor | None:
    """The ids of the examples' `"tags"`, (B, T) int64, 0 for padding; None unless all are known.

    Raises:
        UnknownLabelError: the vocabulary does not have a tag.
    """
    if any(example.get(TAGS) is None for example in examples):
        return None
    tags = torch.zeros_like(tokens.words)  # (B, T)
    ids = [vocabulary.label_id(TAGS, tag) for example in examples for tag in example[TAGS]]
    tags[tokens.mask] = torch.tensor(ids, dtype=torch.int64)
    return tags
