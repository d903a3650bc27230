"""Semantic roles of given predicates from BERT, whose token types mark the predicate.

# B batch, T tokens and P word pieces of the longest sentence, D features, K tags
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import pydantic
import torch
from pydantic import Field
from torch import Tensor

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.transformers.transformer import Pieces, TransformerEmbedder
from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.labels import (
    LabelModel,
    LabelModelConfig,
    TagScores,
    scheme_constraints,
    tag_loss,
    tag_predictions,
)
from elmo_tasks.modules.crf import ConstrainedDecoder
from elmo_tasks.modules.feed_forward import make_linear
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.semantic_roles import SCHEME, SemanticRoles, SemanticRolesBatch
from elmo_tasks.tasks.tagging import TAGS
from elmo_tasks.tasks.task import Example
from elmo_tasks.text.vocabulary import Vocabulary


class SrlBertConfig(LabelModelConfig):
    """Semantic roles of given predicates: a frozen BERT and a softmax over the tags of each word piece."""

    type: Literal["srl_bert"] = "srl_bert"
    task: ClassVar[Task] = SemanticRoles()
    lowercase: bool = Field(False, description="words are read in lower case, for an uncased BERT")

    @pydantic.model_validator(mode="after")
    def _has_a_transformer(self) -> SrlBertConfig:
        if set(self.embedder.model_dump(exclude_none=True)) != {"transformer"}:
            raise ValueError("embedder: expected only a transformer")
        return self

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> SrlBert:
        return SrlBert(embedder, self, vocabulary.labels[TAGS])


@dataclasses.dataclass(frozen=True)
class PieceScores(TagScores):
    """The scores of the tags of word pieces: `logits` are (B, P, K), and `mask` is (B, P)."""

    starts: Tensor  # (B, T) int64, the first piece of each token; of a token without pieces, the next one
    tokens: Tensor  # (B, T) bool, True at the tokens


class SrlBert(LabelModel[SemanticRolesBatch, PieceScores]):
    """BERT, which reads each sentence with the token type 1 at the pieces of the predicate, and a linear layer.

    Source: Shi and Lin (2019), "Simple BERT Models for Relation Extraction and Semantic Role Labeling", as AllenNLP's
    `SrlBert` of 0.9 to 2.10. A word is only split into word pieces, which is all that AllenNLP's reader does: accents
    and punctuation are part of it. The search finds the best tags of all pieces, [CLS] and [SEP] included, and a token
    has the tag of its first piece. Sentences of more pieces than BERT reads, which AllenNLP does not take, are read in
    overlapping windows. The loss is that of first pieces, and AllenNLP's that of all.

    Arguments:
        embedder: has the transformer.
        config: the settings.
        labels: the K tags by their ids, in IOB2.

    Raises:
        ElmoTasksError: a label is not a tag of IOB2.
    """

    task = SemanticRoles()

    def __init__(self, embedder: Embedder, config: SrlBertConfig, labels: tuple[str, ...]) -> None:
        super().__init__(embedder, config, labels)
        self.lowercase = config.lowercase
        self.projection = make_linear(embedder.output_size, len(labels))
        constraints = scheme_constraints(labels, SCHEME, "the model 'srl_bert' needs the tags of semantic roles")
        self.decoder = ConstrainedDecoder(constraints, start_score=100_000.0)

    def embedded_texts(self, example: Example) -> Sequence[Sequence[str]]:
        return []  # what BERT computes depends on the predicate, and is not kept

    def forward(self, batch: SemanticRolesBatch) -> PieceScores:
        rows = zip(batch.tokens.texts, batch.predicates.tolist(), strict=True)
        sequences, starts = zip(*(self._sequence(tokens, predicate) for tokens, predicate in rows), strict=True)
        vectors, mask = self._transformer().read(sequences)  # (B, P, D)
        longest = batch.tokens.mask.shape[1]
        padded = torch.tensor([[*row, *[0] * (longest - len(row))] for row in starts], device=mask.device)
        return PieceScores(self.projection(vectors), mask, padded, batch.tokens.mask)

    def _transformer(self) -> TransformerEmbedder:
        transformer = getattr(self.embedder, "transformer", None)
        if not isinstance(transformer, TransformerEmbedder):
            raise ElmoTasksError("the head reads pieces of a frozen transformer; its predictions are not explained")
        return transformer

    def _sequence(self, tokens: Sequence[str], predicate: int) -> tuple[Pieces, list[int]]:
        """The pieces of a sentence, and the place of each token's first one."""
        frozen = self._transformer().frozen()
        (before, after), tokenizer = frozen.special, frozen.tokenizer.model
        ids, types, starts = [*before], [0] * len(before), []
        for place, token in enumerate(tokens):
            starts.append(len(ids))
            written = (token.lower() if self.lowercase else token).encode("utf-8", "replace").decode()
            ids += [piece.id for part in written.split() for piece in tokenizer.tokenize(part)]
            types += [int(place == predicate)] * (len(ids) - starts[-1])
        return Pieces([*ids, *after], types + [0] * len(after)), starts

    def loss(self, output: PieceScores, batch: SemanticRolesBatch) -> Tensor:
        """See `tag_loss`."""
        logits = output.logits.gather(1, output.starts.unsqueeze(2).expand(-1, -1, output.logits.shape[2]))
        return tag_loss(TagScores(logits, output.tokens), batch.tags, self.class_weights)

    def decode(
        self, output: PieceScores, batch: SemanticRolesBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The tags of each sentence with the highest sum of probabilities: `{"tags": [...], "probabilities": [...]}`.

        `probabilities` are those that the softmax gives the tag at the token's first piece.
        """
        scores = output.logits.float().softmax(dim=2)  # (B, P, K)
        best = self.decoder.best_tags(scores, output.mask)  # (B, P)
        tags = best.gather(1, output.starts)  # (B, T)
        chosen = self.tag_probabilities(output.logits, best).gather(1, output.starts) if probabilities else None
        return tag_predictions(tags, chosen, output.tokens, self.labels)
