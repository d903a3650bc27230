from __future__ import annotations

from typing import Any

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.tasks import Reading
from elmo_tasks.tasks.reading import character_span, passage_tokens, unanswered
from elmo_tasks.text.vocabulary import Vocabulary, VocabularyConfig

TASK = Reading()
RIVER = "The Ilva is 90 km long.  It was bridged in the 1820s by Mary Oak-Fen \U0001f309, an engineer."
RIVER_TOKENS = (
    "The Ilva is 90 km long . It was bridged in the 1820s by Mary Oak-Fen \U0001f309 , an engineer .".split()  # noqa: SIM905
)
TOWN = "Sedwick\u2019s mill burnt down."
TOWN_TOKENS = ["Sedwick", "\u2019s", "mill", "burnt", "down", "."]


def example(question: str, passage: str, *spans: list[int]) -> dict[str, Any]:
    return {**unanswered(question, passage), "answer_spans": list(spans)}


EXAMPLES = [
    example("How long is the Ilva?", RIVER, [3, 5], [3, 4], [3, 4]),
    example("Who bridged it?", RIVER, [14, 15]),
    example("Who was Mary?", RIVER, [18, 19]),
    example("What burnt?", TOWN, [0, 2]),
]


@pytest.fixture
def vocabulary() -> Vocabulary:
    return VocabularyConfig().build(TASK, EXAMPLES, [])


def test_the_vocabulary_has_questions_and_passages_and_no_labels(vocabulary: Vocabulary) -> None:
    assert {"Who", "burnt", "Oak-Fen", "\u2019s"} <= set(vocabulary.words)
    assert vocabulary.labels == {}


def test_collate(vocabulary: Vocabulary) -> None:
    batch = TASK.collate(EXAMPLES, vocabulary)
    assert batch.examples is EXAMPLES
    assert batch.passage.texts[2:] == [RIVER_TOKENS, TOWN_TOKENS]
    assert batch.question.texts[3] == ["What", "burnt", "?"]
    assert batch.passage.mask.sum(dim=1).tolist() == [21, 21, 21, 6]
    assert batch.question.mask.sum(dim=1).tolist() == [6, 4, 4, 3]
    spans = [each.tolist() for each in (batch.starts, batch.ends) if each is not None]
    assert spans == [[3, 14, 18, 0], [4, 15, 19, 2]]  # of the first question's answers the more frequent one


def test_of_equally_frequent_answers_the_first_is_learned(vocabulary: Vocabulary) -> None:
    batch = TASK.collate([example("How long is the Ilva?", RIVER, [3, 5], [3, 4])], vocabulary)
    assert [each.tolist() for each in (batch.starts, batch.ends) if each is not None] == [[3], [5]]


def test_a_span_of_tokens_is_the_text_as_it_was() -> None:
    start, end = character_span(EXAMPLES[0], 5, 8)
    assert RIVER[start:end] == "long.  It was"  # white space too


def test_examples_for_prediction(vocabulary: Vocabulary) -> None:
    examples = [unanswered("Who was Mary, the builder?", TOWN), unanswered("Who?", RIVER)]
    assert passage_tokens(examples[1]) == RIVER_TOKENS
    assert [TASK.length(example) for example in examples] == [7, 21]  # the first question is the longer text
    batch = TASK.collate(examples, vocabulary)
    assert batch.starts is None
    assert batch.ends is None
    assert batch.to("cpu").question.texts[1] == ["Who", "?"]
    assert TASK.collate([EXAMPLES[0], examples[0]], vocabulary).starts is None  # nor if some have answers


@pytest.mark.parametrize(
    ("question", "passage", "problem"),
    [("", TOWN, "a question without any token"), ("Who?", " \n", "a passage without any token")],
)
def test_nothing_to_predict(question: str, passage: str, problem: str) -> None:
    with pytest.raises(ElmoTasksError, match=problem):
        unanswered(question, passage)
