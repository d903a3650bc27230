"""One file per head: forward, loss, decode.

Importing this package registers every head's `"type"`.
"""

from elmo_tasks.models.crf_tagger import CrfTagger, CrfTaggerConfig
from elmo_tasks.models.model import ModelConfig, TaskModel

__all__ = ["CrfTagger", "CrfTaggerConfig", "ModelConfig", "TaskModel"]
