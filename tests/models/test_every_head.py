"""What holds for every head. A new head joins by one entry in `HEADS`."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
import safetensors.torch
import torch
from accelerate import Accelerator
from torch import nn

from elmo_tasks.config import to_json
from elmo_tasks.elmo.dropout import Dropout
from elmo_tasks.errors import DataError, UnknownLabelError
from elmo_tasks.files.tensor_files import write_tensors
from elmo_tasks.models import ModelConfig, TaskModel
from elmo_tasks.models.ensemble import Member, ensemble
from elmo_tasks.models.saliency import Method, saliency
from elmo_tasks.predictors import build_predictor
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.warm_start import warm_start
from elmo_tasks.tasks import Batch, Coreference, Reading, Regression
from elmo_tasks.tasks.reading import unanswered
from elmo_tasks.text.vocabulary import Vocabulary, VocabularyConfig
from elmo_tasks.training.batching import BatchLoader, DataLoaderConfig
from elmo_tasks.training.evaluation import evaluate


@dataclasses.dataclass(frozen=True)
class Head:
    """One head with data to learn.

    `examples` are four of different lengths and labels; `gold` are the keys that they share with predictions, `labels`
    those of what else the task takes its labels from.
    """

    model: Mapping[str, Any]  # without the embedder
    examples: Sequence[dict[str, Any]]
    gold: tuple[str, ...]
    best_metric: str
    labels: tuple[str, ...] = ()
    learning_rate: float = 0.02
    tolerance: float = 1e-5  # of numbers that are learned by heart
    without: tuple[str, ...] = ()  # probabilities of the config that this model has no use for
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


def fine_grained_tagger() -> Head:
    """The encoder, the layers and the characters of AllenNLP's fine-grained recognizer."""
    head = crf_tagger("BIOUL")
    encoder = {
        "type": "stacked_highway_bilstm",
        "hidden_size": 6,
        "num_layers": 2,
        "dropout": 0.1,
        "highway_bias": True,
    }
    feedforward = {"hidden_sizes": (8,), "activation": "tanh", "dropout": 0.1}
    characters = {"type": "lstm", "embedding_size": 4, "hidden_size": 6, "bidirectional": True, "dropout": 0.1}
    return dataclasses.replace(
        head,
        model={**head.model, "encoder": encoder, "feedforward": feedforward},
        embedder={**head.embedder, "characters": characters},
    )


def simple_tagger() -> Head:
    encoder = {"type": "stacked_bigru", "hidden_sizes": (8,), "dropout": 0.1, "bidirectional": True}
    head = crf_tagger("BIOUL")
    characters = {**head.embedder["characters"], "padding": "right", "token_min_padding_length": 4}
    return dataclasses.replace(
        head,
        model={"type": "simple_tagger", "encoder": encoder, "dropout": 0.1, "tag_scheme": "BIOUL"},
        embedder={**head.embedder, "characters": characters},
    )


def bcn(activation: str) -> Head:
    return Head(
        model={
            "type": "bcn",
            "embedding_dropout": 0.1,
            "pre_encoder": {"hidden_sizes": (10,), "dropout": 0.1},
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (8,), "dropout": 0.1},
            "integrator": {"type": "stacked_bilstm", "hidden_sizes": (6,)},
            "integrator_dropout": 0.1,
            "output": {"hidden_sizes": (12, 8), "activation": activation, "dropout": 0.1},
        },
        examples=[
            {"tokens": ["The", "tarn", "was", "hardly", "cold", "."], "label": "positive"},
            {"tokens": ["Cold"], "label": "negative"},
            {"tokens": ["A", "mill"], "label": "neutral"},
            {"tokens": ["Orla", "never", "liked", "it"], "label": "very negative"},
        ],
        gold=("label",),
        best_metric="accuracy",
        learning_rate=0.01,
    )


def text_classifier(**settings: Any) -> Head:
    layers = {"type": "text_classifier", "embedding_dropout": 0.1, "dropout": 0.1}
    return dataclasses.replace(bcn("relu"), model={**layers, **settings})


def label_sets() -> Head:
    sets = [["cold", "water"], ["cold"], [], ["liking", "water"]]
    head = text_classifier(task="multi_label", encoder={"type": "stacked_bilstm", "hidden_sizes": (8,)})
    examples = [{"tokens": each["tokens"], "labels": labels} for each, labels in zip(head.examples, sets, strict=True)]
    return dataclasses.replace(head, examples=examples, gold=("labels",), best_metric="micro_f1")


def numbers_of_texts() -> Head:
    head = text_classifier(task="regression", output={"hidden_sizes": (8,), "activation": "tanh"})
    examples = [
        {"tokens": each["tokens"], "score": score}
        for each, score in zip(head.examples, (7.5, -2.0, 3.25, 0.0), strict=True)
    ]
    gold, tolerance = ("score",), 1.0
    return dataclasses.replace(
        head, examples=examples, gold=gold, best_metric="pearson", tolerance=tolerance, learning_rate=0.03
    )


def esim() -> Head:
    def pair(premise: str, hypothesis: str, label: str) -> dict[str, Any]:
        return {"premise": premise.split(), "hypothesis": hypothesis.split(), "label": label}

    return Head(
        model={
            "type": "esim",
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (8,), "dropout": 0.1},
            "alignment_dropout": 0.1,
            "projection": {"hidden_sizes": (10,)},
            "composition": {"type": "stacked_bilstm", "hidden_sizes": (6,), "dropout": 0.1},
            "dropout": 0.1,
            "output": {"hidden_sizes": (8,), "activation": "tanh", "dropout": 0.1},
        },
        examples=[
            pair("A miller sleeps beside the tarn .", "Nobody is awake", "neutral"),
            pair("Two children run .", "They run", "entailment"),
            pair("Rain", "It is dry .", "contradiction"),
            pair("The old mill burns", "Smoke", "entailment"),
        ],
        gold=("label",),
        best_metric="accuracy",
        learning_rate=0.01,
    )


def decomposable_attention(**settings: Any) -> Head:
    return dataclasses.replace(
        esim(),
        model={
            "type": "decomposable_attention",
            "attend": {"hidden_sizes": (8, 8), "dropout": 0.1},
            "compare": {"hidden_sizes": (10,), "dropout": 0.1},
            **settings,
        },
    )


def asked() -> list[dict[str, Any]]:
    """Questions whose answers have the key of `Head.gold` and, for the task, of `Head.labels`."""
    texts = [
        ("Who left Brusk?", "Tavo Melin left Brusk on a Friday.", "Tavo Melin"),
        ("When?", "It closed in 1820.", "1820"),
        ("What did Orla buy there?", "Orla sold a mill, then bought two boats in the north of Kerrin.", "two boats"),
        ("Where is Kerrin?", "Kerrin, a town, is near Brusk.", "near Brusk"),
    ]
    examples = []
    for question, passage, answer in texts:
        example = unanswered(question, passage)
        start = passage.index(answer)
        span = [example["token_starts"].index(start), example["token_ends"].index(start + len(answer))]
        examples.append({**example, "answers": [answer], "answer_spans": [span], "answer": answer})
    return examples


def bidaf_self_attention() -> Head:
    encoder = {"type": "stacked_bigru", "hidden_sizes": (6,), "dropout": 0.1}
    return Head(
        model={
            "type": "bidaf_self_attention",
            "encoder": encoder,
            "self_attention_encoder": encoder,
            "start_encoder": encoder,
            "end_encoder": encoder,
            "matched_size": 10,
            "dropout": 0.1,
        },
        examples=asked(),
        gold=("answer",),
        labels=("answers", "answer_spans"),
        best_metric="f1",
    )


def with_no_answer(head: Head) -> Head:
    """Two of the questions have no answer."""
    nothing = {"answers": [], "answer_spans": [], "answer": ""}
    examples = [{**each, **(nothing if number % 2 else {})} for number, each in enumerate(head.examples)]
    return dataclasses.replace(head, model={**head.model, "no_answer": True}, examples=examples)


def bidaf() -> Head:
    encoder = {"type": "stacked_bilstm", "hidden_sizes": (6,)}
    return Head(
        model={
            "type": "bidaf",
            "encoder": encoder,
            "modeling_encoder": {"type": "stacked_bilstm", "hidden_sizes": (8, 6), "dropout": 0.1},
            "end_encoder": encoder,
            "dropout": 0.1,
        },
        examples=asked(),
        gold=("answer",),
        labels=("answers", "answer_spans"),
        best_metric="f1",
    )


def semantic_roles(encoder: Mapping[str, Any]) -> Head:
    sentences = [
        (["Orla", "gave", "Tavo", "the", "key"], 1, ["B-ARG0", "B-V", "B-ARG2", "B-ARG1", "I-ARG1"]),
        (["Quiet"], 0, ["B-V"]),
        (["The", "key", "that", "Orla", "gave", "fits"], 4, ["B-ARG1", "I-ARG1", "B-R-ARG1", "B-ARG0", "B-V", "O"]),
        (["The", "key", "fits"], 2, ["B-ARG1", "I-ARG1", "B-V"]),
    ]
    return Head(
        model={"type": "srl", "encoder": encoder, "predicate_size": 6, "dropout": 0.1},
        examples=[{"tokens": tokens, "predicate": index, "tags": tags} for tokens, index, tags in sentences],
        gold=("tags",),
        best_metric="f1",
    )


def coref(**settings: Any) -> Head:
    def document(genre: str | None, text: str, clusters: list[list[list[int]]], speakers: str = "") -> dict[str, Any]:
        """Sentences are separated by a slash; `speakers` has a letter for each sentence."""
        sentences = [sentence.split() for sentence in text.split(" / ")]
        each = speakers or "-" * len(sentences)
        return {
            "genre": genre,
            "sentences": sentences,
            "speakers": [[speaker] * len(sentence) for speaker, sentence in zip(each, sentences, strict=True)],
            "clusters": clusters,
        }

    return Head(
        model={
            "type": "coref",
            "encoder": {"type": "stacked_bilstm", "hidden_sizes": (16,)},
            "lexical_dropout": 0.1,
            "dropout": 0.1,
            "hidden_sizes": (20, 20),
            "feature_size": 6,
            "max_span_width": 3,
            "spans_per_word": 4.0,
            "max_antecedents": 60,
            "max_training_sentences": 50,
            **settings,
        },
        examples=[
            document(
                "talk",
                "I met the old miller of Brusk / You did / He greeted me",
                [[[0, 0], [7, 7], [11, 11]], [[2, 4], [9, 9]]],
                speakers="aba",
            ),
            document("story", "Tavo left Orla", []),
            document("story", "Orla saw her mill and Tavo saw it", [[[0, 0], [2, 2]], [[2, 3], [7, 7]]]),
            document(None, "Rain / Tavo and his sons slept", [[[1, 1], [3, 3]]]),
        ],
        gold=("clusters",),
        best_metric="conll_f1",
        learning_rate=0.03,
    )


HEADS = {
    "crf_tagger, BIOUL": crf_tagger("BIOUL"),
    "crf_tagger, IOB2": crf_tagger("IOB2"),
    "crf_tagger, fine-grained": fine_grained_tagger(),
    "simple_tagger": simple_tagger(),
    "bcn, relu": bcn("relu"),
    "bcn, maxout": bcn("maxout"),
    "text_classifier": text_classifier(),
    "text_classifier, all layers": text_classifier(
        encoder={"type": "stacked_bilstm", "hidden_sizes": (8,), "dropout": 0.1},
        pooling="attention",
        output={"hidden_sizes": (8,), "dropout": 0.1},
    ),
    "text_classifier, sets of labels": label_sets(),
    "text_classifier, numbers": numbers_of_texts(),
    "text_classifier, pairs": dataclasses.replace(
        esim(), model={**text_classifier(pooling="mean").model, "task": "text_pairs"}
    ),
    "esim": esim(),
    "decomposable_attention": decomposable_attention(),
    "decomposable_attention, end token": decomposable_attention(
        end_token="@@NULL@@", output={"hidden_sizes": (8,), "dropout": 0.1}
    ),
    "bidaf_self_attention": bidaf_self_attention(),
    "bidaf": bidaf(),
    "bidaf_self_attention, no answer": with_no_answer(bidaf_self_attention()),
    "bidaf, no answer": with_no_answer(bidaf()),
    "srl, alternating LSTM": semantic_roles(
        {"type": "alternating_lstm", "hidden_size": 12, "num_layers": 3, "dropout": 0.1}
    ),
    "srl, biLSTM": semantic_roles({"type": "stacked_bilstm", "hidden_sizes": (8,), "dropout": 0.1}),
    "coref": coref(unknown_genre_probability=0.1),
    "coref, as AllenNLP's": dataclasses.replace(
        coref(as_allennlp=True, pair_hidden_sizes=(24, 16), encoder={"type": "stacked_bilstm", "hidden_sizes": (24,)}),
        learning_rate=0.02,
        without=("unknown_genre_probability",),
    ),
}


@dataclasses.dataclass(frozen=True)
class Built:
    head: Head
    config: ModelConfig
    vocabulary: Vocabulary
    model: TaskModel[Any, Any]

    def batch(self, examples: Sequence[dict[str, Any]] | None = None) -> Batch:
        return self.config.task.collate(list(self.head.examples if examples is None else examples), self.vocabulary)

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
    vocabulary = VocabularyConfig().build(config.task, head.examples, [])
    model = config.build(vocabulary, config.embedder.build(vocabulary))
    model.prepare_training(head.examples)
    return Built(head, config, vocabulary, model)


def alike(value: Any, other: Any, tolerance: float = 1e-5) -> bool:
    """Whether two values of JSON are equal, numbers to a tolerance."""
    if isinstance(value, float):
        return value == pytest.approx(other, abs=tolerance)
    if isinstance(value, list):
        return len(value) == len(other) and all(map(alike, value, other))
    if isinstance(value, dict):
        return value.keys() == other.keys() and all(alike(value[key], other[key]) for key in value)
    return value == other


def unlike(predictions: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]]) -> list[str]:
    """Where two lists of predictions differ."""
    differences = []
    for number, (prediction, other) in enumerate(zip(predictions, others, strict=True)):
        assert prediction.keys() == other.keys()
        for key, value in prediction.items():
            if not alike(value, other[key]):
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
    metric = built.model.task.build_metric()
    metric.update(built.predict(), built.head.examples)
    assert metric.compute()[built.head.best_metric] < 100
    learn(built, 80)
    predictions = built.predict()
    for prediction, example in zip(predictions, built.head.examples, strict=True):
        for key in built.head.gold:
            assert alike(prediction[key], example[key], built.head.tolerance)
    metric.reset()
    metric.update(predictions, built.head.examples)
    assert metric.compute()[built.head.best_metric] == pytest.approx(100, abs=built.head.tolerance)
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


def in_another_order(built: Built, folder: Path) -> Built:
    """The same model, started from a run, for a vocabulary in another order."""
    run = RunFolder(folder)
    built.vocabulary.save(run.vocabulary)
    write_tensors(run.frozen, {})
    write_tensors(run.model, built.model.state_dict())
    run.config.write_text("{}")
    known = built.vocabulary
    vocabulary = dataclasses.replace(
        known,
        words=(*known.words[:2], *known.words[:1:-1]),
        characters=(*known.characters[:2], *known.characters[:1:-1]),
        labels={kind: labels[::-1] for kind, labels in known.labels.items()},
    )

    def build(vocabulary: Vocabulary) -> TaskModel[Any, Any]:
        return built.config.build(vocabulary, built.config.embedder.build(vocabulary, pretrained=False))

    def shapes(vocabulary: Vocabulary) -> dict[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in build(vocabulary).state_dict().items()}

    model = build(vocabulary)
    origin = warm_start(model, vocabulary, shapes, built.config.embedder, folder)
    assert not origin["not_taken"]
    assert not origin["new"]
    return dataclasses.replace(built, vocabulary=vocabulary, model=model)


def test_starts_from_a_run_whose_vocabulary_has_another_order(built: Built, tmp_path: Path) -> None:
    """Every row that belongs to a word, a character or a label is found again."""
    learn(built, 5)
    assert unlike(in_another_order(built, tmp_path).predict(), built.predict()) == []


def test_an_ensemble_of_equal_models_predicts_what_each_does(built: Built, tmp_path: Path) -> None:
    """Also where their vocabularies have another order."""
    learn(built, 5)
    other = in_another_order(built, tmp_path)
    expected, loss = built.predict(), built.loss()
    combined = ensemble(
        [Member(name, each.model.eval(), each.vocabulary) for name, each in (("a", built), ("b", other))]
    )
    together = dataclasses.replace(built, model=combined)
    assert unlike(together.predict(), expected) == []
    assert together.loss() == pytest.approx(loss, rel=1e-3)
    assert built.predict() == expected


def test_predicts_for_examples_without_gold_labels(built: Built) -> None:
    unlabelled = [
        {key: value for key, value in example.items() if key not in (*built.head.gold, *built.head.labels)}
        for example in built.head.examples
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
        assert not numbers({key: value for key, value in prediction.items() if key not in built.head.gold})


def numbers(value: Any) -> list[float]:
    """All floating-point numbers in a value of JSON, except for scores that are not probabilities."""
    if isinstance(value, dict):
        return numbers([each for key, each in value.items() if key != "no_answer_score"])
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [value] if isinstance(value, float) else []


@pytest.mark.slow
def test_rounding_errors_make_no_probability_exceed_1(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exponentials with fewer exact digits, as some processors have them, stand for such errors."""
    if "score" in built.head.gold:
        pytest.skip("the head predicts no probabilities")
    learn(built, 50)
    sure = max(numbers(built.predict()))
    for holder, name in ((torch.Tensor, "softmax"), (torch.Tensor, "exp"), (torch, "softmax"), (torch, "exp")):
        exact = getattr(holder, name)
        inexact = functools.partial(lambda exact, *args, **kwargs: exact(*args, **kwargs) * 1.2, exact)
        monkeypatch.setattr(holder, name, lambda *args, inexact=inexact, **kwargs: inexact(*args, **kwargs))
    assert 0.9 < sure <= 1
    assert max(numbers(built.predict())) <= 1


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_computes_in_the_type_of_its_weights(built: Built, dtype: torch.dtype) -> None:
    batch = built.batch()
    model = built.model.to(dtype).eval()
    with torch.inference_mode():
        output = model(batch)
        assert torch.isfinite(model.loss(output, batch))
        assert len(model.decode(output, batch)) == len(batch)


def test_every_head_is_in_the_table() -> None:
    tested = {head.model["type"] for head in HEADS.values()}
    own = {name for name, config in ModelConfig.alternatives.items() if config.__module__.startswith("elmo_tasks.")}
    assert tested == own


def test_a_gold_label_that_the_vocabulary_lacks_counts_as_an_error(built: Built) -> None:
    """The predictions are those for the same examples with known labels, and so is the loss of the other examples."""
    task, examples = built.model.task, [dict(example) for example in built.head.examples]
    if isinstance(task, (Coreference, Reading, Regression)):
        pytest.skip("the task has no labels")
    gold = task.build_metric().field
    known = examples[1][gold]
    examples[1][gold] = "never seen" if isinstance(known, str) else ["B-NEVER", *known[1:]]
    unknown = [task.unknown_labels(example, built.vocabulary) for example in examples]
    assert unknown == [[], ["never seen" if isinstance(known, str) else "B-NEVER"], [], []]

    config, accelerator = DataLoaderConfig(batch_size=2, shuffle=False), Accelerator(cpu=True)
    with pytest.raises(UnknownLabelError):
        evaluate(built.model, BatchLoader(config, examples, task, built.vocabulary), accelerator)
    predictions: dict[int, dict[str, Any]] = {}

    def keep(row: int, example: dict[str, Any], prediction: dict[str, Any]) -> None:
        predictions[row] = prediction
        assert example == examples[row]

    loader = BatchLoader(config, examples, task, built.vocabulary, without_gold={1})
    found = evaluate(built.model, loader, accelerator, keep)
    assert not unlike([predictions[row] for row in range(4)], built.predict())
    metric = task.build_metric()
    metric.update([predictions[row] for row in range(4)], examples)
    loss = built.loss([built.head.examples[row] for row in (0, 2, 3)])
    assert found == {**metric.compute(), "loss": pytest.approx(loss, rel=1e-4)}


def test_the_model_has_the_task_of_its_config(built: Built) -> None:
    assert built.model.task == built.config.task
    assert build_predictor(built.model, built.vocabulary).task is built.model.task


def test_the_predictor_s_sample_is_an_input_that_works(built: Built) -> None:
    predictor = build_predictor(built.model, built.vocabulary)
    assert predictor(predictor.sample)
    if not isinstance(predictor.sample, str):
        with pytest.raises(DataError) as error:
            predictor("Orla sold the mill.")
        shown = str(error.value).partition("such as ")[2]
        assert predictor(json.loads(shown)) == predictor(predictor.sample)


def drops(settings: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where a config has probabilities of dropping something in training."""
    inner = settings.items() if isinstance(settings, dict) else ()
    found = [each for key, value in inner for each in drops(value, (*path, key))]
    return [*found, path] if path and path[-1].endswith(("dropout", "_probability")) else found


def test_every_dropout_of_the_config_is_at_work(built: Built) -> None:
    settings, batch = to_json(built.config), built.batch()
    paths = [path for path in drops(settings) if path[-1] not in built.head.without]
    assert len(paths) > 3
    for chosen in (None, *paths):
        for path in paths:
            holder = functools.reduce(dict.__getitem__, path[:-1], settings)
            holder[path[-1]] = 0.5 if path == chosen else 0.0
        config = ModelConfig.model_validate_json(json.dumps(settings))
        model = config.build(built.vocabulary, config.embedder.build(built.vocabulary)).train()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))  # some begin at zero, where nothing can be dropped
            first = model.loss(model(batch), batch)
            changes = any(not model.loss(model(batch), batch).equal(first) for _ in range(4))
        assert changes == (chosen is not None), chosen


def test_every_dropout_of_the_model_is_called(built: Built) -> None:
    """One probability of the config may be that of several layers."""
    called: set[str] = set()
    dropouts = {name: module for name, module in built.model.named_modules() if isinstance(module, Dropout)}
    for name, module in dropouts.items():
        module.register_forward_hook(lambda *_, name=name: called.add(name))
    built.model(built.batch())
    assert called == set(dropouts)


def test_fresh_weights_follow_the_seed(built: Built) -> None:
    def build(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        return built.config.build(built.vocabulary, built.config.embedder.build(built.vocabulary))

    one, same, other = build(1).state_dict(), build(1).state_dict(), build(2).state_dict()
    assert all(torch.equal(tensor, same[name]) for name, tensor in one.items())
    assert any(not torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.slow
def test_predictions_are_explained_by_their_tokens(built: Built) -> None:
    """Integrated gradients sum to a prediction's score, less the score of zero vectors."""
    learn(built, 40)
    predictor = build_predictor(built.model, built.vocabulary)
    examples = [
        {**example, "predicates": [example["predicate"]]} if "predicate" in example else example
        for example in built.head.examples
    ]
    predictions = predictor.predictions(examples)
    pairs = zip(examples, predictions, strict=True)
    parts = [part for pair in pairs for part in predictor.explained_parts(*pair)]
    assert len(parts) >= 3
    for method in get_args(Method):
        explained = predictor.explain(examples, predictions, method)
        items = [item for each in explained for item in each["saliency"]]
        assert [item.items() >= part.about.items() for item, part in zip(items, parts, strict=True)]
        for item, part in zip(items, parts, strict=True):
            texts = [value for value in item.values() if isinstance(value, list)]
            assert sum(abs(share) for text in texts for _, share in text) == pytest.approx(1, abs=1e-4)
            words = {token for text in texts for token, _ in text}
            assert words >= {token for text in built.model.task.texts(part.example) for token in text}

    given = [part.prediction for part in parts]
    batch = built.batch([dict(part.example) for part in parts])
    found = saliency(built.model, batch, given, "integrated", steps=128)  # layers with kinks need more than smooth ones
    batch = built.model.with_choices([built.model(batch)], batch)
    tokens = {name: getattr(batch, name) for name in found.contributions}
    zeros = {name: dataclasses.replace(each, scales=torch.zeros(each.mask.shape)) for name, each in tokens.items()}
    at_zero = dataclasses.replace(batch, **zeros)  # type: ignore[arg-type]
    with torch.inference_mode():
        start = built.model.prediction_scores(built.model(at_zero), at_zero, given)
    sums = sum(
        torch.stack([each.sum() for each in found.contributions[name][each.mask].split(batch.lengths(each))])
        for name, each in tokens.items()
    )
    assert torch.allclose(sums, found.scores - start, rtol=0.1, atol=0.02)
