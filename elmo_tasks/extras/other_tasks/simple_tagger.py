"""A tagger that chooses each token's tag by itself.

# B batch, T tokens of the longest sentence, K tags
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from torch import Tensor

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.labels import LabelModel, LabelModelConfig, TagScores, tag_loss, tag_predictions
from elmo_tasks.models.model import Probability
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.feed_forward import make_linear
from elmo_tasks.tasks.tagging import TAGS, Tagging, TaggingBatch
from elmo_tasks.text.tag_schemes import TagScheme
from elmo_tasks.text.vocabulary import Vocabulary


class SimpleTaggerConfig(LabelModelConfig):
    """A tagger: embedder, encoder and a softmax over the tags of each token."""

    type: Literal["simple_tagger"] = "simple_tagger"
    encoder: EncoderConfig
    dropout: Probability = Field(
        0.0, description="variational dropout on the encoder's output (the encoder has its own for its input)"
    )
    tag_scheme: TagScheme | None = Field(
        None,
        description="the reader's tag scheme, by which spans are scored; predicted sequences need not be valid in it; "
        "null for tags that are not spans, such as parts of speech",
    )

    @property
    def task(self) -> Tagging:
        return Tagging(self.tag_scheme)

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> SimpleTagger:
        return SimpleTagger(embedder, self, vocabulary.labels[TAGS])


class SimpleTagger(LabelModel[TaggingBatch, TagScores]):
    """An encoder and a linear layer, whose softmax gives the probabilities of a token's tags.

    Source: AllenNLP's `SimpleTagger`. A second mix of ELMo is concatenated to the encoder's output.
    """

    def __init__(self, embedder: Embedder, config: SimpleTaggerConfig, labels: tuple[str, ...]) -> None:
        super().__init__(embedder, config, labels)
        self.task = config.task
        self.encoder = config.encoder.build(embedder.output_size)
        self.dropout = VariationalDropout(config.dropout)
        self.projection = make_linear(embedder.joined_size(self.encoder.output_size), len(labels))

    def forward(self, batch: TaggingBatch) -> TagScores:
        mask = batch.tokens.mask
        embedded = self.embedder(batch.tokens)
        encoded = self.dropout(self.encoder(embedded.inputs, mask))  # (B, T, H)
        return TagScores(logits=self.projection(embedded.join(encoded)), mask=mask)

    def loss(self, output: TagScores, batch: TaggingBatch) -> Tensor:
        """See `tag_loss`."""
        return tag_loss(output, batch.tags, self.class_weights)

    def decode(self, output: TagScores, batch: TaggingBatch, *, probabilities: bool = True) -> list[dict[str, Any]]:
        """The most probable tag of each token: `{"tags": [...], "probabilities": [...]}`."""
        tags = output.logits.float().softmax(dim=2).max(dim=2).indices  # (B, T)
        chosen = self.tag_probabilities(output.logits, tags) if probabilities else None  # (B, T)
        return tag_predictions(tags, chosen, output.mask, self.labels)
