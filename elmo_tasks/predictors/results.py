"""What several predictors make of predictions before they are told."""

from __future__ import annotations

from typing import Any

DIGITS = 6  # of printed probabilities


def rounded(value: Any) -> Any:
    """A value of JSON with every number that is not whole, also within lists and objects, rounded for printing."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return value
