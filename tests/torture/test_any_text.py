"""Whatever a text holds, a reader makes examples of it or names the line that it cannot read."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elmo_tasks.data_readers.conll2003 import Conll2003Config
from elmo_tasks.data_readers.conllu import ConlluConfig
from elmo_tasks.data_readers.coref import CoreferenceConll2012Config
from elmo_tasks.data_readers.delimited import DelimitedConfig
from elmo_tasks.data_readers.rows import JsonlConfig
from elmo_tasks.data_readers.snli import SnliConfig
from elmo_tasks.data_readers.squad import SquadConfig
from elmo_tasks.data_readers.srl import SrlConll2005Config, SrlConll2012Config
from elmo_tasks.data_readers.sst import SstConfig
from elmo_tasks.errors import DataError
from elmo_tasks.files.json_files import parse_json
from elmo_tasks.files.text import read_lines
from elmo_tasks.pretraining.prepare import read_text
from elmo_tasks.text.tokenizers import WhitespaceTokenizer

COLUMNS = {"tokens": 0, "tags": -1}
READERS: dict[str, Any] = {
    "conll2003": (Conll2003Config(), "a.txt"),
    "delimited": (DelimitedConfig(task="tagging", tag_scheme="BIOUL", header=False, columns=COLUMNS), "a.tsv"),
    "jsonl": (JsonlConfig(task="classification", columns={"text": "a", "label": "a"}), "a.jsonl"),
    "conllu": (ConlluConfig(), "a.conllu"),
    "coref": (CoreferenceConll2012Config(), "a.v4_gold_conll"),
    "snli": (SnliConfig(), "a.txt"),
    "snli jsonl": (SnliConfig(), "a.jsonl"),
    "squad": (SquadConfig(), "a.json"),
    "srl 2005": (SrlConll2005Config(), "a.txt"),
    "srl 2012": (SrlConll2012Config(), "a.v4_gold_conll"),
    "sst": (SstConfig(subtrees=True), "a.txt"),
}

# Lines of what the formats are made of, and of anything.
WORDS = """O I-PER B-LOC -DOCSTART- #begin #end document (a); part 000 (0 0) (V*) * - (3 (2 word) ) 1 1-2 _ {"a": [ ] }
    gold_label sentence1 sentence2"""
PIECES = st.sampled_from(WORDS.split()) | st.text(max_size=3)
LINES = st.builds(str.join, st.sampled_from([" ", "\t"]), st.lists(PIECES, max_size=14))
TEXTS = st.lists(LINES, max_size=6).map("\n".join)


@pytest.mark.parametrize("name", READERS)
@given(text=TEXTS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_reader_reads_any_text_or_says_where_it_cannot(name: str, text: str, tmp_path: Path) -> None:
    config, file = READERS[name]
    path = tmp_path / file
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    message = str(path)
    try:
        for example in config.build().examples(path):
            assert example.keys() >= config.task.features.keys() - {"document", "sentence"}
    except DataError as error:
        message = str(error)
    assert message.startswith(str(path))


@given(data=st.binary(max_size=40) | TEXTS.map(str.encode))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
