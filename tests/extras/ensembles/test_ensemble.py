"""Ensembles of small heads: what is averaged, and which models do not go together."""

import dataclasses
from typing import Any

import pytest
import torch

from elmo_tasks.elmo.fast import FastBiLM
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.ensembles.ensemble import Member, ensemble
from elmo_tasks.extras.explain.saliency import saliency
from elmo_tasks.models.model import TaskModel
from elmo_tasks.text.vocabulary import Vocabulary
from tests.models.small import make_head, texts_of_lengths

ENCODER = {"type": "stacked_bilstm", "hidden_sizes": (5,)}
LABELS = ("no", "perhaps", "yes")
TAGS = ("O", "B-X", "I-X")
GENRES = ("a", "b")
CLASSIFIER = {"type": "text_classifier", "task": "classification"}
LAYER = {"hidden_sizes": (4,)}
BCN = {"type": "bcn", "pre_encoder": LAYER, "encoder": ENCODER, "integrator": ENCODER, "output": LAYER}
TEXTS = [{"tokens": tokens} for tokens in texts_of_lengths(4, 1, 3)]


def member(settings: dict[str, Any], labels: dict[str, tuple[str, ...]], seed: int = 0, name: str = "runs/a") -> Member:
    model, vocabulary = make_head(settings, labels)
    torch.manual_seed(seed)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return Member(name, model, vocabulary)


def predicted(model: TaskModel[Any, Any], vocabulary: Vocabulary, **settings: Any) -> list[dict[str, Any]]:
    batch = model.task.collate(TEXTS, vocabulary)
    with torch.inference_mode():
        return model.decode(model(batch), batch, **settings)


def together(*members: Member) -> list[dict[str, Any]]:
    return predicted(ensemble(members), members[0].vocabulary)


def apart(*members: Member) -> list[tuple[dict[str, Any], ...]]:
    return list(zip(*(predicted(each.model, each.vocabulary) for each in members), strict=True))


@pytest.mark.parametrize("task", ["classification", "multi_label"])
def test_probabilities_of_labels_are_averaged(task: str) -> None:
    settings = {**CLASSIFIER, "task": task}
    members = [member(settings, {"labels": LABELS}, seed) for seed in range(2)]
    for found, each in zip(together(*members), apart(*members), strict=True):
        for label, share in found["probabilities"].items():
            assert share == pytest.approx(sum(one["probabilities"][label] for one in each) / 2, abs=1e-5)


def test_sets_of_labels_have_the_mean_threshold() -> None:
    members = [member({**CLASSIFIER, "task": "multi_label"}, {"labels": LABELS}, seed) for seed in range(2)]
    first, second = (each.model.get_buffer("threshold") for each in members)
    first.fill_(0.9)
    second.fill_(0.3)
    members[0].model.train()
    assert not any(module.training for module in ensemble(members).modules())
    assert ensemble(members).get_buffer("threshold").item() == pytest.approx(0.6)
    assert (first.item(), second.item()) == pytest.approx((0.9, 0.3))


def test_numbers_are_averaged_in_their_own_unit() -> None:
    members = [member({**CLASSIFIER, "task": "regression"}, {}, seed) for seed in range(3)]
    for number, each in enumerate(members):
        each.model.get_buffer("target.mean").fill_(number)
        each.model.get_buffer("target.deviation").fill_(number + 1)
    for found, scored in zip(together(*members), apart(*members), strict=True):
        assert found["score"] == pytest.approx(sum(one["score"] for one in scored) / 3, abs=1e-5)


def test_words_are_looked_up_in_each_members_own_vocabulary() -> None:
    one, other = (member(CLASSIFIER, {"labels": LABELS}, seed) for seed in range(2))
    expected = together(one, other)
    batch, chosen = one.model.task.collate(TEXTS, one.vocabulary), [{"label": "yes"}] * len(TEXTS)
    contributions = saliency(ensemble((one, other)), batch, chosen).contributions["tokens"]
    words = other.vocabulary.words
    order = [0, 1, *range(len(words) - 1, 1, -1)]
    vocabulary = dataclasses.replace(other.vocabulary, words=tuple(words[row] for row in order))
    trained = other.model.get_parameter("embedder.words.trained")
    trained.data = trained.data[order]
    reordered = other._replace(vocabulary=vocabulary)
    assert together(one, reordered) == expected
    found = saliency(ensemble((one, reordered)), batch, chosen).contributions["tokens"]
    torch.testing.assert_close(found, contributions)


def test_resolvers_score_the_spans_that_any_of_them_keeps() -> None:
    sizes = {"hidden_sizes": (5,), "feature_size": 2, "max_span_width": 2, "max_antecedents": 9, "spans_per_word": 0.4}
    head = {"type": "coref", "encoder": ENCODER, **sizes}
    members = [member(head, {"genres": GENRES}, seed) for seed in range(2)]
    sentences = [["tarn", "vale", "moro"], ["orla", "tarn", "vale"]]
    document = {"genre": "a", "sentences": sentences, "speakers": [["-"] * 3] * 2, "clusters": []}
    models = [each.model for each in members]
    batches = [each.model.task.collate([document], each.vocabulary) for each in members]
    with torch.inference_mode():
        outputs: list[Any] = [
            model(batch) for model, batch in zip([*models, ensemble(members)], [*batches, batches[0]], strict=True)
        ]
    first, second, both = (set(zip(each.starts.tolist(), each.ends.tolist(), strict=True)) for each in outputs)
    assert first != second
    assert both == first | second
    with torch.inference_mode():
        again = ensemble(members)(models[0].with_choices(outputs[:1], batches[0]))
    assert set(zip(again.starts.tolist(), again.ends.tolist(), strict=True)) == first


def test_a_shared_bilm_computes_a_batch_once(bilm_files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = {"elmo": {**bilm_files, "mixes": ("input", "output"), "layer_cache": None}}
    settings = {"type": "text_classifier", "task": "text_pairs", "embedder": embedder}
    members = [member(settings, {"labels": LABELS}, seed) for seed in range(3)]
    calls: list[Any] = []
    layers = FastBiLM._layers

    def noting(self: FastBiLM, texts: Any) -> Any:
        calls.append(texts)
        return layers(self, texts)

    monkeypatch.setattr(FastBiLM, "_layers", noting)
    combined = ensemble(members)
    pairs = [{"premise": each["tokens"], "hypothesis": [*each["tokens"], "tarn"]} for each in TEXTS]
    batch = combined.task.collate(pairs, members[0].vocabulary)
    for computed in (2, 4):  # both sides, and again for the next batch
        combined(batch)
        assert len(calls) == computed
    saliency(combined, batch, [{"label": "yes"}] * len(TEXTS))
    assert len(calls) == 6


def test_outputs_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (member(CLASSIFIER, {"labels": LABELS}, name=name) for name in ("runs/a", "runs/b"))
    monkeypatch.setattr(other.model, "to_average", lambda output: dataclasses.replace(output, logits=output.logits[:1]))
    with pytest.raises(ElmoTasksError, match="the models' logits differ in size; expected runs with the same settings"):
        together(one, one, other)


def test_taggers_of_spans_and_of_plain_tags_do_not_fit() -> None:
    settings = {"type": "simple_tagger", "encoder": ENCODER}
    pair = [member({**settings, "tag_scheme": scheme}, {"tags": TAGS}) for scheme in ("IOB2", None)]
    for members in (pair, pair[::-1]):
        with pytest.raises(ElmoTasksError, match="cannot be combined with runs/a: tags "):
            ensemble(members)


@pytest.mark.parametrize(
    ("settings", "labels", "problem"),
    [
        (CLASSIFIER, {"labels": ("no", "never", "yes")}, "only one of it and runs/a knows the labels never, perhaps"),
        (CLASSIFIER, {"labels": LABELS[::-1]}, "its labels are not in the order of runs/a"),
        ({**CLASSIFIER, "task": "multi_label"}, {"labels": LABELS}, "cannot be combined with runs/a: "),
        ({"type": "simple_tagger", "encoder": ENCODER}, {"tags": TAGS}, "runs/a: sentences with a tag for every token"),
        (BCN, {"labels": LABELS}, "its head is a BiattentiveClassifier; expected TextClassifier"),
        ({**CLASSIFIER, "pooling": "attention"}, {"labels": LABELS}, None),
    ],
)
def test_models_that_do_not_fit_are_refused(settings: Any, labels: Any, problem: str | None) -> None:
    members = [member(CLASSIFIER, {"labels": LABELS}), member(settings, labels, name="runs/b")]
    if problem is None:
        assert len(together(*members)) == 3  # other settings of the same head
        return
    with pytest.raises(ElmoTasksError, match=f"runs/b: .*{problem}"):
        ensemble(members)
