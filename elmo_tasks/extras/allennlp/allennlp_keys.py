"""AllenNLP's keys of configs and what they are called here: a table for the site's page, and answers from it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        old, new: its cells, in Markdown.
        keys: patterns of the key paths that it is about; `*` also stands for dots.
        values: if only some values of the keys differ, these with ours.
        within: if only parts of some types are meant, these types.
    """

    old: str
    new: str
    keys: tuple[str, ...]
    values: Mapping[str, str]
    within: tuple[str, ...]

    def text(self, value: Any) -> str | None:
        """What is said of a key with this value; None if it is the same here."""
        if self.values:
            new = self.values.get(value) if isinstance(value, str) else None
            return None if new is None else f"AllenNLP's {value!r} is {new!r} here"
        new = self.new.replace("`", "")
        is_name = not new.startswith("not ")  # needed, or available
        return f"AllenNLP's key; here: {new}" if is_name else f"AllenNLP's key, {new}"


def _rows() -> Iterator[Row]:
    """The rows of `allennlp_keys.tsv`.

    Its last column has the types of the parts that are meant, or `names`: then values have other names, which both
    cells list.
    """
    lines = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    for old, new, keys, of in ((*line.split("\t"), "", "")[:4] for line in lines[1:]):
        names = map(re.compile("`(.+?)`").findall, (old.partition(":")[2], new))
        values = dict(zip(*names, strict=True)) if of == "names" else {}
        yield Row(old, new, tuple(keys.split()), values, () if values else tuple(of.split()))


ROWS = tuple(_rows())
"""The first row whose keys match is the one that answers."""


def answer(path: Sequence[str | int], value: Any, holder: Any = None) -> str | None:
    """What AllenNLP's key or value at a path is here; None if the table does not know it, or it is the same.

    Arguments:
        holder: the object that the key is in.
    """
    name, kind = ".".join(map(str, path)), holder.get("type") if isinstance(holder, Mapping) else None
    for row in ROWS:
        if (not row.within or kind in row.within) and any(fnmatch.fnmatchcase(name, key) for key in row.keys):
            return row.text(value)
    return None
