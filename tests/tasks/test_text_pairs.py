from __future__ import annotations

import pytest

from elmo_tasks.tasks import TextPairs
from elmo_tasks.text.vocabulary import Vocabulary, VocabularyConfig

TASK = TextPairs()
EXAMPLES = [
    {"premise": premise.split(), "hypothesis": hypothesis.split(), "label": label}
    for label, premise, hypothesis in (
        ("entailment", 'A red-haired man says " Hello " .', "He speaks ."),
        ("contradiction", "A dog does n't bark .", "It 's loud !"),
        ("neutral", "Two boys", "Mr. Fen has two sons ."),
    )
]


@pytest.fixture
def vocabulary() -> Vocabulary:
    return VocabularyConfig().build(TASK, EXAMPLES, [])


def test_collate(vocabulary: Vocabulary) -> None:
    assert vocabulary.labels == {"labels": ("contradiction", "entailment", "neutral")}
    assert {"boys", "sons"} <= set(vocabulary.words)
    batch = TASK.collate(EXAMPLES, vocabulary)
    assert batch.examples is EXAMPLES
    assert batch.premise.texts == [example["premise"] for example in EXAMPLES]
    assert batch.premise.mask.sum(1).tolist() == [8, 6, 2]
    assert batch.hypothesis.mask.sum(1).tolist() == [3, 4, 6]
    assert [TASK.length(example) for example in EXAMPLES] == [11, 10, 8]
    assert batch.labels is not None
    assert batch.labels.tolist() == [1, 0, 2]


def test_the_end_token_is_part_of_a_batch_and_of_the_vocabulary() -> None:
    task = TextPairs(end_token="END")
    vocabulary = VocabularyConfig().build(task, EXAMPLES, [])
    assert "END" in vocabulary.words
    batch = task.collate(EXAMPLES, vocabulary)
    assert batch.examples == EXAMPLES
    assert batch.premise.texts == [[*example["premise"], "END"] for example in EXAMPLES]
    assert batch.hypothesis.texts[2] == [*EXAMPLES[2]["hypothesis"], "END"]


def test_collate_without_labels(vocabulary: Vocabulary) -> None:
    pair = {"premise": ["Two", "boys"], "hypothesis": ["Sons"]}
    batch = TASK.collate([pair, {**pair, "label": "neutral"}], vocabulary)
    assert batch.labels is None
    assert batch.to("cpu").hypothesis.texts == [["Sons"], ["Sons"]]
