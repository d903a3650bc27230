"""One file per kind of AllenNLP's models, each with a function `convert`; see `head`."""

KINDS = {
    "bcn": "bcn",
    "bidaf": "bidaf",
    "coref": "coref",
    "crf_tagger": "crf_tagger",
    "decomposable_attention": "decomposable_attention",
    "esim": "esim",
    "simple_tagger": "simple_tagger",
    "srl": "semantic_role_labeler",
}
"""The types of AllenNLP's models that are taken, and the module of each."""
