"""What `train` says, before and after, of a training that is too short to learn anything."""

import logging
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.runs.train import train

LABELS = ("good", "bad")
REVIEWS = [{"tokens": [f"word{row}", "."], "label": LABELS[row % 3 == 0]} for row in range(12)]
OTHERS = [{**review, "tokens": [*review["tokens"], "!"]} for review in REVIEWS]


def settings(num_epochs: int, **trainer: Any) -> dict[str, Any]:
    """A classifier of 3 steps an epoch."""
    return {
        "dataset_reader": {"type": "jsonl", "task": "classification"},
        "train_data_path": "train.jsonl",
        "validation_data_path": "dev.jsonl",
        "model": {"type": "text_classifier", "embedder": {"words": {"size": 8}}},
        "data_loader": {"batch_size": 4},
        "trainer": {"num_epochs": num_epochs, "validation_metric": "+accuracy", "trackers": [], **trainer},
    }


def train_on_reviews(folder: Path, config: dict[str, Any], validation: Any = None, **more: Any) -> None:
    given = {"train_data_path": REVIEWS, "validation_data_path": validation or OTHERS}
    train(config, folder, datasets=given, **more)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno == logging.WARNING]


def test_a_short_run_says_before_and_after_what_to_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    train_on_reviews(tmp_path / "run", settings(2, optimizer={"type": "sgd", "lr": 1e-9}))
    before, after = warnings(caplog)
    remedy = (
        "start from the config small/classification, or raise trainer.num_epochs (now 2) or lower "
        "data_loader.batch_size (now 4)"
    )
    assert before.startswith("only 6 optimizer steps in all, for 12 training examples, and a model needs")
    assert before.endswith(remedy)
    assert after.startswith("validation accuracy ")
    assert "always giving the most frequent label has 66.67: the model has learned nothing" in after
    assert after.endswith(remedy)


def test_a_tagger_that_finds_no_span(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    span = {"tokens": ["Bank", "of", "Oslo", "Ltd", "paid"], "tags": ["B-ORG", "I-ORG", "I-ORG", "L-ORG", "O"]}
    config = {
        **settings(1, optimizer={"type": "sgd", "lr": 1e-9}),
        "dataset_reader": {"type": "jsonl", "task": "tagging", "tag_scheme": "BIOUL"},
        "model": {
            "type": "crf_tagger",
            "embedder": {"words": {"size": 2}},
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": [2]},
        },
    }
    config["trainer"]["validation_metric"] = "+f1"
    given = {
        "train_data_path": [span] * 4,
        "validation_data_path": [{**span, "tokens": ["Mill", "of", "Bergen", "Ltd", "sold"]}],
    }
    train(config, tmp_path / "run", datasets=given)
    before, after = warnings(caplog)
    assert "small/tagging" in before
    assert after.startswith("validation f1 0.00 in the best epoch: the model has learned nothing useful; start from")
    config["model"] |= {"type": "simple_tagger", "tag_scheme": None}  # scores tag by tag what its reader scores by span
    config["trainer"]["validation_metric"] = "+accuracy"
    train(config, tmp_path / "tags", datasets=given)
    assert warnings(caplog)[-1].startswith("validation accuracy ")
