"""What the conversions of taggers share: tags, their scheme, and the reader of tagged sentences."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.weights import Weights
from elmo_tasks.text.tag_schemes import TagScheme

_SCHEMES: dict[str, TagScheme] = {"BIO": "IOB2", "IOB1": "IOB1", "BIOUL": "BIOUL", "BMES": "BMES"}
_COLUMNS = {"pos": (0, 1), "chunk": (0, 2)}  # of CoNLL-2003; entities are in the last


def scheme_of(params: Params, key: str) -> TagScheme | None:
    """The tag scheme that a key names in AllenNLP's words; None if it is missing or null.

    Raises:
        MigrationError: there is no such scheme.
    """
    name = params.get(key, None)
    if name is None:
        return None
    if name not in _SCHEMES:
        expected = ", ".join(_SCHEMES)
        raise MigrationError(f"config.json: {params.path(key)} is {str(name)[:80]!r}; expected one of {expected}")
    return _SCHEMES[name]


def tagged_sentences(reader: Params, scheme: TagScheme | None) -> tuple[dict[str, Any], list[str]]:
    """Our reader of tagged sentences, and what is to be said about it."""
    name = reader.get("type", None)
    config: dict[str, Any] = {"type": "conll2003", "tag_scheme": scheme}
    notes: list[str] = []
    if name == "conll2003":
        tag_label = reader.get("tag_label", "ner")
        reader.ignore("coding_scheme", "feature_labels", "label_namespace", "convert_to_coding_scheme")
        if tag_label in _COLUMNS:
            config["columns"] = list(_COLUMNS[tag_label])
    else:
        notes.append(
            f"there is no reader {str(name)[:80]!r} here; data are read as columns, the last being the tag (conll2003)"
        )
    return config, notes


def projection(weights: Weights, num_tags: int, size: int | None = None) -> dict[str, Tensor]:
    """The tensors of the layer whose outputs are the tags' scores."""
    return {
        "projection.weight": weights.take("weight", num_tags, size),
        "projection.bias": weights.take("bias", num_tags),
    }
