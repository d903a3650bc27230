from __future__ import annotations

import copy
import json
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from elmo_tasks.config import config_schema, to_json


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
