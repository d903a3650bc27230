"""The defaults of all settings: a config that leaves one out means this value, also in runs of earlier versions.

After a change on purpose: `python -m tests.config.test_defaults`.
"""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic_core

import elmo_tasks
from elmo_tasks.config import Config

SNAPSHOT = Path(__file__).with_name("defaults.json")


def all_configs(base: type[Config] = Config) -> Iterator[type[Config]]:
    for kind in base.__subclasses__():
        yield kind
        yield from all_configs(kind)


def defaults() -> dict[str, dict[str, Any]]:
    """The defaults of the keys that have one, for each public class of configs except the server's requests."""
    for module in pkgutil.walk_packages(elmo_tasks.__path__, "elmo_tasks."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: dict[str, dict[str, Any]] = {}
    for kind in all_configs():
        is_request = kind.__module__.startswith("elmo_tasks.extras.server")
        if kind.__module__.startswith("elmo_tasks.") and not is_request and not kind.__name__.startswith("_"):
            values = {
                key: "set by other keys"
                if field.default_factory_takes_validated_data
                else pydantic_core.to_jsonable_python(field.get_default(call_default_factory=True))
                for key, field in kind.model_fields.items()
                if not field.is_required()
            }
            if values:
                assert kind.__name__ not in found, f"two classes of configs are called {kind.__name__}"
                found[kind.__name__] = values
    return dict(sorted(found.items()))


def as_text(found: dict[str, dict[str, Any]]) -> str:
    lines = [f"{json.dumps(name)}: {json.dumps(values)}" for name, values in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def test_no_default_has_changed() -> None:
    assert defaults() == json.loads(SNAPSHOT.read_text(encoding="utf-8")), __doc__


if __name__ == "__main__":
    SNAPSHOT.write_text(as_text(defaults()), encoding="utf-8")
