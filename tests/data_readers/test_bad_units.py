"""`on_error`: what does not follow the format is an error, or is left out and reported with its line."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import DataError
from tests.data_readers.readers import NER, SNLI, SST, Settings, read, write

CONLLU = "\n".join(f"{number}\t{{}}\t_\t{{}}\t_\t_\t_\t_\t_\t_" for number in (1, 2)) + "\n\n"
PAIR = '{"sentence1": "A dog .", "sentence2": "A cat .", "gold_label": "%s"}\n'
ROW = "d 0 0 {} NN * {} {} - - * {}-\n"
PROPOSITIONS = "".join(
    ROW.format(word, "go", "01", cells) for word, cells in (("Go", "(A0* (V*) "), ("on", "(V*) (A0*) "))
)
SQUAD_QUESTION = {"id": "1", "question": "Who?", "answers": [{"text": "Mary", "answer_start": 0}]}
BAD_QUESTION = {**SQUAD_QUESTION, "id": "2", "answers": [{"text": "Mary", "answer_start": 3}]}


def squad(*questions: dict[str, Any]) -> str:
    return json.dumps({"data": [{"paragraphs": [{"context": "Mary sleeps.", "qas": questions}]}]})


def document(name: str, *rows: str) -> str:
    return f"#begin document ({name}); part 0\n{''.join(rows)}\n#end document\n"


GOOD_DOCUMENT = document("a", ROW.format("Go", "-", "-", "").replace("-\n", "(1)\n"))
# type -> a text, the good examples in it, and the lines (or ids) of the bad ones
CASES: dict[str, tuple[str, int, list[str]]] = {
    "conll2003": ("a O\n\nb O x\n\nc X\n\nd U-LOC\n", 2, [":3: ", ":5: "]),
    "conllu": (CONLLU.format("a", "X", "b", "Y") + CONLLU.format("a", "_", "b", "Y"), 1, [":4: "]),
    "coref_conll2012": (
        GOOD_DOCUMENT
        + document("ragged", ROW.format("Go", "-", "-", ""), ROW.format("on", "-", "-", "* "))
        + document("brackets", ROW.format("Go", "-", "-", "").replace("-\n", "(1(\n"))
        + "#begin document (b); part 0\n"
        + GOOD_DOCUMENT.replace("(a)", "(c)"),
        2,
        [":7: ", ":11: ", ":15: "],
    ),
    "srl_conll2012": (document("a", PROPOSITIONS), 1, [":3: "]),  # a span inside a span, in the first column
    "srl_conll2005": ("Go go (V*)\n\nGo go (V*)\non\n\nGo go (V*) *\n", 1, [":4: ", ":6: "]),
    "sst": ("(3 (2 It) (3 works))\n(3 It\n(2 .)\n", 2, [":2: "]),
    "snli": (PAIR % "neutral" + "{\n" + PAIR % "maybe", 1, [":2: ", ":3: "]),
    "squad": (squad(SQUAD_QUESTION, BAD_QUESTION), 1, ["(question '2')"]),
}


@pytest.mark.parametrize("kind", CASES)
def test_the_rest_of_a_file_is_read(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text, count, lines = CASES[kind]
    path = write(tmp_path / "data.txt", text)
    with pytest.raises(DataError) as caught:
        read(path, {"type": kind})
    assert lines[0] in str(caught.value)
    for _ in range(2):  # a warning also comes with what is cached
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="elmo_tasks"):
            assert len(read(path, {"type": kind, "on_error": "skip"})) == count
        (warning,) = [record.message for record in caplog.records if "skipped" in record.message]
        first, *errors = warning.split("\n")
        assert first == f"{path}: skipped {len(lines)} part(s) that do not follow the format:"
        assert all(line in error for line, error in zip(lines, errors, strict=True))


@pytest.mark.parametrize(
    ("reader", "bad", "good"),
    [
        (NER, "a O x\nb O\n\n", "c I-X\n\n"),  # the number of columns
        (NER, "a I-X\nb L-X\n\n", "c B-X\nd I-X\n\n"),  # the scheme of the tags
        (SNLI, '{"sentence1": "A dog ."}\n', PAIR % "neutral"),  # the names of the columns
    ],
)
def test_the_first_unit_may_be_bad(reader: Settings, bad: str, good: str, tmp_path: Path) -> None:
    path = write(tmp_path / "data.txt", bad + 3 * good)
    assert len(read(path, {**reader, "on_error": "skip"})) == 3
    with pytest.raises(DataError, match=r"data.txt:[12]: "):
        read(path, reader)


def test_the_warning_names_the_file_that_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a.txt", "b.txt"):  # the same content, which is cached once
        caplog.clear()
        read(write(tmp_path / name, "a O\n\nb\n"), NER | {"on_error": "skip"})
        assert f"{tmp_path / name}:3: " in caplog.text
        assert caplog.text.count(str(tmp_path)) == 2


def test_pairs_of_files_stay_aligned(tmp_path: Path) -> None:
    for name, text in (("words", "Go\n\nGo\non\n\nRun\n"), ("props", "go (V*)\n\ngo (V*)\n-\n\nrun (V*)\n")):
        write(tmp_path / name / f"a.{name}", text)
    examples = read(tmp_path, {"type": "srl_conll2005", "on_error": "skip"})
    assert [example["tokens"] for example in examples] == [["Go"], ["Run"]]


def test_long_lists_are_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for count in (10, 11):
        caplog.clear()
        read(write(tmp_path / "data.txt", "(2 .)\n" + "(\n" * count), SST | {"on_error": "skip"})
        (warning,) = [record.message for record in caplog.records if f"skipped {count}" in record.message]
        lines = warning.split("\n")
        assert len(lines) == 11 + (count > 10)
        if count > 10:
            assert lines[-1].startswith("  and 1 more, see ")
            assert len(json.loads(Path(lines[-1].split("see ")[-1]).read_text())["skipped"]) == 11
