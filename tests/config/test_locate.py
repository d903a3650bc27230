"""The lines that are named for keys of configs. A wrong line is worse than none."""

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import _jsonnet
import pytest

from elmo_tasks.config.locate import Unsure, find_key, written_keys
from elmo_tasks.config.problems import value_at

MAIN = "main.jsonnet"


def evaluated(text: str, key: str, files: dict[str, str]) -> Any:
    """The value of a dotted key of a text whose imports are `files`, by name without ending."""
    Path(MAIN).write_text(text, encoding="utf-8")
    for name, content in files.items():
        Path(f"{name}.libsonnet").write_text(content, encoding="utf-8")
    path = tuple(int(step) if step.isdigit() else step for step in key.split("."))
    return value_at(json.loads(_jsonnet.evaluate_file(MAIN)), path)


def find(text: str, key: str, **files: str) -> str | None:
    """Where a dotted key is, as `line` in the main file or `file:line` in another one.

    If one is found, the key is gone, or has another value, without it.
    """
    value = evaluated(text, key, files)
    name = key.rpartition(".")[2]
    try:
        location = find_key(written_keys(MAIN), name, value)
    except Unsure:
        return None
    if location is None:
        return None
    file, line = location
    lines = Path(file).read_text(encoding="utf-8").splitlines(keepends=True)
    lines[line - 1] = re.sub(rf"""(?<!\w){name}(?=["']?(?:\s|/\*.*\*/)*\+?:)""", "renamed", lines[line - 1])
    changed = {Path(file).stem: "".join(lines)}
    with contextlib.suppress(KeyError, RuntimeError):  # there is no such key, or a reference to it fails
        assert evaluated(changed.pop("main", text), key, files | changed) != value
    return str(line) if file == MAIN else f"{file}:{line}"


LITERALS = """// a: 1
# { a: 2 }
/* a: 3
{ */
{
  'a': 1, "b": { c: [1, { d: 'x' },
    { d: 'y', }] },
  text: |||
    a: 1
      e: 2
    ||| { |||

  |||,
  verbatim: @'it''s { e: 1', escaped: "\\"{ e:", number: -1.5e-3,
  e::: true,
  f: [
    null,
  ],
  b2 /* b2: */ : // b2: 4
    5,
}
"""


IN_LITERALS = {
    "a": "6", "b": "6", "b.c": "6", "b.c.1.d": "6", "b.c.2.d": "7", "text": "8", "verbatim": "14", "escaped": "14",
    "number": "14", "e": "15", "f": "16", "b2": "19",
}  # fmt: skip


SUMS = """local base = import 'base.libsonnet';
local size = 3, encoder = { size: size,
  layers: 1 };
base {
  local inner = { c: 1 },
  model+: {
    encoder: encoder { layers: 2 },
    inner: inner,
  },
  other: (import 'base.libsonnet').model,
  trainer+: { epochs: 7 },
}
"""
BASE = """{
  model: { dropout: 0.5,
    encoder: { size: 1, gone: 2 } },
  trainer: {
    epochs: 5,
    patience: 2,
  },
}
"""


IN_SUMS = {
    "model": None,  # of both files
    "model.dropout": "base.libsonnet:2", "model.encoder": None, "model.encoder.size": "2", "model.encoder.layers": "7",
    "model.inner": "8", "model.inner.c": "5", "other": "10", "other.dropout": "base.libsonnet:2",
    "trainer.epochs": "11", "trainer.patience": "base.libsonnet:6",
}  # fmt: skip


LOOSE = """local encoder(size, extra={}) = {
  size: size,
  inner: { depth: 2 },
} + extra;
local wide = function(x) {
  width: x,
};
{
  model: {
    encoder: encoder(3, extra={
      bonus: true,
    }),
    wide: wide(4),
  },
  list: [{ each: i,
    same: 1 } for i in std.range(0, 1)],
  choice: if 1 == 2 then {
    option: 'no',
  } else {
    option: 'yes',
  },
  method(x):: { made: x },
  called: self.method(3),
  either: if 1 == 2 then [] else [1,
    { second: 2 }],
  assert self.called.made == 3 : 'wrong',
}
"""


IN_FUNCTIONS = {
    "model.encoder": "10", "model.encoder.size": "2", "model.encoder.inner.depth": "3", "model.encoder.bonus": "11",
    "model.wide.width": "6", "list.1.same": "16", "either.1.second": "25", "choice.option": "20", "called.made": "22",
}  # fmt: skip


REFERENCES = """(import 'base.libsonnet') {
  size:: {
    width: 1 },
  outer: {
    deep: [$.size, self.near,
      { again: self.twice, twice: $.elmo, }],
    near: 3,
  },
  model+: { own: (import 'part.libsonnet') },
}
"""
REFERENCES_BASE = """{
  elmo:: import 'elmo.libsonnet',
  model: {
    embedder: { elmo: $.elmo },
  },
}
"""


IN_REFERENCES = {
    "outer.deep": "5", "outer.deep.0.width": "3", "outer.deep.2.again": "6",
    "outer.deep.2.again.dropout": "elmo.libsonnet:2",
    "model.embedder.elmo": "base.libsonnet:4",  # not where it is hidden
    "model.embedder.elmo.dropout": "elmo.libsonnet:2", "model.own.b.c": "part.libsonnet:1",
}  # fmt: skip
PARTS = {"base": REFERENCES_BASE, "elmo": "{\n  dropout: 0.5 }", "part": "{ a: { c: 1 },\n  b: $.a }"}


@pytest.mark.parametrize(
    ("text", "files", "expected"),
    [
        (LITERALS, {}, IN_LITERALS),
        ("{ a: |||-\n    b: {\n  |||,\n  b: 3 }", {}, {"b": "4"}),
        (SUMS, {"base": BASE}, IN_SUMS),
        (LOOSE, {}, IN_FUNCTIONS),
        (REFERENCES, PARTS, IN_REFERENCES),
        ("{ a: 'b: 2, c:',\n  c: \"import 'gone'\" }", {}, {"c": "2"}),  # a long string is not searched
        (
            "{ a: 1, b: (import 'other.libsonnet').c }",
            {"other": "{ c: (import 'main.jsonnet').a,\n d: 2 }"},
            {"b": "1"},
        ),
    ],
    ids=["literals", "a block", "sums", "functions", "references", "strings", "files that import each other"],
)
def test_where_keys_are(text: str, files: dict[str, str], expected: dict[str, str | None]) -> None:
    assert {key: find(text, key, **files) for key in expected} == expected


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("{ a: { dropout: 0.1 },\n b: { dropout: 0.2 } }", "b.dropout", "2"),
        ("{ a: { dropout: 'x' },\n b: { dropout: -2 } }", "b.dropout", "2"),
        ("{ a: { size: [1] },\n b: { size: 3 } }", "b.size", "2"),
        ("{ a: { size: [1] },\n b: { size: 3 } }", "a.size", "1"),
        ("{ a: { on: 1 },\n b: { on: true } }", "a.on", "1"),
        ("{ a: { on: 1 },\n b: { on: true } }", "b.on", "2"),
        ("{ a: { size: 3 },\n b: { size: 2 + 1 } }", "b.size", None),
        ("{ a: { size: 2 },\n b: { size: 2 + 1 } }", "b.size", "2"),
        ("{ a: { size: 3 } }\n + { a+: { size: 4 } }", "a.size", "2"),
        ("local size = 3; { a: { size: size },\n assert 3 == size : 'none' }", "a.size", "1"),
        ("local size = 3; { a: { size: size },\n assert 3 == size : 3 + 1 }", "a.size", None),
        ("{ a: { size: 1 } }\n + { a+: { size+: 1 } }", "a.size", "2"),
        ("{ a: ['x'],\n b: { a: 'x' } }", "b.a", None),  # lists of strings are not read
    ],
)
def test_places_with_the_same_name_are_told_apart_by_their_literals(text: str, key: str, line: str | None) -> None:
    assert find(text, key) == line


@pytest.mark.parametrize(
    ("text", "key"),
    [
        # Two lines with the same name and value.
        ("{ a: { size: 3 },\n b: { size: 3 } }", "b.size"),
        ("{ a: { size: 9007199254740993 },\n b: { size: 1 + 2 } }", "a.size"),
        ("{ a: { size: 'x\r\ny' },\r\n b: { size: 'x' + 'y' } }", "a.size"),
        # Two branches that could both have made the value.
        ("{ a: if 1 == 1 then { b: 1 + 1 }\n else { b: 1 + 2 } }", "a.b"),
        # The value, or another one, may be that of a computed key.
        ("{ a: { size: 2 + 1 },\n b: { ['si' + 'ze']: 3 } }", "b.size"),
        ("{ a: { size: 2 + 1 },\n b: { [name]: 1 + 2 for name in ['size'] } }", "b.size"),
        ("{ a: { size: 2 + 1 },\n b: { 's\\u0069ze': 3 } }", "b.size"),
        ("{ a: { size: 2 + 1 },\n b: { @'size': 3 } }", "b.size"),
        # Keys and values that the text does not show.
        ("{ a: { size: 3 },\n b: std.parseJson('{\"size\": 3}') }", "b.size"),
        ("{ a: { size: 3 },\n b: (import 'std.libsonnet').parse('{\"size\": 3}') }", "b.size"),
        ("{ a: { key: 3 + 1 },\n b: std.objectKeysValues({ x: 1 }) }", "b.0.key"),
        ("{ a: { size: 1 + 3 },\n b: std.mapWithKey(function(_, size) size + 1, { size: 3 }) }", "b.size"),
        # An import whose name is not plain.
        ("{ a: { size: 3 },\n b: import @'base.libsonnet' }", "b.size"),
        ("{ a: { size: 3 },\n b: import 'base\\u002elibsonnet' }", "b.size"),
    ],
)
def test_no_line_is_named_if_it_is_not_certain(text: str, key: str) -> None:
    assert find(text, key, base="{ size: 3 }", std="{ parse: std.parseJson }") is None


def test_an_import_from_another_folder() -> None:
    Path("parts").mkdir()
    Path("parts/inner.libsonnet").write_text("{ size:\n 3 }")
    Path("parts/outer.jsonnet").write_text("{ a: import '../parts/inner.libsonnet' }")
    assert find_key(written_keys("parts/outer.jsonnet"), "size", 3) == ("parts/inner.libsonnet", 1)


@pytest.mark.parametrize("content", [None, b"{ a: import 'gone.libsonnet' }", b"{ a: '\xff' }"])
def test_nothing_is_sure_without_all_files(content: bytes | None) -> None:
    if content is not None:
        Path(MAIN).write_bytes(content)
    with pytest.raises(Unsure):
        list(written_keys(MAIN))
