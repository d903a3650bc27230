from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.prediction_files import cases, write, write_case

__all__ = ["cases", "write", "write_case"]

SPACE = {
    "trainer.optimizer.lr": {"low": 0.001, "high": 0.1, "log": True},
    "model.encoder.hidden_sizes.0": {"low": 4, "high": 8, "step": 1},
    "model.dropout": {"choices": [0.0, 0.3]},
}


@pytest.fixture
def search_file(config_file: Path) -> Callable[..., str]:
    """Writes a search of three trials over a space, next to the experiment's config, and returns its path."""

    def write(space: dict[str, Any] = SPACE, **settings: Any) -> str:
        path = config_file.parent / "search.json"
        values = {"title": "A search", "config": config_file.name, "space": space, "trials": 3, **settings}
        path.write_text(json.dumps(values))
        return str(path)

    return write
