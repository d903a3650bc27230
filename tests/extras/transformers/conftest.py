from pathlib import Path

import pytest
import torch

from tests.extras.transformers.tiny_bert import save_bert


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(3)


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny BERT. Not to be changed."""
    return save_bert(tmp_path_factory.mktemp("bert"))
