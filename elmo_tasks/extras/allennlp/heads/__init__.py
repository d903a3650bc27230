"""AllenNLP's kinds of models, each with a function that converts it; see `head`."""

from torch import Tensor

from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Params, Weights
from elmo_tasks.extras.allennlp.heads import classifiers, spans, taggers
from elmo_tasks.extras.allennlp.heads.head import Head

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


def convert_head(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The head of a model of one of these types; see `Head`."""
    head = Head(params, weights, vocabulary, columns)
    kind = head.model.get("type")
    head.config["type"] = "text_classifier" if kind == "basic_classifier" else kind
    KINDS[kind](head)
    return head
