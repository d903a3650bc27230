"""AllenNLP's keys of configs and what they are called here: a table for the site's page, and answers from it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from elmo_tasks.config.problems import MISSING_KEY, UNKNOWN_KEY, ForeignConfigs, Problem

PAGE = "docs/from_allennlp.md"
# Keys that only configs of AllenNLP's have.
_MARKS = (
    "iterator", "validation_iterator", "data_loader.batch_sampler", "dataset_reader.token_indexers",
    "model.text_field_embedder", "trainer.cuda_device",
)  # fmt: skip
_NOT = "not "  # needed, or available


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
    values: Mapping[str, str] = MappingProxyType({})
    within: tuple[str, ...] = ()

    def text(self, value: Any) -> str | None:
        """What is said of a key with this value; None if it is the same here."""
        if self.values:
            new = self.values.get(value) if isinstance(value, str) else None
            return None if new is None else f"AllenNLP's {value!r} is {new!r} here"
        new = self.new.replace("`", "")
        return f"AllenNLP's key, {new}" if new.startswith(_NOT) else f"AllenNLP's key; here: {new}"


def _rows() -> Iterator[Row]:
    """The rows of `allennlp_keys.tsv`.

    Its last column has the types of the parts that are meant, or `names`: then values have other names, which both
    cells list.
    """
    lines = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    for old, new, keys, of in ((*line.split("\t"), "", "")[:4] for line in lines[1:]):
        names = map(re.compile("`(.+?)`").findall, (old.partition(":")[2], new))
        values = MappingProxyType(dict(zip(*names, strict=True)) if of == "names" else {})
        yield Row(old, new, tuple(keys.split()), values, tuple(of.split()) if not values else ())


ROWS = tuple(_rows())
"""The first row whose keys match is the one that answers."""


def answer(path: Sequence[str | int], value: Any, holder: Any = None) -> str | None:
    """What AllenNLP's key or value at a path is here; None if the table does not know it, or it is the same.

    Arguments:
        holder: the object that the key is in.
    """
    name, kind = ".".join(map(str, path)), holder.get("type") if isinstance(holder, Mapping) else None
    found = (
        row
        for row in ROWS
        if (not row.within or kind in row.within) and any(fnmatch.fnmatchcase(name, key) for key in row.keys)
    )
    row = next(found, None)
    return row.text(value) if row else None


def is_allennlp(values: Mapping[str, Any]) -> bool:
    """Whether the values are those of a config of AllenNLP's."""
    return any(_has(values, mark.split(".")) for mark in _MARKS)


def _has(values: Any, path: Sequence[str]) -> bool:
    return not path or (isinstance(values, Mapping) and path[0] in values and _has(values[path[0]], path[1:]))


def answers(
    values: Any, path: tuple[str | int, ...] = (), above: str | None = None
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The paths of all keys that differ here, with what they are here. Of a part that has one answer, it comes once.

    Arguments:
        above: the answer for the part that the values are.
    """
    pairs = values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, list) else ()
    for key, value in pairs:
        found = answer((*path, key), value, values)
        if found and found != above:
            yield (*path, key), found
        yield from answers(value, (*path, key), found)


def problems(values: Mapping[str, Any], found: Sequence[Problem]) -> list[Problem]:
    """What differs in a config of AllenNLP's: each key of the table, and what else is wrong with the other keys.

    Arguments:
        found: what is wrong with it as a config of ours. Keys that are missing then only follow from the others.
    """
    differences = [Problem(path, text) for path, text in answers(values)]
    answered = {problem.key for problem in differences}
    for problem in found:
        is_answered = any(problem.key[:length] in answered for length in range(1, len(problem.key) + 1))
        if is_answered or problem.text.startswith(MISSING_KEY):
            continue
        if problem.text.startswith(UNKNOWN_KEY):
            problem = Problem(problem.key, f"{UNKNOWN_KEY}, which {PAGE} does not list either")
        differences.append(problem)
    return differences


FOREIGN_CONFIGS = ForeignConfigs(
    "an AllenNLP config; `elmo-tasks import-allennlp` turns its archive into a run; to train a new one, change "
    f"these keys ({PAGE})",
    is_allennlp,
    answer,
    problems,
)
