"""One file per kind of AllenNLP's models, each with a function `convert`; see `head`."""

from elmo_tasks.migration.heads import (
    basic_classifier,
    bcn,
    bidaf,
    coref,
    crf_tagger,
    decomposable_attention,
    esim,
    semantic_role_labeler,
    simple_tagger,
)

KINDS = {
    "basic_classifier": basic_classifier.convert,
    "bcn": bcn.convert,
    "bidaf": bidaf.convert,
    "coref": coref.convert,
    "crf_tagger": crf_tagger.convert,
    "decomposable_attention": decomposable_attention.convert,
    "esim": esim.convert,
    "simple_tagger": simple_tagger.convert,
    "srl": semantic_role_labeler.convert,
    "srl_bert": semantic_role_labeler.convert_bert,
}
"""The types of AllenNLP's models that are taken, and the function of each."""
