"""AllenNLP's `bidaf`, and its `coref` as in 0.x and in 2.x."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import Weights
from elmo_tasks.extras.allennlp.heads.head import Head, Layer, feed_forward, read_layers


def convert_bidaf(head: Head) -> None:
    """The same model as our `bidaf`."""
    model, columns = head.model, head.columns
    num_layers, size = model.number("num_highway_layers"), len(columns)
    head.config |= {"num_highway_layers": num_layers, "dropout": model.number("dropout", 0.2)}
    head.config |= {"max_answer_length": None, "window": None}
    for number in range(num_layers):
        # The gate says in AllenNLP how much of the input passes, and here how much does not.
        layer = head.weights.part(f"_highway_layer._module._layers.{number}.")
        weight, bias = layer.take("weight", 2 * size, size)[:, columns], layer.take("bias", 2 * size)
        for name, tensor in (("weight", weight), ("bias", bias)):
            transform, gate = tensor.chunk(2)
            ours = f"text_encoder.highways.{number}"
            head.tensors |= {f"{ours}.transform.{name}": transform[columns], f"{ours}.carry.{name}": -gate[columns]}
    head.add_encoder("text_encoder.encoder", "phrase_layer", columns)
    _add_attention(head)
    head.add_encoder("modeling_encoder", "modeling_layer")
    head.add_encoder("end_encoder", "span_end_encoder")
    for name in ("start", "end"):
        predictor = head.weights.part(f"_span_{name}_predictor._module.")
        head.tensors[f"{name}.weight"] = predictor.take("weight", 1, None)
        predictor.take("bias", 1)  # the same for all tokens, so that it changes no probability
    head.note_reader("squad", "squad", "squad1")
    if not model.get("mask_lstms", True):
        head.notes.append("mask_lstms is false in AllenNLP: predictions are those of its batches of one example")
    head.dataset_reader = {"type": "squad"}


def _add_attention(head: Head) -> None:
    """The scores of pairs of tokens, linear in [x; y; x * y], whose three parts are separate here."""
    settings = head.model.part("similarity_function" if "similarity_function" in head.model else "matrix_attention")
    settings.expect("type", "linear")
    settings.expect("combination", "x,y,x*y", default="x,y")
    settings.expect("activation", "linear", None)
    size = settings.number("tensor_1_dim")
    settings.expect("tensor_2_dim", size)
    scores = head.weights.part("_matrix_attention.")
    if "_similarity_function._weight_vector" in scores:
        scores = scores.part("_similarity_function.")
    parts = scores.take("_weight_vector", 3 * size).split(size)
    head.tensors |= dict(
        zip((f"attention.scores.{name}" for name in ("first", "second", "product")), parts, strict=True)
    )
    scores.take("_bias", 1)  # the same for all pairs, so that it changes no softmax


def convert_coref(head: Head) -> None:
    """The same model as our `coref` with `as_allennlp`."""
    model, weights, columns = head.model, head.weights, head.columns
    max_width, feature_size = head.reader.number("max_span_width"), model.number("feature_size")
    head.config |= {
        "as_allennlp": True,
        "lexical_dropout": model.number("lexical_dropout", 0.2),
        "feature_size": feature_size,
        "max_span_width": max_width,
        "spans_per_word": model.number("spans_per_word"),
        "max_antecedents": model.number("max_antecedents"),
        "coarse_to_fine": bool(model.get("coarse_to_fine", False)),
        "inference_order": model.number("inference_order", 1),
        "max_training_sentences": None,
    }
    head.add_encoder("encoder.encoder", "context_layer", columns)
    attention = weights.part("_attentive_span_extractor._global_attention._module.")
    head.tensors["spans.attention.weight"] = attention.take("weight", 1, len(columns))[:, columns]
    attention.take("bias", 1)  # the same for all tokens, so that it changes no softmax
    widths = weights.part("_endpoint_span_extractor._span_width_embedding.")
    widths_shape = model.number("max_span_width"), feature_size
    distances = weights.take("_distance_embedding.weight", 10, feature_size)
    head.tensors["spans.width_embedding"] = widths.take("weight", *widths_shape)[:max_width]
    head.tensors["antecedents.embeddings.distance"] = distances[1:]  # no span has the distance 0

    # The hidden layers of the scorer of mentions and its last layer are in a pruner in 0.x.
    pruner = weights.part("_mention_pruner._scorer.")
    names = ("_mention_pruner._scorer.0", "_mention_pruner._scorer.1")
    hidden, last = names if pruner.names() else ("_mention_feedforward", "_mention_scorer")
    mentions = read_layers(model.part("mention_feedforward"), weights.part(f"{hidden}._module."))
    pairs = read_layers(model.part("antecedent_feedforward"), weights.part("_antecedent_feedforward._module."))
    # For each feature of a span, [start; end; head; width], the one of AllenNLP's, [start; end; width; head].
    size = mentions[0].weight.shape[1]
    ends = size - feature_size - len(columns)
    span = torch.cat([torch.arange(ends), ends + feature_size + columns, torch.arange(ends, ends + feature_size)])
    pair = torch.cat([span, span + size, span + 2 * size, torch.arange(3 * size, 3 * size + feature_size)])
    _add_scorer(head, "spans.mention_scorer", mentions, weights.part(f"{last}._module."), span)
    _add_scorer(head, "antecedents.scorer", pairs, weights.part("_antecedent_scorer._module."), pair)
    if head.config["coarse_to_fine"]:
        coarse = weights.part("_coarse2fine_scorer.")
        head.tensors["antecedents.coarse.weight"] = coarse.take("weight", size, size)[span][:, span]
        head.tensors["antecedents.coarse.bias"] = coarse.take("bias", size)[span]
    if head.config["inference_order"] > 1:
        gate = weights.part("_span_updating_gated_sum._gate.")
        both = torch.cat([span, span + size])  # a span, and the mean of its candidates
        head.tensors["antecedents.gate.weight"] = gate.take("weight", 1, 2 * size)[:, both]
        head.tensors["antecedents.gate.bias"] = gate.take("bias", 1)
    head.config |= {
        "hidden_sizes": [len(layer.bias) for layer in mentions],
        "pair_hidden_sizes": [len(layer.bias) for layer in pairs],
        "dropout": max(layer.dropout for layer in (*mentions, *pairs)),
    }
    head.note_reader("coref_conll2012", "coref")
    head.dataset_reader, head.labels = {"type": "coref_conll2012"}, {"genres": ()}


def _add_scorer(head: Head, name: str, layers: Sequence[Layer], scores: Weights, columns: Tensor) -> None:
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
