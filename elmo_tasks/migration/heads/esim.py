"""AllenNLP's `esim`."""

from __future__ import annotations

from torch import Tensor

from elmo_tasks.migration.feed_forward import read_layers
from elmo_tasks.migration.heads.head import Head
from elmo_tasks.migration.heads.text_pairs import expect_dot_products, reader_and_notes
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.vocabulary import AllenNlpVocabulary
from elmo_tasks.migration.weights import Weights


def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `esim`; see `elmo_tasks.migration.heads.head`."""
    model = params.part("model")
    expect_dot_products(model)
    dropout = model.number("dropout", 0.5)
    head = Head(type="esim", dropout=dropout)
    head.add_encoder("encoder", model.part("encoder"), weights.part("_encoder."), columns, dropout=dropout)
    projection = read_layers(model.part("projection_feedforward"), weights.part("_projection_feedforward."))
    head.add_layers("projection", projection, "model.projection_feedforward")
    composition = model.part("inference_encoder"), weights.part("_inference_encoder.")
    head.add_encoder("composition", *composition, dropout=dropout)
    *output, scores = [
        *read_layers(model.part("output_feedforward"), weights.part("_output_feedforward.")),
        *read_layers(model.part("output_logit"), weights.part("_output_logit.")),
    ]
    head.add_layers("output", output, "model.output_feedforward")
    head.add_scores(scores, "model.output_logit")
    reader, notes = reader_and_notes(params)
    return head.reads(reader, notes, labels=vocabulary.labels())
