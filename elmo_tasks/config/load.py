"""From a config's file to a validated config, or to all of its problems at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pydantic

from elmo_tasks.config.packages import import_installed_parts
from elmo_tasks.config.parts import Config
from elmo_tasks.config.problems import find_problems, locate_problems
from elmo_tasks.config.schema import config_schema
from elmo_tasks.config.values import apply_overrides, evaluate, write
from elmo_tasks.errors import ConfigError

_ConfigT = TypeVar("_ConfigT", bound=Config)


def load_config(
    path: str | Path,
    kind: type[_ConfigT],
    overrides: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    *,
    replaced: Mapping[str, Any] | None = None,
) -> _ConfigT:
    """Reads a config from a Jsonnet or JSON file.

    Arguments:
        path: the file.
        kind: what the file's object describes.
        overrides: changes such as `model.dropout=0.3` or `trainer.callbacks.0.every=2`, applied in order. The value is
            read as JSON if it is JSON, otherwise it is a string.
        variables: what `std.extVar` gives, before the environment's variables and `DEFAULT_VARIABLES`.
        replaced: values by key path (`model.dropout`) that stand in place of the file's, before the overrides.

    Raises:
        ConfigError: with all problems, one a line, each with its place (file and line, or the override), key path, what
            came and what was wanted.
    """
    import_installed_parts()
    values = evaluate(path, variables)
    for key, value in (replaced or {}).items():
        try:
            write(values, key.split("."), value)
        except LookupError as error:
            raise ConfigError(f"{path}: {error.args[0]}") from None
    origins, problems = apply_overrides(values, overrides)
    try:
        config = kind.model_validate_json(json.dumps(values))
    except pydantic.ValidationError as error:
        found = find_problems(error.errors(include_url=False), values, config_schema(kind))
        problems += locate_problems(found, values, path, origins)
    if problems:
        raise ConfigError("\n".join(problems))
    return config
