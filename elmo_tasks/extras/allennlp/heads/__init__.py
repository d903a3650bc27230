"""AllenNLP's kinds of models, each with a function that converts it; see `head`."""

from elmo_tasks.extras.allennlp.heads import classifiers, spans, taggers

KINDS = {
    "basic_classifier": classifiers.convert_basic,
    "bcn": classifiers.convert_bcn,
    "bidaf": spans.convert_bidaf,
    "coref": spans.convert_coref,
    "crf_tagger": taggers.convert_crf_tagger,
    "decomposable_attention": classifiers.convert_decomposable_attention,
    "esim": classifiers.convert_esim,
    "simple_tagger": taggers.convert_simple_tagger,
    "srl": taggers.convert_srl,
    "srl_bert": taggers.convert_srl_bert,
}
"""The types of AllenNLP's models that are taken, and the function of each."""
