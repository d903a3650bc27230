"""What holds for every head in `HEADS`."""

import copy
import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from accelerate import Accelerator
from torch import Tensor

from elmo_tasks.config import to_json
from elmo_tasks.errors import DataError, UnknownLabelError
from elmo_tasks.extras.ensembles.ensemble import Member, ensemble
from elmo_tasks.extras.explain.saliency import findings, saliency
from elmo_tasks.extras.other_tasks.simple_tagger import SimpleTagger
from elmo_tasks.extras.warm_start.warm_start import warm_start
from elmo_tasks.files.tensor_files import write_tensors
from elmo_tasks.models import ModelConfig, TaskModel
from elmo_tasks.models.semantic_role_labeler import SemanticRoleLabeler
from elmo_tasks.modules.dropout import Dropout
from elmo_tasks.predictors import build_predictor
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.tasks import Batch, Coreference, PairRegression, Regression
from elmo_tasks.text.vocabulary import Counts, Vocabulary, VocabularyConfig
from elmo_tasks.training.batching import BatchLoader, DataLoaderConfig
from elmo_tasks.training.evaluation import evaluate
from tests.models.heads import HEADS, Head


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


def build(head: Head, bilm_files: dict[str, str], **settings: Any) -> Built:
    """A head with new weights."""
    torch.manual_seed(11)
    embedder = {**head.embedder, "elmo": {**head.embedder["elmo"], **bilm_files}}
    config = ModelConfig.model_validate({**head.model, **settings, "embedder": embedder})
    vocabulary = VocabularyConfig().build(Counts.of(config.task, head.examples), [])
    model = config.build(vocabulary, config.embedder.build(vocabulary))
    model.prepare_training(head.examples)
    return Built(head, config, vocabulary, model)


def config_class(head: Head) -> type[ModelConfig]:
    return ModelConfig.choices()[head.model["type"]]


def heads_that(have: Callable[[Head], bool]) -> pytest.MarkDecorator:
    """Only these heads are tested."""
    chosen = {name: head for name, head in HEADS.items() if have(head)}
    return pytest.mark.parametrize("head", chosen.values(), ids=chosen.keys())


@pytest.fixture(scope="module", params=list(HEADS.values()), ids=list(HEADS))
def learned(request: pytest.FixtureRequest, bilm_files: dict[str, str]) -> Built:
    """A head that has learned a little. Not to be changed."""
    learned = build(request.param, bilm_files)
    learn(learned, 5)
    return learned


@pytest.fixture
def built(learned: Built) -> Built:
    """A copy that a test may change."""
    return dataclasses.replace(learned, model=copy.deepcopy(learned.model))


@pytest.fixture(scope="module")
def sure(learned: Built) -> Built:
    """The head after many more steps. Not to be changed."""
    sure = dataclasses.replace(learned, model=copy.deepcopy(learned.model))
    learn(sure, 40)
    return sure


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


def with_sorted_sets(predictions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Predictions whose sets of labels, which are in the vocabulary's order, are sorted."""
    return [{key: sorted(value) if key == "labels" else value for key, value in each.items()} for each in predictions]


def learn(built: Built, steps: int) -> None:
    if not built.config.trained_by_steps:  # `prepare_training` has fitted it
        return
    optimizer = torch.optim.Adam(built.model.parameters(), lr=built.head.learning_rate)
    batch = built.batch()
    built.model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        built.model.loss(built.model(batch), batch).backward()
        optimizer.step()


def test_every_parameter_is_trained_and_gets_a_gradient(built: Built) -> None:
    if not built.config.trained_by_steps:
        assert not any(parameter.requires_grad for parameter in built.model.parameters())
        return
    batch = built.batch()
    built.model.train().zero_grad()
    built.model.loss(built.model(batch), batch).backward()
    for name, parameter in built.model.named_parameters():
        assert parameter.requires_grad, name
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name


def test_an_example_has_the_same_prediction_alone_and_in_any_batch(learned: Built) -> None:
    examples = list(learned.head.examples)
    together = learned.predict()
    alone = [learned.predict([example])[0] for example in examples]
    assert unlike(together, alone) == []
    assert unlike(learned.predict(examples[::-1])[::-1], alone) == []
    losses = [learned.loss([example]) for example in examples]
    assert learned.loss() == pytest.approx(sum(losses) / len(losses), abs=1e-5)
    assert len({round(loss, 4) for loss in losses}) == len(losses)


def without_probabilities(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_probabilities(each) for key, each in value.items() if "probabilit" not in key}
    return [without_probabilities(each) for each in value] if isinstance(value, list) else value


def test_a_temperature_changes_only_probabilities(built: Built) -> None:
    before, loss = built.predict(), built.loss()
    batch = built.batch()
    with torch.inference_mode():
        details = built.model.details(built.model(batch), batch)
    for temperature in (0.3, 5.0):
        built.model.temperature = temperature
        after = built.predict()
        assert without_probabilities(after) == without_probabilities(before)
        assert built.loss() == loss
        if not isinstance(built.model.task, Coreference):  # which has learned too little for a link
            has_probabilities = not isinstance(built.model.task, Regression | PairRegression)
            assert (unlike(after, before) != []) == has_probabilities
        with torch.inference_mode():
            assert (built.model.details(built.model(batch), batch) != details) == any(details)
        with torch.inference_mode():
            output = built.model(batch)
        for row, (old, new) in enumerate(zip(before, after, strict=True)):
            if type(built.model) in (SimpleTagger, SemanticRoleLabeler):
                powers = (output.logits[row] / temperature).exp()  # (T, K)
                labels: Any = built.model.labels
                columns = [labels.index(tag) for tag in new["tags"]]
                shares = [powers[token, tag] / powers[token].sum() for token, tag in enumerate(columns)]
                assert new["probabilities"] == pytest.approx([share.item() for share in shares], abs=1e-5)
            if "label" in new:  # the shares of labels are then powers of those before
                powers = {label: share ** (1 / temperature) for label, share in old["probabilities"].items()}
                expected = {label: power / sum(powers.values()) for label, power in powers.items()}
                assert new["probabilities"] == pytest.approx(expected, abs=1e-5)
            elif "labels" in new:
                odds = {
                    label: (share / (1 - share)) ** (1 / temperature) for label, share in old["probabilities"].items()
                }
                expected = {label: each / (1 + each) for label, each in odds.items()}
                assert new["probabilities"] == pytest.approx(expected, abs=1e-5)


def test_an_ensemble_is_not_calibrated(built: Built) -> None:
    built.model.temperature = 3.0
    members = [Member(name, built.model, built.vocabulary) for name in ("a", "b")]
    assert ensemble(members).temperature == 1


def wrong(built: Built, predictions: Sequence[dict[str, Any]]) -> list[tuple[Any, Any]]:
    """What is predicted and what is right, where they differ."""
    pairs = zip(predictions, built.head.examples, strict=True)
    found = [(prediction[key], example[key]) for prediction, example in pairs for key in built.head.gold]
    return [pair for pair in found if not alike(*pair, built.head.tolerance)]


def score(built: Built, predictions: Sequence[dict[str, Any]]) -> float:
    metric = built.model.task.build_metric()
    metric.update(predictions, built.head.examples)
    return metric.compute()[built.head.best_metric]


def test_learns_four_examples_by_heart(built: Built) -> None:
    best = pytest.approx(100, abs=built.head.tolerance)
    predictions = built.predict()
    for _ in range(20):  # most heads need a fifth of these 200 steps
        if not wrong(built, predictions) and score(built, predictions) == best and built.loss() < 0.3:
            break
        learn(built, 10)
        predictions = built.predict()
    assert wrong(built, predictions) == []
    assert score(built, predictions) == best
    assert built.loss() < 0.5


def test_saved_and_loaded_predicts_the_same(learned: Built, tmp_path: Path) -> None:
    learned.vocabulary.save(tmp_path / "vocabulary.json")
    safetensors.torch.save_file(learned.model.state_dict(), tmp_path / "model.safetensors")
    vocabulary = Vocabulary.load(tmp_path / "vocabulary.json")
    model = learned.config.build(vocabulary, learned.config.embedder.build(vocabulary, pretrained=False))
    model.load_state_dict(safetensors.torch.load_file(tmp_path / "model.safetensors"))
    restored = dataclasses.replace(learned, vocabulary=vocabulary, model=model)
    assert restored.predict() == learned.predict()


def in_another_order(learned: Built, folder: Path, *, labels: bool) -> Built:
    """The same model, started from a run, for a vocabulary with words and characters, and labels, in another order."""
    run = RunFolder(folder)
    learned.vocabulary.save(run.vocabulary)
    write_tensors(run.frozen, {})
    write_tensors(run.model, learned.model.state_dict())
    run.config.write_text("{}")
    known = learned.vocabulary
    vocabulary = dataclasses.replace(
        known,
        words=(*known.words[:2], *known.words[:1:-1]),
        characters=(*known.characters[:2], *known.characters[:1:-1]),
        labels={kind: found[::-1] if labels else found for kind, found in known.labels.items()},
    )

    def build(vocabulary: Vocabulary) -> TaskModel[Any, Any]:
        return learned.config.build(vocabulary, learned.config.embedder.build(vocabulary, pretrained=False))

    def shapes(vocabulary: Vocabulary) -> dict[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in build(vocabulary).state_dict().items()}

    model = build(vocabulary)
    origin = warm_start(model, vocabulary, shapes, learned.config.embedder, folder)
    assert not origin["not_taken"]
    assert not origin["new"]
    return dataclasses.replace(learned, vocabulary=vocabulary, model=model)


def test_neither_the_order_of_a_vocabulary_nor_an_ensemble_of_equal_models_changes_predictions(
    learned: Built, tmp_path: Path
) -> None:
    """Every row that belongs to a word, a character or a label is found again in a run that another starts from."""
    other, expected, loss = in_another_order(learned, tmp_path, labels=True), learned.predict(), learned.loss()
    assert unlike(with_sorted_sets(other.predict()), with_sorted_sets(expected)) == []
    other = in_another_order(learned, tmp_path, labels=False)
    combined = ensemble(
        [Member(name, each.model.eval(), each.vocabulary) for name, each in (("a", learned), ("b", other))]
    )
    together = dataclasses.replace(learned, model=combined)
    assert unlike(together.predict(), expected) == []
    assert together.loss() == pytest.approx(loss, rel=1e-3)
    assert learned.predict() == expected


def test_predicts_without_gold_labels_and_the_same_without_probabilities(learned: Built) -> None:
    gold, expected = (*learned.head.gold, *learned.head.labels), learned.predict()
    unlabelled = [{key: value for key, value in each.items() if key not in gold} for each in learned.head.examples]
    assert unlike(learned.predict(unlabelled), expected) == []
    assert json.loads(json.dumps(expected)) == expected
    with pytest.raises(ValueError, match="no gold"):
        learned.loss(unlabelled)
    batch = learned.batch()
    with torch.inference_mode():
        plain = learned.model.decode(learned.model(batch), batch, probabilities=False)
    for prediction, full in zip(plain, expected, strict=True):
        assert prediction.items() <= full.items()
        assert set(learned.head.gold) <= prediction.keys()
        assert not numbers({key: value for key, value in prediction.items() if key not in learned.head.gold})


@heads_that(lambda head: head.gold[0] in ("tags", "label", "answer"))
def test_the_score_of_what_is_right_is_its_loss(head: Head, bilm_files: dict[str, str]) -> None:
    built, right = build(head, bilm_files), []
    for example in head.examples:
        first, last = (example.get("answer_spans") or [[None, None]])[0]
        right.append({"start": first, "end": last, **{key: example[key] for key in head.gold}})
    batch = built.batch()
    with torch.inference_mode():
        output = built.model.eval()(batch)
        scores = built.model.prediction_scores(output, batch, right)
        losses = [built.loss([example]) for example in head.examples]
        assert (-scores).tolist() == pytest.approx(losses, abs=1e-5)
        if "tags" in right[0]:
            unknown = [{"tags": [None] * len(each["tags"])} for each in right]
            assert built.model.prediction_scores(output, batch, unknown).tolist() == pytest.approx([0.0] * 4, abs=1e-5)


def numbers(value: Any) -> list[float]:
    """All floating-point numbers in a value of JSON, except for scores that are not probabilities."""
    if isinstance(value, dict):
        return numbers([each for key, each in value.items() if key != "no_answer_score"])
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    return [value] if isinstance(value, float) else []


@heads_that(lambda head: "score" not in head.gold)
def test_rounding_errors_make_no_probability_exceed_1(
    head: Head, bilm_files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exponentials with fewer exact digits, as some processors have them, stand for such errors."""
    built = build(head, bilm_files)
    learn(built, 40 if "clusters" in head.gold else 0)  # otherwise nothing is linked
    built.model.temperature = 0.01
    largest = max(numbers(built.predict()))
    for holder, name in ((torch.Tensor, "softmax"), (torch.Tensor, "exp"), (torch, "softmax"), (torch, "exp")):
        exact = getattr(holder, name)
        inexact = functools.partial(lambda exact, *args, **kwargs: exact(*args, **kwargs) * 1.2, exact)
        monkeypatch.setattr(holder, name, lambda *args, inexact=inexact, **kwargs: inexact(*args, **kwargs))
    assert 0.9 < largest <= 1
    assert max(numbers(built.predict())) <= 1


def test_half_precision_is_close_and_weights_may_be_of_any_type(built: Built) -> None:
    batch = built.batch()
    built.model.eval()
    built.model.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = built.model.loss(built.model(batch), batch)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(built.loss(), rel=0.05)
    if built.config.trained_by_steps:
        loss.backward()
    assert all(p.grad.isfinite().all() for p in built.model.parameters() if p.grad is not None)
    for dtype in (torch.bfloat16, torch.float64):
        model = built.model.to(dtype)
        with torch.inference_mode():
            output = model(batch)
            assert torch.isfinite(model.loss(output, batch))
            assert len(model.decode(output, batch)) == len(batch)


def test_every_head_is_in_the_table() -> None:
    tested = {head.model["type"] for head in HEADS.values()}
    own = {name for name, config in ModelConfig.choices().items() if config.__module__.startswith("elmo_tasks.")}
    assert tested == own - {"srl_bert"}  # only reads a transformer; see test_srl_bert.py


@heads_that(lambda head: head.gold[0] in ("tags", "label", "labels"))
def test_a_gold_label_that_the_vocabulary_lacks_counts_as_an_error(head: Head, bilm_files: dict[str, str]) -> None:
    """The predictions are those for the same examples with known labels, and so is the loss of the other examples."""
    built = build(head, bilm_files)
    task, examples = built.model.task, [dict(example) for example in head.examples]
    gold = task.predicted_field
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


def test_the_predictor_s_sample_is_an_input_that_works(learned: Built) -> None:
    predictor = build_predictor(learned.model, learned.vocabulary)
    assert predictor.task is learned.model.task
    assert predictor.task == learned.config.task
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


@heads_that(lambda head: config_class(head).trained_by_steps)
def test_every_dropout_of_the_config_is_at_work(head: Head, bilm_files: dict[str, str]) -> None:
    built = build(head, bilm_files)
    settings, batch = to_json(built.config), built.batch()
    paths = [path for path in drops(settings) if path[-1] not in head.without]
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


def has_variational_dropout(head: Head) -> bool:
    field = config_class(head).model_fields.get("dropout")
    return field is not None and str(field.description).startswith("variational")


@heads_that(has_variational_dropout)
def test_variational_dropout_drops_the_same_features_at_every_token(head: Head, bilm_files: dict[str, str]) -> None:
    built = build(head, bilm_files, dropout=0.5)
    seen: list[tuple[Tensor, Tensor]] = []
    for module in built.model.train().modules():
        if "=0.5" in module.extra_repr():
            module.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    built.model(built.batch())
    assert seen
    for inputs, output in seen:  # (B, T, D)
        dropped, kept = ((inputs != 0) & (output == 0)).any(1), (output != 0).any(1)
        assert dropped.any()
        assert kept.any()
        assert not (dropped & kept).any()


def test_fresh_weights_follow_the_seed(learned: Built) -> None:
    def new(seed: int) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        return learned.config.build(learned.vocabulary, learned.config.embedder.build(learned.vocabulary)).state_dict()

    one, same, other = new(1), new(1), new(2)
    assert all(torch.equal(tensor, same[name]) for name, tensor in one.items())
    is_random = learned.config.trained_by_steps
    assert any(not torch.equal(tensor, other[name]) for name, tensor in one.items()) == is_random


@pytest.mark.slow
def test_predictions_are_explained_by_their_tokens(sure: Built) -> None:
    """Integrated gradients sum to a prediction's score, less the score of zero vectors."""
    predictor = build_predictor(sure.model, sure.vocabulary)
    examples = [
        {**example, "predicates": [example["predicate"]]} if "predicate" in example else example
        for example in sure.head.examples
    ]
    predictions = predictor.predictions(examples)
    pairs = zip(examples, predictions, strict=True)
    parts = [part for pair in pairs for part in findings(predictor, *pair)]
    assert len(parts) >= 3
    explained = predictor.explain(examples, predictions)
    items = [item for each in explained for item in each["saliency"]]
    for item, part in zip(items, parts, strict=True):
        assert item.items() >= part.about.items()
        texts = [value for value in item.values() if isinstance(value, list)]
        assert sum(abs(share) for text in texts for _, share in text) == pytest.approx(1, abs=1e-4)
        words = {token for text in texts for token, _ in text}
        assert words >= {token for text in sure.model.task.texts(part.example) for token in text}

    given = [part.prediction for part in parts]
    batch = sure.batch([dict(part.example) for part in parts])
    found = saliency(sure.model, batch, given, steps=48)  # layers with kinks need more than smooth ones
    batch = sure.model.with_choices([sure.model(batch)], batch)
    tokens = {name: getattr(batch, name) for name in found.contributions}
    zeros = {name: dataclasses.replace(each, scales=torch.zeros(each.mask.shape)) for name, each in tokens.items()}
    at_zero = dataclasses.replace(batch, **zeros)
    with torch.inference_mode():
        start = sure.model.prediction_scores(sure.model(at_zero), at_zero, given)
    sums = [
        torch.stack([each.sum() for each in found.contributions[name][each.mask].split(batch.lengths(each))])
        for name, each in tokens.items()
    ]
    assert torch.allclose(torch.stack(sums).sum(0), (found.scores - start).float(), rtol=0.1, atol=0.02)
