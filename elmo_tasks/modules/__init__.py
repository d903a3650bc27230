"""Layers that any network could use, and what all networks share: dropout, devices, the conditional random field."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    """Heads of users' packages import `Embedder` from here, where it was."""
    if name == "Embedder":
        return importlib.import_module("elmo_tasks.models.embedder").Embedder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
