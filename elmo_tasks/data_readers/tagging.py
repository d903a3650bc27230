"""A tag for each token: what the readers for tagging have in common.

# B batch, T tokens
"""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import datasets
import torch
from torch import Tensor

from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.text.tag_schemes import TagScheme
from elmo_tasks.text.tokens import TaggingBatch, Tokens
from elmo_tasks.text.vocabulary import Vocabulary

TAGS = "tags"  # the namespace of the labels


def tag_tensor(examples: Sequence[Mapping[str, Any]], tokens: Tokens, vocab: Vocabulary) -> Tensor | None:
    """The ids of the examples' `"tags"`, 0 for padding; None where they are not all known, as in prediction.

    Raises:
        UnknownLabelError: the vocabulary does not have a tag.
    """
    if any(example.get("tags") is None for example in examples):
        return None
    tags = torch.zeros_like(tokens.words)  # (B, T)
    ids = [vocab.label_id(TAGS, tag) for example in examples for tag in example["tags"]]
    tags[tokens.mask] = torch.tensor(ids, dtype=torch.int64)
    return tags


class TaggingReader(DatasetReader):
    """Makes examples `{"tokens": [str], "tags": [str], "document": int, "sentence": int}`.

    Documents are numbered from 0 in the source, sentences from 0 in their document. For prediction,
    `tokens` are enough.
    """

    features: ClassVar[datasets.Features] = datasets.Features(
        {
            "tokens": datasets.Sequence(datasets.Value("string")),
            "tags": datasets.Sequence(datasets.Value("string")),
            "document": datasets.Value("int64"),
            "sentence": datasets.Value("int64"),
        }
    )

    @property
    @abc.abstractmethod
    def tag_scheme(self) -> TagScheme | None:
        """The scheme of the tags; None where they are no spans, such as parts of speech."""

    def tokens(self, example: Mapping[str, Any]) -> Iterable[Sequence[str]]:
        return (example["tokens"],)

    def labels(self, example: Mapping[str, Any]) -> Mapping[str, Iterable[str]]:
        return {TAGS: example["tags"]}

    def length(self, example: Mapping[str, Any]) -> int:
        return len(example["tokens"])

    def collate(self, examples: list[dict[str, Any]], vocab: Vocabulary) -> TaggingBatch:
        tokens = vocab.index_tokens([example["tokens"] for example in examples])
        return TaggingBatch(examples=examples, tokens=tokens, tags=tag_tensor(examples, tokens, vocab))
