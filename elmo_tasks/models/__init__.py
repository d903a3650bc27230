"""One file per head: forward, loss, decode.

Importing this package registers every head's `"type"`.
"""

from elmo_tasks.models.biattentive_classifier import BiattentiveClassifier, BiattentiveClassifierConfig
from elmo_tasks.models.bidaf import Bidaf, BidafConfig, BidafSelfAttention, BidafSelfAttentionConfig
from elmo_tasks.models.coreference_resolver import CoreferenceResolver, CoreferenceResolverConfig
from elmo_tasks.models.crf_tagger import CrfTagger, CrfTaggerConfig
from elmo_tasks.models.esim import Esim, EsimConfig
from elmo_tasks.models.model import ModelConfig, TaskModel
from elmo_tasks.models.semantic_role_labeler import SemanticRoleLabeler, SemanticRoleLabelerConfig

__all__ = [
    "BiattentiveClassifier",
    "BiattentiveClassifierConfig",
    "Bidaf",
    "BidafConfig",
    "BidafSelfAttention",
    "BidafSelfAttentionConfig",
    "CoreferenceResolver",
    "CoreferenceResolverConfig",
    "CrfTagger",
    "CrfTaggerConfig",
    "Esim",
    "EsimConfig",
    "ModelConfig",
    "SemanticRoleLabeler",
    "SemanticRoleLabelerConfig",
    "TaskModel",
]
