"""AllenNLP's `bcn`, the biattentive classification network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from elmo_tasks.migration.feed_forward import Layer, read_layers, with_columns
from elmo_tasks.migration.heads.head import Head, other_reader
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.vocabulary import AllenNlpVocabulary
from elmo_tasks.migration.weights import Weights
from elmo_tasks.text.label_order import SENTIMENT_LABELS

# By the reader's classes: our reader's number of them, and the names of its labels.
_SST = {
    "5-class": (5, SENTIMENT_LABELS),
    "2-class": (2, ("negative", "positive")),
}


def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `bcn`; see `elmo_tasks.migration.heads.head`."""
    model = params.part("model")
    head = Head(
        type="bcn",
        embedding_dropout=model.number("embedding_dropout"),
        integrator_dropout=model.number("integrator_dropout"),
    )
    pre_encoder = read_layers(model.part("pre_encode_feedforward"), weights.part("_pre_encode_feedforward."))
    head.add_layers("pre_encoder", with_columns(pre_encoder, columns), "model.pre_encode_feedforward")
    head.add_encoder("encoder", model.part("encoder"), weights.part("_encoder."))
    head.add_encoder("integrator", model.part("integrator"), weights.part("_integrator."))
    pooling = weights.part("_self_attentive_pooling_projection.")
    head.tensors["attentive_pooling.score.weight"] = attention = pooling.take("weight", 1, None)
    pooling.take("bias", 1)  # the same for all tokens, so that it changes no softmax

    layers = read_layers(model.part("output_layer"), weights.part("_output_layer."))
    # The text pooled in four ways is concatenated in the order max, min, mean, attention; here it is max, mean, min.
    most, least, mean, attended = torch.arange(4 * attention.shape[1]).split(attention.shape[1])
    layers = with_columns(layers, torch.cat([most, mean, least, attended]))
    if layers[-1].activation == "maxout":
        num_labels = len(layers[-1].bias) // layers[-1].pieces
        layers.append(Layer(torch.eye(num_labels), torch.zeros(num_labels), "linear", 0.0))
    *output, scores = layers
    head.add_layers("output", output, "model.output_layer")
    head.add_scores(scores, "model.output_layer")
    reader, labels = reader_and_labels(params, vocabulary)
    notes = [
        "integrator_dropout is on the integrator's output here, and on the pooled text in AllenNLP",
        *other_reader(params, reader["type"], "sst_tokens"),
    ]
    if labels != vocabulary.labels():
        notes.append(f"the labels {', '.join(vocabulary.labels())} are {', '.join(labels)} here")
    return head.reads(reader, notes, labels=labels)


def reader_and_labels(params: Params, vocabulary: AllenNlpVocabulary) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Our reader's config, and its names of the labels."""
    reader, labels = params.part("dataset_reader"), vocabulary.labels()
    granularity = reader.get("granularity", "5-class")
    if reader.get("type", None) != "sst_tokens" or granularity not in _SST:
        return {"type": "jsonl", "task": "classification"}, labels
    count, names = _SST[granularity]
    config = {"type": "sst", "granularity": count, "subtrees": reader.get("use_subtrees", False)}
    return config, tuple(names[int(label)] for label in labels)
