"""The official scorers, reproduced."""

from elmo_tasks.metrics.accuracy import Accuracy
from elmo_tasks.metrics.metric import Metric
from elmo_tasks.metrics.span_f1 import SpanF1

__all__ = ["Accuracy", "Metric", "SpanF1"]
