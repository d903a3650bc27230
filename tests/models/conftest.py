"""The files of a tiny biLM with random weights."""

from pathlib import Path

import pytest

from elmo_tasks.elmo import BiLMOptions
from tests.random_bilm import random_bilm


@pytest.fixture(scope="session")
def bilm_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The paths of its options and weights, as an ELMo config names them."""
    folder: Path = tmp_path_factory.mktemp("bilm")
    options = BiLMOptions.model_validate_json(
        """{"lstm": {"dim": 16, "projection_dim": 4, "n_layers": 2, "use_skip_connections": true},
            "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 8], [3, 8]], "activation": "relu", "n_highway": 1}}"""
    )
    paths = {"options": str(folder / "options.json"), "weights": str(folder / "weights.hdf5")}
    random_bilm(options, seed=1).save(paths["options"], paths["weights"])
    return paths
