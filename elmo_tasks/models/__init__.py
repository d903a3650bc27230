"""One file per head: forward, loss, decode. Importing this package registers the `"type"` of every head."""

from elmo_tasks.models import (  # noqa: F401
    biattentive_classifier,
    bidaf,
    coreference_resolver,
    crf_tagger,
    decomposable_attention,
    esim,
    semantic_role_labeler,
    simple_tagger,
    text_classifier,
)
from elmo_tasks.models.model import ModelConfig, TaskModel

__all__ = ["ModelConfig", "TaskModel"]
