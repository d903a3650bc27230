"""Questions: answers and the spans of tokens that cover them, ids, shares of the passages."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.data_readers import Parsing
from tests.data_readers.readers import (
    ODD_FILES,
    SQUAD,
    SQUAD2,
    build,
    problem,
    read,
    sample,
    write,
    write_hub,
)


def documents(text: str, *questions: dict[str, Any]) -> str:
    return json.dumps({"data": [{"paragraphs": [{"context": text, "qas": questions}]}]})


@settings(max_examples=50, deadline=None)
@given(text=st.text("ab -.\u00e9\U0001f309\n", max_size=12), start=st.integers(0, 11), length=st.integers(1, 12))
def test_the_covering_span_is_the_smallest(text: str, start: int, length: int) -> None:
    gold = text[start : start + length]
    if not gold.strip():
        return
    rows = [{"id": "q", "question": "?", "context": text, "answers": {"text": [gold], "answer_start": [start]}}]
    (example,) = build(SQUAD).hub_examples(datasets.Dataset.from_list(rows), "hub:made", Parsing())
    ((first, last),) = example["answer_spans"]
    spans = list(zip(example["token_starts"], example["token_ends"], strict=True))
    touched = [i for i, (begin, end) in enumerate(spans) if begin < start + len(gold) and end > start]
    assert (first, last) == (touched[0], touched[-1])


def test_an_answer_that_no_token_covers(tmp_path: Path) -> None:
    question = {"id": "q", "question": "When?", "answers": [{"text": "1912", "answer_start": 13}]}
    path = write(tmp_path / "data.json", documents("It opened in 1912.", question))
    tokenizer = {"tokenizer": {"type": "regex", "pattern": r"\p{L}+|\p{P}"}}
    assert ", answers[0]: the answer '1912' has no token; expected a tokenizer" in problem(path, SQUAD | tokenizer)


def test_ids_that_are_whole_numbers(tmp_path: Path) -> None:
    assert [example["id"] for example in read(ODD_FILES / "squad_intid.json", SQUAD)] == ["17"]
    path = write(tmp_path / "data.json", sample("squad.json").replace('"q1"', "0"))
    assert read(path, SQUAD)[0]["id"] == "0"
    row = {"id": 3, "question": "?", "context": "It is 90", "answers": {"text": ["90"], "answer_start": [6]}}
    assert read(write_hub(tmp_path / "hub", [row]), SQUAD)[0]["id"] == "3"


def test_a_question_is_located_by_its_id(tmp_path: Path) -> None:
    questions = [
        {"id": f"id{number}", "question": "Who?", "answers": [{"text": "Mary", "answer_start": 0}]} for number in (1, 2)
    ]
    path = write(tmp_path / "data.json", documents("Mary", *questions))
    assert list(build(SQUAD).locations(str(path), read(path, SQUAD))) == [f"{path}: id1", f"{path}: id2"]


@pytest.mark.parametrize(
    ("share", "passages"), [(1.0, range(30)), (0.5, range(0, 30, 2)), (0.1, range(0, 30, 10)), (0.001, [0])]
)
@pytest.mark.parametrize("is_hub", [False, True])
def test_a_share_of_the_passages_with_all_their_questions(
    share: float, passages: Sequence[int], is_hub: bool, tmp_path: Path
) -> None:
    """Thirty passages in ten articles; passage n has n % 3 + 1 questions."""
    articles: list[dict[str, Any]] = [{"title": "", "paragraphs": []} for _ in range(10)]
    rows = []
    for number in range(30):
        text = f"Passage {number} is here."
        answers = {"text": "here", "answer_start": text.index("here")}
        ids = [f"{number}-{question}" for question in range(number % 3 + 1)]
        questions = [{"id": each, "question": "Where?", "answers": [answers]} for each in ids]
        articles[number // 3]["paragraphs"].append({"context": text, "qas": questions})
        lists = {key: [value] for key, value in answers.items()}
        rows += [{"id": each, "question": "Where?", "context": text, "answers": lists} for each in ids]
    path = write(tmp_path / "data.json", json.dumps({"data": articles}))
    examples = read(write_hub(tmp_path / "hub", rows) if is_hub else path, SQUAD | {"share": share})
    assert [each["id"] for each in examples] == [
        f"{number}-{row}" for number in passages for row in range(number % 3 + 1)
    ]


def test_an_article_may_be_bad(tmp_path: Path) -> None:
    document = json.loads(sample("squad.json"))
    path = write(tmp_path / "data.json", json.dumps({"data": [{}, *document["data"]]}))
    assert len(read(path, SQUAD | {"on_error": "skip"})) == 4


def test_unanswerable_questions_that_are_inconsistent(tmp_path: Path) -> None:
    document = json.loads(sample("squad2.json"))
    (answerable, unanswerable, _) = document["data"][0]["paragraphs"][0]["qas"]
    for question, flag, expected in (
        (
            answerable,
            True,
            "(question 'q1'): 'is_impossible' is True, with 1 answers; expected true without any answer",
        ),
        (unanswerable, False, "(question 'q2'): 'is_impossible' is False, with 0 answers"),
        (unanswerable, "yes", "(question 'q2'): 'is_impossible' is 'yes', with 0 answers"),
    ):
        question["is_impossible"] = flag
        assert expected in problem(write(tmp_path / "data.json", json.dumps(document)), SQUAD2)
        if question is answerable:
            for value, shown in ((True, "True"), ("true", "'true'")):
                question["is_impossible"] = value
                found = problem(write(tmp_path / "data.json", json.dumps(document)), SQUAD)
                assert f"(question 'q1'): 'is_impossible' is {shown}, with 1 answers" in found
        question["is_impossible"] = question is unanswerable
    assert len(read(write(tmp_path / "data.json", json.dumps(document)), SQUAD | {"on_error": "skip"})) == 1
