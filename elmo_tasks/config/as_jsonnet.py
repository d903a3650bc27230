"""Resolved configs as Jsonnet, for people to read."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import to_jsonable_python

from elmo_tasks.config.parts import Config

# fmt: off
_JSONNET_KEYWORDS = frozenset({
    "assert", "else", "error", "false", "for", "function", "if", "import", "importbin", "importstr", "in", "local",
    "null", "self", "super", "tailstrict", "then", "true",
})
# fmt: on


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
