"""The classifiers `text_classifier` and `bcn`: what they predict, how they learn it, and weights of labels."""

import dataclasses
import math
from typing import Any, get_args

import pydantic
import pytest
import torch
from torch.nn import functional

from elmo_tasks.config import load_config
from elmo_tasks.errors import ConfigError, ElmoTasksError
from elmo_tasks.extras.other_tasks.text_classifier import Pooling, PoolingName, TextClassifier
from elmo_tasks.models import ModelConfig
from elmo_tasks.modules import attention as attention_module
from elmo_tasks.modules.attention import masked_softmax
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.text.vocabulary import Vocabulary
from tests.models.small import make_head, texts_of_lengths

PAIR = {"premise": ["tarn", "vale"], "hypothesis": ["moro"]}


def make_classifier(task: str, **settings: Any) -> tuple[TextClassifier, Vocabulary]:
    labels = {} if "regression" in task else {"labels": ("bad", "good", "odd")}
    return make_head({"type": "text_classifier", "task": task, **settings}, labels)


@torch.no_grad()
@pytest.mark.parametrize("mean", [70.0, 1_700_000_000.0])
def test_numbers_are_learned_in_deviations_from_the_mean_of_training(mean: float) -> None:
    model, vocabulary = make_classifier("regression")
    scores = (mean - 10, mean + 10)
    data = [{"tokens": each, "score": score} for each, score in zip(texts_of_lengths(3, 1), scores, strict=True)]
    model.prepare_training(data)
    batch: Any = model.task.collate(data, vocabulary)
    output = model(batch)
    first, second = output.logits.squeeze(1).tolist()
    assert model.loss(output, batch).item() == pytest.approx(((first + 1) ** 2 + (second - 1) ** 2) / 2, rel=1e-4)
    found = [prediction["score"] - mean for prediction in model.decode(output, batch)]
    assert found == pytest.approx([10 * first, 10 * second], rel=1e-5)
    assert (model.prediction_scores(output, batch, []) - mean).tolist() == pytest.approx(found, rel=1e-5)
    model.prepare_training([{"score": 3.0}] * 2)  # all the same
    assert model.decode(output, batch)[0]["score"] == pytest.approx(3 + first)


@torch.no_grad()
def test_a_set_of_labels_has_those_from_a_half_on() -> None:
    """The score of a prediction is the sum of the logarithms of their probabilities."""
    model, vocabulary = make_classifier("multi_label")
    batch: Any = model.task.collate([{"tokens": ["tarn"]}] * 2, vocabulary)
    shares = torch.tensor([[0.5, 0.75, 0.25], [0.25, 0.4, 0.1]])
    output = dataclasses.replace(model(batch), logits=shares.logit())
    found = model.decode(output, batch)
    assert [each["labels"] for each in found] == [["bad", "good"], []]
    torch.testing.assert_close(torch.tensor([[*each["probabilities"].values()] for each in found]), shares)
    scores = model.prediction_scores(output, batch, found)
    assert scores.tolist() == pytest.approx([math.log(0.5 * 0.75), 0.0])
    assert [list(each) for each in model.decode(output, batch, probabilities=False)] == [["labels"]] * 2


@torch.no_grad()
def test_attention_is_shown_with_the_probabilities() -> None:
    model, vocabulary = make_classifier("classification", pooling="attention")
    batch: Any = model.task.collate([{"tokens": each} for each in texts_of_lengths(3, 1)], vocabulary)
    output = model(batch)
    for row, prediction in enumerate(model.decode(output, batch)):
        assert list(prediction) == ["label", "probabilities", "attention"]
        assert prediction["attention"] == pytest.approx(output.attention[row, : 3 - 2 * row].tolist())
        assert sum(prediction["attention"]) == pytest.approx(1)
    assert [list(each) for each in model.decode(output, batch, probabilities=False)] == [["label"]] * 2


@torch.no_grad()
def test_the_features_of_a_pair() -> None:
    model, vocabulary = make_classifier("pair_regression", pooling="mean")
    batch: Any = model.task.collate([{**PAIR, "score": 1.0}], vocabulary)
    one, other = (model.embedder(each).inputs[0].mean(0) for each in (batch.premise, batch.hypothesis))
    features = torch.cat([one, other, (one - other).abs(), one * other])
    torch.testing.assert_close(model(batch).logits[0], model.scores(features))


@torch.no_grad()
@pytest.mark.parametrize("name", get_args(PoolingName))
def test_a_pooling_by_its_name(name: PoolingName) -> None:
    vectors, lengths, pooling = torch.randn(3, 4, 5), torch.tensor([4, 1, 3]), Pooling(name, 5)
    mask = torch.arange(4) < lengths.unsqueeze(1)
    pooled, weights = pooling(vectors, mask)
    assert pooled.shape == (3, pooling.output_size)
    assert (weights is None) == (pooling.attention is None)
    for text, length in enumerate(lengths.tolist()):
        real = vectors[text, :length]
        expected = {
            "mean": real.mean(0),
            "sum": real.sum(0),
            "max": real.amax(0),
            "last": torch.cat([real[-1], real[0]]),
            "attention": pooled[text] if pooling.attention is None else pooling.attention(vectors, mask)[0][text],
        }
        torch.testing.assert_close(pooled[text], expected[name])


def settings(of_reader: str, **model: Any) -> dict[str, Any]:
    return {
        "dataset_reader": {"type": "jsonl", "task": of_reader},
        "train_data_path": "a",
        "validation_data_path": "b",
        "model": {"type": "text_classifier", "embedder": {"words": {"size": 4}}, **model},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "validation_metric": "-loss"},
    }


@pytest.mark.parametrize(
    "model",
    [
        {"embedder": {"words": {"size": 4}}},
        {"embedder": {"words": {"size": 4}, "transformer": {"model": "bert"}}},
        {"embedder": {"transformer": {"model": "bert"}}, "encoder": {"type": "pass_through"}},
    ],
)
def test_a_first_piece_is_only_that_of_a_transformer(model: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError, match="'cls' needs an embedder that is only a transformer, and no"):
        ModelConfig.model_validate({"type": "text_classifier", "pooling": "cls", **model})


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


LABELS = ("bad", "good", "odd")
LAYERS = {"type": "stacked_bilstm", "hidden_sizes": (4,)}
HEADS: dict[str, dict[str, Any]] = {
    "bcn": {
        "pre_encoder": {"hidden_sizes": (5,)},
        "encoder": LAYERS,
        "integrator": LAYERS,
        "output": {"hidden_sizes": (4,)},
    },
    "decomposable_attention": {"attend": {"hidden_sizes": (4,)}, "compare": {"hidden_sizes": (4,)}},
    "simple_tagger": {"encoder": LAYERS},
}
TEXTS = [["tarn", "vale", "moro"], ["orla"]]


def make(kind: str, gold: list[Any], class_weights: Any) -> tuple[Any, Any]:
    """The head and a batch of two examples."""
    label = "tags" if kind == "simple_tagger" else "label"
    model, vocabulary = make_head(
        {"type": kind, **HEADS[kind], "class_weights": class_weights}, {label.removesuffix("s") + "s": LABELS}
    )
    texts = [{"tokens": text, "premise": text, "hypothesis": text} for text in TEXTS]
    examples = [{**text, label: each} for text, each in zip(texts, gold, strict=True)]
    return model, model.task.collate(examples, vocabulary)


@pytest.mark.parametrize(
    ("kind", "gold"),
    [
        ("bcn", ["odd", "bad"]),
        ("decomposable_attention", ["odd", "bad"]),
        ("simple_tagger", [["bad", "odd", "bad"], ["good"]]),
    ],
)
def test_the_weight_of_its_label_multiplies_the_loss_of_each_example_or_token(kind: str, gold: list[Any]) -> None:
    model, batch = make(kind, gold, {"odd": 5, "good": 0.5})
    output = model(batch)
    logits, labels = output.logits, batch.labels if kind != "simple_tagger" else batch.tags
    if kind == "simple_tagger":
        logits, labels = logits[output.mask], labels[output.mask]
    losses = functional.cross_entropy(logits, labels, reduction="none")
    expected = (losses * torch.tensor([1, 0.5, 5])[labels]).sum() / 2
    assert model.loss(output, batch).item() == pytest.approx(expected.item())
    plain, _ = make(kind, gold, None)
    assert plain.loss(output, batch).item() == pytest.approx(losses.sum().item() / 2)


def test_balanced_weights_are_those_of_scikit_learn() -> None:
    """`compute_class_weight("balanced", classes=["bad", "good"], y=["bad"] * 3 + ["good"])` is `[0.667, 2.0]`."""
    model, _ = make("bcn", ["bad", "bad"], "balanced")
    model.prepare_training([{"label": "bad"}] * 3 + [{"label": "good"}])
    assert model.class_weights.tolist() == pytest.approx([4 / 6, 4 / 2, 1])
    tagger, _ = make("simple_tagger", [["bad"] * 3, ["bad"]], "balanced")
    tagger.prepare_training([{"tags": ["bad", "odd", "bad"]}, {"tags": ["bad"]}])
    assert tagger.class_weights.tolist() == pytest.approx([4 / 6, 1, 4 / 2])


def test_a_weight_of_a_label_that_is_not_there_names_those_that_are() -> None:
    message = r"model\.class_weights: no label 'god'; expected some of bad, good, odd\. Did you mean 'good'\?"
    with pytest.raises(ElmoTasksError, match=message):
        make("bcn", ["odd", "bad"], {"god": 2})


@torch.no_grad()
def test_a_long_text_is_aligned_with_itself_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = make("bcn", ["odd", "bad"], None)
    whole = model(batch).logits
    shapes: list[torch.Size] = []

    def recorded(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        shapes.append(scores.shape)
        return masked_softmax(scores, mask)

    monkeypatch.setattr(attention_module, "_SCORES_AT_ONCE", 1)
    monkeypatch.setattr(attention_module, "masked_softmax", recorded)
    torch.testing.assert_close(model(batch).logits, whole)
    assert shapes == [(2, 1, 3)] * 3
