"""AllenNLP's `srl`."""

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
    model, reader = params.part("model"), params.part("dataset_reader")
    model.ignore("label_smoothing", "ignore_span_metric", "srl_eval_path")
    labels = vocabulary.labels("labels")
    if wrong := [label for label in labels if not is_tag(label, "IOB2")]:
        raise MigrationError(f"the label {wrong[0]!r} is not a tag of IOB2, as those of semantic roles are")
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
    head.tensors |= projection(weights, len(labels))
    reader.expect("type", "srl")
    reader.ignore("domain_identifier")
    notes = (
        "a sentence's tags are those with the highest sum of probabilities, which AllenNLP looks for too; its search "
        "loses digits and misses them in some sentences",
    )
    return head.reads({"type": "srl_conll2012"}, notes, tags=labels)
