"""The SQuAD reader: golden files, every error with its place, the real data's counts."""

from __future__ import annotations

import copy
import json
import logging
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import datasets
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.data_readers.reader import PLACE_FEATURES
from elmo_tasks.data_readers.squad import SquadConfig
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.tasks import Reading
from elmo_tasks.tasks.reading import character_span, passage_tokens

ODD_FILES = Path(__file__).parents[1] / "odd_files"
RIVER = "The Ilva is 90 km long.  It was bridged in the 1820s by Mira Oak-Fen \U0001f309, an engineer."
TOWN = "Sedwick\u2019s mill burnt down."


def answer(passage: str, text: str) -> dict[str, Any]:
    return {"text": text, "answer_start": passage.index(text)}


GOLDEN: dict[str, Any] = {
    "version": "1.1",
    "data": [
        {
            "title": "Ilva",
            "paragraphs": [
                {
                    "context": RIVER,
                    "qas": [
                        {
                            "id": "q1",
                            "question": "How long is the Ilva?",
                            "answers": [answer(RIVER, text) for text in ("90 km long", "90 km", "90 km")],
                        },
                        {"id": "q2", "question": "Who bridged it?", "answers": [answer(RIVER, "Mira Oak")]},
                        {"id": "q3", "question": "Who was Mira?", "answers": [answer(RIVER, "an engineer")]},
                    ],
                }
            ],
        },
        {
            "title": "Sedwick",
            "paragraphs": [
                {
                    "context": TOWN,
                    "qas": [{"id": "q4", "question": "What burnt?", "answers": [answer(TOWN, "Sedwick\u2019s mill")]}],
                }
            ],
        },
    ],
}
RIVER_TOKENS = (
    "The Ilva is 90 km long . It was bridged in the 1820s by Mira Oak-Fen \U0001f309 , an engineer .".split()  # noqa: SIM905
)


def write(folder: Path, document: Any, name: str = "data.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return list(SquadConfig().build().examples(path))


def span_texts(example: dict[str, Any]) -> list[str]:
    """The passage's text under each of the answers' spans of tokens."""
    return [example["passage"][slice(*character_span(example, *span))] for span in example["answer_spans"]]


def test_golden_file(tmp_path: Path) -> None:
    dataset = SquadConfig().build().read(write(tmp_path, GOLDEN))
    assert dataset.features == {**Reading.features, **PLACE_FEATURES}
    assert dataset["id"][:] == ["q1", "q2", "q3", "q4"]
    assert dataset["question"][1] == "Who bridged it?"
    assert dataset["question_tokens"][1] == ["Who", "bridged", "it", "?"]
    assert dataset["passage"][:] == [RIVER, RIVER, RIVER, TOWN]
    assert [passage_tokens(example) for example in dataset][1:] == [
        RIVER_TOKENS,
        RIVER_TOKENS,
        ["Sedwick", "\u2019s", "mill", "burnt", "down", "."],
    ]
    assert dataset["answers"][:] == [
        ["90 km long", "90 km", "90 km"],
        ["Mira Oak"],
        ["an engineer"],
        ["Sedwick\u2019s mill"],
    ]
    assert dataset["answer_spans"][:] == [[[3, 5], [3, 4], [3, 4]], [[14, 15]], [[18, 19]], [[0, 2]]]


def test_spans_of_tokens_give_the_original_text(tmp_path: Path) -> None:
    examples = read(write(tmp_path, GOLDEN))
    assert [span_texts(example) for example in examples] == [
        ["90 km long", "90 km", "90 km"],
        ["Mira Oak-Fen"],  # the smallest span of tokens that covers the answer
        ["an engineer"],
        ["Sedwick\u2019s mill"],
    ]
    start, end = character_span(examples[0], 5, 8)
    assert RIVER[start:end] == "long.  It was"  # white space as it was


def test_answers_that_tokens_do_not_fit_are_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, GOLDEN)
    with caplog.at_level(logging.INFO, logger="elmo_tasks"):
        read(path)
    (message,) = caplog.messages
    assert message.startswith(
        f"{path}: 1 of 6 answers do not begin and end where tokens do (questions q2); the smallest"
    )


def test_a_few_of_many_questions_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "ab"
    halves = [{"text": "a", "answer_start": 0}, {"text": "b", "answer_start": 1}]
    questions = [{"id": f"id{number}", "question": "Which?", "answers": halves} for number in range(9)]
    read(write(tmp_path, {"data": [{"paragraphs": [{"context": text, "qas": questions}]}]}))
    (message,) = caplog.messages
    assert "18 of 18 answers" in message
    assert "(questions id0, id1, id2, id3, id4, ...)" in message
    caplog.clear()
    read(write(tmp_path, {"data": [{"paragraphs": [{"context": text, "qas": questions[:5]}]}]}))
    assert "(questions id0, id1, id2, id3, id4)" in caplog.text


def test_nothing_is_reported_where_all_fit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    document = copy.deepcopy(GOLDEN)
    del document["data"][0]["paragraphs"][0]["qas"][1]
    assert len(read(write(tmp_path, document))) == 3
    assert caplog.messages == []


@settings(max_examples=50, deadline=None)
@given(text=st.text("ab -.\u00e9\U0001f309\n", max_size=12), start=st.integers(0, 11), length=st.integers(1, 12))
def test_the_covering_span_is_the_smallest(text: str, start: int, length: int) -> None:
    gold = text[start : start + length]
    if not gold.strip():
        return
    rows = [{"id": "q", "question": "?", "context": text, "answers": {"text": [gold], "answer_start": [start]}}]
    (example,) = SquadConfig().build().hub_examples(datasets.Dataset.from_list(rows), "hub:made")
    ((first, last),) = example["answer_spans"]
    places = list(zip(example["token_starts"], example["token_ends"], strict=True))
    touched = [i for i, (begin, end) in enumerate(places) if begin < start + len(gold) and end > start]
    assert (first, last) == (touched[0], touched[-1])


def test_compressed_file_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "data.json.xz"
    path.write_bytes(lzma.compress(("\ufeff" + json.dumps(GOLDEN)).encode()))
    assert [example["id"] for example in read(path)] == ["q1", "q2", "q3", "q4"]


def changed(change: Callable[[Any], object]) -> Any:
    """The golden document after a change of its first paragraph."""
    document = copy.deepcopy(GOLDEN)
    change(document["data"][0]["paragraphs"][0])
    return document


def answer_of(paragraph: Any) -> Any:
    return paragraph["qas"][0]["answers"][1]


PARAGRAPH = "data[0].paragraphs[0]"
FIRST = f"{PARAGRAPH}.qas[0] (question 'q1')"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda each: answer_of(each).update(answer_start=13),
            f"{FIRST}, answers[1]: the answer '90 km' is not at 13, where the passage of 84 characters has '0 km '",
        ),
        (
            lambda each: answer_of(each).update(answer_start=84),
            f"{FIRST}, answers[1]: the answer '90 km' is not at 84, where the passage of 84 characters has nothing",
        ),
        (
            lambda each: answer_of(each).update(answer_start=-72),  # where the answer is, from the end
            f"{FIRST}, answers[1]: the answer '90 km' is not at -72, where",
        ),
        (
            lambda each: answer_of(each).update(text="engineer. Then", answer_start=75),
            f"{FIRST}, answers[1]: the answer 'engineer. Then' is not at 75, where the passage of 84 characters has "
            "'engineer.'",
        ),
        (
            lambda each: answer_of(each).update(text="  ", answer_start=23),
            f"{FIRST}, answers[1]: the answer '  ' contains only white space",
        ),
        (lambda each: answer_of(each).update(text=""), f"{FIRST}, answers[1]: the answer '' contains only"),
        (
            lambda each: answer_of(each).update(answer_start="12"),
            f"{PARAGRAPH}.qas[0].answers[1].answer_start: a string; wanted a whole number",
        ),
        (
            lambda each: answer_of(each).update(answer_start=True),
            f"{PARAGRAPH}.qas[0].answers[1].answer_start: true or false; wanted a whole number",
        ),
        (
            lambda each: answer_of(each).pop("text"),
            f"{PARAGRAPH}.qas[0].answers[1]: no key 'text'; its keys: 'answer_start'",
        ),
        (
            lambda each: each["qas"][0].update(answers=[]),
            f"{FIRST}: no answer; expected one, as in SQuAD v1.1. on_error: 'skip'",
        ),
        (lambda each: each["qas"][0].update(question=" "), f"{FIRST}: a question without any token"),
        (lambda each: each["qas"][0].update(id=7.0), f"{PARAGRAPH}.qas[0].id: a fraction; wanted a string"),
        (lambda each: each["qas"][0].update(id=True), f"{PARAGRAPH}.qas[0].id: true or false; wanted a string"),
        (
            lambda each: each["qas"][2].update(id="q1"),
            f"{PARAGRAPH}.qas[2] (question 'q1'): an earlier question has the same id",
        ),
        (lambda each: each.update(context="\n"), f"{PARAGRAPH}: a passage without any token"),
        (lambda each: each.update(qas=None), f"{PARAGRAPH}.qas: null; wanted an array"),
        (lambda each: each["qas"].insert(1, []), f"{PARAGRAPH}.qas[1]: an array; wanted an object"),
    ],
)
def test_errors_name_file_and_place(tmp_path: Path, change: Callable[[Any], object], problem: str) -> None:
    path = write(tmp_path, changed(change))
    with pytest.raises(DataError) as caught:
        SquadConfig().build().read(path)
    assert str(caught.value).startswith(f"{path}: {problem}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"data": [\n{"paragraphs": ]}', ":2: Expecting value at column 16; wanted JSON"),
        ('{"version": NaN,\n "data": []}', ":1: NaN at column 13; expected a finite number"),
        ('{"version": 1,\n "data": [1e999]}', ":2: 1e999 at column 11; expected a finite number"),
        ("", ":1: Expecting value at column 1; wanted JSON"),
        ('{"data": []} x', ":1: Extra data at column 14; wanted JSON"),
        (
            '{"data":\n "\\ud83c"}',
            ":2: \\ud83c at column 3 is half of a surrogate pair; wanted both halves",
        ),
        pytest.param('{"data": ' + "1" * 5000, ": a whole number has too many digits; wanted JSON", id="many digits"),
        pytest.param("[" * 100_000, ": lists or objects are nested too deeply; wanted JSON", id="deep nesting"),
        ("[1]", ": the file: an array; wanted an object"),
        ("{}", ": the file: no key 'data'; its keys: none"),
        ('{"data": {}}', ": data: an object; wanted an array"),
        ('{"data": [1.5]}', ": data[0]: a fraction; wanted an object"),
        ('{"data": []}', ": has no example"),
        ('{"data": [{"paragraphs": [{"context": "a", "qas": []}]}]}', ": has no example"),
    ],
)
def test_files_that_hold_something_else(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "data.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        SquadConfig().build().read(path)
    assert str(caught.value).startswith(f"{path}{problem}")


def test_ids_that_are_whole_numbers(tmp_path: Path) -> None:
    assert [example["id"] for example in read(ODD_FILES / "squad_intid.json")] == ["17"]
    assert read(write(tmp_path, changed(lambda each: each["qas"][0].update(id=0))))[0]["id"] == "0"
    source = write_hub(tmp_path / "hub", [{**row, "id": number} for number, row in enumerate(hub_rows())])
    assert SquadConfig().build().read(source)["id"][:2] == ["0", "1"]


def test_bytes_that_are_not_utf8_or_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_bytes(b'{"data":\n"\xe9"}')
    with pytest.raises(DataError, match=r"data.json:2: byte 0xe9 at column 2 is not UTF-8"):
        read(path)
    path = tmp_path / "data.json.xz"
    path.write_bytes(lzma.compress(json.dumps(GOLDEN).encode())[:-40])
    with pytest.raises(DataError, match=r"data.json.xz:1: the compressed file is damaged or cut short"):
        read(path)


def hub_rows() -> list[dict[str, Any]]:
    """The golden questions as the hub has them."""
    rows = []
    for article in GOLDEN["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                columns = {key: [each[key] for each in question["answers"]] for key in ("text", "answer_start")}
                rows.append({**question, "context": paragraph["context"], "title": "", "answers": columns})
    return rows


def write_hub(folder: Path, rows: list[dict[str, Any]]) -> str:
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"hub:{folder}"


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub_cache")


def many_passages() -> dict[str, Any]:
    """Thirty passages in ten articles; passage n has n % 3 + 1 questions."""
    articles: list[dict[str, Any]] = [{"title": "", "paragraphs": []} for _ in range(10)]
    for number in range(30):
        text = f"Passage {number} is here."
        questions = [
            {"id": f"{number}-{row}", "question": "Where?", "answers": [answer(text, "here")]}
            for row in range(number % 3 + 1)
        ]
        articles[number // 3]["paragraphs"].append({"context": text, "qas": questions})
    return {"data": articles}


@pytest.mark.parametrize(
    ("share", "passages"), [(1.0, range(30)), (0.5, range(0, 30, 2)), (0.1, range(0, 30, 10)), (0.001, [0])]
)
def test_a_share_of_the_passages_with_all_their_questions(
    tmp_path: Path, share: float, passages: Sequence[int]
) -> None:
    data = SquadConfig(share=share).build().read(write(tmp_path, many_passages()))
    assert data["id"][:] == [f"{number}-{row}" for number in passages for row in range(number % 3 + 1)]


@pytest.mark.parametrize("share", [0.0, 1.1])
def test_a_share_is_part_of_the_whole(share: float) -> None:
    with pytest.raises(pydantic.ValidationError):
        SquadConfig(share=share)


@pytest.mark.usefixtures("hub_cache")
def test_a_share_of_a_hub_data_set(tmp_path: Path) -> None:
    data = SquadConfig(share=0.5).build().read(write_hub(tmp_path / "hub", hub_rows()))
    assert data["id"][:] == ["q1", "q2", "q3"]


@pytest.mark.usefixtures("hub_cache")
def test_hub_data_set(tmp_path: Path) -> None:
    found = SquadConfig().build().read(write_hub(tmp_path / "hub", hub_rows()))
    assert found.to_list() == SquadConfig().build().read(write(tmp_path, GOLDEN)).to_list()


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda row: row.update(answers={"text": ["90"], "answer_start": []}), "row 1.answers: 1 texts and 0 starts"),
        (
            lambda row: row.update(answers={"text": ["90"], "answer_start": [11]}),
            "row 1 (question 'q2'), answers[0]: the answer '90' is not at 11",
        ),
        (
            lambda row: row.update(answers={"text": [None], "answer_start": [11]}),
            "row 1.answers[0].text: null; wanted a string",
        ),
        (lambda row: row.update(context=None), "row 1.context: null; wanted a string"),
    ],
)
def test_hub_data_set_with_an_error(tmp_path: Path, change: Callable[[Any], object], problem: str) -> None:
    rows = hub_rows()
    change(rows[1])
    source = write_hub(tmp_path / "hub", rows)
    with pytest.raises(ElmoTasksError) as caught:
        SquadConfig().build().read(source)
    assert str(caught.value).startswith(f"{source}: {problem}")


@pytest.mark.usefixtures("hub_cache")
def test_hub_data_set_without_the_columns(tmp_path: Path) -> None:
    source = write_hub(tmp_path / "hub", [{"id": "q", "question": "?"}])
    with pytest.raises(ElmoTasksError, match="no column 'answers', 'context' among id, question; wanted the columns"):
        SquadConfig().build().read(source)


def test_config() -> None:
    assert DatasetReaderConfig.model_validate_json('{"type": "squad"}') == SquadConfig()


@pytest.mark.parametrize(
    ("name", "questions", "passages", "misaligned"),
    [
        ("dev-v1.1.json", 10_570, 2_067, 360),
        pytest.param("train-v1.1.json.xz", 87_599, 18_891, 731, marks=pytest.mark.slow),
    ],
)
def test_counts_of_the_real_data(data_folder: Path, name: str, questions: int, passages: int, misaligned: int) -> None:
    dataset = SquadConfig().build().read(data_folder / "squad" / name)
    assert len(dataset) == len(set(dataset["id"])) == questions
    assert len(set(dataset["passage"])) == passages
    pairs = ((text, gold) for each in dataset for text, gold in zip(span_texts(each), each["answers"], strict=True))
    differing = [(text, gold) for text, gold in pairs if text != gold]
    assert len(differing) == misaligned
    assert all(gold in text for text, gold in differing)
