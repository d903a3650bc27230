from __future__ import annotations

import gzip
import io
import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from elmo_tasks.errors import DataError
from elmo_tasks.predictors.inputs import read_inputs


def test_a_line_of_text_is_an_input(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes("Ann left.\r\n\nBo, too: é".encode())
    expected = [{"text": "Ann left."}, None, {"text": "Bo, too: é"}]
    assert list(read_inputs(path)) == list(read_inputs(path, "text")) == expected


def test_json_lines_are_told_by_the_first(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "a", "id": 1}\n{"tokens": ["\\ud83d\\ude00"]}\n'))
    expected = [{"text": "a", "id": 1}, {"tokens": ["\N{GRINNING FACE}"]}]
    assert list(read_inputs(path)) == list(read_inputs(path, "jsonl")) == expected
    assert next(read_inputs(path, "text")) == {"text": '{"text": "a", "id": 1}'}


def test_blank_lines_are_no_inputs_and_do_not_tell_the_format(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('\n \t\n{"text": "a"}\n\n{"text": "b"}\n', encoding="utf-8")
    expected = [None, None, {"text": "a"}, None, {"text": "b"}]
    assert list(read_inputs(path)) == list(read_inputs(path, "jsonl")) == expected


def test_no_lines_no_inputs(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert list(read_inputs(path)) == []


def test_standard_input_is_read_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = (f'{{"text": "{number}"}}\n'.encode() for number in itertools.count())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    assert list(itertools.islice(read_inputs("-"), 2)) == [{"text": "0"}, {"text": "1"}]


def test_faults_of_standard_input_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"fine\nnot \xff fine\n")))
    with pytest.raises(DataError, match=r"^standard input:2: byte 0xff at column 5 is not UTF-8"):
        list(read_inputs("-"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "a"', "Expecting ',' delimiter at column 13; wanted a JSON object on each line"),
        ("Ann left.", "Expecting value at column 1; wanted a JSON object"),
        pytest.param("1" * 5000, "a whole number has too many digits; wanted a JSON object", id="many digits"),
        pytest.param("[" * 100_000, "lists or objects are nested too deeply; wanted a JSON object", id="deep nesting"),
        ("[1]", "a JSON list; wanted a JSON object"),
        ('{"text": "\\uD83D!"}', r"\\uD83D at column 11 is half of a surrogate pair"),
    ],
)
def test_faulty_json_lines_are_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(f'{{"text": "a"}}\n{line}\n{{"text": "b"}}\n')
    with pytest.raises(DataError, match=rf"in\.jsonl:2: {problem}"):
        list(read_inputs(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="absent: no such file"):
        list(read_inputs(tmp_path / "absent"))
