import pytest

from elmo_tasks.elmo import TINY_OPTIONS, BiLM
from tests.random_bilm import random_bilm


@pytest.fixture(scope="session")
def bilm() -> BiLM:
    return random_bilm(TINY_OPTIONS, seed=2)
