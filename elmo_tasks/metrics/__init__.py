"""The official scorers, reproduced."""

from elmo_tasks.metrics.coreference import CoreferenceScores
from elmo_tasks.metrics.correlation import Correlation
from elmo_tasks.metrics.labels import Accuracy, LabelSetF1
from elmo_tasks.metrics.metric import Metric
from elmo_tasks.metrics.span_f1 import SpanF1
from elmo_tasks.metrics.squad import Squad2Scores, SquadScores
from elmo_tasks.metrics.srl import SrlF1

__all__ = [
    "Accuracy",
    "CoreferenceScores",
    "Correlation",
    "LabelSetF1",
    "Metric",
    "SpanF1",
    "Squad2Scores",
    "SquadScores",
    "SrlF1",
]
