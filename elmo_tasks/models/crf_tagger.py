"""A tagger: an encoder and a conditional random field.

# B batch, T tokens of the longest sentence, K tags
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field
from torch import Tensor

from elmo_tasks.models.embedder import Embedder
from elmo_tasks.models.labels import (
    LabelWeights,
    TagScores,
    allowed_labels,
    label_weights,
    scheme_constraints,
    tag_predictions,
)
from elmo_tasks.models.model import ModelConfig, Prediction, Probability, TaskModel
from elmo_tasks.modules.crf import ConditionalRandomField
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.modules.feed_forward import FeedForwardConfig, make_linear
from elmo_tasks.tasks.tagging import TAGS, Tagging, TaggingBatch
from elmo_tasks.text.tag_schemes import TagScheme
from elmo_tasks.text.vocabulary import Vocabulary

_MOST_TAGS = 5  # of a token, whose probabilities are shown


class CrfTaggerConfig(ModelConfig):
    """A tagger: embedder, encoder and a conditional random field over the tags."""

    type: Literal["crf_tagger"] = "crf_tagger"
    encoder: EncoderConfig
    dropout: Probability = Field(
        0.0, description="variational dropout on the encoder's output (the encoder has its own for its input)"
    )
    feedforward: FeedForwardConfig | None = Field(None, description="layers between the encoder and the tags' scores")
    tag_scheme: TagScheme | None = Field(
        "BIOUL",
        description="the reader's tag scheme: only its valid sequences are predicted, and spans are scored; "
        "null for tags that are not spans, such as parts of speech",
    )
    label_weights: LabelWeights | None = Field(
        None,
        description="{tag: weight}, 1 for the others: multiplies the scores of the tags in the loss, as AllenNLP's key "
        "with its strategy 'emission'. For rare tags, `data_loader.sampling` is the usual choice",
    )

    @property
    def task(self) -> Tagging:
        return Tagging(self.tag_scheme)

    def build(self, vocabulary: Vocabulary, embedder: Embedder) -> CrfTagger:
        return CrfTagger(embedder, self, vocabulary.labels[TAGS])


class CrfTagger(TaskModel[TaggingBatch, TagScores]):
    """An encoder, a linear layer and a conditional random field, whose emissions are the logits.

    Source: Peters et al. 2018, section 4 and its supplement: word and character vectors, two biLSTM layers, a
    conditional random field, and decoding only over valid transitions. Departs from it in that invalid sequences have
    no probability in training either. A second mix of ELMo is concatenated to the encoder's output. Feed-forward layers
    before the scores are those of AllenNLP's fine-grained recognizer.

    Raises:
        ElmoTasksError: a label is not a tag of the scheme, or a tag with a weight is not a label.
    """

    label_weights: Tensor | None  # (K,)

    def __init__(self, embedder: Embedder, config: CrfTaggerConfig, labels: tuple[str, ...]) -> None:
        super().__init__(embedder)
        self.labels = labels
        self.task = config.task
        self.encoder = config.encoder.build(embedder.output_size)
        self.dropout = VariationalDropout(config.dropout)
        size = embedder.joined_size(self.encoder.output_size)
        self.feedforward = config.feedforward.build(size) if config.feedforward else None
        self.projection = make_linear(self.feedforward.output_size if self.feedforward else size, len(labels))
        advice = "set model.tag_scheme to the scheme of the reader's tags, or to null if the tags are not spans"
        constraints = scheme_constraints(labels, config.tag_scheme, advice) if config.tag_scheme else None
        self.crf = ConditionalRandomField(len(labels), constraints)
        given = config.label_weights
        weights = None if given is None else label_weights(given, labels, "model.label_weights")
        self.register_buffer("label_weights", weights, persistent=False)

    def forward(self, batch: TaggingBatch) -> TagScores:
        mask = batch.tokens.mask
        embedded = self.embedder(batch.tokens)
        encoded = self.dropout(self.encoder(embedded.inputs, mask))  # (B, T, H)
        joined = embedded.join(encoded)
        joined = joined if self.feedforward is None else self.feedforward(joined)
        return TagScores(logits=self.projection(joined), mask=mask)

    def loss(self, output: TagScores, batch: TaggingBatch) -> Tensor:
        """The negative log-likelihood of a sentence's tags, the mean over the sentences."""
        if batch.tags is None:
            raise ValueError("the batch has no gold tags")
        logits = output.logits if self.label_weights is None else output.logits * self.label_weights
        return -self.crf.log_likelihood(logits, batch.tags, output.mask).mean().float()

    def prediction_scores(self, output: TagScores, batch: TaggingBatch, predictions: Sequence[Prediction]) -> Tensor:
        """The log probability of the predicted tags, summed over all sequences where a tag is None and may be any."""
        allowed = allowed_labels([each["tags"] for each in predictions], self.labels, output.mask.shape[1])
        return self.crf.log_probability(output.logits, allowed.to(output.mask.device), output.mask).float()

    def decode(self, output: TagScores, batch: TaggingBatch, *, probabilities: bool = True) -> list[dict[str, Any]]:
        """The most probable sequence of each sentence: `{"tags": [...], "probabilities": [...]}`.

        `probabilities` are marginal: that of a tag at its token, summed over all sequences. They show where a
        prediction is uncertain. The most probable sequence may differ from the most probable tags of single tokens.
        """
        tags = self.crf.best_tags(output.logits, output.mask)  # (B, T)
        chosen = None
        if probabilities:
            marginals = self.crf.marginals(output.logits, output.mask, self.temperature)  # (B, T, K)
            chosen = marginals.gather(2, tags.unsqueeze(2)).squeeze(2)  # (B, T)
        return tag_predictions(tags, chosen, output.mask, self.labels)

    def details(self, output: TagScores, batch: TaggingBatch) -> list[dict[str, Any]]:
        """For each token its most probable tags, at most five, with their marginal probabilities:

        `{"tag_probabilities": [{"B-LOC": 0.9, "O": 0.1, ...}, ...]}`, the most probable first.
        """
        marginals = self.crf.marginals(output.logits, output.mask, self.temperature).clamp(max=1)  # (B, T, K)
        likely = marginals.topk(min(_MOST_TAGS, len(self.labels)), dim=2)
        columns = zip(likely.indices.tolist(), likely.values.tolist(), output.mask.sum(1).tolist(), strict=True)
        return [
            {
                "tag_probabilities": [
                    {self.labels[tag]: value for tag, value in zip(*token, strict=True)}
                    for token in zip(tags[:length], values[:length], strict=True)
                ]
            }
            for tags, values, length in columns
        ]
