from __future__ import annotations

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.tasks import Classification
from elmo_tasks.text.vocabulary import Vocabulary, VocabularyConfig

TASK = Classification()
EXAMPLES = [
    {"tokens": ["The", "bright", "opera", "(", "and/or", ")"], "label": "very positive"},
    {"tokens": ["The", "opera"], "label": "neutral"},
    {"tokens": ["Never"], "label": "very negative"},
    {"tokens": ["The", "opera", "drags"], "label": "negative"},
    {"tokens": ["bright"], "label": "positive"},
]


@pytest.fixture
def vocabulary() -> Vocabulary:
    return VocabularyConfig().build(TASK, EXAMPLES, [])


def test_collate(vocabulary: Vocabulary) -> None:
    assert vocabulary.labels == {"labels": ("negative", "neutral", "positive", "very negative", "very positive")}
    examples = EXAMPLES[:4]
    batch = TASK.collate(examples, vocabulary)
    assert batch.examples is examples
    assert batch.tokens.texts == [example["tokens"] for example in examples]
    assert [TASK.length(example) for example in examples] == batch.tokens.mask.sum(1).tolist() == [6, 2, 1, 3]
    assert batch.labels is not None
    assert [vocabulary.labels["labels"][row] for row in batch.labels] == [example["label"] for example in examples]


def test_collate_without_labels(vocabulary: Vocabulary) -> None:
    batch = TASK.collate([{"tokens": ["Never"]}, {"tokens": ["The", "opera"]}], vocabulary)
    assert batch.labels is None
    assert TASK.collate([EXAMPLES[0], {"tokens": ["Never"]}], vocabulary).labels is None
    assert batch.to("cpu").tokens.mask.tolist() == [[True, False], [True, True]]


def test_a_label_that_training_did_not_have(vocabulary: Vocabulary) -> None:
    with pytest.raises(ElmoTasksError, match=r"'positiv' is not among the labels .* Did you mean 'positive'"):
        TASK.collate([{"tokens": ["Never"], "label": "positiv"}], vocabulary)
