"""Semantic roles of given predicates: an encoder that knows the predicate, and a tag for each token.

# B batch, T tokens of the longest sentence, D features of the input, P features of the flag, K tags
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.model import ModelConfig, Probability, TaskModel
from elmo_tasks.modules.crf import ConstrainedDecoder, TransitionConstraints
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.embedder import Embedder
from elmo_tasks.modules.encoders import Encoder, EncoderConfig
from elmo_tasks.tasks import Task
from elmo_tasks.tasks.semantic_roles import SCHEME, SemanticRoles, SemanticRolesBatch
from elmo_tasks.tasks.tagging import TAGS
from elmo_tasks.text.tag_schemes import is_tag
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import Vocabulary


class SemanticRoleLabelerConfig(ModelConfig):
    """Semantic roles of given predicates: embedder, encoder and a softmax over the tags of each token."""

    type: Literal["srl"] = "srl"
    task: ClassVar[Task] = SemanticRoles()
    encoder: EncoderConfig
    predicate_size: Annotated[
        PositiveInt, Field(description="features of the flag that tells the predicate from the other tokens")
    ] = 100
    dropout: Probability = Field(
        0.0, description="variational dropout on the encoder's input, the flag's features included"
    )

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> SemanticRoleLabeler:
        """Makes the head for the vocabulary's tags.

        Raises:
            ElmoTasksError: the tags are not those of a reader of semantic roles.
        """
        encoder = self.encoder.build(embedder.output_size + self.predicate_size)
        return SemanticRoleLabeler(embedder, encoder, vocabulary.labels[TAGS], self.predicate_size, self.dropout)


@dataclasses.dataclass(frozen=True)
class SemanticRoleLabelerOutput(TensorRecord):
    """The scores of a batch's tags."""

    logits: Tensor  # (B, T, K)
    mask: Tensor  # (B, T) bool


class SemanticRoleLabeler(TaskModel[SemanticRolesBatch, SemanticRoleLabelerOutput]):
    """An encoder that reads each token with a flag, which says whether it is the predicate, and a linear layer.

    Source: He et al. (2017), "Deep Semantic Role Labeling: What Works and What's Next", section 2, as in Peters et al.
    (2018), section 4, with an `AlternatingLstm` for an encoder. Tags are learned token by token; only decoding looks
    for the best sequence that is valid in BIO. A second mix of ELMo is concatenated to the encoder's output.

    Arguments:
        embedder: what the tokens are read with.
        encoder: of inputs with the embedder's features and those of the flag.
        labels: the K tags by their ids, in IOB2.
        predicate_size: P.
        dropout: probability of variational dropout on the encoder's input.

    Raises:
        ElmoTasksError: a label is not a tag of IOB2.
    """

    task = SemanticRoles()

    def __init__(
        self,
        embedder: Embedder,
        encoder: Encoder,
        labels: tuple[str, ...],
        predicate_size: int = 100,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(embedder)
        self.labels = labels
        self.predicate = nn.Embedding(2, predicate_size)
        nn.init.xavier_uniform_(self.predicate.weight)  # longer vectors would drown those of the words
        self.dropout = VariationalDropout(dropout)
        self.encoder = encoder
        self.projection = nn.Linear(embedder.joined_size(encoder.output_size), len(labels))
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)
        self.decoder = ConstrainedDecoder(_constraints(labels))

    def forward(self, batch: SemanticRolesBatch) -> SemanticRoleLabelerOutput:
        mask = batch.tokens.mask
        embedded = self.embedder(batch.tokens)
        places = torch.arange(mask.shape[1], device=mask.device)  # (T,)
        flags = self.predicate((places == batch.predicates.unsqueeze(1)).long())  # (B, T, P)
        encoded = self.encoder(self.dropout(torch.cat([embedded.inputs, flags], dim=2)), mask)  # (B, T, H)
        return SemanticRoleLabelerOutput(logits=self.projection(embedded.join(encoded)), mask=mask)

    def loss(self, output: SemanticRoleLabelerOutput, batch: SemanticRolesBatch) -> Tensor:
        """The cross entropy of a sentence's tags, summed over its tokens; the mean over the examples.

        A sentence thus counts by its length. AllenNLP takes the mean over the tokens of a batch, which is the same but
        for a factor where all batches have as many tokens to a sentence.
        """
        if batch.tags is None:
            raise ValueError("the batch has no gold tags")
        logits, tags = output.logits[output.mask].float(), batch.tags[output.mask]  # (N, K) and (N,), of all tokens
        return functional.cross_entropy(logits, tags, reduction="sum") / len(batch)

    def decode(
        self, output: SemanticRoleLabelerOutput, batch: SemanticRolesBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The best valid sequence of each example: `{"tags": [...], "probabilities": [...]}`.

        `probabilities` are those that the softmax gives each tag at its token.
        """
        likelihoods = output.logits.float().log_softmax(dim=2)  # (B, T, K)
        tags, _ = self.decoder.best_tags(likelihoods, output.mask)  # (B, T)
        lengths = output.mask.sum(1).tolist()
        predictions: list[dict[str, Any]] = [
            {"tags": [self.labels[tag] for tag in row[:length]]}
            for row, length in zip(tags.tolist(), lengths, strict=True)
        ]
        if probabilities:
            chosen = likelihoods.gather(2, tags.unsqueeze(2)).squeeze(2).exp().tolist()  # (B, T)
            for prediction, row, length in zip(predictions, chosen, lengths, strict=True):
                prediction["probabilities"] = row[:length]
        return predictions


def _constraints(labels: tuple[str, ...]) -> TransitionConstraints:
    if wrong := [label for label in labels if not is_tag(label, SCHEME)]:
        raise ElmoTasksError(
            f"the tag {wrong[0]!r} is none of {SCHEME}; the model 'srl' wants the tags of a reader of semantic roles"
        )
    return TransitionConstraints.of_scheme(labels, SCHEME)
