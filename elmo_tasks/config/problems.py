"""The problems of a config in words: what was expected, what it got, where, and the nearest right name.

Works only on plain values: pydantic's list of errors, the config's values and the JSON schema that they break.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from pydantic_core import core_schema

from elmo_tasks import hooks
from elmo_tasks.config.jsonnet import KeyPath, dotted, shown
from elmo_tasks.errors import did_you_mean, nearest

Schema = Mapping[str, Any]

UNKNOWN_KEY, MISSING_KEY = "unknown key", "missing key"
_BUILT_IN_ERRORS = frozenset(get_args(core_schema.ErrorType))
# fmt: off
_BOUNDS = {
    "minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most", "exclusiveMaximum": "less than",
}
_LENGTH_BOUNDS = {"minLength": "at least", "minItems": "at least", "maxLength": "at most", "maxItems": "at most"}
_TYPE_NAMES = {
    "integer": "a whole number", "number": "a number", "string": "a string", "boolean": "true or false",
    "null": "null", "array": "a list", "object": "an object",
}
# fmt: on


class Problem(NamedTuple):
    """What is wrong with a key, which may be a missing one."""

    key: KeyPath
    text: str


def find_problems(
    errors: Iterable[Mapping[str, Any]], values: Any, schema: Schema, overridden: Container[KeyPath] = ()
) -> list[Problem]:
    """Turns pydantic's errors into messages.

    Arguments:
        errors: as `ValidationError.errors()` gives them.
        values: what was validated.
        schema: the JSON schema of what was expected, with its `$defs`.
        overridden: the paths that overrides have written. Only these may have meant a key that the values have already.
    """
    guide = _Guide(schema, values, overridden)
    problems: list[Problem] = []
    following: list[Problem] = []  # those that only follow from a fault deeper in the value, if there is one
    missing: list[Problem] = []
    intended: set[KeyPath] = set()  # the right names of misspelled keys
    for error in errors:
        path = _path_in(values, error["loc"])
        if error["type"] == "extra_forbidden":
            problem, name = guide.unknown_key(path)
            problems.append(problem)
            intended |= {(*path[:-1], name)} if name else set()
        elif error["type"] == "missing" and isinstance(error["loc"][-1], str):
            missing.append(guide.missing_key((*path, error["loc"][-1])))
        elif error["type"] in ("part_unknown", "part_missing"):
            problems.append(guide.wrong_type(path, error["type"], error["ctx"]["known"]))
        elif error["type"] in ("value_error", "assertion_error"):
            problems.append(Problem(path, str(error["ctx"]["error"])))
        elif error["type"] not in _BUILT_IN_ERRORS:
            problems.append(Problem(path, error["msg"]))
        else:
            # Pydantic calls a list too short if the rest of it is wrong, and a value wrong for each type of a union.
            follows = error["type"] == "too_short" or (error["type"] != "missing" and len(error["loc"]) > len(path))
            (following if follows else problems).append(guide.wrong_value(path, error["msg"]))
    problems += [problem for problem in missing if problem.key not in intended]
    faults = {found.key[:length] for found in (*problems, *following) for length in range(len(found.key))}
    problems += [problem for problem in following if problem.key not in faults]
    return list(dict.fromkeys(problems))


def _foreign_answer(path: KeyPath, value: Any, holder: Any) -> str | None:
    """What a key or value of another project's configs is here; None if no project has it."""
    answers = (answer(path, value, holder) for answer in hooks.everything("foreign_key"))
    return next((answer for answer in answers if answer), None)


def _path_in(values: Any, location: Sequence[str | int]) -> KeyPath:
    """The keys of pydantic's location that exist: without missing keys and the types of a union that it tried."""
    path: list[str | int] = []
    for step in location:
        in_object = isinstance(values, dict) and step in values
        in_list = isinstance(values, list) and isinstance(step, int) and step < len(values)
        if in_object or in_list:
            values = values[step]
            path.append(step)
    return tuple(path)


def value_at(values: Any, path: KeyPath) -> Any:
    """The value at a path that exists."""
    return functools.reduce(operator.getitem, path, values)


class _Guide:
    """Knows what the schema wants at each place of the values."""

    def __init__(self, schema: Schema, values: Any, overridden: Container[KeyPath]) -> None:
        self._schema = schema
        self._values = values
        self._overridden = overridden

    def unknown_key(self, path: KeyPath) -> tuple[Problem, str | None]:
        """The problem, and the name that was probably meant."""
        holder = value_at(self._values, path[:-1])
        known = list(self._object_at(path[:-1]).get("properties", {}))
        if theirs := _foreign_answer(path, holder[path[-1]], holder):
            return Problem(path, theirs), None
        meant = nearest(path[-1], [name for name in known if name not in holder])
        if meant is None and path in self._overridden:
            meant = nearest(path[-1], known)
        hint = f"Did you mean '{meant}'?" if meant else f"Known keys: {', '.join(known) or 'none'}"
        return Problem(path, f"{UNKNOWN_KEY}. {hint}"), meant

    def missing_key(self, path: KeyPath) -> Problem:
        expected = self._expected(self._object_at(path[:-1]).get("properties", {}).get(path[-1], {}))
        return Problem(path, f"{MISSING_KEY}. Expected {expected}" if expected else MISSING_KEY)

    def wrong_type(self, path: KeyPath, error: str, known: Sequence[str]) -> Problem:
        """A part without a type, or with one that is not registered."""
        given = value_at(self._values, path)
        choices = f"Known types: {', '.join(known) or 'none'}"
        if error == "part_missing":
            misspelled = nearest("type", list(given))
            hint = f" Did you mean 'type' by '{misspelled}'?" if misspelled else ""
            return Problem((*path, "type"), f"{MISSING_KEY}.{hint} {choices}")
        if theirs := _foreign_answer((*path, "type"), given["type"], given):
            return Problem((*path, "type"), f"{theirs}. {choices}")
        hint = did_you_mean(given["type"], known)
        own = "" if hint else "; if it is one of your own, add --include-package"
        return Problem((*path, "type"), f"unknown type {shown(given['type'])}.{hint} {choices}{own}")

    def wrong_value(self, path: KeyPath, message: str) -> Problem:
        """A value of a wrong type or out of bounds. `message` is used if the schema does not say what is expected."""
        value = value_at(self._values, path)
        node = self._node_at(path)
        expected = self._expected(node)
        text = f"{'expected ' if expected else ''}{expected or message}, got {shown(value)}"
        hint = did_you_mean(value, [name for name in self._names(node) if name != value])
        return Problem(path, f"{text}.{hint}" if hint else text)

    def _object_at(self, path: KeyPath) -> Schema:
        return self._chosen(self._node_at(path), value_at(self._values, path))

    def _node_at(self, path: KeyPath) -> Schema:
        """The schema of the value at a path, empty where there is none."""
        node, value = self._schema, self._values
        for step in path:
            holder = self._chosen(node, value)
            if isinstance(step, str):
                inner = holder.get("properties", {}).get(step, holder.get("additionalProperties"))
            else:
                fixed = holder.get("prefixItems", [])
                inner = fixed[step] if step < len(fixed) else holder.get("items")
            node = inner if isinstance(inner, dict) else {}
            value = value[step]
        return node

    def _followed(self, node: Schema) -> Schema:
        while "$ref" in node:
            node = self._schema["$defs"][node["$ref"].removeprefix("#/$defs/")]
        return node

    def _chosen(self, node: Schema, value: Any) -> Schema:
        """The alternative that a value has chosen: by its type name, or as the first that is of its JSON type."""
        node = self._followed(node)
        for choice in node.get("oneOf", ()):
            name = value.get("type") if isinstance(value, dict) else None
            part = self._followed(choice)
            if name == part["properties"]["type"]["const"] or (name is None and "required" not in choice):
                return part
        container = "object" if isinstance(value, dict) else "array"
        for choice in node.get("anyOf", ()):
            part = self._followed(choice)
            if part.get("type") == container or "oneOf" in part or "anyOf" in part:
                return self._chosen(part, value)
        return node

    def _names(self, node: Schema) -> list[str]:
        """The strings that are the only ones allowed."""
        node = self._followed(node)
        names = [name for choice in node.get("anyOf", ()) for name in self._names(choice)]
        return names + [name for name in [*node.get("enum", ()), node.get("const")] if isinstance(name, str)]

    def _expected(self, node: Schema) -> str:
        """What a schema wants, in words; empty where it does not say."""
        node = self._followed(node)
        if "oneOf" in node:
            names = [self._followed(choice)["properties"]["type"]["const"] for choice in node["oneOf"]]
            return f"an object with a 'type' ({', '.join(names) or 'none is known'})"
        if "anyOf" in node:
            return " or ".join(dict.fromkeys(self._expected(choice) for choice in node["anyOf"]))
        if "const" in node:
            return shown(node["const"])
        if "enum" in node:
            return "one of " + ", ".join(shown(name) for name in node["enum"])
        text = "a path" if node.get("format") == "path" else _TYPE_NAMES.get(node.get("type", ""), "")
        text += _bounds(node)
        if "prefixItems" in node:
            return f"{text}: {', '.join(map(self._expected, node['prefixItems']))}"
        each = self._expected(node["items"]) if "items" in node else ""
        return f"{text}, each {each}" if each else text


def _bounds(node: Schema) -> str:
    """The bounds of a number, a string's length or a list's length, in words that follow the type's name."""
    lengths = [node[key] for key in _LENGTH_BOUNDS if key in node]
    words = [f"{word} {shown(node[key])}" for key, word in (_BOUNDS | _LENGTH_BOUNDS).items() if key in node]
    if len(lengths) == 2 and lengths[0] == lengths[1]:
        words = [str(lengths[0])]
    text = " of " + " and ".join(words) if words else ""
    if lengths:
        one, several = ("character", "characters") if node.get("type") == "string" else ("entry", "entries")
        text += f" {one if lengths[-1] == 1 else several}"
    if "multipleOf" in node:
        text += f" that is a multiple of {shown(node['multipleOf'])}"
    return f"{text} that matches {node['pattern']}" if "pattern" in node else text


def locate_problems(problems: Sequence[Problem], values: Any, path: str, origins: Mapping[KeyPath, str]) -> list[str]:
    """One line for each problem, its location first: the file's, then those of overrides.

    Arguments:
        values: the config's values, overrides included.
        path: the config's file.
        origins: the paths that overrides have written, and their keys.
    """
    of_file, of_overrides = list[str](), list[str]()
    for problem in problems:
        text = f"{dotted(problem.key)}: {problem.text}" if problem.key else problem.text
        written_at = _path_in(values, problem.key)  # where a missing key is to be added
        starts = [written_at[:length] for length in range(len(written_at), 0, -1)]
        origin = next((origins[start] for start in starts if start in origins), None)
        if origin is None:
            of_file.append(f"{path}: {text}")
        else:
            of_overrides.append(f"--set {origin}: {text.removeprefix(f'{origin}: ')}")
    return of_file + of_overrides
