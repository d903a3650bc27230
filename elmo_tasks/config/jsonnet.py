"""From a Jsonnet file, external variables and overrides to plain values, before anything is known of their meaning."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import _jsonnet
import pydantic_core

from elmo_tasks.config.data_folder import DATA_VARIABLE, DEFAULT_DATA_FOLDER
from elmo_tasks.config.packaged import IMPORT_FOLDER, find_config
from elmo_tasks.errors import ConfigError, DataError
from elmo_tasks.files.json_files import parse_json, read_json
from elmo_tasks.files.limits import MAX_JSON_DEPTH
from elmo_tasks.files.text import foreign_encoding

KeyPath = tuple[str | int, ...]

# What `std.extVar` gives where neither the environment nor the command line says otherwise.
DEFAULT_VARIABLES = {DATA_VARIABLE: DEFAULT_DATA_FOLDER}
# The other variables of the files in the package.
_MEANINGS = {
    "ELMO_TASKS_TEXT": "the text to learn from, a file or a glob pattern",
    "ELMO_TASKS_TRANSFORMER": "the folder of a transformer",
}

_JSON_CONFIG = "an object in JSON (a config with comments, variables or imports must have a name that ends in .jsonnet)"
# Values of overrides that are read as Jsonnet where they are not JSON. `[ab]*.txt` is a pattern, and a string.
_IS_JSONNET = re.compile(r"\s*(\{.*|\[.*\]|'.*'|\".*\")\s*", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")  # how Python shows bytes that are not UTF-8
_POSITION = r"(?P<file>[^<\n]+?):\(?(?P<line>\d+):\d+[-():\d]*"
_STATIC_ERROR = re.compile(rf"STATIC ERROR: {_POSITION}: (?P<problem>.*)", re.DOTALL)
_RUNTIME_ERROR = re.compile(r"RUNTIME ERROR: (?P<problem>.*?)(?:\n\t|\s*\Z)", re.DOTALL)
_UNDEFINED = re.compile(r"undefined external variable: (.+)", re.IGNORECASE)
_FRAME = re.compile(rf"\n\t{_POSITION}")


def evaluate(
    path: str | Path, variables: Mapping[str, str] | None = None, undefined: dict[str, ConfigError] | None = None
) -> dict[str, Any]:
    """Evaluates a Jsonnet file. A file whose name ends in .json is only read: it sees no variables and no other files.

    Arguments:
        path: the file, or the name of a config in the package.
        variables: what `std.extVar(name)` gives, before the environment's variables and the defaults.
        undefined: if it is given, variables without a value give a text that begins with their key here, and this
            gets the error for each of them: their values may be replaced.

    Raises:
        ConfigError: the file is missing, it is not valid Jsonnet, needs an undefined variable, or is not an object.
    """
    path = find_config(path)
    try:
        return _evaluate(path, variables, undefined)
    except ConfigError as error:
        if path.suffix.lower() in ("", ".json", ".jsonnet", ".libsonnet"):
            raise
        known = "a Jsonnet or JSON file, or a name that `elmo-tasks config --list` shows"
        raise ConfigError(f"{error}; expected {known}. Name data with --set train_data_path=FILE") from None


def _evaluate(
    path: Path, variables: Mapping[str, str] | None, undefined: dict[str, ConfigError] | None
) -> dict[str, Any]:
    if path.suffix.lower() in (".jsonl", ".jsonlines"):  # Jsonnet would read the sum of the objects
        raise ConfigError(f"{path}: JSON lines")
    if path.suffix == ".json":
        values = read_json(path, dict[str, Any], _JSON_CONFIG, error=ConfigError)
        try:
            parse_json(path.read_text("utf-8-sig"), path, _JSON_CONFIG)  # of a key that is there twice, one is lost
        except DataError as error:
            raise ConfigError(str(error)) from None
        return values
    try:
        content = path.read_bytes()
        if problem := foreign_encoding(content):
            raise ConfigError(f"{path}: {problem}")
        text = content.decode("utf-8-sig")  # Jsonnet would replace other bytes
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: the file is not UTF-8 text ({error})") from None
    # Jsonnet cannot hold variables that are not UTF-8.
    environment = {name: value for name, value in os.environ.items() if not _SURROGATE.search(name + value)}
    known = {**DEFAULT_VARIABLES, **environment, **(variables or {})}
    try:
        # Jsonnet finds the folder of an import only if there are slashes.
        evaluated = _jsonnet.evaluate_snippet(path.as_posix(), text, import_callback=_imported, ext_vars=known)
        value = pydantic_core.from_json(evaluated)
    except RuntimeError as error:
        explained, name = _explained(path, str(error)), _UNDEFINED.search(str(error))
        if undefined is None or name is None:
            raise next(iter((undefined or {}).values()), explained) from None  # the stand-in of a variable may not do
        undefined[stand_in := f"<undefined:{name[1]}>"] = explained
        return _evaluate(path, {**(variables or {}), name[1]: stand_in}, undefined)
    except ValueError as error:
        raise ConfigError(
            f"{path}: {error} of the result; expected at most {MAX_JSON_DEPTH} levels of objects and lists"
        ) from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected an object, got {shown(value)}")
    return value


def _imported(folder: str, name: str) -> tuple[str, bytes]:
    """The path and the content of an import, from the folder of the file that imports it or from the package."""
    path = next((each for each in (Path(folder, name), IMPORT_FOLDER / name) if each.is_file()), None)
    if path is None:
        raise FileNotFoundError(name)
    return path.as_posix(), path.read_bytes().removeprefix(codecs.BOM_UTF8)


def _explained(path: str | Path, report: str) -> ConfigError:
    """Jsonnet's report as one line that begins with the location and ends with what to do."""
    if location := _STATIC_ERROR.match(report):
        problem = location["problem"]
    else:
        runtime = _RUNTIME_ERROR.match(report)
        problem = runtime["problem"] if runtime else report
        location = next((frame for frame in _FRAME.finditer(report) if frame["file"] != "std.jsonnet"), None)
    problem = " ".join(problem.split())
    if variable := _UNDEFINED.match(problem):
        name = variable[1]
        meaning = f", {_MEANINGS[name]}," if name in _MEANINGS else ""
        problem = f"external variable '{name}'{meaning} is undefined. Set it with --ext-var {name}=VALUE"
        problem += " or in the environment"
    elif missing := re.match(r"couldn't open import \"(.+?)\"", problem, re.IGNORECASE):
        problem = f"cannot open the import '{missing[1]}'. Imports are looked up in the folder of the file"
        problem += "; those of the package are 'elmo_tasks/configs/NAME.jsonnet'"
    where = f"{os.path.normpath(location['file'])}:{location['line']}" if location else str(path)
    return ConfigError(f"{where}: {problem}")


def apply_overrides(values: dict[str, Any], overrides: Sequence[str]) -> tuple[dict[KeyPath, str], list[str]]:
    """Writes overrides such as `model.dropout=0.3` or `trainer.regularizers.0.l2=0.1` into `values`, in order.

    What follows the first `=` is read by `parse_value`.

    Returns:
        origins: for each path that an override has written or made, the override's key.
        problems: what could not be done, one text for each such override.
    """
    origins: dict[KeyPath, str] = {}
    problems = []
    for override in overrides:
        key, equals, text = override.partition("=")
        path = tuple(key.split("."))
        if not equals or not all(path):
            problems.append(f"--set {override}: expected KEY=VALUE, with a key such as model.dropout")
            continue
        if len(path) > MAX_JSON_DEPTH:
            problems.append(f"--set {override[:60]}...: {len(path)} keys; expected at most {MAX_JSON_DEPTH}")
            continue
        try:
            written = write(values, path, parse_value(text, f"--set {key}"))
        except DataError as error:
            problems.append(str(error))
        except LookupError as error:
            problems.append(f"--set {key}: {error.args[0]}")
        else:
            # What lay under this path before is gone, and with it who wrote it.
            origins = {each: by for each, by in origins.items() if each[: len(written)] != written}
            origins[written] = key
    return origins, problems


def parse_value(text: str, source: str) -> Any:
    """The value that a text stands for: JSON; Jsonnet, if it is an object, a list or in quotes; otherwise a string.

    So `{good: 1, bad: 3}` is an object, and a name or a path is a string without quotes.

    Raises:
        DataError: the text is JSON with a key twice, or Jsonnet that is not valid; the source is named.
    """
    try:
        value = pydantic_core.from_json(text, allow_inf_nan=False)  # JSON and Jsonnet do not know NaN and Infinity
        return parse_json(text, source, "JSON") if isinstance(value, (dict, list)) else value
    except (ValueError, TypeError):  # the latter for half of a surrogate pair
        if not _IS_JSONNET.fullmatch(text):
            return text
    try:
        return pydantic_core.from_json(_jsonnet.evaluate_snippet("value", text, ext_vars=DEFAULT_VARIABLES))
    except (RuntimeError, ValueError) as error:
        problem = str(_explained(source, str(error))).partition(": ")[2]
        advice = "write text in quotes, such as {label: 'name'}"
        raise DataError(source, f"{text!r} is not valid Jsonnet ({problem}); {advice}") from None


def write(values: dict[str, Any], path: Sequence[str], value: Any) -> KeyPath:
    """Writes one value at a path of keys and indices, making objects that are missing or null on the way.

    Returns:
        the path of the outermost thing that is new.

    Raises:
        LookupError: the path leads through something that has no such keys; the message says what.
    """
    holder: Any = values
    taken: list[str | int] = []
    made: KeyPath | None = None
    for depth, text in enumerate(path):
        step: str | int = text
        if not isinstance(holder, dict):
            location = dotted(taken)
            if not isinstance(holder, list):
                problem = "which has no keys; expected an object or a list there"
                raise LookupError(f"{location} is {shown(holder)}, {problem}")
            if not re.fullmatch(r"\d{1,9}", text):
                raise LookupError(f"{location} is a list: expected an index, got {shown(text)}")
            if int(text) >= len(holder):
                raise LookupError(f"{location} is a list of {len(holder)}: there is no index {text} (the first is 0)")
            step = int(text)
        taken.append(step)
        if depth == len(path) - 1:
            holder[step] = value
            break
        following = holder.get(step) if isinstance(holder, dict) else holder[step]
        if following is None:
            made = made or tuple(taken)
            following = holder[step] = {}
        holder = following
    return made or tuple(taken)


def dotted(path: Sequence[str | int]) -> str:
    """A key path as users write it: `model.layers.0.size`."""
    return ".".join(str(step) for step in path)


def shown(value: Any, limit: int = 60) -> str:
    """A value as JSON, cut to `limit` characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else text[: limit - 3] + "..."
