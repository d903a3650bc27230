"""AllenNLP's classifiers of texts, `bcn` and `basic_classifier`, and of pairs, `esim` and `decomposable_attention`.

See `elmo_tasks.extras.allennlp.heads.head`.

# D features of the embedder's output, P features of a pooled text
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Params, Untrained, Weights
from elmo_tasks.extras.allennlp.heads.head import (
    Head,
    Layer,
    other_reader,
    read_layers,
    tokenizer_settings,
    with_columns,
)
from elmo_tasks.text.vocabulary import SENTIMENT_LABELS

# By the reader's classes: our reader's number of them, and the names of its labels.
_SST = {"5-class": (5, SENTIMENT_LABELS), "2-class": (2, ("negative", "positive"))}
_POOLERS = ("cls_pooler", "bert_pooler")
_PAIRS = ("snli", "transformer_superglue_rte")


def convert_bcn(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `bcn`."""
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
    layers = read_layers(model.part("output_layer"), weights.part("_output_layer."))
    # The text pooled in four ways is concatenated in the order max, min, mean, attention; here it is max, mean, min.
    pooled_size = layers[0].weight.shape[1]
    most, least, mean, attended = torch.arange(pooled_size).chunk(4)
    pooling = weights.part("_self_attentive_pooling_projection.")
    head.tensors["attentive_pooling.score.weight"] = pooling.take("weight", 1, pooled_size // 4)
    pooling.take("bias", 1)  # the same for all tokens, so that it changes no softmax
    layers = with_columns(layers, torch.cat([most, mean, least, attended]))
    if isinstance(weights, Untrained):
        layers[-1] = dataclasses.replace(layers[-1], activation="linear")
        head.notes = ("model.output_layer: the last layer is linear, and all others have the highest dropout",)
    elif layers[-1].activation == "maxout":
        num_labels = len(layers[-1].bias) // layers[-1].pieces
        layers.append(Layer(torch.eye(num_labels), torch.zeros(num_labels), "linear", 0.0))
    *output, scores = layers
    head.add_layers("output", output, "model.output_layer")
    head.add_scores(scores, "model.output_layer")
    return _reads_texts(head, params, vocabulary.labels())


def _reads_texts(head: Head, params: Params, labels: tuple[str, ...], **own: str) -> Head:
    """The head with its reader of texts: that of SST, with our names of the labels, or that of JSON lines."""
    reader, ours = params.part("dataset_reader"), labels
    config: dict[str, Any] = {"type": "jsonl", "task": "classification"}
    granularity = reader.get("granularity", "5-class")
    if reader.get("type", None) == "sst_tokens" and granularity in _SST:
        count, names = _SST[granularity]
        config = {"type": "sst", "granularity": count, "subtrees": reader.get("use_subtrees", False)}
        ours = tuple(names[int(label)] for label in labels)
    settings, notes = tokenizer_settings(params)
    notes.extend(head.notes)
    if ours != labels:
        head.label_names = dict(zip(ours, labels, strict=True))
        notes.append(f"the labels {', '.join(labels)} are {', '.join(ours)} here, except in AllenNLP's keys")
    notes.extend(other_reader(params, config["type"], "sst_tokens"))
    return head.reads({**config, **settings, **own}, notes, labels=ours)


def convert_basic(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `text_classifier`."""
    model = params.part("model")
    model.ignore("namespace", "num_labels")
    labels = vocabulary.labels(model.get("label_namespace", "labels"))
    head = Head(type="text_classifier", dropout=model.number("dropout", None) or 0.0)
    layers = [_linear(weights.part("_classification_layer."), "linear", len(labels))]
    if "feedforward" in model:
        layers = [*read_layers(model.part("feedforward"), weights.part("_feedforward.")), *layers]
    pooler = model.part("seq2vec_encoder")
    name, pooling = pooler.get("type", None), weights.part("_seq2vec_encoder.")
    if name in _POOLERS:
        pooler.ignore("embedding_dim", "pretrained_model", "requires_grad", "dropout", "load_weights")
        pooler.expect("cls_is_last_token", False, default=False)
        head.config["pooling"] = "cls"
        if name == "bert_pooler":
            layers.insert(0, _linear(pooling.part("pooler.dense."), "tanh"))
    elif "seq2seq_encoder" in model:
        head.add_encoder("encoder", model.part("seq2seq_encoder"), weights.part("_seq2seq_encoder."), columns)
        _add_average(head, model.part("seq2vec_encoder"))
    elif name == "bag_of_embeddings":
        _add_average(head, pooler)
        layers = with_columns(layers, columns)
    elif name == "cnn":
        layers = _add_convolutions(head, pooler, pooling, layers, columns)
    else:
        head.add_encoder("encoder", pooler, pooling, columns)
        head.config["pooling"] = "last"
        # Our pooling gives both directions' states at both ends; AllenNLP reads those where each direction ends.
        size = layers[0].weight.shape[1]
        weight = layers[0].weight.new_zeros(len(layers[0].weight), 2 * size)
        places = torch.arange(size)
        if head.config["encoder"].get("bidirectional"):
            places[size // 2 :] += size  # the backward direction ends at the first token
        weight[:, places] = layers[0].weight
        layers[0] = dataclasses.replace(layers[0], weight=weight)
    *output, scores = layers
    if output:
        head.add_layers("output", output, "model.feedforward")
    head.add_scores(scores, "model")
    if head.config["pooling"] != "cls":
        return _reads_texts(head, params, labels)
    # A transformer reads the text, or the pair of texts, as it is; tokens are only what white space separates.
    reader = params.part("dataset_reader")
    if (name := reader.get("type", None)) not in _PAIRS:
        return _reads_texts(head, params, labels, tokenizer="whitespace")
    reader.ignore("transformer_model_name")
    reader.expect("combine_input_fields", None, True)
    reader.expect("collapse_labels", False, default=False)
    pairs: dict[str, Any] = {"type": "snli"} if name == "snli" else {"type": "jsonl", "task": "text_pairs"}
    return head.reads({**pairs, "tokenizer": "whitespace"}, labels=labels)


def _linear(weights: Weights, activation: str, size: int | None = None) -> Layer:
    weight = weights.take("weight", size, None)
    return Layer(weight, weights.take("bias", len(weight)), activation, 0.0)


def _add_average(head: Head, pooler: Params) -> None:
    """The mean or the sum of the tokens' vectors."""
    pooler.expect("type", "bag_of_embeddings")
    pooler.ignore("embedding_dim")
    head.config["pooling"] = "mean" if pooler.get("averaged", False) else "sum"


def _add_convolutions(
    head: Head, params: Params, weights: Weights, layers: Sequence[Layer], columns: Tensor
) -> list[Layer]:
    """Convolutions with a maximum over the tokens; their projection is multiplied into the next layer."""
    params.ignore("embedding_dim")
    params.expect("conv_layer_activation", None, "relu")
    widths, filters = params.get("ngram_filter_sizes", [2, 3, 4, 5]), params.number("num_filters")
    tensors: dict[str, Tensor] = {}
    for number, width in enumerate(widths):
        layer = weights.part(f"conv_layer_{number}.")
        kernel = layer.take("weight", filters, len(columns), width)
        tensors[f"convolutions.{number}.weight"] = kernel[:, columns]
        tensors[f"convolutions.{number}.bias"] = layer.take("bias", filters)
    head.add("encoder", {"type": "cnn", "filters": filters, "widths": widths}, tensors)
    head.config["pooling"] = "max"
    first, *rest = layers
    if params.get("output_dim", None):
        projection = _linear(weights.part("projection_layer."), "linear", params.number("output_dim"))
        bias = first.bias + first.weight @ projection.bias
        first = dataclasses.replace(first, weight=first.weight @ projection.weight, bias=bias)
    return [first, *rest]


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
