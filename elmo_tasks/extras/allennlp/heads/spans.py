"""AllenNLP's `bidaf`, and its `coref` as in 0.x and in 2.x; see `elmo_tasks.extras.allennlp.heads.head`."""

from __future__ import annotations

import torch
from torch import Tensor

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Params, Weights
from elmo_tasks.extras.allennlp.heads.head import Head, Layer, feed_forward, other_reader, read_layers


def convert_bidaf(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `bidaf`."""
    model = params.part("model")
    head = Head(
        type="bidaf",
        num_highway_layers=model.number("num_highway_layers"),
        dropout=model.number("dropout", 0.2),
        max_answer_length=None,
        window=None,
    )
    size = len(columns)
    for number in range(head.config["num_highway_layers"]):
        # The gate says in AllenNLP how much of the input passes, and here how much does not.
        layer = weights.part(f"_highway_layer._module._layers.{number}.")
        transform, gate = layer.take("weight", 2 * size, size)[:, columns].chunk(2)
        transform_bias, gate_bias = layer.take("bias", 2 * size).chunk(2)
        head.tensors |= {
            f"text_encoder.highways.{number}.transform.weight": transform[columns],
            f"text_encoder.highways.{number}.transform.bias": transform_bias[columns],
            f"text_encoder.highways.{number}.carry.weight": -gate[columns],
            f"text_encoder.highways.{number}.carry.bias": -gate_bias[columns],
        }
    head.add_encoder("text_encoder.encoder", model.part("phrase_layer"), weights.part("_phrase_layer."), columns)
    _add_attention(head, model, weights.part("_matrix_attention."))
    head.add_encoder("modeling_encoder", model.part("modeling_layer"), weights.part("_modeling_layer."))
    head.add_encoder("end_encoder", model.part("span_end_encoder"), weights.part("_span_end_encoder."))
    for name in ("start", "end"):
        predictor = weights.part(f"_span_{name}_predictor._module.")
        head.tensors[f"{name}.weight"] = predictor.take("weight", 1, None)
        predictor.take("bias", 1)  # the same for all tokens, so that it changes no probability
    notes = other_reader(params, "squad", "squad", "squad1")
    if not model.get("mask_lstms", True):
        notes = (*notes, "mask_lstms is false in AllenNLP: predictions are those of its batches of one example")
    return head.reads({"type": "squad"}, notes)


def _add_attention(head: Head, model: Params, weights: Weights) -> None:
    """The scores of pairs of tokens, linear in [x; y; x * y], whose three parts are separate here."""
    settings = model.part("similarity_function" if "similarity_function" in model else "matrix_attention")
    settings.expect("type", "linear")
    settings.expect("combination", "x,y,x*y", default="x,y")
    settings.expect("activation", "linear", None)
    size = settings.number("tensor_1_dim")
    settings.expect("tensor_2_dim", size)
    scores = weights.part("_similarity_function." if "_similarity_function._weight_vector" in weights else "")
    for name, values in zip(
        ("first", "second", "product"), scores.take("_weight_vector", 3 * size).split(size), strict=True
    ):
        head.tensors[f"attention.scores.{name}"] = values
    scores.take("_bias", 1)  # the same for all pairs, so that it changes no softmax


def convert_coref(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `coref` with `as_allennlp`."""
    model = params.part("model")
    coarse_to_fine, order = bool(model.get("coarse_to_fine", False)), model.number("inference_order", 1)
    max_width = params.part("dataset_reader").number("max_span_width")
    feature_size = model.number("feature_size")
    head = Head(
        type="coref",
        as_allennlp=True,
        lexical_dropout=model.number("lexical_dropout", 0.2),
        feature_size=feature_size,
        max_span_width=max_width,
        spans_per_word=model.number("spans_per_word"),
        max_antecedents=model.number("max_antecedents"),
        coarse_to_fine=coarse_to_fine,
        inference_order=order,
        max_training_sentences=None,
    )
    head.add_encoder("encoder.encoder", model.part("context_layer"), weights.part("_context_layer."), columns)
    attention = weights.part("_attentive_span_extractor._global_attention._module.")
    head.tensors["spans.attention.weight"] = attention.take("weight", 1, len(columns))[:, columns]
    attention.take("bias", 1)  # the same for all tokens, so that it changes no softmax
    widths = weights.part("_endpoint_span_extractor._span_width_embedding.")
    widths_shape = model.number("max_span_width"), feature_size
    distances = weights.take("_distance_embedding.weight", 10, feature_size)
    head.tensors["spans.width_embedding"] = widths.take("weight", *widths_shape)[:max_width]
    head.tensors["antecedents.embeddings.distance"] = distances[1:]  # no span has the distance 0

    scorer, scores = _mention_scorer(weights)
    mentions = read_layers(model.part("mention_feedforward"), scorer)
    pairs = read_layers(model.part("antecedent_feedforward"), weights.part("_antecedent_feedforward._module."))
    # For each feature of a span, [start; end; head; width], the one of AllenNLP's, [start; end; width; head].
    size = mentions[0].weight.shape[1]
    ends = size - feature_size - len(columns)
    span = torch.cat([torch.arange(ends), ends + feature_size + columns, torch.arange(ends, ends + feature_size)])
    pair = torch.cat([span, span + size, span + 2 * size, torch.arange(3 * size, 3 * size + feature_size)])
    _add_scorer(head, "spans.mention_scorer", mentions, scores, span)
    _add_scorer(head, "antecedents.scorer", pairs, weights.part("_antecedent_scorer._module."), pair)
    if coarse_to_fine:
        coarse = weights.part("_coarse2fine_scorer.")
        head.tensors["antecedents.coarse.weight"] = coarse.take("weight", size, size)[span][:, span]
        head.tensors["antecedents.coarse.bias"] = coarse.take("bias", size)[span]
    if order > 1:
        gate = weights.part("_span_updating_gated_sum._gate.")
        both = torch.cat([span, span + size])  # a span, and the mean of its candidates
        head.tensors["antecedents.gate.weight"] = gate.take("weight", 1, 2 * size)[:, both]
        head.tensors["antecedents.gate.bias"] = gate.take("bias", 1)
    head.config |= {
        "hidden_sizes": [len(layer.bias) for layer in mentions],
        "pair_hidden_sizes": [len(layer.bias) for layer in pairs],
        "dropout": max(layer.dropout for layer in (*mentions, *pairs)),
    }
    return head.reads({"type": "coref_conll2012"}, other_reader(params, "coref_conll2012", "coref"), genres=())


def _mention_scorer(weights: Weights) -> tuple[Weights, Weights]:
    """The hidden layers of the scorer of mentions and its last layer, which 0.x has inside a pruner."""
    pruner = weights.part("_mention_pruner._scorer.")
    if pruner.names():
        return pruner.part("0._module."), pruner.part("1._module.")
    return weights.part("_mention_feedforward._module."), weights.part("_mention_scorer._module.")


def _add_scorer(head: Head, name: str, layers: list[Layer], scores: Weights, columns: Tensor) -> None:
    """A scorer of mentions or of pairs, whose first layer is separate here."""
    if {layer.activation for layer in layers} != {"relu"}:
        raise MigrationError("config.json: the scorers of coreference have an activation other than relu")
    first, *rest = layers
    head.tensors |= {
        f"{name}.first.weight": first.weight[:, columns],
        f"{name}.first.bias": first.bias,
        f"{name}.output.weight": scores.take("weight", 1, len(layers[-1].bias)),
        f"{name}.output.bias": scores.take("bias", 1),
    }
    if rest:
        _, tensors = feed_forward(rest, name)
        head.tensors |= {f"{name}.rest.{tensor}": values for tensor, values in tensors.items()}
