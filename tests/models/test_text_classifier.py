"""The plain classifier: what it predicts for each task, and how it learns which task that is."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from elmo_tasks.config import load_config
from elmo_tasks.errors import ConfigError
from elmo_tasks.models.text_classifier import TextClassifier
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.text.vocabulary import Vocabulary
from tests.models.small import make_head, texts_of_lengths

PAIR = {"premise": ["tarn", "vale"], "hypothesis": ["moro"]}


def make_classifier(task: str, **settings: Any) -> tuple[TextClassifier, Vocabulary]:
    labels = {} if "regression" in task else {"labels": ("bad", "good", "odd")}
    return make_head({"type": "text_classifier", "task": task, **settings}, labels)


@torch.no_grad()
def test_a_set_has_the_labels_from_the_threshold_on() -> None:
    model, vocabulary = make_classifier("multi_label")
    data = [{"tokens": each, "labels": ["odd"]} for each in texts_of_lengths(3, 1)]
    batch: Any = model.task.collate(data, vocabulary)
    output = model(batch)
    shares = output.logits.sigmoid()
    gold = torch.tensor([[0.0, 0.0, 1.0]] * 2)
    expected = -(gold * shares.log() + (1 - gold) * (1 - shares).log()).mean()
    assert model.loss(output, batch).item() == pytest.approx(expected.item(), abs=1e-6)
    assert model.threshold is not None
    for threshold in (0.0, 0.5, float(shares[0, 1]), 1.0):
        model.threshold.fill_(threshold)
        for row, prediction in enumerate(model.decode(output, batch)):
            assert list(prediction["probabilities"].values()) == pytest.approx(shares[row].tolist())
            chosen = [label for label, share in prediction["probabilities"].items() if share >= threshold]
            assert prediction["labels"] == chosen


@torch.no_grad()
def test_numbers_are_learned_in_deviations_from_the_mean_of_training() -> None:
    model, vocabulary = make_classifier("regression")
    data = [{"tokens": each, "score": score} for each, score in zip(texts_of_lengths(3, 1), (60, 80), strict=True)]
    model.prepare_training(data)
    batch: Any = model.task.collate(data, vocabulary)
    output = model(batch)
    first, second = output.logits.squeeze(1).tolist()
    assert model.loss(output, batch).item() == pytest.approx(((first + 1) ** 2 + (second - 1) ** 2) / 2, rel=1e-4)
    scores = [prediction["score"] for prediction in model.decode(output, batch)]
    assert scores == pytest.approx([70 + 10 * first, 70 + 10 * second])
    model.prepare_training([{"score": 3.0}] * 2)  # all the same
    assert model.decode(output, batch)[0]["score"] == pytest.approx(3 + first)


@torch.no_grad()
def test_the_features_of_a_pair() -> None:
    model, vocabulary = make_classifier("pair_regression", pooling="mean")
    batch: Any = model.task.collate([{**PAIR, "score": 1.0}], vocabulary)
    one, other = (model.embedder(each).inputs[0].mean(0) for each in (batch.premise, batch.hypothesis))
    features = torch.cat([one, other, (one - other).abs(), one * other])
    torch.testing.assert_close(model(batch).logits[0], model.scores(features))


def settings(of_reader: str, **model: Any) -> dict[str, Any]:
    return {
        "dataset_reader": {"type": "jsonl", "task": of_reader},
        "train_data_path": "a",
        "validation_data_path": "b",
        "model": {"type": "text_classifier", "embedder": {"words": {"size": 4}}, **model},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "validation_metric": "-loss"},
    }


@pytest.mark.parametrize("task", ["classification", "multi_label", "regression", "text_pairs", "pair_regression"])
def test_the_task_is_that_of_the_reader(task: str) -> None:
    assert load_config(settings(task), ExperimentConfig).model.task.name == task


def test_another_task_than_the_reader_s_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"texts with a number each \(Regression\); expected texts with a set of labels"
    ):
        load_config(settings("regression", task="multi_label"), ExperimentConfig)
    with pytest.raises(ConfigError, match=r"expected texts with a label each \(Classification\)"):
        load_config(settings("tagging"), ExperimentConfig)
    with pytest.raises(ConfigError, match="class_weights: expected a task with labels, got Regression"):
        load_config(settings("regression", class_weights="balanced"), ExperimentConfig)
