"""AllenNLP's `simple_tagger`."""

from __future__ import annotations

from torch import Tensor

from elmo_tasks.migration.heads.head import Head
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.tags import projection, scheme_of, tagged_sentences
from elmo_tasks.migration.vocabulary import AllenNlpVocabulary
from elmo_tasks.migration.weights import Weights
from elmo_tasks.text.tag_schemes import is_tag


def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `simple_tagger`; see `elmo_tasks.migration.heads.head`."""
    model, reader = params.part("model"), params.part("dataset_reader")
    model.ignore("calculate_span_f1", "verbose_metrics")
    labels = vocabulary.labels(model.get("label_namespace", "labels"))
    scheme = scheme_of(model, "label_encoding") or scheme_of(reader, "coding_scheme")
    if scheme and not all(is_tag(label, scheme) for label in labels):
        scheme = None  # it only says how predictions are scored
    head = Head(type="simple_tagger", tag_scheme=scheme)
    head.add_encoder("encoder", model.part("encoder"), weights.part("encoder."), columns)
    head.tensors |= projection(weights.part("tag_projection_layer._module."), len(labels))
    config, notes = tagged_sentences(reader, scheme)
    return head.reads(config, notes, tags=labels)
