"""The first sentences of a data file, in the file's own format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from elmo_tasks.files.paths import plain_name

_Part = TypeVar("_Part")

_DOCUMENT = re.compile(r"#begin document.*?^#end document\n", re.DOTALL | re.MULTILINE)


def first_sentences(file: Path, text: str, count: int) -> str:
    """The beginning of a file's text with this many sentences, pairs of sentences or questions, or all if it has fewer.

    Passages and documents are kept whole, so that the last one may exceed the number.

    Arguments:
        file: the file. Its name shows the format.
        text: what is in it.
        count: the number of sentences, at least 1.
    """
    name = plain_name(file)
    if name.endswith(".json"):
        return _first_passages(text, count)
    if name.endswith("gold_conll"):
        return "".join(_until(((match[0], match[0].count("\n\n")) for match in _DOCUMENT.finditer(text)), count))
    if name.endswith((".csv", ".jsonl")) or text.startswith("("):  # also trees
        return "".join(text.splitlines(keepends=True)[: count + name.endswith(".csv")])
    return "".join(f"{block}\n\n" for block in text.rstrip("\n").split("\n\n")[:count])


def _first_passages(text: str, count: int) -> str:
    document = json.loads(text)
    passages = ((article, sum(len(each["qas"]) for each in article["paragraphs"])) for article in document["data"])
    return json.dumps({**document, "data": list(_until(passages, count))}, ensure_ascii=False)


def _until(sized: Iterator[tuple[_Part, int]], count: int) -> Iterator[_Part]:
    """Parts with their sizes, until together they have at least `count`."""
    for part, size in sized:
        if count <= 0:
            return
        count -= size
        yield part
