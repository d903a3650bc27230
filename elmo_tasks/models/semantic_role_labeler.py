"""Semantic roles of given predicates: an encoder that knows the predicate, and a tag for each token.

# B batch, T tokens of the longest sentence, P features of the flag, K tags
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.labels import (
    LabelModel,
    LabelModelConfig,
    TagScores,
    scheme_constraints,
    tag_loss,
    tag_predictions,
)
from elmo_tasks.models.model import Probability
from elmo_tasks.modules.crf import ConstrainedDecoder
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.feed_forward import make_linear
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.semantic_roles import SCHEME, SemanticRoles, SemanticRolesBatch
from elmo_tasks.tasks.tagging import TAGS
from elmo_tasks.text.vocabulary import Vocabulary

_ONCE = re.compile(r"B-ARG[0-5A]")
_NEVER = -1e6  # a score with which a tag is never chosen


class SemanticRoleLabelerConfig(LabelModelConfig):
    """Semantic roles of given predicates: embedder, encoder and a softmax over the tags of each token."""

    type: Literal["srl"] = "srl"
    task: ClassVar[Task] = SemanticRoles()
    encoder: EncoderConfig
    predicate_size: PositiveInt = Field(100, description="features of the flag that marks the predicate")
    dropout: Probability = Field(
        0.0, description="variational dropout on the encoder's input, including the flag's features"
    )
    decoded_scores: Literal["log_probabilities", "probabilities"] = Field(
        "log_probabilities",
        description="the scores whose sum the predicted tags of a sentence maximize; AllenNLP's are 'probabilities'",
    )

    unique_roles: bool = Field(
        False, description="no role with a number (ARG0 to ARG5, ARGA) is predicted twice for a predicate"
    )

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> SemanticRoleLabeler:
        return SemanticRoleLabeler(embedder, self, vocabulary.labels[TAGS])


class SemanticRoleLabeler(LabelModel[SemanticRolesBatch, TagScores]):
    """An encoder that reads each token with a flag, which says whether it is the predicate, and a linear layer.

    Source: He et al. (2017), "Deep Semantic Role Labeling: What Works and What's Next", section 2, as in Peters et al.
    (2018), section 4, with an `AlternatingLstm` as the encoder. Tags are learned token by token; only decoding searches
    for the best valid sequence. A second mix of ELMo is concatenated to the encoder's output.

    Raises:
        ElmoTasksError: a label is not a tag of IOB2.
    """

    task = SemanticRoles()

    def __init__(self, embedder: Embedder, config: SemanticRoleLabelerConfig, labels: tuple[str, ...]) -> None:
        super().__init__(embedder, config, labels)
        self.decoded_scores = config.decoded_scores
        self.once = [number for number, label in enumerate(labels) if config.unique_roles and _ONCE.fullmatch(label)]
        encoder = config.encoder.build(embedder.output_size + config.predicate_size)
        self.predicate = nn.Embedding(2, config.predicate_size)
        nn.init.xavier_uniform_(self.predicate.weight)  # longer vectors would drown those of the words
        self.dropout = VariationalDropout(config.dropout)
        self.encoder = encoder
        self.projection = make_linear(embedder.joined_size(encoder.output_size), len(labels))
        advice = "the model 'srl' needs the tags of a reader of semantic roles"
        self.decoder = ConstrainedDecoder(scheme_constraints(labels, SCHEME, advice))

    def forward(self, batch: SemanticRolesBatch) -> TagScores:
        mask = batch.tokens.mask
        embedded = self.embedder(batch.tokens)
        positions = torch.arange(mask.shape[1], device=mask.device)  # (T,)
        flags = self.predicate((positions == batch.predicates.unsqueeze(1)).long())  # (B, T, P)
        encoded = self.encoder(self.dropout(torch.cat([embedded.inputs, flags], dim=2)), mask)  # (B, T, H)
        return TagScores(logits=self.projection(embedded.join(encoded)), mask=mask)

    def loss(self, output: TagScores, batch: SemanticRolesBatch) -> Tensor:
        """See `tag_loss`."""
        return tag_loss(output, batch.tags, self.class_weights)

    def decode(
        self, output: TagScores, batch: SemanticRolesBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The best valid sequence of each example: `{"tags": [...], "probabilities": [...]}`.

        The best has the highest product of its tags' probabilities or, by `decoded_scores`, the highest sum.
        `probabilities` are those that the softmax gives each tag at its token. With `unique_roles`, a role that is
        there twice keeps the place with which the whole sequence is best; the other one gets what is best without it.
        """
        likelihoods = output.logits.float().log_softmax(dim=2)  # (B, T, K)
        scores = likelihoods.exp() if self.decoded_scores == "probabilities" else likelihoods
        tags = self.decoder.best_tags(scores, output.mask)  # (B, T)
        if self.once:
            rows = zip(scores.split(1), output.mask.split(1), tags.split(1), strict=True)
            tags = torch.cat([self._without_repeated(*row) for row in rows])
        chosen = self.tag_probabilities(output.logits, tags) if probabilities else None  # (B, T)
        return tag_predictions(tags, chosen, output.mask, self.labels)

    def _without_repeated(self, scores: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """The tags of one sentence, (1, T), after each role of `once` has at most one beginning.

        Each turn settles one role, so that there are at most as many as roles. Source of the condition: Punyakanok et
        al. (2008), "The Importance of Syntactic Parsing and Inference in Semantic Role Labeling", section 3.4.
        """
        while (repeated := self._repeated(tags, mask)) is not None:
            label, places = repeated
            found = []
            for place in places:
                kept = torch.full_like(scores[0, :, label], _NEVER)  # (T,)
                kept[place] = scores[0, place, label]
                only = scores.clone()
                only[0, :, label] = kept
                best = self.decoder.best_tags(only, mask)
                found.append((float(only.gather(2, best.unsqueeze(2)).squeeze(2)[mask].sum()), best, only))
            _, tags, scores = max(found, key=lambda each: each[0])
        return tags

    def _repeated(self, tags: Tensor, mask: Tensor) -> tuple[int, list[int]] | None:
        """The first of the tags of `once` that a sentence, (1, T), has more than once, and its tokens."""
        for label in self.once:
            places = ((tags[0] == label) & mask[0]).nonzero().flatten().tolist()
            if len(places) > 1:
                return label, places
        return None
