"""AllenNLP's `decomposable_attention`."""

from __future__ import annotations

import torch
from torch import Tensor

from elmo_tasks.migration.feed_forward import read_layers, with_columns
from elmo_tasks.migration.heads.head import Head
from elmo_tasks.migration.heads.text_pairs import expect_dot_products, reader_and_notes
from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.vocabulary import AllenNlpVocabulary
from elmo_tasks.migration.weights import Weights


def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `decomposable_attention`; see `elmo_tasks.migration.heads.head`."""
    model = params.part("model")
    expect_dot_products(model)
    for key in ("premise_encoder", "hypothesis_encoder"):
        if key in model:
            raise MigrationError(f"config.json: {model.path(key)}: decomposable attention has no encoder here")
    reader, notes = reader_and_notes(params)
    head = Head(type="decomposable_attention", end_token=reader.get("end_token"))
    attend = read_layers(model.part("attend_feedforward"), weights.part("_attend_feedforward._module."))
    head.add_layers("attend", with_columns(attend, columns), "model.attend_feedforward")
    compare = read_layers(model.part("compare_feedforward"), weights.part("_compare_feedforward._module."))
    both = torch.cat([columns, columns + len(columns)])  # a token, and what it is aligned with
    head.add_layers("compare", with_columns(compare, both), "model.compare_feedforward")
    path = "model.aggregate_feedforward"
    *output, scores = read_layers(model.part("aggregate_feedforward"), weights.part("_aggregate_feedforward."))
    if output:
        head.add_layers("output", output, path)
    head.add_scores(scores, path)
    return head.reads(reader, notes, labels=vocabulary.labels())
