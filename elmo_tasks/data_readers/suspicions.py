"""What is read but is probably not what it seems: header rows, and sentences without an end."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MAX_SENTENCE = 1000  # tokens; what is longer is hardly one sentence
_COLUMN_NAMES = re.compile(
    "(gold_)?labels?|class|category|(ner_?)?tags?|ner|[ux]?pos|rating|score|sentiment|stars|premise|hypothesis|review|"
    "sentence[12]?|text|tweet|tokens?|words?|form",
    re.IGNORECASE,
)


def long_sentences(example: Mapping[str, Any], columns: Iterable[str]) -> Iterator[tuple[int, int]]:
    """The sentences of more than `MAX_SENTENCE` tokens: the number of the sentence in the example, and its tokens."""
    for column in columns:
        texts = example.get(column) or []
        is_nested = bool(texts) and not isinstance(texts[0], str)  # a list of sentences
        for number, sentence in enumerate(texts if is_nested else [texts]):
            if len(sentence) > MAX_SENTENCE:
                yield number, len(sentence)


def is_header(example: Mapping[str, Any]) -> bool:
    """Whether an example is a header row: its only words and its label, or its first word and tag, name columns."""
    texts = [example[column] for column in ("tokens", "premise", "hypothesis") if column in example]
    if "tags" in example:
        words = [*texts[0][:1], *example["tags"][:1]]
    elif "label" in example and all(len(text) == 1 for text in texts):
        words = [*(text[0] for text in texts), example["label"]]
    else:
        return False
    return all(_COLUMN_NAMES.fullmatch(word) for word in words)
