"""AllenNLP's `crf_tagger`, among others its recognizers of named entities, `simple_tagger`, `srl` and `srl_bert`.

See `elmo_tasks.extras.allennlp.heads.head`.

# K tags
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Params, Weights
from elmo_tasks.extras.allennlp.heads.head import Head, read_layers
from elmo_tasks.modules.crf import TransitionConstraints
from elmo_tasks.text.tag_schemes import TagScheme, is_tag

_SCHEMES: dict[str, TagScheme] = {"BIO": "IOB2", "IOB1": "IOB1", "BIOUL": "BIOUL", "BMES": "BMES"}
_COLUMNS = {"pos": (0, 1), "chunk": (0, 2)}  # of CoNLL-2003; entities are in the last


def convert_crf_tagger(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `crf_tagger`."""
    model = params.part("model")
    model.ignore("calculate_span_f1", "verbose_metrics", "include_start_end_transitions", "top_k")
    model.ignore("label_weights", "weight_strategy")
    labels = vocabulary.labels(model.get("label_namespace", "labels"))
    scheme = _scheme_of(model, "label_encoding") or _scheme_of(model, "constraint_type")
    if model.get("constrain_crf_decoding", None) is False:
        scheme = None
    dropout = model.number("dropout", None) or 0.0
    head = Head(type="crf_tagger", tag_scheme=scheme, dropout=dropout)
    head.add_encoder("encoder", model.part("encoder"), weights.part("encoder."), columns)
    if dropout and "hidden_sizes" in head.config["encoder"]:  # AllenNLP's is also on the encoder's input
        head.config["encoder"]["dropout"] = dropout
    if "feedforward" in model:
        layers = read_layers(model.part("feedforward"), weights.part("_feedforward."))
        head.add_layers("feedforward", layers, model.path("feedforward"))
    head.tensors |= _projection(weights.part("tag_projection_layer._module."), len(labels))
    head.tensors |= _transitions(weights.part("crf."), labels, scheme)
    config, notes = _tagged_sentences(params.part("dataset_reader"), scheme)
    return head.reads(config, notes, tags=labels)


def _transitions(weights: Weights, labels: tuple[str, ...], scheme: TagScheme | None) -> dict[str, Tensor]:
    """The scores of transitions. Without those to the first tag and from the last one, they are zero."""
    size = len(labels)
    between = weights.take("transitions", size, size)
    start, end = (weights.take_optional(f"{name}_transitions") for name in ("start", "end"))
    weights.take_optional("label_weights")  # only training reads them
    if wrong := [label for label in labels if scheme and not is_tag(label, scheme)]:
        raise MigrationError(f"the label {wrong[0]!r} is not a tag of {scheme}, the model's label_encoding")
    if (mask := weights.take_optional("_constraint_mask")) is not None:  # the start and the end are last
        constraints = TransitionConstraints.of_scheme(labels, scheme) if scheme else TransitionConstraints.none(size)
        ours = constraints.start, constraints.between, constraints.end
        theirs = mask[-2:-1, :-2].squeeze(0), mask[:-2, :-2], mask[:-2, -1]
        if not all(map(torch.equal, (each.to(mask.dtype) for each in ours), theirs)):
            expected = f"those of {scheme}" if scheme else "none"
            raise MigrationError(f"weights.th: crf._constraint_mask has other constraints; expected {expected}")
    return {
        "crf.transitions": between,
        "crf.start_transitions": between.new_zeros(size) if start is None else start,
        "crf.end_transitions": between.new_zeros(size) if end is None else end,
    }


def convert_simple_tagger(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `simple_tagger`."""
    model, reader = params.part("model"), params.part("dataset_reader")
    model.ignore("calculate_span_f1", "verbose_metrics")
    labels = vocabulary.labels(model.get("label_namespace", "labels"))
    scheme = _scheme_of(model, "label_encoding") or _scheme_of(reader, "coding_scheme")
    if scheme and not all(is_tag(label, scheme) for label in labels):
        scheme = None  # it only says how predictions are scored
    head = Head(type="simple_tagger", tag_scheme=scheme)
    head.add_encoder("encoder", model.part("encoder"), weights.part("encoder."), columns)
    head.tensors |= _projection(weights.part("tag_projection_layer._module."), len(labels))
    config, notes = _tagged_sentences(reader, scheme)
    return head.reads(config, notes, tags=labels)


def convert_srl(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `srl`."""
    model, labels = params.part("model"), _labels(params, vocabulary)
    size = model.number("binary_feature_dim")
    head = Head(
        type="srl",
        predicate_size=size,
        dropout=model.number("embedding_dropout", 0.0),
        decoded_scores="probabilities",
    )
    inputs = torch.cat([columns, len(columns) + torch.arange(size)])  # the flag's features come last on both sides
    head.add_encoder("encoder", model.part("encoder"), weights.part("encoder."), inputs)
    head.tensors["predicate.weight"] = weights.take("binary_feature_embedding.weight", 2, size)
    head.tensors |= _projection(weights.part("tag_projection_layer._module."), len(labels))
    return head.reads({"type": "srl_conll2012"}, tags=labels)


def convert_srl_bert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `srl_bert`."""
    labels, reader = _labels(params, vocabulary), params.part("dataset_reader")
    reader.ignore("token_indexers")
    head = Head(type="srl_bert", lowercase="uncased" in str(reader.get("bert_model_name")))
    head.tensors |= _projection(weights.part("tag_projection_layer."), len(labels), len(columns))
    return head.reads({"type": "srl_conll2012"}, tags=labels)


def _labels(params: Params, vocabulary: AllenNlpVocabulary) -> tuple[str, ...]:
    """The tags, after the keys that both models have."""
    params.part("model").ignore("label_smoothing", "ignore_span_metric", "srl_eval_path")
    params.part("dataset_reader").expect("type", "srl")
    params.part("dataset_reader").ignore("domain_identifier")
    return vocabulary.labels("labels")


def _scheme_of(params: Params, key: str) -> TagScheme | None:
    """The tag scheme that a key names in AllenNLP's words; None if it is missing or null."""
    params.expect(key, *_SCHEMES, None)
    return _SCHEMES.get(params.get(key, None))


def _tagged_sentences(reader: Params, scheme: TagScheme | None) -> tuple[dict[str, Any], list[str]]:
    """Our reader of tagged sentences, and what is to be said about it."""
    name = reader.get("type", None)
    config: dict[str, Any] = {"type": "conll2003", "tag_scheme": scheme}
    if name == "ontonotes_ner":
        reader.ignore("domain_identifier", "coding_scheme", "label_namespace")
        return {"type": "ner_conll2012", "tag_scheme": scheme}, []
    if name != "conll2003":
        note = "data are read as columns, the last being the tag (conll2003)"
        return config, [f"there is no reader {str(name)[:80]!r} here; {note}"]
    tag_label = reader.get("tag_label", "ner")
    reader.ignore("coding_scheme", "feature_labels", "label_namespace", "convert_to_coding_scheme")
    if tag_label in _COLUMNS:
        config["columns"] = list(_COLUMNS[tag_label])
    return config, []


def _projection(weights: Weights, num_tags: int, size: int | None = None) -> dict[str, Tensor]:
    """The tensors of the layer whose outputs are the tags' scores."""
    return {
        "projection.weight": weights.take("weight", num_tags, size),
        "projection.bias": weights.take("bias", num_tags),
    }
