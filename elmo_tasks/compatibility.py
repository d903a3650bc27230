"""Whether a reader and a model fit each other, told by their types before any data is read."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable
from typing import Any

from elmo_tasks.config import Part
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.data_readers.tagging import TaggingReader
from elmo_tasks.models.crf_tagger import CrfTaggerConfig
from elmo_tasks.models.model import ModelConfig, TaskModel
from elmo_tasks.text.tokens import Batch


def find_misfit(key: str, reader: DatasetReaderConfig, model: ModelConfig) -> str | None:
    """Why a model cannot learn from what a reader gives: other batches than it wants, or tags in another scheme.

    Which batches a reader gives is told by the annotation of its `collate`, which ones a model wants by its base,
    `TaskModel[Batch, Output]`; and which reader or model a config makes by the annotation of its `build`. What these do
    not tell is not compared.

    Arguments:
        key: where the experiment's config has the reader.
    """
    given, wanted = _batch_of_reader(type(reader)), _batch_of_model(type(model))
    if given is Batch or issubclass(given, wanted):
        return _find_scheme_misfit(key, reader, model)
    fitting = [
        repr(name)
        for name, other in sorted(DatasetReaderConfig.alternatives.items())
        if issubclass(other, DatasetReaderConfig) and issubclass(_batch_of_reader(other), wanted)
    ]
    return (
        f"{key} {_type_of(reader)!r} gives {_described(given)}; {_type_of(model)!r} wants {_described(wanted)}. "
        f"Readers that fit: {', '.join(fitting) or 'none'}"
    )


def _find_scheme_misfit(key: str, reader: DatasetReaderConfig, model: ModelConfig) -> str | None:
    if not isinstance(model, CrfTaggerConfig) or model.tag_scheme is None:  # without a scheme any tags will do
        return None
    built = reader.build()
    if not isinstance(built, TaggingReader) or built.tag_scheme == model.tag_scheme:
        return None
    remedy = f"set model.tag_scheme to {json.dumps(built.tag_scheme)}"
    if "tag_scheme" in type(reader).model_fields:
        remedy += f", or {key}.tag_scheme to {json.dumps(model.tag_scheme)}"
    tags = f"tags in {built.tag_scheme}" if built.tag_scheme else "tags that are no spans"
    return f"{key} {_type_of(reader)!r} gives {tags}; {_type_of(model)!r} wants them in {model.tag_scheme}: {remedy}"


def _batch_of_reader(config: type[DatasetReaderConfig]) -> type[Batch]:
    return _returned_class(_returned_class(config.build, DatasetReader).collate, Batch)


def _batch_of_model(config: type[ModelConfig]) -> type[Batch]:
    for parent in _returned_class(config.build, TaskModel).__mro__:
        for base in vars(parent).get("__orig_bases__", ()):
            if typing.get_origin(base) is TaskModel:
                batch = typing.get_args(base)[0]
                return batch if isinstance(batch, type) else Batch
    return Batch


def _returned_class(function: Callable[..., Any], base: type) -> Any:
    """The subclass of `base` that a function returns, by its annotation; `base` itself where that does not tell."""
    try:
        returned = typing.get_type_hints(function).get("return")
    except NameError:  # something is imported for type checkers alone
        return base
    return returned if isinstance(returned, type) and issubclass(returned, base) else base


def _type_of(part: Part) -> str:
    return type(part).model_fields["type"].default


def _described(batch: type[Batch]) -> str:
    """Its name and the first line of its docstring."""
    summary, _, _ = (batch.__doc__ or "").partition("\n")
    return f"{batch.__name__} ({summary.rstrip('.')})"
