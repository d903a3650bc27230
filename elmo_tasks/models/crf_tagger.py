"""A tagger: an encoder and a conditional random field.

# B batch, T tokens of the longest sentence, K tags
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import Field
from torch import Tensor, nn

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.model import ModelConfig, Probability, TaskModel
from elmo_tasks.modules.crf import ConditionalRandomField, TransitionConstraints
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.embedder import Embedder
from elmo_tasks.modules.encoders import Encoder, EncoderConfig
from elmo_tasks.tasks.tagging import TAGS, Tagging, TaggingBatch
from elmo_tasks.text.tag_schemes import TagScheme, is_tag
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import Vocabulary


class CrfTaggerConfig(ModelConfig):
    """A tagger: embedder, encoder and a conditional random field over the tags."""

    type: Literal["crf_tagger"] = "crf_tagger"
    encoder: EncoderConfig
    dropout: Probability = Field(
        0.0, description="variational dropout on the encoder's output; that on its input is the encoder's"
    )
    tag_scheme: Annotated[
        TagScheme | None,
        Field(
            description="the reader's scheme of tags: no sequence that it forbids is predicted, and spans are scored; "
            "null for tags that are no spans, such as parts of speech"
        ),
    ] = "BIOUL"

    @property
    def task(self) -> Tagging:
        return Tagging(self.tag_scheme)

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> CrfTagger:
        """Makes the tagger for the vocabulary's tags.

        Raises:
            ElmoTasksError: the tags are not of the scheme.
        """
        labels = vocabulary.labels[TAGS]
        return CrfTagger(embedder, self.encoder.build(embedder.output_size), labels, self.tag_scheme, self.dropout)


@dataclasses.dataclass(frozen=True)
class CrfTaggerOutput(TensorRecord):
    """The scores of a batch's tags."""

    logits: Tensor  # (B, T, K), the conditional random field's emissions
    mask: Tensor  # (B, T) bool


class CrfTagger(TaskModel[TaggingBatch, CrfTaggerOutput]):
    """An encoder, a linear layer and a conditional random field.

    Source: Peters et al. 2018, section 4 and its supplement: word and character vectors, two biLSTM layers, a
    conditional random field, and decoding over valid transitions alone. Departs from it in that invalid sequences have
    no probability in training either. A second mix of ELMo is concatenated to the encoder's output.

    Arguments:
        embedder: what the tokens are read with.
        encoder: of inputs of the embedder's size.
        labels: the K tags by their ids.
        tag_scheme: what sequences are valid; None: all.
        dropout: probability of variational dropout on the encoder's output.
    """

    def __init__(
        self,
        embedder: Embedder,
        encoder: Encoder,
        labels: tuple[str, ...],
        tag_scheme: TagScheme | None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(embedder)
        self.labels = labels
        self.task = Tagging(tag_scheme)
        self.encoder = encoder
        self.dropout = VariationalDropout(dropout)
        self.projection = nn.Linear(embedder.joined_size(encoder.output_size), len(labels))
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)
        self.crf = ConditionalRandomField(len(labels), _constraints(labels, tag_scheme))

    def forward(self, batch: TaggingBatch) -> CrfTaggerOutput:
        mask = batch.tokens.mask
        embedded = self.embedder(batch.tokens)
        encoded = self.dropout(self.encoder(embedded.inputs, mask))  # (B, T, H)
        return CrfTaggerOutput(logits=self.projection(embedded.join(encoded)), mask=mask)

    def loss(self, output: CrfTaggerOutput, batch: TaggingBatch) -> Tensor:
        """The negative log-likelihood of a sentence's tags, the mean over the sentences."""
        if batch.tags is None:
            raise ValueError("the batch has no gold tags")
        return -self.crf.log_likelihood(output.logits, batch.tags, output.mask).mean().float()

    def decode(
        self, output: CrfTaggerOutput, batch: TaggingBatch, *, probabilities: bool = True
    ) -> list[dict[str, Any]]:
        """The most probable sequence of each sentence: `{"tags": [...], "probabilities": [...]}`.

        `probabilities` are marginal: that of a tag at its token, summed over all sequences. They say where a prediction
        is uncertain; the most probable sequence need not hold the most probable tag of each token.
        """
        tags, _ = self.crf.best_tags(output.logits, output.mask)  # (B, T)
        lengths = output.mask.sum(1).tolist()
        predictions: list[dict[str, Any]] = [
            {"tags": [self.labels[tag] for tag in row[:length]]}
            for row, length in zip(tags.tolist(), lengths, strict=True)
        ]
        if probabilities:
            marginals = self.crf.marginals(output.logits, output.mask)  # (B, T, K)
            chosen = marginals.gather(2, tags.unsqueeze(2)).squeeze(2).tolist()
            for prediction, row, length in zip(predictions, chosen, lengths, strict=True):
                prediction["probabilities"] = row[:length]
        return predictions


def _constraints(labels: tuple[str, ...], scheme: TagScheme | None) -> TransitionConstraints | None:
    if scheme is None:
        return None
    if wrong := [label for label in labels if not is_tag(label, scheme)]:
        raise ElmoTasksError(
            f"model.tag_scheme: {wrong[0]!r} is not a tag of {scheme}; set it to the scheme of the reader's tags, "
            "or to null where tags are no spans"
        )
    return TransitionConstraints.of_scheme(labels, scheme)
