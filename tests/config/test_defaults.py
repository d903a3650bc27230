"""The defaults and bounds of all settings, and the defaults of all public functions.

A config or a program that leaves one out means this value, also in runs of earlier versions. After a change on purpose:
`python -m tests.config.test_defaults`.
"""

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_args, get_origin

import annotated_types
import pydantic_core

import elmo_tasks
from elmo_tasks.config import Config

SNAPSHOT = Path(__file__).with_name("defaults.json")


def modules() -> Iterator[ModuleType]:
    for module in pkgutil.walk_packages(elmo_tasks.__path__, "elmo_tasks."):
        if not module.name.endswith("__main__"):
            yield importlib.import_module(module.name)


def all_configs(base: type[Config] = Config) -> Iterator[type[Config]]:
    for kind in base.__subclasses__():
        yield kind
        yield from all_configs(kind)


def bounds(annotation: Any, metadata: tuple[Any, ...]) -> list[str]:
    """The bounds of numbers and lengths in an annotation, as in `ge=0`; also of what a list or a choice has in it."""
    found = []
    for each in metadata:
        if isinstance(each, annotated_types.GroupedMetadata):
            found += bounds(None, tuple(each))
        elif isinstance(each, annotated_types.BaseMetadata):
            values = {name: getattr(each, name, None) for name in ("gt", "ge", "lt", "le", "min_length", "max_length")}
            found += [f"{name}={value!r}" for name, value in values.items() if value is not None]
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return found + bounds(inner, tuple(more))
    return found + [bound for each in get_args(annotation) for bound in bounds(each, ())]


def settings() -> dict[str, dict[str, Any]]:
    """The defaults and bounds of the keys, for each public class of configs except the server's requests."""
    found: dict[str, dict[str, Any]] = {}
    tuple(modules())  # importing them defines the classes
    for kind in all_configs():
        is_request = kind.__module__.startswith("elmo_tasks.extras.server")
        if kind.__module__.startswith("elmo_tasks.") and not is_request and not kind.__name__.startswith("_"):
            values: dict[str, Any] = {}
            for key, field in kind.model_fields.items():
                if not field.is_required():
                    values[key] = (
                        "set by other keys"
                        if field.default_factory_takes_validated_data
                        else pydantic_core.to_jsonable_python(field.get_default(call_default_factory=True))
                    )
                if limits := bounds(field.annotation, tuple(field.metadata)):
                    values[f"{key}, bounds"] = limits
            if values:
                assert kind.__name__ not in found, f"two classes of configs are called {kind.__name__}"
                found[kind.__name__] = values
    return dict(sorted(found.items()))


def functions() -> dict[str, dict[str, str]]:
    """The defaults of the arguments that have one, for each public function, class and method except settings."""
    found: dict[str, dict[str, str]] = {}

    def look(name: str, value: Any) -> None:
        is_config = inspect.isclass(value) and issubclass(value, Config)
        if is_config or not (inspect.isfunction(value) or inspect.isclass(value)):
            return
        if inspect.isclass(value):
            for key, method in vars(value).items():
                if not key.startswith("_"):
                    look(f"{name}.{key}", method.__func__ if isinstance(method, classmethod | staticmethod) else method)
            if "__init__" not in vars(value):
                return
        parameters = inspect.signature(value).parameters.values()
        given = {each.name: repr(each.default) for each in parameters if each.default is not each.empty}
        if given and not any(" at 0x" in default for default in given.values()):
            found[name] = given

    for module in modules():
        for key, value in vars(module).items():
            if not key.startswith("_") and getattr(value, "__module__", None) == module.__name__:
                look(f"{module.__name__.removeprefix('elmo_tasks.')}.{key}", value)
    return dict(sorted(found.items()))


def defaults() -> dict[str, dict[str, Any]]:
    return {**functions(), **settings()}


def as_text(found: dict[str, dict[str, Any]]) -> str:
    lines = [f"{json.dumps(name)}: {json.dumps(values)}" for name, values in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def test_no_default_has_changed() -> None:
    assert defaults() == json.loads(SNAPSHOT.read_text(encoding="utf-8")), __doc__


if __name__ == "__main__":
    SNAPSHOT.write_text(as_text(defaults()), encoding="utf-8")
