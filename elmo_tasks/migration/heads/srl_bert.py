"""AllenNLP's `srl_bert`."""

from __future__ import annotations

from torch import Tensor

from elmo_tasks.migration.heads.head import Head
from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.vocabulary import AllenNlpVocabulary
from elmo_tasks.migration.weights import Weights
from elmo_tasks.text.tag_schemes import is_tag


def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `srl_bert`; see `elmo_tasks.migration.heads.head`."""
    model, reader = params.part("model"), params.part("dataset_reader")
    model.ignore("label_smoothing", "ignore_span_metric", "srl_eval_path")
    reader.expect("type", "srl")
    reader.ignore("domain_identifier", "token_indexers")
    labels = vocabulary.labels("labels")
    if wrong := [label for label in labels if not is_tag(label, "IOB2")]:
        raise MigrationError(f"the label {wrong[0]!r} is not a tag of IOB2, as those of semantic roles are")
    name = reader.get("bert_model_name")
    head = Head(
        type="srl_bert",
        lowercase="uncased" in str(name),
        ties="topk" if "data_loader" in params else "first",
    )
    layer = weights.part("tag_projection_layer.")
    head.tensors["projection.weight"] = layer.take("weight", len(labels), len(columns))
    head.tensors["projection.bias"] = layer.take("bias", len(labels))
    return head.reads({"type": "srl_conll2012"}, (), tags=labels)
