"""The JSON schema of configs, with every alternative of a part that is registered."""

from __future__ import annotations

import inspect
from typing import Any, Union

import pydantic
from pydantic.json_schema import CoreRef, GenerateJsonSchema
from pydantic_core import to_jsonable_python

from elmo_tasks.config.parts import KIND_KEY, Config, Part


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
        kind = schema.get("metadata", {}).get(KIND_KEY)
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
