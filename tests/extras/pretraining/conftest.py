"""Text in which the context of a word determines the next one, and a config that learns it in seconds."""

import json
import random
from pathlib import Path

import pytest

ANIMALS = {"dog": "barked", "cat": "purred", "cow": "mooed", "lion": "roared", "duck": "quacked"}
PLACES = ["in the garden", "by the river", "on the hill", "under the old bridge"]


def make_text(seed: int, documents: int) -> str:
    """Documents of one-sentence lines in which only the animal decides the verb."""
    draw = random.Random(seed)
    blocks = []
    for _ in range(documents):
        lines = []
        for _ in range(6):
            animal = draw.choice(list(ANIMALS))
            where = draw.choice(PLACES)
            lines.append(f"the {animal} that we saw {where} {ANIMALS[animal]} again .")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Each test has an empty cache. The fixture is the folder of its corpora."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(folder))
    return folder / "corpora"


def write_config(folder: Path) -> Path:
    """Writes `config.json`: a biLM of 16 features a direction on the text of `text.txt`, 60 steps long."""
    text_file = folder / "text.txt"
    text_file.write_text(make_text(1, 60), encoding="utf-8")
    options = {
        "lstm": {
            "dim": 32, "projection_dim": 16, "n_layers": 2, "cell_clip": 3.0, "proj_clip": 3.0,
            "use_skip_connections": True,
        },
        "char_cnn": {
            "embedding": {"dim": 4}, "filters": [[1, 8], [2, 8], [3, 16]], "activation": "relu", "n_highway": 1,
            "n_characters": 262, "max_characters_per_token": 50,
        },
    }  # fmt: skip
    config = {
        "bilm": options,
        "corpus": {"paths": [str(text_file)], "tokenized": True, "held_out": 0.1},
        "dropout": 0.05,
        "softmax": {"type": "sampled", "num_samples": 20},
        "trainer": {
            "num_epochs": 2.5,
            "batch_size": 8,
            "unroll_steps": 16,
            "optimizer": {"type": "adamw", "lr": 0.02},
            "learning_rate_scheduler": {"type": "cosine_decay", "warmup_steps": 5},
            "checkpoint_every_steps": 10,
            "evaluate_every_steps": 30,
            "device": "cpu",
            "precision": "float32",
        },
        "random_seed": 7,
    }
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    return write_config(tmp_path)


@pytest.fixture
def text_file(config_file: Path) -> Path:
    return config_file.with_name("text.txt")
