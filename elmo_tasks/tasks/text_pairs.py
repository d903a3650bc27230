"""Text pairs: a label for each pair of texts, such as a premise and a hypothesis.

# B batch, K labels
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from elmo_tasks.tasks.classification import OneLabel, label_tensor
from elmo_tasks.tasks.task import STRING, STRINGS, Batch, Example, Task
from elmo_tasks.text.tokens import Tokens
from elmo_tasks.text.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class TextPairsBatch(Batch):
    """Pairs of texts with a label or a number each. Premises and hypotheses are padded separately."""

    premise: Tokens
    hypothesis: Tokens
    # (B,) int64, ids of the vocabulary's "labels"; of other tasks, (B, K) 0 or 1 or (B,) numbers; None if not known
    labels: Tensor | None


@dataclasses.dataclass(frozen=True)
class TextPairs(OneLabel, Task):
    """A label for each pair of texts.

    An example is `{"premise": [str], "hypothesis": [str], "label": str}`. For prediction, the texts are enough.

    Arguments:
        end_token: added to the end of each text of a batch, and to the vocabulary, so that a token can be aligned with
            it instead of with a real one; None for no such token.
    """

    name: ClassVar[str] = "text_pairs"
    summary: ClassVar[str] = "pairs of texts with a label each"
    features: ClassVar[Mapping[str, Any]] = {"premise": STRINGS, "hypothesis": STRINGS, "label": STRING}
    sentence_columns: ClassVar[tuple[str, ...]] = ("premise", "hypothesis")

    end_token: str | None = None

    def texts(self, example: Example) -> Iterable[Sequence[str]]:
        end = [] if self.end_token is None else [self.end_token]
        return [*example["premise"], *end], [*example["hypothesis"], *end]

    def collate(self, examples: list[dict[str, Any]], vocabulary: Vocabulary) -> TextPairsBatch:
        premises, hypotheses = zip(*map(self.texts, examples), strict=True)
        return TextPairsBatch(
            examples=examples,
            premise=vocabulary.index_tokens(premises),
            hypothesis=vocabulary.index_tokens(hypotheses),
            labels=label_tensor(examples, vocabulary),
        )

    def mismatch(self, expected: Task) -> str | None:
        problem = super().mismatch(expected)
        if problem is None and isinstance(expected, TextPairs) and expected.end_token != self.end_token:
            return f"texts with the end token {self.end_token!r}; expected {expected.end_token!r}"
        return problem
