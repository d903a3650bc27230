"""Typed, frozen configs and the parts that a config can choose by `"type"`.

A *config* describes one object: its fields are the object's settings, and its `build(...)` makes the object.
A *part* is a config that stands for one of several alternatives, which `"type"` distinguishes: a kind of part is a
subclass of `Part`, an alternative a subclass of the kind that declares its name,

    class SchedulerConfig(Part): ...                                # the kind

    class LinearDecay(SchedulerConfig):                             # an alternative
        type: Literal["linear_decay"] = "linear_decay"

Declaring `type` registers the alternative; a field annotated with the kind then accepts any of its alternatives.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

import pydantic
from pydantic.json_schema import CoreRef, GenerateJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, core_schema, to_jsonable_python

from elmo_tasks import hooks
from elmo_tasks.config.jsonnet import parse_value
from elmo_tasks.errors import ElmoTasksError, check_argument
from elmo_tasks.files.downloads import is_address, split_address
from elmo_tasks.files.paths import local_path

_KIND_KEY = "elmo_tasks_kind"  # of the metadata in which pydantic's schema of a kind of part names the kind
_PartT = TypeVar("_PartT", bound="Part")


class Config(pydantic.BaseModel):
    """A frozen set of settings: unknown keys are refused, values are not converted, and numbers are finite."""

    model_config = pydantic.ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=()
    )

    # Keys of other kinds of configs, and what to do with such a config.
    hints_for_other_configs: ClassVar[Mapping[str, str]] = {}


def _expanded(path: str, *, addresses: bool = False) -> str:
    try:
        if addresses and is_address(path):
            split_address(path)  # raises an error if it has no hash
            return path
        expanded = local_path(path)
    except ElmoTasksError as error:
        raise ValueError(str(error)) from None
    return str(expanded) if path.startswith("~") else path  # `Path` would change it


LocalPath = Annotated[str, pydantic.AfterValidator(_expanded)]
"""The type of a setting that is a path, or `hub:NAME` where such names are read: see `local_path`."""

ModelPath = Annotated[str, pydantic.AfterValidator(functools.partial(_expanded, addresses=True))]
"""The type of a setting that names a model: a path, as `LocalPath`, `hub:ORG/NAME`, or an address with its hash."""


def _all_expanded(paths: str | tuple[str, ...]) -> str | tuple[str, ...]:
    return tuple(map(_expanded, paths)) if isinstance(paths, tuple) else _expanded(paths)


DataPath = Annotated[
    str | Annotated[tuple[str, ...], pydantic.Field(min_length=1)], pydantic.AfterValidator(_all_expanded)
]
"""The type of a setting that is a path or a pattern of file names, as `LocalPath`, or a list of them."""


def to_json(config: Config) -> dict[str, Any]:
    """The whole config, defaults included, as plain values that `load_config` reads back."""
    return config.model_dump(mode="json", serialize_as_any=True)


class Part(Config):
    """The base of every kind of part. A direct subclass is a kind; see the module's text.

    A kind may name the alternative that is meant where `"type"` is left out: `default_type: ClassVar[str] = "..."`.
    """

    default_type: ClassVar[str | None] = None
    alternatives: ClassVar[dict[str, type[Part]]] = {}

    @classmethod
    def choices(cls: type[_PartT]) -> dict[str, type[_PartT]]:
        """The alternatives by type name: all those of the kind, or those below an abstract step."""
        for name in hooks.names(cls._kind().__name__):
            hooks.find(cls._kind().__name__, name)  # registers itself
        return {name: part for name, part in sorted(cls.alternatives.items()) if issubclass(part, cls)}

    @classmethod
    def _kind(cls) -> type[Part]:
        return next(each for each in cls.__mro__ if Part in each.__bases__)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        if Part in cls.__bases__:
            cls.alternatives = {}
            return
        field = cls.model_fields.get("type")
        if field is None or get_origin(field.annotation) is not Literal:
            return  # an abstract step between the kind and its alternatives
        (name,) = get_args(field.annotation)
        own = f"{cls.__module__}:{cls.__qualname__}"
        taken = hooks.home(cls._kind().__name__, name) or own  # of one that may not be imported yet
        known = cls.alternatives.get(name, cls)
        if known.__qualname__ != cls.__qualname__:
            taken = f"{known.__module__}:{known.__name__}"
        if taken != own:
            raise TypeError(f"{cls.__name__}: the type {name!r} is already taken by {taken.replace(':', '.')}")
        cls.alternatives[name] = cls

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if "type" in cls.model_fields:
            return schema  # a validator in Python around an alternative would make lists of JSON's tuples
        return core_schema.with_info_wrap_validator_function(cls._choose, schema, metadata={_KIND_KEY: cls})

    @classmethod
    def _choose(
        cls, value: Any, validate: core_schema.ValidatorFunctionWrapHandler, info: core_schema.ValidationInfo
    ) -> Any:
        """Validates a value for a kind as the alternative that its `"type"` names."""
        if not isinstance(value, dict):
            return validate(value)
        if "type" not in value and cls.default_type is None:
            raise PydanticCustomError("part_missing", "no type given", {"known": list(cls.choices())})
        name = value.get("type", cls.default_type)
        if isinstance(name, str) and name not in cls.alternatives:
            hooks.find(cls._kind().__name__, name)  # imports the extra that has it
        chosen = cls.alternatives.get(name) if isinstance(name, str) else None
        if chosen is None and "type" not in value:
            try:
                hooks.required(cls._kind().__name__, str(name))
            except ElmoTasksError as error:
                raise ValueError(str(error)) from None
        if chosen is None or not issubclass(chosen, cls):
            raise PydanticCustomError("part_unknown", "unknown type", {"known": list(cls.choices())})
        # Errors of the chosen alternative keep their own places. Only JSON mode takes lists for tuples.
        if info.mode == "json":
            return chosen.model_validate_json(json.dumps(value))
        return chosen.model_validate(value)


def parse_part(kind: type[_PartT], text: str, what: str, example: str) -> _PartT:
    """The part that a command's argument chooses: the name of an alternative, or an object with a `type`.

    Arguments:
        what, example: errors say what the part is, and show this JSON object.

    Raises:
        ElmoTasksError: there is no such alternative, or its settings are wrong.
    """
    check_argument(f"the {what}", text, str, f"one of {', '.join(kind.choices())}, or a JSON object such as {example}")
    try:
        value = parse_value(text, "its settings") if text.lstrip().startswith("{") else {"type": text}
        return kind.model_validate_json(json.dumps(value))
    except (ValueError, ElmoTasksError) as error:
        problem, expected = str(error), f"one of {', '.join(kind.choices())}, or a JSON object such as {example}"
        if isinstance(error, pydantic.ValidationError):
            first = error.errors()[0]
            problem = ": ".join([*map(str, first["loc"]), first["msg"]])
            if first["type"] == "missing" and len(first["loc"]) == 1:
                expected = f"a JSON object such as {json.dumps({**value, str(first['loc'][0]): '...'})}"
        raise ElmoTasksError(f"the {what} {text!r}: {problem}; expected {expected}") from None


def config_schema(*kinds: type[Config]) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a config of any of these kinds."""
    union: Any = Union[kinds]  # noqa: UP007 (the number of kinds varies)
    schema = pydantic.TypeAdapter(union).json_schema(schema_generator=_SchemaWriter)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


class _SchemaWriter(GenerateJsonSchema):
    """Pydantic's JSON schema, where a kind of part is one of its alternatives.

    Titles that only repeat the keys are left out, and defaults are written in full.
    """

    def generate_inner(self, schema: Any) -> dict[str, Any]:
        kind = schema.get("metadata", {}).get(_KIND_KEY)
        return super().generate_inner(schema) if kind is None else self._of_kind(kind)

    def _of_kind(self, kind: type[Part]) -> dict[str, Any]:
        """A reference to the definition of a kind."""
        core_reference = CoreRef(f"{kind.__module__}.{kind.__qualname__}:{id(kind)}")
        name, reference = self.get_cache_defs_ref_schema(core_reference)
        if name not in self.definitions:
            self.definitions[name] = {}  # for alternatives that hold the kind themselves
            alternatives = [
                self.generate_inner(part.__pydantic_core_schema__)
                | ({} if choice == kind.default_type else {"required": ["type"]})
                for choice, part in kind.choices().items()
            ]
            description = inspect.cleandoc(kind.__doc__ or "")
            self.definitions[name] = {"title": kind.__name__, "description": description, "oneOf": alternatives}
        return reference

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        return to_jsonable_python(dft, serialize_as_any=True)
