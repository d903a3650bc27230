"""Exports of annotation tools: spans become the tags of whole tokens, and what does not fit is named."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.text.tag_schemes import spans_of_tags
from tests.data_readers.annotation_exports import EXPORTS, TEXTS, document, label_studio, lines
from tests.data_readers.readers import ODD_FILES, Settings, build, read, write

SPANS: Settings = {"type": "spans"}


def found_spans(examples: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The labelled spans of examples, with all white space left out."""
    return [
        ("".join(example["tokens"][start : end + 1]), label)
        for example in examples
        for label, start, end in spans_of_tags(example["tags"])
    ]


EXPECTED = [("".join(part.split()), label) for _, spans in TEXTS for part, label in spans]


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.__name__)
def test_every_tool_gives_the_same_spans(
    export: Callable[[Path], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    examples = read(export(tmp_path), SPANS | {"tokenizer": "unicode"})
    assert found_spans(examples) == EXPECTED
    texts = [text for text, _ in TEXTS]
    for document_number, text in enumerate(texts):
        tokens = [token for each in examples if each["document"] == document_number for token in each["tokens"]]
        assert "".join(tokens) == "".join(text.split())
    assert sum("the format is that of " in message for message in caplog.messages) == 1
