"""Data to predict: it needs no gold labels, and can be written again with predictions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.data_readers.reader import DatasetReader
from elmo_tasks.errors import DataError, ElmoTasksError
from tests.data_readers.readers import build, write_hub

CONLL = "# comment\n-DOCSTART- O\n\nOrla U-PER\rleft O\n\n# two\nBrusk\tU-LOC\n"
CONLLU = "# text\n1-2\tdu\t_\t_\n1\tde\t_\tADP\n2\tle\t_\tDET\n\n1\tOrla\t_\tPROPN\n1.1\tleft\t_\t_\n"
TABLE = 'text,label,id\n"Warm, and ""funny"".",good,1\n"\n",,\n\n"Two\nlines.",bad,2\n'
TOKENS = "# one\nword\ttag\nOrla\tNN\nleft\tVB\n\n# two\nBrusk\tNN\n# three\n"
ROWS = '{"text": "Warm.", "label": "good", "id": 1}\n\n{"text": "Cold.", "label": "bad"}\n'
PAIRS = '{"premise": "It rains.", "hypothesis": "It is wet.", "label": "yes"}\n'
SETS = '{"text": "Warm.", "labels": "good|short"}\n'
SCORES = '{"text": "Warm.", "score": 3.5}\n'
TAGGED = '{"tokens": ["Orla", "left"], "tags": ["NN", "VB"]}\n'
QUESTION = '{"question": "Who?", "passage": "Orla left.", "answers": [{"text": "Orla", "answer_start": 0}]}\n'
SQUAD = {
    "context": "Orla left.",
    "qas": [{"id": "a", "question": "Who?", "answers": [{"text": "Orla", "answer_start": 0}]}],
}
SNLI = "sentence1\tsentence2\tgold_label\nIt rains.\tIt is wet.\tneutral\n"


def conllu(text: str) -> str:
    """The lines with all ten columns."""
    return "".join(line + "\t_" * 6 * ("\t" in line) + "\n" for line in text.splitlines())


def make(directory: Path, content: str, **config: Any) -> tuple[DatasetReader, Path]:
    path = directory / "data.csv"
    path.write_text(content, encoding="utf-8")
    return DatasetReaderConfig.model_validate_json(json.dumps(config)).build(), path


READERS: dict[str, tuple[dict[str, Any], str, str, str | None]] = {
    "columns": (
        {"type": "conll2003", "comment": "#"},
        CONLL,
        CONLL.replace(" U-PER", "").replace("\tU-LOC", "").replace("left O", "left"),
        "# comment\n-DOCSTART- O\n\nOrla U-PER a4\nleft O b5\n\n# two\nBrusk\tU-LOC\ta8\n",
    ),
    "conllu": (
        {"type": "conllu"},
        conllu(CONLLU),
        conllu(CONLLU.replace("ADP", "_").replace("DET", "_")),
        conllu(CONLLU.replace("ADP", "a3").replace("DET", "b4").replace("PROPN", "a6")),
    ),
    "table": (
        {"type": "delimited", "task": "classification"},
        TABLE,
        TABLE.replace(",label", "").replace(",good", "").replace(",bad", ""),
        None,
    ),
    "table of tokens": (
        {"type": "delimited", "task": "tagging", "delimiter": "\t", "comment": "#"}
        | {"columns": {"tokens": "word", "tags": "tag"}},
        TOKENS,
        TOKENS.replace("\ttag", "").replace("\tNN", "").replace("\tVB", ""),
        None,
    ),
    "JSON lines": (
        {"type": "jsonl", "task": "classification"},
        ROWS,
        '{"text": "Warm.", "id": 1}\n\n{"text": "Cold."}\n',
        None,
    ),
    "tagged JSON lines": ({"type": "jsonl", "task": "tagging"}, TAGGED, TAGGED.replace('"tags"', '"other"'), None),
    "sets": (
        {"type": "jsonl", "task": "multi_label", "label_separator": "|"},
        SETS,
        SETS.replace('"labels"', '"other"'),
        None,
    ),
    "scores": ({"type": "jsonl", "task": "regression"}, SCORES, SCORES.replace('"score"', '"other"'), None),
    "pairs": ({"type": "jsonl", "task": "text_pairs"}, PAIRS, PAIRS.replace('"label"', '"other"'), None),
    "questions": ({"type": "jsonl", "task": "reading"}, QUESTION, QUESTION.replace('"answers"', '"other"'), None),
    "squad": (
        {"type": "squad"},
        json.dumps({"data": [{"paragraphs": [SQUAD]}]}),
        json.dumps({"data": [{"paragraphs": [SQUAD]}]}).replace('"answers"', '"other"'),
        None,
    ),
    "snli": ({"type": "snli"}, SNLI, SNLI.replace("\tgold_label", "").replace("\tneutral", ""), None),
}


@pytest.mark.parametrize("name", READERS)
def test_data_to_predict_needs_no_gold_labels(name: str, tmp_path: Path) -> None:
    config, labelled, unlabelled, _ = READERS[name]
    gold = ("label", "labels", "score", "tags", "answers", "answer_spans", "input", "others")

    def read(content: str) -> list[dict[str, Any]]:
        reader, path = make(tmp_path, content, **config)
        return [{key: each[key] for key in each if key not in gold} for each in reader.unlabelled(str(path))]

    reader, path = make(tmp_path, labelled, **config)
    expected = [{key: each[key] for key in each if key not in (*gold, "file")} for each in reader.read(path)]
    assert read(labelled) == read(unlabelled) == expected


@pytest.mark.parametrize("name", [name for name, (*_, filled) in READERS.items() if filled])
def test_data_is_written_with_predictions(name: str, tmp_path: Path) -> None:
    config, content, _, filled = READERS[name]
    reader, path = make(tmp_path, content, **config)
    letters: Iterator[str] = iter("")
    lines: set[int] = set()

    def predicted(number: int) -> str:
        """A letter for each token of a sentence, and the number of its line."""
        nonlocal letters
        if number - 1 not in lines:
            letters = iter("ab")
        lines.add(number)
        return f"{next(letters)}{number}"

    assert "".join(f"{line}\n" for line in reader.with_predictions(path, predicted)) == filled


@pytest.mark.parametrize("kind", ["jsonl", "delimited", "hub"])
def test_rows_to_predict_keep_their_texts_and_other_columns(kind: str, tmp_path: Path) -> None:
    rows = [{"id": "a", "review": "Warm,  and funny.", "label": "good", "tokens": "x"}]
    content = json.dumps(rows[0]) if kind == "jsonl" else 'id,review,label,tokens\na,"Warm,  and funny.",good,x\n'
    reader, path = make(tmp_path, content, type=kind, task="classification", columns={"text": "review"})
    (example,) = reader.unlabelled(write_hub(tmp_path / "hub", rows) if kind == "hub" else str(path))
    assert (example["input"], example["others"]) == ({"text": "Warm,  and funny."}, {"id": "a", "label": "good"})


@pytest.mark.parametrize(
    ("config", "row"),
    [
        ({"type": "conll2003"}, {"tokens": ["Orla", "left"]}),
        ({"type": "snli"}, {"premise": "It rains.", "hypothesis": "It is wet."}),
        ({"type": "snli", "columns": ["a", "b", "c"]}, {"a": "It rains.", "b": "It is wet."}),
        ({"type": "squad"}, {"id": "a", "question": "Who?", "context": "Orla left."}),
    ],
)
def test_hub_data_sets_to_predict_need_no_gold_labels(
    config: dict[str, Any], row: dict[str, Any], tmp_path: Path
) -> None:
    (example,) = build(config).unlabelled(write_hub(tmp_path / "hub", [row]))
    answers = {"text": ["Orla"], "answer_start": [0]}
    gold = {"label": "neutral", "c": "neutral", "ner_tags": ["O", "O"], "answers": answers}
    (labelled,) = build(config).unlabelled(write_hub(tmp_path / "labelled", [row | gold]))
    assert example == labelled


def test_what_is_left_out_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    reader, path = make(tmp_path, f"{SNLI}\tRain.\tneutral\n", type="snli")
    assert len(list(reader.unlabelled(str(path)))) == 1
    assert caplog.messages == [f"{path}: 1 pair(s) with an empty sentence left out"]


def test_examples_before_a_fault_come_first_and_faults_can_be_reported(tmp_path: Path) -> None:
    reader, path = make(tmp_path, "Orla O\n\nleft\tO\tO\n\nBrusk O\n", type="conll2003")
    found, problems = [], list[DataError]()
    with pytest.raises(DataError, match=r"data\.csv:3: 3 column"):
        found += [each["line"] for each in reader.unlabelled(str(path))]
    assert [each["line"] for each in reader.unlabelled(str(path), problems.append)] == [1, 5]
    assert [str(error).split(": ")[0] for error in problems] == [f"{path}:3"]


@pytest.mark.parametrize(
    "config", [{"type": "sst"}, {"type": "squad"}, {"type": "jsonl", "task": "coreference"}], ids=str
)
def test_other_formats_have_no_place_for_predictions(config: dict[str, Any], tmp_path: Path) -> None:
    reader, path = make(tmp_path, "", **config)
    with pytest.raises(ElmoTasksError, match="have no place for predictions; expected a table"):
        reader.with_predictions(path, str)
