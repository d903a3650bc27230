"""Results as rows of a table, from results as predictors give them."""

import logging
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.extras.tables.table_rows import result_table, table_rows

RAW = "Yes. Orla met Tavo."  # the sentence begins at 5
SENTENCE = {"id": 3, "text": "Orla met Tavo.", "start_char": 5, "end_char": 19, "tokens": ["Orla", "met", "Tavo", "."]}
ORLA = {"start": 0, "end": 0, "start_char": 5, "end_char": 9, "text": "Orla", "probability": 0.9}
TAVO = {"start": 2, "end": 2, "start_char": 14, "end_char": 18, "text": "Tavo", "probability": 0.8}
FIRST = {"before": "", "text": "Orla", "after": " met Tavo.", "start_char": 5, "end_char": 9, "probability": 0.9}
SECOND = {"before": "Orla met ", "text": "Tavo", "after": ".", "start_char": 14, "end_char": 18, "probability": 0.8}
DOCUMENT = "It is " + "so " * 40 + "Orla"
LATE = {"start": 42, "end": 42, "start_char": 126, "end_char": 130, "text": "Orla", "cluster": 0, "antecedent": None}
ROWS: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    (
        {"text": "Oh no", "tokens": ["Oh", "no"], "label": "bad", "probabilities": {"bad": 0.7, "no": 0.3}, "id": "a"},
        [{"text": "Oh no", "label": "bad", "id": "a", "probability": 0.7}],
    ),
    (
        {"tokens": ["Oh", "no"], "labels": ["x", "y"], "probabilities": {"x": 0.91, "y": 0.756, "z": 0.1}},
        [{"text": "Oh no", "labels": "x,y", "probabilities": "x (0.91), y (0.76)"}],
    ),
    ({"tokens": ["Oh"], "score": 3.5, "attention": [1.0]}, [{"text": "Oh", "score": 3.5}]),
    (
        {"premise_tokens": ["A"], "hypothesis_tokens": ["B", "C"], "label": "no", "probabilities": {"no": 0.6}},
        [{"premise": "A", "hypothesis": "B C", "label": "no", "probability": 0.6}],
    ),
    (
        {"question": "Who?", "passage": "Orla.", "answer": "Orla", "probability": 0.5, "best": [{"answer": "Orla"}]},
        [{"question": "Who?", "passage": "Orla.", "answer": "Orla", "probability": 0.5}],
    ),
    (
        SENTENCE | {"spans": [ORLA | {"label": "PER"}, TAVO | {"label": "LOC"}], "tags": ["U-PER", "O", "U-LOC", "O"]},
        [{"id": 3, "sentence": 7, "label": "PER", **FIRST}, {"id": 3, "sentence": 7, "label": "LOC", **SECOND}],
    ),
    (
        {"tokens": ["She", "met", "Tavo"], "spans": [{"label": "PER", "start": 2, "end": 2, "text": "Tavo"}]},
        [{"sentence": 7, "label": "PER", "before": "She met ", "text": "Tavo", "after": ""}],
    ),
    (
        {"tokens": ["It", "is"], "tags": ["PRP", "VBZ"], "probabilities": [0.9, 0.8]},
        [
            {"sentence": 7, "token": "It", "tag": "PRP", "probability": 0.9},
            {"sentence": 7, "token": "is", "tag": "VBZ", "probability": 0.8},
        ],
    ),
    (
        SENTENCE | {"frames": [{"predicate_text": "met", "roles": [ORLA | {"role": "ARG0"}, TAVO | {"role": "ARG1"}]}]},
        [
            {"id": 3, "sentence": 7, "predicate": "met", "role": "ARG0", **FIRST},
            {"id": 3, "sentence": 7, "predicate": "met", "role": "ARG1", **SECOND},
        ],
    ),
    (
        {"text": DOCUMENT, "description": "...", "mentions": [{"start": 0, "end": 0, "text": "It", "cluster": 0}, LATE]}
        | {"sentences": [DOCUMENT.split()]},
        [
            {"cluster": 0, "first_mention": "It", "before": "", "text": "It", "after": f" is {'so ' * 18}so"},
            {"cluster": 0, "first_mention": "It", "before": "so " * 20, "text": "Orla", "after": ""}
            | {"start_char": 126, "end_char": 130},
        ],
    ),
]


@pytest.mark.parametrize(("result", "rows"), ROWS)
def test_rows(result: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    assert list(table_rows(result, 7)) == rows
    for row in rows:
        if "start_char" in row and "tokens" in result:
            assert RAW[row["start_char"] : row["end_char"]] == row["text"]


def test_results_without_a_row_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    span = {"label": "LOC", "start": 1, "end": 1, "text": "Oslo"}
    with caplog.at_level(logging.INFO, logger="elmo_tasks"), result_table(str(tmp_path / "x.csv")) as add:
        for spans in ([span], [], []):
            add({"id": 7, "tokens": ["In", "Oslo"], "spans": spans})
    assert len((tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()) == 2  # with the header row
    assert "no row for 2 results in which nothing was found, the first number 2;" in caplog.text
