"""AllenNLP's classifiers of texts, `bcn` and `basic_classifier`, and of pairs, `esim` and `decomposable_attention`.

# D features of the embedder's output, P features of a pooled text
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from elmo_tasks.extras.allennlp.archive import Params, Untrained, Weights
from elmo_tasks.extras.allennlp.heads.head import Head, Layer, linear_layer, with_columns
from elmo_tasks.text.vocabulary import SENTIMENT_LABELS

# By the reader's classes: our reader's number of them, and the names of its labels.
_SST = {"5-class": (5, SENTIMENT_LABELS), "2-class": (2, ("negative", "positive"))}


def convert_bcn(head: Head) -> None:
    """The same model as our `bcn`."""
    for name in ("embedding_dropout", "integrator_dropout"):
        head.config[name] = head.model.number(name)
    pre_encoder = with_columns(head.layers("pre_encode_feedforward"), head.columns)
    head.add_layers("pre_encoder", pre_encoder, "pre_encode_feedforward")
    head.add_encoder("encoder", "encoder")
    head.add_encoder("integrator", "integrator")
    layers = head.layers("output_layer")
    # The text pooled in four ways is concatenated in the order max, min, mean, attention; here it is max, mean, min.
    pooled_size = layers[0].weight.shape[1]
    most, least, mean, attended = torch.arange(pooled_size).chunk(4)
    pooling = head.weights.part("_self_attentive_pooling_projection.")
    head.tensors["attentive_pooling.score.weight"] = pooling.take("weight", 1, pooled_size // 4)
    pooling.take("bias", 1)  # the same for all tokens, so that it changes no softmax
    layers = with_columns(layers, torch.cat([most, mean, least, attended]))
    if isinstance(head.weights, Untrained):
        layers[-1] = dataclasses.replace(layers[-1], activation="linear")
        head.notes.append("model.output_layer: the last layer is linear, and all others have the highest dropout")
    elif layers[-1].activation == "maxout":
        num_labels = len(layers[-1].bias) // layers[-1].pieces
        layers.append(Layer(torch.eye(num_labels), torch.zeros(num_labels), "linear"))
    head.add_output(layers, "output_layer")
    _read_texts(head)


def _read_texts(head: Head, **own: str) -> None:
    """The reader of texts: that of SST, with our names of the labels, or that of JSON lines."""
    reader, labels = head.reader, head.own_labels()
    head.dataset_reader = {"type": "jsonl", "task": "classification"}
    ours = labels
    granularity = reader.get("granularity", "5-class")
    if reader.get("type", None) == "sst_tokens" and granularity in _SST:
        count, names = _SST[granularity]
        head.dataset_reader = {"type": "sst", "granularity": count, "subtrees": reader.get("use_subtrees", False)}
        ours = tuple(names[int(label)] for label in labels)
    head.dataset_reader |= head.tokenizer_settings() | own
    if ours != labels:
        head.label_names = dict(zip(ours, labels, strict=True))
        head.notes.append(f"the labels {', '.join(labels)} are {', '.join(ours)} here, except in AllenNLP's keys")
    head.note_reader(head.dataset_reader["type"], "sst_tokens")
    head.labels = {"labels": ours}


def convert_basic(head: Head) -> None:
    """The same model as our `text_classifier`."""
    model, reader = head.model, head.reader
    model.ignore("namespace", "num_labels")
    head.config["dropout"] = model.number("dropout", None) or 0.0
    layers = [linear_layer(head.weights.part("_classification_layer."), size=len(head.own_labels()))]
    if "feedforward" in model:
        layers = [*head.layers("feedforward"), *layers]
    pooler = model.part("seq2vec_encoder")
    name, pooling = pooler.get("type", None), head.weights.part("_seq2vec_encoder.")
    if name in ("cls_pooler", "bert_pooler"):
        pooler.ignore("embedding_dim", "pretrained_model", "requires_grad", "dropout", "load_weights")
        pooler.expect("cls_is_last_token", False, default=False)
        head.config["pooling"] = "cls"
        if name == "bert_pooler":
            layers.insert(0, linear_layer(pooling.part("pooler.dense."), "tanh"))
    elif "seq2seq_encoder" in model:
        head.add_encoder("encoder", "seq2seq_encoder", head.columns)
        _add_average(head, pooler)
    elif name == "bag_of_embeddings":
        _add_average(head, pooler)
        layers = with_columns(layers, head.columns)
    elif name == "cnn":
        layers = _add_convolutions(head, pooler, pooling, layers)
    else:
        head.add_encoder("encoder", "seq2vec_encoder", head.columns)
        head.config["pooling"] = "last"
        # Our pooling gives both directions' states at both ends; AllenNLP reads those where each direction ends.
        size = layers[0].weight.shape[1]
        weight = layers[0].weight.new_zeros(len(layers[0].weight), 2 * size)
        places = torch.arange(size)
        if head.config["encoder"].get("bidirectional"):
            places[size // 2 :] += size  # the backward direction ends at the first token
        weight[:, places] = layers[0].weight
        layers[0] = dataclasses.replace(layers[0], weight=weight)
    head.add_output(layers, "feedforward")
    if head.config["pooling"] != "cls":
        _read_texts(head)
        return
    # A transformer reads the text, or the pair of texts, as it is; tokens are only what white space separates.
    if (kind := reader.get("type", None)) not in ("snli", "transformer_superglue_rte"):
        _read_texts(head, tokenizer="whitespace")
        return
    reader.ignore("transformer_model_name")
    reader.expect("combine_input_fields", None, True)
    reader.expect("collapse_labels", False, default=False)
    pairs: dict[str, Any] = {"type": "snli"} if kind == "snli" else {"type": "jsonl", "task": "text_pairs"}
    head.dataset_reader = {**pairs, "tokenizer": "whitespace"}
    head.labels = {"labels": head.own_labels()}


def _add_average(head: Head, pooler: Params) -> None:
    """The mean or the sum of the tokens' vectors."""
    pooler.expect("type", "bag_of_embeddings")
    pooler.ignore("embedding_dim")
    head.config["pooling"] = "mean" if pooler.get("averaged", False) else "sum"


def _add_convolutions(head: Head, params: Params, weights: Weights, layers: Sequence[Layer]) -> list[Layer]:
    """Convolutions with a maximum over the tokens; their projection is multiplied into the next layer."""
    params.ignore("embedding_dim")
    params.expect("conv_layer_activation", None, "relu")
    widths, filters = params.get("ngram_filter_sizes", [2, 3, 4, 5]), params.number("num_filters")
    for number, width in enumerate(widths):
        layer = weights.part(f"conv_layer_{number}.")
        kernel = layer.take("weight", filters, len(head.columns), width)
        head.tensors[f"encoder.convolutions.{number}.weight"] = kernel[:, head.columns]
        head.tensors[f"encoder.convolutions.{number}.bias"] = layer.take("bias", filters)
    head.config |= {"encoder": {"type": "cnn", "filters": filters, "widths": widths}, "pooling": "max"}
    first, *rest = layers
    if params.get("output_dim", None) and isinstance(weights, Untrained):
        head.notes.append(f"{params.path('output_dim')}: not available; the next layer reads all filters")
    elif params.get("output_dim", None):
        projection = linear_layer(weights.part("projection_layer."), size=params.number("output_dim"))
        bias = first.bias + first.weight @ projection.bias
        first = dataclasses.replace(first, weight=first.weight @ projection.weight, bias=bias)
    return [first, *rest]


def convert_esim(head: Head) -> None:
    """The same model as our `esim`."""
    dropout = head.config["dropout"] = head.model.number("dropout", 0.5)
    head.add_encoder("encoder", "encoder", head.columns, dropout=dropout)
    head.add_layers("projection", head.layers("projection_feedforward"), "projection_feedforward")
    head.add_encoder("composition", "inference_encoder", dropout=dropout)
    layers = [*head.layers("output_feedforward"), *head.layers("output_logit")]
    head.add_output(layers, "output_feedforward", "output_logit")
    _read_pairs(head)


def convert_decomposable_attention(head: Head) -> None:
    """The same model as our `decomposable_attention`."""
    _read_pairs(head)
    head.config["end_token"] = head.dataset_reader.get("end_token")
    both = torch.cat([head.columns, head.columns + len(head.columns)])  # a token, and what it is aligned with
    for name, columns in (("attend", head.columns), ("compare", both)):
        layers = head.layers(f"{name}_feedforward", f"_{name}_feedforward._module.")
        head.add_layers(name, with_columns(layers, columns), f"{name}_feedforward")
    head.add_output(head.layers("aggregate_feedforward"), "aggregate_feedforward")


def _read_pairs(head: Head) -> None:
    """The reader of text pairs, with the token that AllenNLP's adds to each text's end; only dot products align."""
    attention = head.model.part("similarity_function" if "similarity_function" in head.model else "matrix_attention")
    attention.expect("type", "dot_product")
    attention.expect("scale_output", False, default=False)
    head.dataset_reader = {"type": "snli", **head.tokenizer_settings(most_ends=1)}
    head.note_reader("snli", "snli")
    head.labels = {"labels": head.vocabulary.labels()}
