"""The parts that heads are made of: embedders, encoders, dropout and the conditional random field.

Importing this package registers every encoder's `"type"`.
"""

from elmo_tasks.modules.alternating_lstm import AlternatingLstm, AlternatingLstmConfig
from elmo_tasks.modules.crf import ConditionalRandomField, TransitionConstraints
from elmo_tasks.modules.dropout import VariationalDropout
from elmo_tasks.modules.embedder import EmbeddedTokens, Embedder, EmbedderConfig
from elmo_tasks.modules.encoders import (
    Encoder,
    EncoderConfig,
    StackedBiGru,
    StackedBiGruConfig,
    StackedBiLstm,
    StackedBiLstmConfig,
)

__all__ = [
    "AlternatingLstm",
    "AlternatingLstmConfig",
    "ConditionalRandomField",
    "EmbeddedTokens",
    "Embedder",
    "EmbedderConfig",
    "Encoder",
    "EncoderConfig",
    "StackedBiGru",
    "StackedBiGruConfig",
    "StackedBiLstm",
    "StackedBiLstmConfig",
    "TransitionConstraints",
    "VariationalDropout",
]
