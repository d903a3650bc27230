"""Estimators of scikit-learn: its own checks, and what they give in its pipelines and searches."""

import copy
import io
import json
import logging
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

import elmo_tasks
from elmo_tasks.config import load_config, to_json
from elmo_tasks.errors import ConfigError, DataError, ElmoTasksError
from elmo_tasks.estimators import ElmoClassifier, ElmoTagger, ElmoVectorizer
from elmo_tasks.runs.experiment_config import ExperimentConfig

TEXTS = ["A bright film. It was short!", "Not for me.", "", "What a bright, bright day it is."]
FEW = {"data_loader.min_batches": 10, "trainer.optimizer.lr": 0.01, "model.embedder.elmo.layer_cache": None}
WORDS, LABELS = ["good film", "bad film", "good day", "bad day"] * 4, ["good", "bad"] * 8
SENTENCES = [["Mary", "left", "Oslo"], ["Oslo", "is", "cold"], ["Mary", "Collins", "left"]] * 4
SPANS = [["B-PER", "O", "B-LOC"], ["B-LOC", "O", "O"], ["B-PER", "I-PER", "O"]] * 4
PARTS = [["NOUN", "VERB", "NOUN"], ["NOUN", "VERB", "ADJ"], ["NOUN", "NOUN", "VERB"]] * 4


@pytest.fixture(scope="module")
def bilm(sample_folder: Path) -> str:
    return str(sample_folder / "bilm")


@pytest.fixture(scope="module")
def classifier(bilm: str) -> ElmoClassifier:
    return ElmoClassifier(bilm=bilm, num_epochs=4, random_state=1, overrides=FEW).fit(WORDS, LABELS)


@pytest.fixture(scope="module")
def tagger(bilm: str) -> ElmoTagger:
    return ElmoTagger(bilm=bilm, num_epochs=6, overrides=FEW).fit(SENTENCES, SPANS)


# The checks that do not call an estimator with a table of numbers. The others do not apply, because the tags say that
# the input is a column of texts. For such estimators, `check_estimator` only runs the first of these.
CHECKS = [
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_tags_renamed,
    estimator_checks.check_valid_tag_types,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_do_not_raise_errors_in_init_or_set_params,
    estimator_checks.check_mixin_order,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_set_params,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", [ElmoVectorizer, ElmoClassifier, ElmoTagger])
def test_the_checks_of_scikit_learn(kind: Any, check: Any) -> None:
    check(kind.__name__, kind())


@pytest.mark.parametrize("kind", [ElmoVectorizer, ElmoClassifier, ElmoTagger])
def test_the_input_is_a_column_of_texts(kind: Any) -> None:
    tags = kind().__sklearn_tags__()
    given = tags.input_tags
    assert (given.two_d_array, given.one_d_array, given.string, tags.no_validation) == (False, True, True, True)
    assert tags.requires_fit == (kind is not ElmoVectorizer)


def test_vectors_are_those_of_the_tokens_of_all_sentences(bilm: str) -> None:
    split = [elmo_tasks.tokenize(text) for text in TEXTS]
    for layers in ("mix", "top", "0", "all"):
        for pool in ("mean", "max"):
            vectorizer = ElmoVectorizer(bilm, layers=layers, pool=pool)
            found = vectorizer.fit_transform(TEXTS)
            assert (found.dtype, found.shape) == (np.float32, (4, len(vectorizer.get_feature_names_out())))
            assert not found[2].any()
            for row in (0, 1, 3):
                tokens = torch.cat(elmo_tasks.embed(split[row], bilm=bilm, layers=layers), dim=-2)
                expected = tokens.mean(dim=-2) if pool == "mean" else tokens.amax(dim=-2)
                np.testing.assert_allclose(found[row], expected.flatten(), rtol=0, atol=1e-6)


def test_texts_and_tokens_come_in_any_column(bilm: str) -> None:
    vectorizer = ElmoVectorizer(bilm)
    expected = vectorizer.transform(TEXTS)
    for column in (tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), pd.Series(TEXTS), iter(TEXTS)):
        np.testing.assert_array_equal(vectorizer.transform(column), expected)
    tokens: list[Any] = [(), elmo_tasks.tokenize(TEXTS[1])[0], np.array(["Hello"])]
    np.testing.assert_allclose(vectorizer.transform(tokens)[:2], [0 * expected[1], expected[1]], rtol=0, atol=1e-6)
    assert vectorizer.transform([]).shape == (0, 64)
    table = vectorizer.set_output(transform="pandas").transform(pd.Series(TEXTS, index=[5, 6, 7, 8]))
    assert (list(table.index), table.columns[0]) == ([5, 6, 7, 8], "elmovectorizer0")


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ("a text", "got a str; expected a list or one column of texts or lists of tokens"),
        (pd.DataFrame({"text": TEXTS}), r"got a DataFrame of shape \(4, 1\); expected"),
        (np.array([["a", "b"]]), r"got a ndarray of shape \(1, 2\); expected"),
        ({"a": 1}, "got a dict; expected"),
        (["a", float("nan")], r"X\[1\] is nan; expected a text or a list of tokens"),
        ([["a", 2]], r"X\[0\] is \['a', 2\]; expected a text or a list of tokens"),
    ],
)
def test_other_inputs_are_refused(bilm: str, texts: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        ElmoVectorizer(bilm).transform(texts)


def test_wrong_settings_are_found_by_fit(bilm: str) -> None:
    for wrong, problem in {
        "layers": r"layers: got 'x'; expected all, mix, top or a number from 0 to 2",
        "pool": "pool: got 'x'; expected 'mean' or 'max'",
        "precision": "precision: got 'x'; expected float32, bfloat16 or int8",
        "device": "device: got 'x'; expected 'auto', 'cpu' or 'cuda'",
        "bilm": "x: no such folder",
    }.items():
        with pytest.raises(ElmoTasksError, match=problem):
            ElmoVectorizer(bilm).set_params(**{wrong: "x"}).fit(TEXTS)


def test_a_vectorizer_in_pipelines_searches_and_pickles(bilm: str) -> None:
    pipeline = make_pipeline(ElmoVectorizer(bilm), LogisticRegression(C=100))
    assert cross_val_score(pipeline, WORDS, LABELS, cv=2).mean() == 1
    search = GridSearchCV(pipeline, {"elmovectorizer__pool": ["mean", "max"], "elmovectorizer__layers": ["top"]}, cv=2)
    search.fit(WORDS, LABELS)
    kept = pickle.dumps(search)
    assert len(kept) < 50_000  # without the weights of the biLM
    np.testing.assert_array_equal(pickle.loads(kept).predict_proba(WORDS), search.predict_proba(WORDS))


def test_a_classifier_predicts_what_it_has_learned(classifier: ElmoClassifier) -> None:
    assert classifier.classes_.tolist() == ["bad", "good"]
    assert classifier.score(WORDS, LABELS) == 1
    probabilities = classifier.predict_proba([["good", "day"], "bad day"])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-9)
    assert probabilities.argmax(axis=1).tolist() == [1, 0]
    assert classifier.predict_proba([]).shape == (0, 2)
    with pytest.raises(ElmoTasksError, match=r"X\[1\] is {'text': ' '}; expected a text with at least one token"):
        classifier.predict(["good film", " ", "bad film", ""])


def test_a_fitted_classifier_is_kept_by_joblib_copy_and_as_a_run(classifier: ElmoClassifier, tmp_path: Path) -> None:
    expected = classifier.predict_proba(WORDS)
    stream = io.BytesIO()
    joblib.dump(classifier, stream)
    stream.seek(0)
    for kept in (joblib.load(stream), copy.deepcopy(classifier)):
        np.testing.assert_array_equal(kept.predict_proba(WORDS), expected)
    classifier.save_run(tmp_path / "run")
    rows = [{"text": "good film", "label": "good"}, {"text": "good dog", "label": "good"}]
    learned = elmo_tasks.evaluate(tmp_path / "run", rows)["learned"]
    assert (learned["examples"], learned["accuracy"]) == (1, 100)
    with pytest.raises(ElmoTasksError, match="run: exists; expected the name of a new folder"):
        classifier.save_run(tmp_path / "run")
    for call in (lambda each: each.predict(WORDS), lambda each: each.save_run(tmp_path / "new")):
        with pytest.raises(NotFittedError):
            call(clone(classifier))
    with pytest.raises(ElmoTasksError, match=r'trainer\.device: .*"cuda", got "x"'):
        copy.deepcopy(classifier).set_params(device="x").predict(WORDS)


def test_a_classifier_learns_the_same_again_and_leaves_random_numbers_alone(classifier: ElmoClassifier) -> None:
    np.random.seed(7)
    torch.manual_seed(7)
    expected = np.random.rand(), torch.rand(1).item()
    np.random.seed(7)
    torch.manual_seed(7)
    again = clone(classifier).fit(np.array(WORDS), np.array(LABELS))
    assert (np.random.rand(), torch.rand(1).item()) == expected
    np.testing.assert_array_equal(again.predict_proba(WORDS), classifier.predict_proba(WORDS))


def test_a_tagger_learns_by_its_seed(tagger: ElmoTagger, tmp_path: Path) -> None:
    """A classifier is fitted without random numbers."""
    weights = []
    for number, seed in enumerate((1, 1, 2)):
        clone(tagger).set_params(num_epochs=1, random_state=seed).fit(SENTENCES, SPANS).save_run(tmp_path / str(number))
        weights.append((tmp_path / str(number) / "model.safetensors").read_bytes())
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.slow
def test_labels_are_of_any_type_and_a_share_can_be_held_out(classifier: ElmoClassifier) -> None:
    numbers = [3 if label == "good" else -1 for label in LABELS]
    search = GridSearchCV(clone(classifier).set_params(validation_share=0.25), {"num_epochs": [4]}, cv=2)
    search.fit(WORDS, numbers)
    assert search.best_score_ == 1
    assert search.predict(["bad day", "good day"]).tolist() == [-1, 3]


@pytest.mark.parametrize(
    ("settings", "texts", "labels", "error", "problem"),
    [
        ({"config": "nothing"}, WORDS, LABELS, ConfigError, "nothing"),
        ({"overrides": {"model.dropuot": 1}}, WORDS, LABELS, ConfigError, r"model\.dropuot: unknown key"),
        ({"config": "small/tagging"}, WORDS, LABELS, DataError, "example 0: there is no 'tags'"),
        ({}, ["a", " "], ["b", "c"], DataError, "example 1: there is a text without a token"),
        ({}, WORDS, LABELS[1:], ValueError, "inconsistent numbers of samples"),
        ({}, WORDS, np.array(LABELS)[:, None], DataConversionWarning, "a 1d array was expected"),
        ({}, WORDS, ["good"] * 16, ValueError, "^y has only one class, 'good'; expected at least two$"),
        ({}, WORDS, np.arange(16) / 7, ValueError, "Unknown label type"),
        ({}, WORDS, [*LABELS[:3], None, *LABELS[4:]], ValueError, r"y\[3\] is None; expected a label"),
        ({}, WORDS, [*LABELS[:3], np.nan, *LABELS[4:]], ValueError, r"y\[3\] is nan; expected a label"),
        ({}, WORDS, pd.array([1, 2, pd.NA, 1] * 4, dtype="Int64"), ValueError, r"y\[2\] is <NA>; expected a label"),
    ],
)
def test_what_cannot_be_learned(settings: Any, texts: Any, labels: Any, error: type[Exception], problem: str) -> None:
    classifier = ElmoClassifier(**settings)
    with pytest.raises(error, match=problem):
        classifier.fit(texts, labels)
    assert not hasattr(classifier, "classes_")


def test_a_tagger_predicts_in_the_scheme_that_it_was_given(tagger: ElmoTagger) -> None:
    assert tagger.predict(SENTENCES[:3]) == SPANS[:3]
    assert tagger.score(SENTENCES, SPANS) == 1
    assert pickle.loads(pickle.dumps(tagger)).predict(SENTENCES[:3]) == SPANS[:3]
    bioul = [["U-PER", "O", "U-LOC"], ["U-LOC", "O", "O"], ["B-PER", "L-PER", "O"]]
    assert tagger.score(SENTENCES[:3], bioul) == 1
    again = clone(tagger).fit(SENTENCES, bioul * 4)
    assert again.predict(SENTENCES[:3]) == bioul
    short = [["O", "O", "O"], ["S-LOC", "O", "S-PER"]]  # BIOES and BMES differ only in longer spans
    held_out = clone(tagger).set_params(num_epochs=1, validation_share=0.5).fit(SENTENCES[:2], short)
    assert held_out.tag_scheme_ == "BIOES"
    assert json.loads(held_out.run_["config.json"])["validation_share"] == 0.5
    texts: Any
    for texts in (["a text"], [["a", 1]]):
        with pytest.raises(TypeError, match=r"X\[0\] is .*; expected a list of tokens"):
            tagger.predict(texts)
    with pytest.raises(ValueError, match=r"y\[1\]\[0\] is None; expected a label"):
        clone(tagger).fit(SENTENCES[:2], [SPANS[0], [None, "O", "O"]])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clone(tagger).fit(SENTENCES[:2], SPANS[:1])
    with pytest.raises(DataError, match="inputs:2: 'tokens' is \\[\\]; expected a list of at least one string"):
        tagger.predict([["a"], []])


def test_a_tagger_of_parts_of_speech(tagger: ElmoTagger, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "elmo_tasks"):
        fitted = clone(tagger).fit(SENTENCES, PARTS)
    assert "12 training examples" in caplog.text
    assert fitted.tag_scheme_ is None
    assert fitted.predict(SENTENCES[:3]) == PARTS[:3]
    plain = to_json(load_config("small/tagging", ExperimentConfig))
    plain |= {"dataset_reader": {"type": "conllu"}, "model": {**plain["model"], "tag_scheme": None}}
    plain["trainer"] |= {"validation_metric": "+accuracy", "patience": 1}
    settings = {"config": plain, "num_epochs": 1, "random_state": 5, "device": "cpu"}
    again = clone(tagger).set_params(**settings).fit(SENTENCES, PARTS)
    assert again.tag_scheme_ is None
    config = json.loads(again.run_["config.json"])
    assert (config["validation_share"], config["random_seed"]) == (None, 5)
    trainer: dict[str, Any] = {"patience": None, "num_epochs": 1, "device": "cpu", "trackers": []}
    assert {key: config["trainer"][key] for key in trainer} == trainer
    assert fitted.score(SENTENCES[:2], [["NOUN", "VERB", "ADV"], ["NOUN", "ADV", "ADV"]]) == pytest.approx(3 / 6)
    numbers = [[len(tag) for tag in tags] for tags in PARTS]  # 4 or 3
    by_number = pickle.loads(pickle.dumps(clone(tagger).fit(SENTENCES, numbers)))
    assert by_number.predict(SENTENCES[:3]) == numbers[:3]
    assert by_number.score(SENTENCES, np.array(numbers)) == 1
    with pytest.raises(DataError, match="example 0: 1 tags for 2 tokens"):
        clone(tagger).fit([["a", "b"]], [["NOUN"]])
