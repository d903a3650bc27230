"""What holds for every head. A new head joins by one entry in `HEADS`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

from elmo_tasks.batch import Batch
from elmo_tasks.data_readers.reader import DatasetReader, DatasetReaderConfig
from elmo_tasks.models import ModelConfig, TaskModel
from elmo_tasks.vocabulary import Vocabulary, VocabularyConfig


@dataclasses.dataclass(frozen=True)
class Head:
    """One head with data to learn.

    `examples` are four of different lengths and labels; `gold` are the keys that they share with predictions.
    """

    reader: Mapping[str, Any]
    model: Mapping[str, Any]  # without the embedder
    examples: Sequence[dict[str, Any]]
    gold: tuple[str, ...]
    best_metric: str
    learning_rate: float = 0.02
    embedder: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: {
            "words": {"size": 8, "unknown_probability": 0.1},
            "characters": {"embedding_size": 4, "filters": 6, "width": 3, "dropout": 0.1},
            "elmo": {"mixes": ("input", "output"), "dropout": 0.1},
        }
    )


def tagged(scheme: str) -> list[dict[str, Any]]:
    bioul = [
        (["Tavo", "Melin", "left", "Brusk", "."], ["B-PER", "L-PER", "O", "U-LOC", "O"]),
        (["Quiet"], ["O"]),
        (["The", "Old", "Tarn", "Mill", "hired", "Orla"], ["O", "B-ORG", "I-ORG", "L-ORG", "O", "U-PER"]),
        (["Kerrin", "Brusk"], ["U-PER", "U-LOC"]),
    ]
    translation = {"U": "B", "L": "I"} if scheme == "IOB2" else {}
    return [
        {"tokens": tokens, "tags": [translation.get(tag[0], tag[0]) + tag[1:] for tag in tags]}
        for tokens, tags in bioul
    ]


def crf_tagger(scheme: str) -> Head:
    return Head(
        reader={"type": "conll2003", "tag_scheme": scheme},
        model={
            "type": "crf_tagger",
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (10, 6), "dropout": 0.1},
            "dropout": 0.1,
            "tag_scheme": scheme,
        },
        examples=tagged(scheme),
        gold=("tags",),
        best_metric="f1",
    )


HEADS = {"crf_tagger, BIOUL": crf_tagger("BIOUL"), "crf_tagger, IOB2": crf_tagger("IOB2")}


@dataclasses.dataclass(frozen=True)
class Built:
    head: Head
    config: ModelConfig
    reader: DatasetReader
    vocabulary: Vocabulary
    model: TaskModel[Any, Any]

    def batch(self, examples: Sequence[dict[str, Any]] | None = None) -> Batch:
        return self.reader.collate(list(self.head.examples if examples is None else examples), self.vocabulary)

    def predict(self, examples: Sequence[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        batch = self.batch(examples)
        self.model.eval()
        with torch.inference_mode():
            return self.model.decode(self.model(batch), batch)

    def loss(self, examples: Sequence[dict[str, Any]] | None = None) -> float:
        batch = self.batch(examples)
        self.model.eval()
        with torch.inference_mode():
            return self.model.loss(self.model(batch), batch).item()


@pytest.fixture(params=HEADS.values(), ids=HEADS.keys())
def built(request: pytest.FixtureRequest, bilm_files: dict[str, str]) -> Built:
    head: Head = request.param
    torch.manual_seed(11)
    embedder = {**head.embedder, "elmo": {**head.embedder["elmo"], **bilm_files}}
    config = ModelConfig.model_validate({**head.model, "embedder": embedder})
    reader = DatasetReaderConfig.model_validate(dict(head.reader)).build()
    vocabulary = VocabularyConfig().build(reader, head.examples, [])
    return Built(head, config, reader, vocabulary, config.build(vocabulary, config.embedder.build(vocabulary)))


def unlike(predictions: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> list[str]:
    """Where two lists of predictions differ; numbers are alike to 1e-5."""
    differences = []
    for number, (prediction, other) in enumerate(zip(predictions, others, strict=True)):
        assert prediction.keys() == other.keys()
        for key, value in prediction.items():
            is_float = isinstance(value, float) or (isinstance(value, list) and isinstance(value[0], float))
            if (pytest.approx(other[key], abs=1e-5) if is_float else other[key]) != value:
                differences.append(f"example {number}: {key}: {value} and {other[key]}")
    return differences


def learn(built: Built, steps: int) -> None:
    optimizer = torch.optim.Adam(built.model.parameters(), lr=built.head.learning_rate)
    batch = built.batch()
    built.model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        built.model.loss(built.model(batch), batch).backward()
        optimizer.step()


def test_every_parameter_is_trained_and_gets_a_gradient(built: Built) -> None:
    batch = built.batch()
    built.model.train()
    built.model.loss(built.model(batch), batch).backward()
    for name, parameter in built.model.named_parameters():
        assert parameter.requires_grad, name
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_an_example_has_the_same_prediction_alone_and_in_any_batch(built: Built) -> None:
    learn(built, 5)
    examples = list(built.head.examples)
    together = built.predict()
    alone = [built.predict([example])[0] for example in examples]
    assert unlike(together, alone) == []
    assert unlike(built.predict(examples[::-1])[::-1], alone) == []
    losses = [built.loss([example]) for example in examples]
    assert built.loss() == pytest.approx(sum(losses) / len(losses), abs=1e-5)
    assert len({round(loss, 4) for loss in losses}) == len(losses)


def test_learns_four_examples_by_heart(built: Built) -> None:
    metric = built.model.build_metric()
    metric.update(built.predict(), built.head.examples)
    assert metric.compute()[built.head.best_metric] < 100
    learn(built, 80)
    predictions = built.predict()
    for prediction, example in zip(predictions, built.head.examples, strict=True):
        assert {key: prediction[key] for key in built.head.gold} == {key: example[key] for key in built.head.gold}
    metric.reset()
    metric.update(predictions, built.head.examples)
    assert metric.compute()[built.head.best_metric] == 100
    assert built.loss() < 0.5


def test_saved_and_loaded_predicts_the_same(built: Built, tmp_path: Path) -> None:
    learn(built, 5)
    built.vocabulary.save(tmp_path / "vocabulary.json")
    safetensors.torch.save_file(built.model.state_dict(), tmp_path / "model.safetensors")
    vocabulary = Vocabulary.load(tmp_path / "vocabulary.json")
    model = built.config.build(vocabulary, built.config.embedder.build(vocabulary, pretrained=False))
    model.load_state_dict(safetensors.torch.load_file(tmp_path / "model.safetensors"))
    restored = dataclasses.replace(built, vocabulary=vocabulary, model=model)
    assert restored.predict() == built.predict()


def test_predicts_for_examples_without_gold_labels(built: Built) -> None:
    unlabelled = [
        {key: value for key, value in example.items() if key not in built.head.gold} for example in built.head.examples
    ]
    predictions = built.predict(unlabelled)
    assert unlike(predictions, built.predict()) == []
    assert json.loads(json.dumps(predictions)) == predictions
    with pytest.raises(ValueError, match="no gold"):
        built.loss(unlabelled)


def test_predictions_are_the_same_without_probabilities(built: Built) -> None:
    batch = built.batch()
    built.model.eval()
    with torch.inference_mode():
        output = built.model(batch)
        plain = built.model.decode(output, batch, probabilities=False)
    for prediction, full in zip(plain, built.predict(), strict=True):
        assert prediction.items() <= full.items()
        assert set(built.head.gold) <= prediction.keys()


def test_words_and_characters_never_seen_are_no_problem(built: Built) -> None:
    texts = [["Xyzzy", "☃☃", "q" * 80], ["☃"]]
    tokens = built.vocabulary.index_tokens(texts)
    embedded = built.model.embedder.eval()(tokens)
    assert embedded.inputs.isfinite().all()


def test_half_precision_is_close(built: Built) -> None:
    batch = built.batch()
    built.model.eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = built.model.loss(built.model(batch), batch)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(built.loss(), rel=0.05)
    loss.backward()
    assert all(p.grad.isfinite().all() for p in built.model.parameters() if p.grad is not None)


def test_every_head_is_in_the_table() -> None:
    tested = {head.model["type"] for head in HEADS.values()}
    own = {name for name, config in ModelConfig.alternatives.items() if config.__module__.startswith("elmo_tasks.")}
    assert tested == own


def test_fresh_weights_follow_the_seed(built: Built) -> None:
    def build(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        return built.config.build(built.vocabulary, built.config.embedder.build(built.vocabulary))

    one, same, other = build(1).state_dict(), build(1).state_dict(), build(2).state_dict()
    assert all(torch.equal(tensor, same[name]) for name, tensor in one.items())
    assert any(not torch.equal(tensor, other[name]) for name, tensor in one.items())
