"""AllenNLP's `esim`."""

from __future__ import annotations

from torch import Tensor

from elmo_tasks.migration.feed_forward import read_layers
from elmo_tasks.migration.heads.head import Head
from elmo_tasks.migration.heads.text_pairs import expect_dot_products, reader_and_notes
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.parts import Parts
from elmo_tasks.migration.vocabulary import AllenNlpVocabulary
from elmo_tasks.migration.weights import Weights


def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `esim`; see `elmo_tasks.migration.heads.head`."""
    model = params.part("model")
    expect_dot_products(model)
    dropout = model.number("dropout", 0.5)
    parts = Parts(type="esim", dropout=dropout)
    parts.add_encoder("encoder", model.part("encoder"), weights.part("_encoder."), columns, dropout=dropout)
    projection = read_layers(model.part("projection_feedforward"), weights.part("_projection_feedforward."))
    parts.add_layers("projection", projection, "model.projection_feedforward")
    composition = model.part("inference_encoder"), weights.part("_inference_encoder.")
    parts.add_encoder("composition", *composition, dropout=dropout)
    *output, scores = [
        *read_layers(model.part("output_feedforward"), weights.part("_output_feedforward.")),
        *read_layers(model.part("output_logit"), weights.part("_output_logit.")),
    ]
    parts.add_layers("output", output, "model.output_feedforward")
    parts.add_scores(scores, "model.output_logit")
    reader, notes = reader_and_notes(params)
    return parts.head(labels={"labels": vocabulary.labels()}, dataset_reader=reader, notes=notes)
