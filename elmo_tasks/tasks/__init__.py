"""What a task is, one file for each kind: what its readers, heads, metric and predictor agree on."""

from elmo_tasks.tasks.classification import Classification, MultiLabel
from elmo_tasks.tasks.coreference import Coreference
from elmo_tasks.tasks.reading import Reading
from elmo_tasks.tasks.regression import PairRegression, Regression
from elmo_tasks.tasks.semantic_roles import SemanticRoles
from elmo_tasks.tasks.tagging import Tagging
from elmo_tasks.tasks.task import Batch, Task, TaskRegistry
from elmo_tasks.tasks.text_pairs import TextPairs

__all__ = [
    "Batch",
    "Classification",
    "Coreference",
    "MultiLabel",
    "PairRegression",
    "Reading",
    "Regression",
    "SemanticRoles",
    "Tagging",
    "Task",
    "TaskRegistry",
    "TextPairs",
]
