"""AllenNLP's `esim` and `decomposable_attention`; see `elmo_tasks.extras.allennlp.heads.head`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Params, Weights
from elmo_tasks.extras.allennlp.heads.head import Head, other_reader, tokenizer_settings
from elmo_tasks.extras.allennlp.layers import read_layers, with_columns


def convert_esim(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `esim`."""
    model = params.part("model")
    _expect_dot_products(model)
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
    reader, notes = _reader_and_notes(params)
    return head.reads(reader, notes, labels=vocabulary.labels())


def convert_decomposable_attention(
    params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor
) -> Head:
    """The same model as our `decomposable_attention`."""
    model = params.part("model")
    _expect_dot_products(model)
    reader, notes = _reader_and_notes(params)
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


def _expect_dot_products(model: Params) -> None:
    """Refuses other ways to align texts."""
    attention = model.part("similarity_function" if "similarity_function" in model else "matrix_attention")
    attention.expect("type", "dot_product")
    attention.expect("scale_output", False, default=False)


def _reader_and_notes(params: Params) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The config of our reader of text pairs, with the token that AllenNLP's adds to each text's end; and notes."""
    settings, notes = tokenizer_settings(params, most_ends=1)
    return {"type": "snli", **settings}, (*notes, *other_reader(params, "snli", "snli"))
