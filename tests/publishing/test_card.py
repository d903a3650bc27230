"""Whole model cards, as they are read on the hub."""

from typing import Any

import pytest
import yaml

from elmo_tasks import __version__
from elmo_tasks.config import load_config
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.files.installed_models import About
from elmo_tasks.pretraining.pretrain import Results as PretrainingResults
from elmo_tasks.publishing.card import bilm_card, run_card
from elmo_tasks.runs.experiment_config import ExperimentConfig, Results

LICENCE_TO_FILL_IN = "*Fill in*: the licence of this model, also as `license` at the top of this file."


def config(task: str, **changes: Any) -> ExperimentConfig:
    values = {
        "dataset_reader": {"type": "jsonl", "task": task},
        "train_data_path": ["/data/few.jsonl", "hub:ann/many:plain#train"],
        "validation_data_path": "/data/dev.jsonl",
        "model": {"type": "text_classifier", "task": task, "embedder": {"words": {"size": 2}}},
        "data_loader": {"batch_size": 4},
        "trainer": {"num_epochs": 1, "validation_metric": "+accuracy"},
    }
    return load_config(values | changes, ExperimentConfig)


def results(test: dict[str, float] | None = None) -> Results:
    best = {"epoch": 3, "validation": {"accuracy": 87.456, "loss": 0.3, "f1/a|b": 5}}
    return Results.model_validate({"best": best, "test": test})


def read(card: str) -> tuple[dict[str, Any], str]:
    """What the hub reads, and the text."""
    _, front, text = card.split("---\n", 2)
    return yaml.safe_load(front), text


def test_the_card_of_a_run_about_which_nothing_else_is_known() -> None:
    card = run_card("hub:ann/topics", config("classification"), results(), None, About())
    front, text = read(card)
    assert "\n# Fill in: language (such as en) and license (such as apache-2.0).\n---\n" in card
    assert front["license"] == "unknown"
    assert (front["library_name"], front["pipeline_tag"]) == ("elmo-tasks", "text-classification")
    assert front["tags"] == ["elmo", "classification", "text_classifier"]
    assert front["datasets"] == ["ann/many"]
    assert front["metrics"] == ["accuracy"]
    (model,) = front["model-index"]
    assert model["name"] == "topics"
    assert model["results"] == [
        {
            "task": {"type": "text-classification"},
            "dataset": {"name": "dev.jsonl", "type": "dev.jsonl"},
            "metrics": [{"type": "accuracy", "value": 87.46}],
        }
    ]
    beginning, licence = text.split("\n## Licence\n\n")
    assert (
        beginning
        == f"""
# topics

A model, from elmo-tasks {__version__}. To use it:

```
elmo-tasks predict hub:ann/topics INPUT
elmo-tasks evaluate hub:ann/topics DATA
```

|  |  |
| --- | --- |
| task | classification (texts with a label each) |
| model | `text_classifier`; all settings are in [config.json](config.json) |
| biLM | none |
| training data | few.jsonl, hub:ann/many:plain#train |
| validation data | dev.jsonl |
| test data | none |

## Scores

| metric | validation | test |
| --- | --- | --- |
| accuracy | 87.46 |  |
| loss | 0.30 |  |
| f1/a\\|b | 5.00 |  |
"""
    )
    assert licence.startswith(LICENCE_TO_FILL_IN)
    assert "\n## Uses and limits\n\n*Fill in*: what it is for" in licence


@pytest.mark.parametrize("task", ["classification", "multi_label", "text_pairs", "regression", "pair_regression"])
def test_the_hub_finds_all_classifiers(task: str) -> None:
    by_loss = {"num_epochs": 1, "validation_metric": "-loss"}
    front, _ = read(run_card("hub:ann/topics", config(task, trainer=by_loss), results(), None, About()))
    assert (front["pipeline_tag"], front["tags"][1]) == ("text-classification", task)


def test_the_card_of_a_bilm() -> None:
    words = {"num_words": 9, "word_dim": 4, "word_bytes": 30}
    lexicon = {**words, "num_characters": 9, "character_bytes": 30}
    options = BiLMOptions.model_validate({**TINY_OPTIONS.model_dump(), "lexicon": lexicon})
    perplexities = {"forward": 40.0, "backward": 42.0, "mean": 40.9878}
    pretrained = PretrainingResults.model_validate(
        {
            "training_targets": 1234567,
            "vocabulary": 50000,
            "trained_targets": 7654321,
            "trained_hours": 1.5,
            "before": None,
            "held_out": perplexities,
            "held_out_unigram": 900.0,
        }
    )
    front, text = read(bilm_card("hub:ann/bilm", options, pretrained))
    known = {"pipeline_tag": "feature-extraction", "tags": ["elmo", "bilm"], "license": "unknown"}
    assert {key: front[key] for key in known} == known
    beginning, licence = text.split("\n## Licence\n\n")
    assert (
        beginning
        == f"""
# bilm

A bidirectional language model (biLM) for ELMo, in the layout of bilm-tf and AllenNLP, from elmo-tasks {__version__}. \
To use it:

```
elmo-tasks embed sentences.txt --output vectors.hdf5 --bilm hub:ann/bilm
elmo-tasks train CONFIG --set model.embedder.elmo.bilm=hub:ann/bilm
```

|  |  |
| --- | --- |
| architecture | reads words and characters; 2 LSTM layers of 128 cells in each direction, 64 features in each layer |
| text | *Fill in* |
| tokens read | 7,654,321, from a text of 1,234,567 |
| softmax vocabulary | 50,000 words |
| held-out perplexity | 40.99, the mean of both directions |
"""
    )
    assert licence.startswith(LICENCE_TO_FILL_IN)
    assert "tokens read" not in bilm_card("hub:ann/bilm", options, None)
