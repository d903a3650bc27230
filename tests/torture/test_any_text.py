"""Whatever a text holds, a reader makes examples of it or names the line that it cannot read."""

from __future__ import annotations

import contextlib
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from elmo_tasks.errors import DataError
from elmo_tasks.files.json_files import parse_json
from elmo_tasks.files.text import read_lines
from elmo_tasks.pretraining.prepare import read_text
from elmo_tasks.text.tokenizers import WhitespaceTokenizer
from tests.data_readers.readers import SAMPLES, SNLI, SST, Settings, build

NAMES = (
    *("conll2003.txt", "tagging.tsv", "classification.jsonl", "conllu.conllu", "coref_conll2012.conll", "snli.jsonl"),
    *("squad.json", "srl_conll2005.txt", "srl_conll2012.conll", "sst.txt"),
)
READERS: dict[str, tuple[Settings, str]] = {name: (SAMPLES[name], name) for name in NAMES}
READERS |= {"snli.txt": (SNLI, "snli.txt"), "sst.txt": (SST | {"subtrees": True}, "sst.txt")}

# Lines of what the formats are made of, and of anything.
WORDS = """O I-PER B-LOC -DOCSTART- #begin #end document (a); part 000 (0 0) (V*) * - (3 (2 word) ) 1 1-2 _ {"a": [ ] }
    gold_label sentence1 sentence2"""
PIECES = st.sampled_from(WORDS.split()) | st.text(max_size=3)
LINES = st.builds(str.join, st.sampled_from([" ", "\t"]), st.lists(PIECES, max_size=14))
TEXTS = st.lists(LINES, max_size=6).map("\n".join)


@pytest.mark.parametrize("name", READERS)
@given(text=TEXTS)
@hypothesis.settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_reader_reads_any_text_or_says_where_it_cannot(name: str, text: str, tmp_path: Path) -> None:
    settings, file = READERS[name]
    reader, path = build(settings), tmp_path / file
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    message = str(path)
    try:
        for example in reader.examples(path):
            assert example.keys() >= reader.task.features.keys() - {"document", "sentence"}
    except DataError as error:
        message = str(error)
    assert message.startswith(str(path))


@given(data=st.binary(max_size=40) | TEXTS.map(str.encode))
@hypothesis.settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_lines_or_an_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    with contextlib.suppress(DataError):
        for number, line in read_lines(path):
            assert number > 0
            assert "\n" not in line
            with contextlib.suppress(DataError):
                parse_json(line, path, "JSON", number)
        read_text([str(path)], WhitespaceTokenizer())
