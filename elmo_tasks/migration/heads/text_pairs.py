"""What AllenNLP's models for text pairs share: their alignment and their reader."""

from __future__ import annotations

from typing import Any

from elmo_tasks.migration.heads.head import other_reader
from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.migration.params import Params


def expect_dot_products(model: Params) -> None:
    """Raises a MigrationError unless texts are aligned by dot products."""
    attention = model.part("similarity_function" if "similarity_function" in model else "matrix_attention")
    attention.expect("type", "dot_product")
    attention.expect("scale_output", False, default=False)


def reader_and_notes(params: Params) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The config of our reader of text pairs, with the token that AllenNLP's adds to the end of each text; and notes.

    Raises:
        MigrationError: it adds others.
    """
    tokenizer = params.part("dataset_reader").part("tokenizer")
    ends = tokenizer.get("end_tokens", None) or []
    if tokenizer.get("start_tokens", None) or len(ends) > 1:
        raise MigrationError(f"config.json: {tokenizer.path('end_tokens')}: expected at most one token, at the end")
    return {"type": "snli", **({"end_token": ends[0]} if ends else {})}, other_reader(params, "snli", "snli")
