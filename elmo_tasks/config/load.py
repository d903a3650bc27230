"""From a config's file to a validated config, or to all of its problems at once; and back to Jsonnet, for people."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pydantic
from pydantic_core import to_jsonable_python

from elmo_tasks.config.jsonnet import apply_overrides, evaluate, write
from elmo_tasks.config.packaged import find_config
from elmo_tasks.config.packages import import_installed_parts
from elmo_tasks.config.parts import Config, config_schema
from elmo_tasks.config.problems import find_problems, locate_problems
from elmo_tasks.errors import ArgumentError, ConfigError, UnknownTypeError

_ConfigT = TypeVar("_ConfigT", bound=Config)


Overrides: TypeAlias = Mapping[str, Any] | Sequence[str]
"""Changes of a config: a dict of key paths and values, `{"model.dropout": 0.3}`, or `["model.dropout=0.3"]`."""

_GIVEN = "the given config"  # the name of a dict in messages
# fmt: off
_JSONNET_KEYWORDS = frozenset({
    "assert", "else", "error", "false", "for", "function", "if", "import", "importbin", "importstr", "in", "local",
    "null", "self", "super", "tailstrict", "then", "true",
})
# fmt: on


def load_config(
    source: str | Path | Mapping[str, Any],
    kind: type[_ConfigT],
    overrides: Overrides = (),
    variables: Mapping[str, str] | None = None,
    *,
    replaced: Mapping[str, Any] | None = None,
) -> _ConfigT:
    """Reads a config from a Jsonnet or JSON file, or from values that are already there.

    Arguments:
        source: the file, the name of a config in the package, or the values as a dict.
        kind: what the file's object describes.
        overrides: see `Overrides`, applied in order; the values of texts are read by `jsonnet.parse_value`.
        variables: what `std.extVar` gives, before the environment's variables and `DEFAULT_VARIABLES`.
        replaced: values by key path (`model.dropout`) that stand in place of the file's, before the overrides.

    Raises:
        ConfigError: with all problems, one a line, each with its location (the file, or the override), key path, what
            was expected and what it got; `UnknownTypeError` if a type is not known.
    """
    import_installed_parts()
    undefined: dict[str, ConfigError] = {}
    if isinstance(source, Mapping):
        path, values = _GIVEN, json.loads(_as_json(dict(source), _GIVEN))
    else:
        path = str(find_config(source))
        values = evaluate(path, variables, undefined)
    if hint := next((hint for key, hint in kind.hints_for_other_configs.items() if key in values), None):
        raise ConfigError(f"{path}: {hint}")
    for key, value in (replaced or {}).items():
        try:
            write(values, key.split("."), value)
        except LookupError as error:
            raise ConfigError(f"{path}: {error.args[0]}") from None
    origins, problems = apply_overrides(values, override_list(overrides))
    if undefined and (missing := next((name for name in undefined if name in json.dumps(values)), None)):
        raise undefined[missing]
    kind_of_error = ConfigError
    try:
        config = kind.model_validate_json(json.dumps(values))
    except pydantic.ValidationError as error:
        errors = error.errors()
        kind_of_error = UnknownTypeError if any(each["type"] == "part_unknown" for each in errors) else ConfigError
        found = find_problems(errors, values, config_schema(kind), origins)
        problems += locate_problems(found, values, path, origins)
    if problems:
        raise kind_of_error("\n".join(problems))
    return config


def override_list(overrides: Overrides) -> list[str]:
    """Overrides as a list of `key.path=value`; raises an `ArgumentError` if they are neither."""
    if isinstance(overrides, Mapping):
        return [f"{key}={_as_json(value, f'overrides: {key}')}" for key, value in overrides.items()]
    several = isinstance(overrides, Iterable) and not isinstance(overrides, (str, bytes))
    given = list(overrides) if several else []
    if not several or not all(isinstance(each, str) for each in given):
        expected = "{'trainer.num_epochs': 3} or ['trainer.num_epochs=3']"
        raise ArgumentError(f"overrides={overrides!r}; expected {expected}")
    return given


def _as_json(value: Any, location: str) -> str:
    """A value as JSON has it: paths as strings, tuples as lists."""
    try:
        return json.dumps(value, default=_path_as_text, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{location}: {error}; expected values that JSON has") from None


def _path_as_text(value: Any) -> str:
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def describe(config: Config) -> str:
    """The whole config as Jsonnet, with `// default` behind each value that nobody has set."""
    lines: list[str] = []
    _describe(lines, "", config, default=False, depth=0, end="")
    return "\n".join(lines) + "\n"


def _describe(lines: list[str], key: str, value: Any, default: bool, depth: int, end: str = ",") -> None:
    """Appends the lines of one value; `key` is written before it, `end` behind it."""
    entries: list[tuple[str, Any, bool]] = []  # what is written before a part, the part, and whether it is a default
    if isinstance(value, Config):
        aliases = {name: field.alias for name, field in type(value).model_fields.items()}
        entries = [  # also of keys that have no field, as an options.json may have them
            (f"{_jsonnet_key(aliases.get(name) or name)}: ", part, default or name not in value.model_fields_set)
            for name, part in value
        ]
    elif isinstance(value, dict):
        entries = [(f"{_jsonnet_key(name)}: ", part, default) for name, part in value.items()]
    elif isinstance(value, (tuple, list)):
        entries = [("", part, default) for part in value]
    margin = "  " * depth
    if isinstance(value, Config) or any(isinstance(part, (Config, dict, tuple, list)) for _, part, _ in entries):
        opening, closing = "[]" if isinstance(value, (tuple, list)) else "{}"
        lines.append(f"{margin}{key}{opening}")
        for name, part, unset in entries:
            _describe(lines, name, part, unset, depth + 1)
        lines.append(f"{margin}{closing}{end}")
    else:
        text = json.dumps(to_jsonable_python(value), ensure_ascii=False)
        lines.append(f"{margin}{key}{text}{end}{'  // default' if default else ''}")


def _jsonnet_key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() and name not in _JSONNET_KEYWORDS else json.dumps(name)
