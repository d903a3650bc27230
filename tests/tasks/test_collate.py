"""Examples of tagging, classification and reading as batches: texts, lengths, labels, and labels that are not known."""

from typing import Any

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.tasks import Classification, Coreference, MultiLabel, Reading, SemanticRoles, Tagging, TextPairs
from elmo_tasks.tasks.reading import passage_tokens, unanswered
from elmo_tasks.text.vocabulary import Counts, Vocabulary, VocabularyConfig


def tagged(sentence: str, **values: Any) -> dict[str, Any]:
    tokens, tags = zip(*(token.rsplit("/", 1) for token in sentence.split()), strict=True)
    return {"tokens": list(tokens), "tags": list(tags), **values}


def test_the_end_token_is_part_of_a_batch_and_of_the_vocabulary() -> None:
    task = TextPairs(end_token="END")
    pairs = [("neutral", "Two boys", "Mr. Fen has two sons ."), ("contradiction", "It does n't bark .", "Loud !")]
    examples = [{"label": label, "premise": one.split(), "hypothesis": two.split()} for label, one, two in pairs]
    vocabulary = VocabularyConfig().build(Counts.of(task, examples), [])
    assert "END" in vocabulary.words
    batch = task.collate(examples, vocabulary)
    assert batch.examples == examples
    assert batch.premise.texts == [[*example["premise"], "END"] for example in examples]
    assert batch.hypothesis.texts[1] == ["Loud", "!", "END"]


def test_predicates_of_a_batch() -> None:
    task = SemanticRoles()
    first = tagged("Mira/B-ARG0 gave/B-V up/I-V diving/B-ARG1", predicate=1)
    second = tagged("Oaks/O grow/B-V", predicate=1)
    vocabulary = VocabularyConfig().build(Counts.of(task, [first, second]), [])
    assert task.collate([first, {**second, "predicate": 0}], vocabulary).predicates.tolist() == [1, 0]
    for predicate in (-1, 2):
        with pytest.raises(ElmoTasksError, match=rf"no token {predicate} in a sentence of 2 tokens"):
            task.collate([{**second, "predicate": predicate}], vocabulary)


def test_sets_of_labels_are_rows_of_zeros_and_ones() -> None:
    task = MultiLabel()
    examples: list[dict[str, Any]] = [{"tokens": ["a"], "labels": ["z", "x"]}, {"tokens": ["b"], "labels": []}]
    vocabulary = VocabularyConfig().build(Counts.of(task, [*examples, {"tokens": ["c"], "labels": ["y"]}]), [])
    labels = task.collate(examples, vocabulary).labels
    assert labels is not None
    assert labels.tolist() == [[1, 0, 1], [0, 0, 0]]
    assert task.collate([*examples, {"tokens": ["d"]}], vocabulary).labels is None
    assert task.nothing_to_learn(examples) is None
    assert task.nothing_to_learn(examples[1:]) == "no text has a label"


BIOUL = Tagging("BIOUL")


def test_confusion_tables_compare_labels_of_spans_and_whole_tags() -> None:
    record = {"tags": ["B-PER", "L-PER", "O"]}
    assert BIOUL.compared_labels(record) == ["PER", "PER", "O"]
    assert Tagging().compared_labels(record) == ["B-PER", "L-PER", "O"]
    assert SemanticRoles().compared_labels({"tags": ["B-V", "B-ARG1", "I-ARG1"]}) == ["V", "ARG1", "ARG1"]
    assert (
        list(Classification().compared_labels({"label": "x"}))
        == list(TextPairs().compared_labels({"label": "x"}))
        == ["x"]
    )
    for task in (Reading(), Coreference()):
        with pytest.raises(ElmoTasksError, match=rf"predicts labels or tags, not {type(task).__name__}"):
            task.compared_labels({})


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
    return VocabularyConfig().build(Counts.of(TASK, EXAMPLES), [])


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


def test_of_equally_frequent_answers_the_first_is_learned_and_minus_one_is_none(vocabulary: Vocabulary) -> None:
    batch = TASK.collate([example("How long is the Ilva?", RIVER, [3, 5], [3, 4]), example("Who?", RIVER)], vocabulary)
    assert [each.tolist() for each in (batch.starts, batch.ends) if each is not None] == [[3, -1], [5, -1]]


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
