"""The lines that are named for key paths, and those that must not be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import _jsonnet
import pytest

from elmo_tasks.config_problems import value_at
from elmo_tasks.jsonnet_source import KeyFinder


def find(folder: Path, text: str, key: str, **files: str) -> str | None:
    """The place of a dotted key, as `line` in the main file or `file:line` in another one."""
    main = folder / "main.jsonnet"
    main.write_text(text, encoding="utf-8")
    for name, content in files.items():
        (folder / f"{name}.libsonnet").write_text(content, encoding="utf-8")
    values: Any = json.loads(_jsonnet.evaluate_file(str(main)))
    path = tuple(int(step) if step.isdigit() else step for step in key.split("."))
    place = KeyFinder(main).find(path, value_at(values, path))
    return place and place.removeprefix(f"{main}:").removeprefix(f"{folder}/")


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
  verbatim: @'it''s { e: 1', escaped: "\\"{ e:", number: 1.5e-3,
  ['computed']: { e: -1 },
  e::: true,
  f: [
    null,
  ],
}
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("a", "6"),
        ("b", "6"),
        ("b.c", "6"),
        ("b.c.0", "6"),
        ("b.c.1.d", "6"),
        ("b.c.2.d", "7"),
        ("text", "8"),
        ("verbatim", "14"),
        ("escaped", "14"),
        ("number", "14"),
        ("computed.e", "15"),
        ("e", "16"),
        ("f.0", "18"),
    ],
)
def test_literals_of_all_kinds(tmp_path: Path, key: str, line: str) -> None:
    assert find(tmp_path, LITERALS, key) == line


def test_dashed_text_block(tmp_path: Path) -> None:
    assert find(tmp_path, "{ a: |||-\n    b: {\n  |||,\n  b: 3 }", "b") == "4"


SUMS = """local base = import 'base.libsonnet';
local size = 3, encoder = { size: size,
  layers: 1 };
base {
  local inner = { c: 1 },
  model+: {
    encoder: encoder { layers: 2 },
    inner: inner,
  },
  list: [1] + [
    2],
} + {
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


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("model", "6"),
        ("model.dropout", "base.libsonnet:2"),
        ("model.encoder", "7"),
        ("model.encoder.size", "2"),
        ("model.encoder.layers", "7"),
        ("model.inner.c", "5"),
        ("list.0", "10"),
        ("list.1", "11"),
        ("other", "13"),
        ("other.dropout", "base.libsonnet:2"),
        ("trainer.epochs", "14"),
        ("trainer.patience", "base.libsonnet:6"),
    ],
)
def test_sums_locals_and_imports(tmp_path: Path, key: str, place: str) -> None:
    assert find(tmp_path, SUMS, key, base=BASE) == place


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
    [if 1 < 2 then 'wide']: wide(4),
  },
  list: [{ each: i,
    same: 1 } for i in std.range(0, 1)],
  mapped: { [k]: { value: 1,
    key: k } for k in ['p', 'q'] },
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


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("model.encoder", "10"),
        ("model.encoder.size", "2"),
        ("model.encoder.inner.depth", "3"),
        ("model.encoder.bonus", "11"),
        ("model.wide.width", "6"),
        ("list.1.same", "16"),
        ("either.1.second", "27"),
        ("mapped.p.key", "18"),
        ("choice.option", "22"),
        ("called.made", "24"),
    ],
)
def test_keys_in_computed_objects_are_found_by_their_end(tmp_path: Path, key: str, line: str) -> None:
    assert find(tmp_path, LOOSE, key) == line


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


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("outer.deep.0", "5"),
        ("outer.deep.0.width", "3"),
        ("outer.deep.2.again", "6"),
        ("outer.deep.2.again.dropout", "elmo.libsonnet:2"),
        ("model.embedder.elmo", "base.libsonnet:4"),
        ("model.embedder.elmo.dropout", "elmo.libsonnet:2"),
        ("model.own.b.c", "part.libsonnet:1"),  # an imported file's `$` is its own object
    ],
)
def test_references_to_the_object_itself(tmp_path: Path, key: str, place: str) -> None:
    files = {"base": REFERENCES_BASE, "elmo": "{\n  dropout: 0.5 }", "part": "{ a: { c: 1 },\n  b: $.a }"}
    assert find(tmp_path, REFERENCES, key, **files) == place


def test_a_reference_in_a_local_variable_leads_nowhere(tmp_path: Path) -> None:
    text = "{ local part = { a: $.size }, size: { width: 1 }, model: { part: part, size: { width: 1 } } }"
    assert find(tmp_path, text, "model.part.a") == "1"
    assert find(tmp_path, text, "model.part.a.width") is None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        # Another key of the same name, at another place, is not the one.
        ("{ a: { size: 3 }, b: std.parseJson('{\"size\": 3}') }", "b.size"),
        ("local used = { size: 3 }; { a: used, b: std.parseJson('{\"size\": 3}') }", "b.size"),
        # Two branches that could both have made the value.
        ("{ a: if 1 == 1 then { b: 1 + 1 }\n else { b: 1 + 2 } }", "a.b"),
        # The literal at the path was replaced by something computed.
        ('{ a: { b: 1 } } + std.parseJson(\'{"a": {"b": 2}}\')', "a.b"),
        # The parameter hides the outer variable of its name.
        ("local x = { b: 1 }; local f(x) = { a: x }; f(std.parseJson('{\"b\": 1}')) + { other: x }", "a.b"),
    ],
)
def test_no_line_rather_than_a_wrong_one(tmp_path: Path, text: str, key: str) -> None:
    assert find(tmp_path, text, key) is None


def test_a_replaced_value_is_found_where_it_was_replaced(tmp_path: Path) -> None:
    text = "local f() = { model: {\n  dropout: 0.3 } };\n{ model: {\n  dropout: 0.5 } } + f()"
    assert find(tmp_path, text, "model.dropout") == "2"


def test_a_key_before_a_computed_sum_is_found_if_its_value_stands(tmp_path: Path) -> None:
    text = "{ model: {\n  dropout: 0.5 } } + (if std.length('a') == 1 then { seed: 3 } else {})"
    assert find(tmp_path, text, "model.dropout") == "2"
    assert find(tmp_path, text, "model") == "1"


def test_true_is_not_one(tmp_path: Path) -> None:
    assert find(tmp_path, "{ a: 1 } + std.parseJson('{\"a\": true}')", "a") is None


def test_files_that_import_each_other(tmp_path: Path) -> None:
    text = "{ a: 1, b: (import 'other.libsonnet').c }"
    assert find(tmp_path, text, "b", other="{ c: (import 'main.jsonnet').a,\n d: 2 }") == "1"


def test_an_unreadable_file_has_no_places(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonnet"
    path.write_text("{ a: 1")
    assert KeyFinder(path).find(("a",), 1) is None
