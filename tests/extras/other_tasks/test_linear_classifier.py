"""The head `linear_classifier`: its features, and that its weights are those of scikit-learn."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from elmo_tasks.config import load_config
from elmo_tasks.errors import ConfigError
from elmo_tasks.extras.other_tasks.linear_classifier import compare, fit
from elmo_tasks.models import ModelConfig
from elmo_tasks.runs import train
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.load import load_predictor
from elmo_tasks.text.vocabulary import Counts, VocabularyConfig

ROWS: list[dict[str, Any]] = [
    {"text": "What a lovely film!", "label": "good"},
    {"text": "Cold soup, rude staff.", "label": "bad"},
    {"text": "Warm, bright and friendly.", "label": "good"},
    {"text": "It broke on the first day.", "label": "bad"},
    {"text": "A kind and lovely place.", "label": "good"},
    {"text": "Rude, cold and slow.", "label": "bad"},
]


def made(num_rows: int, num_features: int, num_labels: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Features that say a little about the labels, which are not equally frequent."""
    random = np.random.default_rng(3)
    gold = np.minimum(random.geometric(0.5, num_rows) - 1, num_labels - 1)
    gold[:num_labels] = np.arange(num_labels)
    centres = random.normal(size=(num_labels, num_features))
    return 5 + 3 * (centres[gold] + 2 * random.normal(size=(num_rows, num_features))), gold


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize(("num_rows", "num_features", "num_labels"), [(60, 7, 3), (20, 50, 3), (30, 8, 2), (6, 90, 2)])
def test_the_weights_are_those_of_scikit_learn_times_a_factor(
    num_rows: int, num_features: int, num_labels: int, class_weight: str | None
) -> None:
    features, gold = made(num_rows, num_features, num_labels)
    weights = num_rows / (num_labels * np.bincount(gold)) if class_weight else None
    fitted = fit(features, gold, [40.0], weights)
    model = LogisticRegression(C=40.0 / features.size, max_iter=10_000, tol=1e-9, class_weight=class_weight)
    expected = make_pipeline(StandardScaler(), model).fit(features, gold)
    scores = features @ fitted.weight.T + fitted.bias
    assert (scores.argmax(1) == expected.predict(features)).all()
    likelihoods = expected.predict_log_proba(features)
    differences, own = likelihoods - likelihoods[:, :1], scores - scores[:, :1]
    factor = (own * differences).sum() / (differences**2).sum()
    assert 0.1 <= factor <= 10
    assert own == pytest.approx(factor * differences, abs=0.01 * np.abs(own).max())


def test_noise_is_followed_less_than_clear_labels() -> None:
    features, gold = made(60, 20, 3)
    strengths = [10_000.0, 100.0, 1.0]
    assert fit(np.random.default_rng(1).normal(size=(60, 20)), gold, strengths).strength == 1.0
    assert fit(gold[:, None] + 0.01 * features, gold, strengths).strength == 10_000.0


def test_probabilities_are_as_certain_as_held_out_examples_allow() -> None:
    features, gold = made(400, 20, 3)
    fitted = fit(features[:200], gold[:200], [1e6])  # hardly a penalty: too certain by itself
    scores = features[200:] @ fitted.weight.T + fitted.bias
    shares = np.exp(scores - np.logaddexp.reduce(scores, 1, keepdims=True))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e6 / 4000, max_iter=10_000))
    other = model.fit(features[:200], gold[:200]).predict_proba(features[200:])
    rows = np.arange(200)
    assert np.log(shares[rows, gold[200:]]).mean() > np.log(other[rows, gold[200:]]).mean()


@pytest.mark.parametrize("gold", [[0, 1], [0, 0, 0, 0, 1], [0, 1, 2, 3, 4], [2, 2, 2]])
def test_the_fewest_examples(gold: list[int]) -> None:
    """There are more features than rows, and labels that no other example has."""
    features = np.random.default_rng(2).normal(size=(len(gold), 1000))
    features[:, 7] = 3.0  # does not vary
    fitted = fit(features, np.array(gold), [1000.0, 10.0])
    assert fitted.labels.tolist() == sorted(set(gold))
    found = fitted.labels[(features @ fitted.weight.T + fitted.bias).argmax(1)]
    assert found.tolist() == gold
    assert not fitted.weight[:, 7].any()


def test_the_features_are_means_of_vectors_and_comparisons_of_pairs() -> None:
    model, batch, settings = pairs()
    features = model.features(batch).numpy()
    for row, example in enumerate(PAIRS):
        alone = model.task.collate([example], model.vocabulary)
        one, other = (model.embedder(each).inputs[0].numpy() for each in (alone.premise, alone.hypothesis))
        expected, similar = [one.mean(0), other.mean(0)], []
        for these, those in ((one, other), (other, one)):
            cosines = (these @ those.T) / np.outer(np.linalg.norm(these, axis=1), np.linalg.norm(those, axis=1))
            nearest = those[cosines.argmax(1)]
            differences = np.abs(these - nearest)
            expected += [differences.mean(0), differences.max(0), (these * nearest).mean(0)]
            similar += [cosines.max(1).mean(), cosines.max(1).min(), cosines.max(1).max()]
        assert features[row] == pytest.approx(np.concatenate([*expected, similar]), abs=1e-5)
    texts = ModelConfig.model_validate({**settings, "task": "classification"})
    vocabulary = model.vocabulary
    of_texts: Any = texts.build(vocabulary, texts.embedder.build(vocabulary)).eval()
    batch = texts.task.collate([{"tokens": example["premise"]} for example in PAIRS], vocabulary)
    assert of_texts.features(batch).numpy() == pytest.approx(features[:, : features.shape[1] // 8], abs=1e-6)


def test_padding_is_not_the_most_similar_token() -> None:
    first, second = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[-1.0, 0.0], [0.0, 0.0]]])
    masks = torch.tensor([[True]]), torch.tensor([[True, False]])
    features, cosines = compare(first, second, first @ second.mT, *masks)
    assert features.tolist() == [[2, 0, 2, 0, -1, 0]]
    assert cosines.tolist() == [[-1, -1, -1]]


def test_a_label_without_training_examples_is_not_predicted() -> None:
    config = ModelConfig.model_validate({"type": "linear_classifier", "embedder": {"elmo": {"bilm": "default"}}})
    examples = [{"tokens": row["text"].split(), "label": row["label"]} for row in ROWS]
    unseen = {"tokens": ["Neither"], "label": "none"}
    vocabulary = VocabularyConfig().build(Counts.of(config.task, [*examples, unseen]), [])
    model: Any = config.build(vocabulary, config.embedder.build(vocabulary)).train()
    model.prepare_training([*examples, unseen])
    assert model.weight[2].any()
    model.prepare_training(examples)
    assert not model.weight[2].any()
    assert model.training
    batch: Any = config.task.collate([unseen], vocabulary)
    (prediction,) = model.eval().decode(model(batch), batch)
    assert set(prediction["probabilities"]) == {"good", "bad", "none"}
    assert prediction["probabilities"]["none"] < 1e-6
    first = model.weight.clone()
    model.prepare_training(examples)  # without dropout
    torch.testing.assert_close(first, model.weight)


def test_pairs_are_fitted_with_weights_of_labels_and_large_cosines() -> None:
    model, batch, _ = pairs(class_weights="balanced")
    model.prepare_training(PAIRS)
    features = model.features(batch).double().numpy()
    factors = np.array([1.0] * (features.shape[1] - 6) + [5.0] * 6)  # the last six are cosines
    expected = fit(features, batch.labels.numpy(), model.strengths, np.array([0.75, 1.5]), factors)
    assert model.strengths == [12000, 4000, 1200, 400, 100]
    torch.testing.assert_close(model.weight, torch.tensor(expected.weight).float(), rtol=1e-3, atol=1e-6)


PAIRS = [
    {"premise": ["Tavo", "left", "Brusk"], "hypothesis": ["Brusk", "slept"], "label": "no"},
    {"premise": ["Rain"], "hypothesis": ["It", "rains", "."], "label": "yes"},
    {"premise": ["Tavo", "slept"], "hypothesis": ["Orla", "left", "."], "label": "no"},
]


def pairs(**changes: Any) -> tuple[Any, Any, dict[str, Any]]:
    """A classifier of pairs, the batch of `PAIRS`, and its settings."""
    embedder = {"elmo": {"bilm": "default", "dropout": 0.0}}
    settings = {"type": "linear_classifier", "task": "text_pairs", "embedder": embedder, **changes}
    config = ModelConfig.model_validate(settings)
    vocabulary = VocabularyConfig().build(Counts.of(config.task, PAIRS), [])
    model = config.build(vocabulary, config.embedder.build(vocabulary)).eval()
    return model, config.task.collate(PAIRS, vocabulary), settings


@pytest.mark.parametrize("embedder", [{"words": {"size": 4}}, {"elmo": {"bilm": "default", "requires_grad": True}}])
def test_only_frozen_vectors_are_read(embedder: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError, match="expected only a frozen elmo or transformer"):
        ModelConfig.model_validate({"type": "linear_classifier", "embedder": embedder})


def test_rare_labels_are_not_drawn_more_often() -> None:
    """There are no batches: a setting without effect is an error that names another."""
    with pytest.raises(ConfigError, match=r"learns without batches; expected model\.class_weights: 'balanced'"):
        load_config("small/classification", ExperimentConfig, ["data_loader.sampling=balanced"])


def test_a_run_has_one_evaluation_and_no_steps(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    data = {"train_data_path": ROWS, "validation_data_path": ROWS[:2]}
    results = train.train("small/classification", tmp_path / "run", datasets=data)
    assert results["best"]["epoch"] == 1
    assert results["best"]["step"] == 0
    assert results["best"]["validation"]["accuracy"] == 100
    assert "fitted in one go" in caplog.text
    assert "no training steps" in caplog.text
    assert "optimizer step" not in caplog.text  # that there are few
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 1

    (tmp_path / "run" / "metrics.json").unlink()  # as if it had been killed before it was complete
    again = train.train("small/classification", tmp_path / "run", datasets=data, resume=True)
    assert again["best"]["validation"] == results["best"]["validation"]
    predictor = load_predictor(tmp_path / "run")
    for row in predictor([{"text": row["text"]} for row in ROWS]):
        assert sum(row["probabilities"].values()) == pytest.approx(1, abs=2e-6)  # results are rounded


def test_the_config_is_that_of_texts_or_of_pairs_by_its_reader() -> None:
    for name, task in (("small/classification", "classification"), ("small/text_pairs", "text_pairs")):
        assert load_config(name, ExperimentConfig).model.task.name == task
