"""A small biLM with every part of a large one, in memory and in files."""

from pathlib import Path

import pytest

from elmo_tasks.elmo import BiLM, BiLMOptions
from elmo_tasks.elmo.options import CharacterCnnOptions, CharacterEmbeddingOptions, LstmOptions
from tests.random_bilm import random_bilm


@pytest.fixture(scope="session")
def options() -> BiLMOptions:
    """Two layers of 12 cells, projected to 6, clipped, with a skip connection and one highway layer."""
    return BiLMOptions(
        lstm=LstmOptions(dim=12, projection_dim=6, n_layers=2, cell_clip=0.8, proj_clip=0.9, use_skip_connections=True),
        char_cnn=CharacterCnnOptions(
            embedding=CharacterEmbeddingOptions(dim=4), filters=((1, 5), (2, 6), (4, 7)), activation="relu", n_highway=1
        ),
    )


@pytest.fixture
def bilm(options: BiLMOptions) -> BiLM:
    return random_bilm(options, seed=3, scale=1.2)


@pytest.fixture
def bilm_files(bilm: BiLM, tmp_path: Path) -> tuple[Path, Path]:
    """The paths of the biLM's options and weights."""
    paths = tmp_path / "options.json", tmp_path / "weights.hdf5"
    bilm.save(*paths)
    return paths


@pytest.fixture(scope="session")
def sentences() -> list[list[str]]:
    """Sentences of several lengths, with words in common, one of them empty."""
    return [
        ["the", "cat", "saw", "the", "dog"],
        ["a", "café", "opened"],
        [],
        ["the", "dog", "saw", "a", "much", "longer", "sentence", "than", "the", "cat", "ever", "did"],
        ["naïve-coöperation" * 5],
        ["the", "cat", "saw", "the", "dog"],
    ]
