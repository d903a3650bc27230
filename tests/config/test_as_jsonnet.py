import copy
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from elmo_tasks.config import config_schema, describe, load_config, to_json
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.extras.pretraining.pretraining_config import PretrainingConfig

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


@pytest.fixture(scope="module")
def schema(example: ModuleType) -> dict[str, Any]:
    return config_schema(example.Run)


def test_is_a_schema_and_tells_good_from_bad(example: ModuleType, schema: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good = {
        "model": {"encoder": {"type": "stacked", "layers": [{"type": "recurrent", "hidden_size": 3}]}},
        "trainer": {"epochs": 1, "schedule": {"rate": 1}, "decaying": {"type": "linear"}},
    }
    validator.validate(good)
    validator.validate(to_json(example.Run.model_validate_json(json.dumps(good))))

    def broken(change: dict[str, Any], *path: str | int) -> bool:
        bad: Any = copy.deepcopy(good)
        holder = bad
        for step in path:
            holder = holder[step]
        holder.update(change)
        return not validator.is_valid(bad)

    assert broken({"surprise": 1})
    assert broken({"epochs": 0}, "trainer")
    assert broken({"hidden_size": 0}, "model", "encoder", "layers", 0)
    assert broken({"type": "unheard"}, "model", "encoder")
    assert broken({"type": "constant"}, "trainer", "decaying")
    assert broken({"encoder": {"hidden_size": 3}}, "model")  # this kind has no default type
    assert not broken({"dropout": 0.9}, "model")


def test_descriptions_defaults_and_bounds(schema: dict[str, Any]) -> None:
    definitions = schema["$defs"]
    assert definitions["Recurrent"]["properties"]["hidden_size"] == {
        "description": "Units of a layer.",
        "minimum": 1,
        "type": "integer",
    }
    assert definitions["Recurrent"]["properties"]["type"]["const"] == "recurrent"
    assert definitions["Recurrent"]["additionalProperties"] is False
    encoder = definitions["Model"]["properties"]["encoder"]
    assert encoder["default"] == {"type": "recurrent", "hidden_size": 4, "cell": "lstm"}
    kind = definitions[encoder["$ref"].removeprefix("#/$defs/")]
    assert kind["description"] == "Kinds of encoders.\n\nMore of them."
    assert [choice["$ref"] for choice in kind["oneOf"]] == ["#/$defs/Recurrent", "#/$defs/Stacked"]


def test_a_part_at_the_root(example: ModuleType) -> None:
    validator = jsonschema.Draft202012Validator(config_schema(example.Encoder))
    assert validator.is_valid({"type": "recurrent", "hidden_size": 1})
    assert not validator.is_valid({"type": "recurrent"})
