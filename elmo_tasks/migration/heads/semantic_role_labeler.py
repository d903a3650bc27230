"""AllenNLP's `srl` and `srl_bert`."""

from __future__ import annotations

import torch
from torch import Tensor

from elmo_tasks.migration.heads.head import Head
from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.tags import projection
from elmo_tasks.migration.vocabulary import AllenNlpVocabulary
from elmo_tasks.migration.weights import Weights
from elmo_tasks.text.tag_schemes import is_tag


def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `srl`; see `elmo_tasks.migration.heads.head`."""
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
    head.tensors |= projection(weights.part("tag_projection_layer._module."), len(labels))
    notes = (
        "a sentence's tags are those with the highest sum of probabilities, which AllenNLP looks for too; its search "
        "loses digits and misses them in some sentences",
    )
    return head.reads({"type": "srl_conll2012"}, notes, tags=labels)


def convert_bert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `srl_bert`."""
    labels, reader = _labels(params, vocabulary), params.part("dataset_reader")
    reader.ignore("token_indexers")
    head = Head(type="srl_bert", lowercase="uncased" in str(reader.get("bert_model_name")))
    head.tensors |= projection(weights.part("tag_projection_layer."), len(labels), len(columns))
    return head.reads({"type": "srl_conll2012"}, tags=labels)


def _labels(params: Params, vocabulary: AllenNlpVocabulary) -> tuple[str, ...]:
    """The tags, after the keys that both models have."""
    params.part("model").ignore("label_smoothing", "ignore_span_metric", "srl_eval_path")
    params.part("dataset_reader").expect("type", "srl")
    params.part("dataset_reader").ignore("domain_identifier")
    labels = vocabulary.labels("labels")
    if wrong := [label for label in labels if not is_tag(label, "IOB2")]:
        raise MigrationError(f"the label {wrong[0]!r} is not a tag of IOB2, as those of semantic roles are")
    return labels
