import contextlib
import gzip
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from elmo_tasks.errors import DataError
from elmo_tasks.predictors.inputs import LiveLines, read_inputs, reader_inputs
from tests.predictors.stub_models import make_tagger


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        ("text", "Ann left.\r\n\nBo, too: é", [{"text": "Ann left."}, None, {"text": "Bo, too: é"}]),
        ("text", "", []),
        ("jsonl", '{"text": "a", "id": 1}\n{"tokens": ["\\ud83d\\ude00"]}\n',
         [{"text": "a", "id": 1}, {"tokens": ["\N{GRINNING FACE}"]}]),
        ("jsonl", '\n \t\n {"text": "a"}\n\n{"text": "b"}\n', [None, None, {"text": "a"}, None, {"text": "b"}]),
    ],
)  # fmt: skip
def test_the_first_line_that_is_not_blank_shows_the_format(
    kind: Any, content: str, expected: list[dict[str, Any] | None], tmp_path: Path
) -> None:
    for name, written in (("in", content.encode()), ("in.gz", gzip.compress(content.encode()))):
        (tmp_path / name).write_bytes(written)
        assert list(read_inputs(tmp_path / name)) == list(read_inputs(tmp_path / name, kind)) == expected


@pytest.fixture
def pipe() -> Iterator[tuple[LiveLines, int]]:
    """The lines of a pipe, and its other end for writing."""
    read, write = os.pipe()
    yield LiveLines(read), write
    os.close(read)
    with contextlib.suppress(OSError):  # a test has closed it
        os.close(write)


def test_lines_come_as_soon_as_they_are_complete(pipe: tuple[LiveLines, int]) -> None:
    lines, end = pipe
    stream = iter(lines)
    assert lines.waiting()
    os.write(end, b"one\n\ntwo\nthr")
    assert not lines.waiting()
    assert [next(stream), next(stream)] == [b"one\n", b"\n"]
    assert not lines.waiting()
    assert next(stream) == b"two\n"
    assert lines.waiting()
    os.write(end, b"e")
    os.write(end, b"e\nlast")
    assert next(stream) == b"three\n"
    os.close(end)
    assert not lines.waiting()
    assert list(stream) == [b"last"]


def test_long_lines_and_many_lines(pipe: tuple[LiveLines, int]) -> None:
    lines, end = pipe
    sent = [b"x" * 300_000 + b"\n", *(b"%d\n" % number for number in range(20_000))]

    def send() -> None:
        with os.fdopen(end, "wb") as stream:
            stream.writelines(sent)

    writer = threading.Thread(target=send)
    writer.start()
    assert list(lines) == sent
    writer.join()


def test_a_prompt_comes_before_each_wait() -> None:
    read, write = os.pipe()
    prompts: list[int] = []

    def prompt() -> None:
        prompts.append(len(prompts))
        os.write(write, b"a\nb\n") if len(prompts) < 3 else os.close(write)

    assert list(LiveLines(read, prompt=prompt)) == [b"a\n", b"b\n"] * 2
    assert len(prompts) == 3
    os.close(read)


def test_a_part_of_a_line(pipe: tuple[LiveLines, int]) -> None:
    lines, end = pipe
    os.write(end, b"long\n")
    assert [lines.readline(3), lines.readline(3)] == [b"lon", b"g\n"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "a"', "EOF while parsing an object at column 12; expected a JSON object on each line"),
        ("Ann left.", "expected value at column 1; expected a JSON object"),
        ("[1]", "a JSON list; expected a JSON object"),
    ],
)
def test_faulty_json_lines_are_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(f'{{"text": "a"}}\n{line}\n{{"text": "b"}}\n')
    with pytest.raises(DataError, match=rf"in\.jsonl:2: {problem}"):
        list(read_inputs(path))


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        (b"fine\nnot \xff fine\n", "byte 0xff at column 5 is not UTF-8"),
        (b"\n-DOCSTART- -X- O\n", "looks like a token on each line"),
    ],
)
def test_faults_of_live_lines_are_named(pipe: tuple[LiveLines, int], written: bytes, problem: str) -> None:
    lines, end = pipe
    os.write(end, written)
    with pytest.raises(DataError, match=rf"^standard input:2: {problem}"):
        list(read_inputs(lines))


def test_the_name_of_a_file_says_its_format(tmp_path: Path) -> None:
    table, lines = tmp_path / "in.csv", tmp_path / "in.jsonl"
    table.write_bytes("Schön\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"in\.csv: looks like a table; expected .*; --format reader reads it"):
        next(read_inputs(table))
    lines.write_text("text\n")
    with pytest.raises(DataError, match=r"in\.jsonl:1: expected ident at column 2; expected a JSON object"):
        next(read_inputs(lines))
    assert list(read_inputs(lines, "text")) == [{"text": "text"}]


def test_inputs_of_data_count_as_their_lines_even_if_several_begin_in_one(caplog: pytest.LogCaptureFixture) -> None:
    examples = [{"tokens": [token], "line": line} for token, line in (("a", 1), ("b", 1), ("c", None), ("d", 6))]
    inputs = reader_inputs(Mock(unlabelled=lambda *_: examples), make_tagger(), "data")
    assert [each and each["tokens"] for each in inputs] == [["a"], ["b"], ["c"], None, None, ["d"]]
    assert not caplog.messages
    assert list(reader_inputs(Mock(unlabelled=lambda *_: []), make_tagger(), "data")) == []
    assert caplog.messages == ["data: no examples to predict"]
