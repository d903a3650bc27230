"""Typed, frozen configs and the parts that a config can choose by `"type"`.

A *config* describes one object: its fields are the object's settings, and its `build(...)` makes the object.
A *part* is a config that stands for one of several alternatives, told apart by `"type"`: a kind of part is a subclass
of `Part`, an alternative a subclass of the kind that declares its name,

    class SchedulerConfig(Part): ...                                # the kind

    class LinearDecay(SchedulerConfig):                             # an alternative
        type: Literal["linear_decay"] = "linear_decay"

Declaring `type` registers the alternative; a field annotated with the kind then accepts any of its alternatives.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal, TypeVar, get_args, get_origin

import pydantic
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema, to_jsonable_python

from elmo_tasks.config_problems import find_problems, locate_problems
from elmo_tasks.config_values import apply_overrides, evaluate
from elmo_tasks.errors import ConfigError
from elmo_tasks.jsonnet_parser import JSONNET_KEYWORDS

_KIND = "x-elmo-tasks-kind"  # marks a kind of part in JSON schemas that are not finished


class Config(pydantic.BaseModel):
    """A frozen set of settings: unknown keys are refused, and no value is converted to another type."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())


class Part(Config):
    """The base of every kind of part. A direct subclass is a kind; see the module's text.

    A kind may name the alternative that is meant where `"type"` is left out: `default_type: ClassVar[str] = "..."`.
    """

    default_type: ClassVar[str | None] = None
    alternatives: ClassVar[dict[str, type[Part]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if Part in cls.__bases__:
            cls.alternatives = {}
            return
        field = cls.model_fields.get("type")
        if field is None or get_origin(field.annotation) is not Literal:
            return  # an abstract step between the kind and its alternatives
        (name,) = get_args(field.annotation)
        known = cls.alternatives.setdefault(name, cls)
        if known is not cls and known.__qualname__ != cls.__qualname__:
            raise TypeError(
                f"{cls.__name__}: the type {name!r} is already taken by {known.__module__}.{known.__name__}"
            )
        cls.alternatives[name] = cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if "type" in cls.model_fields:
            return schema  # a validator in Python around an alternative would make lists of JSON's tuples
        return core_schema.with_info_wrap_validator_function(cls._choose, schema)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: pydantic.GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema) if "type" in cls.model_fields else {_KIND: _kind_name(cls)}

    @classmethod
    def _choose(
        cls, value: Any, validate: core_schema.ValidatorFunctionWrapHandler, info: core_schema.ValidationInfo
    ) -> Any:
        """Validates a value for a kind as the alternative that its `"type"` names."""
        if not isinstance(value, dict):
            return validate(value)
        choices = {name: part for name, part in cls.alternatives.items() if issubclass(part, cls)}
        if "type" not in value and cls.default_type is None:
            raise PydanticCustomError("part_missing", "no type given", {"known": sorted(choices)})
        name = value.get("type", cls.default_type)
        if not isinstance(name, str) or name not in choices:
            raise PydanticCustomError("part_unknown", "unknown type", {"known": sorted(choices)})
        # Errors of the chosen alternative keep their own places. JSON's lists stand for tuples in JSON mode alone.
        if info.mode == "json":
            return choices[name].model_validate_json(json.dumps(value))
        return choices[name].model_validate(value)


_ConfigT = TypeVar("_ConfigT", bound=Config)


def load_config(
    path: str | Path,
    kind: type[_ConfigT],
    overrides: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> _ConfigT:
    """Reads a config from a Jsonnet or JSON file.

    Arguments:
        path: the file.
        kind: what the file's object describes.
        overrides: changes such as `model.dropout=0.3` or `trainer.callbacks.0.every=2`, applied in order. The value is
            read as JSON if it is JSON, otherwise it is a string.
        variables: what `std.extVar` gives, before the environment's variables and `config_values.DEFAULT_VARIABLES`.

    Raises:
        ConfigError: with all problems, one a line, each with its place (file and line, or the override), key path, what
            came and what was wanted.
    """
    values = evaluate(path, variables)
    origins, problems = apply_overrides(values, overrides)
    try:
        config = kind.model_validate_json(json.dumps(values))
    except pydantic.ValidationError as error:
        found = find_problems(error.errors(include_url=False), values, config_schema(kind))
        problems += locate_problems(found, values, path, origins)
    if problems:
        raise ConfigError("\n".join(problems))
    return config


def to_json(config: Config) -> dict[str, Any]:
    """The whole config, defaults included, as plain values that `load_config` reads back."""
    return config.model_dump(mode="json", serialize_as_any=True)


def describe(config: Config) -> str:
    """The whole config as Jsonnet, with `// default` behind each value that nobody has set."""
    lines: list[str] = []
    _describe(lines, "", config, default=False, depth=0, end="")
    return "\n".join(lines) + "\n"


def _describe(lines: list[str], key: str, value: Any, default: bool, depth: int, end: str = ",") -> None:
    """Appends the lines of one value; `key` is written before it, `end` behind it."""
    entries: list[tuple[str, Any, bool]]
    if isinstance(value, Config):
        unset = set(type(value).model_fields) - value.model_fields_set
        entries = [(f"{name}: ", getattr(value, name), name in unset) for name in type(value).model_fields]
        brackets = "{}"
    elif isinstance(value, dict):
        entries = [(f"{_jsonnet_key(name)}: ", part, False) for name, part in value.items()]
        brackets = "{}"
    elif isinstance(value, (tuple, list)):
        entries = [("", part, False) for part in value]
        brackets = "[]"
    else:
        entries = []
        brackets = ""
    margin = "  " * depth
    if any(isinstance(part, (Config, dict, tuple, list)) for _, part, _ in entries) or isinstance(value, Config):
        lines.append(f"{margin}{key}{brackets[0]}")
        for name, part, unset_part in entries:
            _describe(lines, name, part, default or unset_part, depth + 1)
        lines.append(f"{margin}{brackets[1]}{end}")
    else:
        text = json.dumps(to_jsonable_python(value), ensure_ascii=False)
        lines.append(f"{margin}{key}{text}{end}{'  // default' if default else ''}")


def _jsonnet_key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() and name not in JSONNET_KEYWORDS else json.dumps(name)


class _SchemaWriter(GenerateJsonSchema):
    """Pydantic's JSON schema without titles that only repeat the keys, and with whole parts as defaults."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, (tuple, list)):
            return [self.encode_default(part) for part in dft]
        if isinstance(dft, dict):
            return {key: self.encode_default(part) for key, part in dft.items()}
        return to_json(dft) if isinstance(dft, Config) else to_jsonable_python(dft)


def config_schema(*kinds: type[Config]) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a config of any of these kinds.

    It has all alternatives of each kind of part that are registered.
    """
    parts = sorted(_subclasses(Part), key=lambda part: (part.__module__, part.__qualname__))
    classes: dict[type[Config], None] = dict.fromkeys([*kinds, *parts])
    references, schema = models_json_schema([(part, "validation") for part in classes], schema_generator=_SchemaWriter)
    definitions = schema["$defs"]
    for part in parts:
        if "type" not in part.model_fields:
            choices = [
                references[chosen, "validation"] | ({} if name == part.default_type else {"required": ["type"]})
                for name, chosen in sorted(part.alternatives.items())
                if issubclass(chosen, part)
            ]
            definitions[_kind_name(part)] = {
                "title": part.__name__,
                "description": inspect.cleandoc(part.__doc__ or ""),
                "oneOf": choices,
            }
    definitions = _with_kind_references(definitions)
    roots = [_with_kind_references(references[kind, "validation"]) for kind in kinds]
    root = roots[0] if len(roots) == 1 else {"anyOf": roots}
    used = _reachable(root, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "$defs": {name: definitions[name] for name in sorted(used)},
    }


def _kind_name(kind: type[Part]) -> str:
    """The name of a kind's definition in the JSON schema."""
    return re.sub(r"\W+", "_", f"{kind.__module__}.{kind.__qualname__}")


def _with_kind_references(schema: Any) -> Any:
    """The schema with a reference to a kind's definition wherever pydantic has put the kind's mark."""
    if isinstance(schema, list):
        return [_with_kind_references(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: _with_kind_references(part) for key, part in schema.items() if key != _KIND}
    return {"$ref": f"#/$defs/{schema[_KIND]}", **parts} if _KIND in schema else parts


def _subclasses(part: type[Part]) -> set[type[Part]]:
    """The subclasses at every depth, without those whose type name a later declaration has taken over."""
    found: set[type[Part]] = set()
    for subclass in part.__subclasses__():
        field = subclass.model_fields.get("type")
        if field is None or subclass.alternatives.get(field.default) is subclass:
            found.add(subclass)
        found |= _subclasses(subclass)
    return found


def _reachable(schema: Any, definitions: Mapping[str, Any]) -> set[str]:
    """The names of the definitions that a schema refers to, directly or through others."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
            name = str(value.get("$ref", "")).removeprefix("#/$defs/")
            if name in definitions and name not in found:
                found.add(name)
                waiting.append(definitions[name])
        elif isinstance(value, list):
            waiting += value
    return found


def include_packages(names: Sequence[str]) -> None:
    """Imports users' packages or modules, and all modules in the packages, so that their parts are registered.

    They are looked for in the current folder, too.

    Raises:
        ConfigError: an import failed; the message says why.
    """
    if names and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in names:
        module = _import(name, name)
        for inner in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}.", onerror=lambda _: None):
            if not inner.name.endswith(".__main__"):
                _import(inner.name, name)


def _import(module: str, package: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"--include-package {package}: cannot import {module} ({reason})") from error
