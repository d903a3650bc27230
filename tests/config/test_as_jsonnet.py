from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from elmo_tasks.config import describe, load_config, to_json
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.pretraining.pretraining_config import PretrainingConfig

MINIMAL = "{ model: {}, trainer: { epochs: 1 } }"

WHOLE = """{
  model: {
    encoder: { type: 'stacked', layers: [{ type: 'recurrent', hidden_size: 3 }] },
    heads: { 'a b': { type: 'recurrent', hidden_size: 2 }, 'local': { type: 'recurrent', hidden_size: 1 } },
  },
  trainer: { epochs: 2, decaying: { type: 'linear' }, names: ['"quoted"', 'é'] },
}
"""


def test_json_holds_everything_and_loads_again(load: Callable[..., Any], example: ModuleType) -> None:
    run = load(WHOLE)
    values = to_json(run)
    assert values["model"]["encoder"]["layers"] == [{"type": "recurrent", "hidden_size": 3, "cell": "lstm"}]
    assert values["trainer"]["decaying"] == {"type": "linear", "decay": 0.9}
    assert values["trainer"]["schedule"] == {"type": "constant", "rate": 0.1}
    Path("config.json").write_text(json.dumps(values))
    assert load_config("config.json", example.Run) == run


def test_description_marks_defaults_and_loads_again(load: Callable[..., Any], example: ModuleType) -> None:
    run = load(WHOLE)
    text = describe(run)
    Path("described.jsonnet").write_text(text, encoding="utf-8")
    assert load_config("described.jsonnet", example.Run) == run
    assert text.startswith(
        """{
  model: {
    dropout: 0.5,  // default
    encoder: {
      type: "stacked",
      layers: [
        {
          type: "recurrent",
          hidden_size: 3,
          cell: "lstm",  // default
        },
      ],
      span: [1, "file"],  // default
    },
    heads: {
      "a b": {
"""
    )
    assert '    names: ["\\"quoted\\"", "é"],\n' in text
    assert text.endswith("  seed: 1,  // default\n}\n")


def test_what_lies_in_a_default_is_a_default(load: Callable[..., Any]) -> None:
    lines = describe(load(MINIMAL)).splitlines()
    assert "      hidden_size: 4,  // default" in lines
    assert "    heads: {},  // default" in lines
    assert [line for line in lines if "// default" not in line and line.strip(" {}[],")] == [
        "  model: {",
        "    encoder: {",
        "  trainer: {",
        "    epochs: 1,",
        "    schedule: {",
    ]


def test_description_has_keys_that_have_no_field(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    options = {**to_json(TINY_OPTIONS), "a b": 3}
    config.write_text(json.dumps({"bilm": options, "corpus": {"paths": ["text.txt"]}}))
    described = describe(load_config(config, PretrainingConfig))
    assert '    "a b": 3' in described
