"""One file per head: forward, loss, decode. A head is imported when a config has its `"type"`."""

from elmo_tasks import hooks
from elmo_tasks.models.embedder import Embedder, EmbedderConfig
from elmo_tasks.models.model import ModelConfig, TaskModel

HEADS = {
    "bcn": "elmo_tasks.models.biattentive_classifier:BiattentiveClassifierConfig",
    "bidaf_self_attention": "elmo_tasks.models.bidaf:BidafSelfAttentionConfig",
    "coref": "elmo_tasks.models.coreference_resolver:CoreferenceResolverConfig",
    "crf_tagger": "elmo_tasks.models.crf_tagger:CrfTaggerConfig",
    "esim": "elmo_tasks.models.inference:EsimConfig",
    "srl": "elmo_tasks.models.semantic_role_labeler:SemanticRoleLabelerConfig",
}
"""The configs of the heads, by `"type"`."""

hooks.announce(ModelConfig.__name__, HEADS)

__all__ = ["Embedder", "EmbedderConfig", "ModelConfig", "TaskModel"]
