from __future__ import annotations

from pathlib import Path

import pytest

from tests.modules.tiny_bert import save_bert


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny BERT. Not to be changed."""
    return save_bert(tmp_path_factory.mktemp("bert"))
