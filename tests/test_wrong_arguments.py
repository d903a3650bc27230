"""Every public function says what is wrong with a value of another kind, with one class of error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import elmo_tasks
from elmo_tasks import batches, compat, estimators
from elmo_tasks.errors import ArgumentError, ElmoTasksError
from elmo_tasks.extras.pretraining.language_model import LanguageModel
from elmo_tasks.predictors import Predictor
from elmo_tasks.training.callbacks import Callback

NO_TEXT = (None, 5, True, [None], b"The dog.", [[5]], object(), {"a": 1})
NO_TOKENS = (*NO_TEXT, (each for each in [["The", "dog"]]))
NO_STRING: tuple[object, ...] = (*NO_TEXT, [], [[]])
NO_PATH = (*NO_STRING, "/no/such/path")
NO_NUMBER: tuple[object, ...] = (None, True, [], "5", b"5", 1.5, -2, object())
TABLE = pa.table({"text": ["The dog barked."]})
PAIR = [["The", "dog"], ["A", "dog"]]


@pytest.fixture(scope="module")
def predictor(short_run: Path) -> Predictor:
    return elmo_tasks.load(short_run)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return elmo_tasks.load_language_model()


def check(call: Callable[[Any], object], values: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(ElmoTasksError) as raised:
            call(value)
        message = str(raised.value).lower()
        assert "expected" in message or "no such" in message, f"{value!r}: {message}"


FUNCTIONS: dict[str, tuple[Callable[[Any], object], tuple[Any, ...]]] = {
    "tokenize": (lambda value: elmo_tasks.tokenize(value), NO_STRING),
    "tokenize, the tokenizer": (lambda value: elmo_tasks.tokenize("A dog.", value), (*NO_STRING, "")),
    "embed": (lambda value: elmo_tasks.embed(value), (*NO_TOKENS, [["a", ""]])),
    "embed, the biLM": (lambda value: elmo_tasks.embed("A dog.", bilm=value), NO_PATH),
    "embed, the layers": (lambda value: elmo_tasks.embed("A dog.", layers=value), (*NO_STRING[3:], None, 7)),
    "embed, the pooling": (lambda value: elmo_tasks.embed("A dog.", pool=value), NO_PATH),
    "embed, the precision": (lambda value: elmo_tasks.embed("A dog.", precision=value), NO_PATH),
    "similarity": (lambda value: elmo_tasks.similarity("dog", value), (*NO_TOKENS, [], [[]])),
    "similarity, the word": (lambda value: elmo_tasks.similarity(value, PAIR), NO_STRING),
    "load": (elmo_tasks.load, NO_PATH),
    "load_language_model": (elmo_tasks.load_language_model, NO_PATH),
    "train, the config": (lambda value: elmo_tasks.train(value, "run"), NO_PATH),
    "train, the folder": (lambda value: elmo_tasks.train("quickstart", value), NO_STRING),
    "train, the data": (lambda value: elmo_tasks.train("quickstart", "run", train=value), (5, object(), {})),
    "train, the folds": (lambda value: elmo_tasks.train("quickstart", "run", folds=value), (0, *NO_NUMBER[1:])),
    "evaluate": (lambda value: elmo_tasks.evaluate(value, "data"), NO_PATH),
    "include_packages": (elmo_tasks.include_packages, (None, 5, [None], "package", b"package", {"a": 1})),
    "show": (lambda value: elmo_tasks.show(value, "A dog."), (*NO_STRING, "ner")),
    "Embed": (batches.Embed(), (*NO_STRING, "text")),
    "Embed, the biLM": (lambda value: batches.Embed(bilm=value)(TABLE), NO_PATH),
    "Embed, the number type": (lambda value: batches.Embed(number_type=value), NO_PATH),
    "Embed, the errors": (lambda value: batches.Embed(on_error=value), NO_PATH),
    "Embed, the batches": (lambda value: batches.Embed(batch_tokens=value), NO_NUMBER),
    "Predict, the run": (lambda value: batches.Predict(run=value)(TABLE), NO_PATH),
    "ElmoEmbedder, the device": (lambda value: compat.ElmoEmbedder(cuda_device=value), NO_NUMBER),
    "ElmoVectorizer": (estimators.ElmoVectorizer().transform, NO_TEXT),
    "ElmoClassifier": (lambda value: estimators.ElmoClassifier().fit(value, ["a"]), NO_TEXT),
    "ElmoTagger": (lambda value: estimators.ElmoTagger().fit(value, [["O"]]), NO_TEXT),
}


@pytest.mark.parametrize(("call", "values"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions(call: Callable[[Any], object], values: tuple[Any, ...]) -> None:
    check(call, values)


def test_a_loaded_language_model(model: LanguageModel) -> None:
    check(model.score, NO_TOKENS)
    check(lambda value: model.score("A dog.", value), NO_NUMBER)
    check(lambda value: model.substitutes(value, "dog"), NO_STRING)
    check(lambda value: model.substitutes("A dog.", value), (*NO_STRING[:1], *NO_STRING[2:], 3, -4, ""))
    check(lambda value: model.substitutes("A dog.", "dog", value), (0, *NO_NUMBER))
    assert model.substitutes("A dog.", 1, 1) == model.substitutes("A dog.", "dog", 1)


def test_a_predictor(short_run: Path, predictor: Predictor) -> None:
    check(predictor, (None, 5, True, b"A dog.", object(), [None], [5], ["A dog.", None], [["A", "dog"]]))
    check(predictor.predict, ("A dog.", {"text": "A dog."}, 3))
    with pytest.raises(ElmoTasksError, match="predicates are for semantic roles"):
        elmo_tasks.load(short_run, predicates=short_run)
    check(lambda value: predictor("A dog.", explain=value), (5, "", "gradient", [], object()))
    check(lambda value: predictor(["A dog.", None], on_error=value), (5, "skip", True))  # type: ignore[list-item]
    examples = [{"tokens": ["Oslo"], "tags": ["B-LOC"]}]
    check(lambda value: elmo_tasks.evaluate(short_run, examples, unknown_labels=value), (None, 5, "foo", []))
    check(lambda value: elmo_tasks.show(predictor, value), (None, 5, [None]))
    check(lambda value: elmo_tasks.load(short_run, batch_tokens=value), (0, *NO_NUMBER))
    check(
        lambda value: elmo_tasks.load(short_run, overrides=value), (None, 5, "a=1", b"a=1", [None], [["a"]], object())
    )
    check(lambda value: elmo_tasks.load(short_run, format=value), NO_PATH[1:])
    check(lambda value: elmo_tasks.load(short_run, predicates=value), NO_PATH[1:])


def test_inputs_that_are_not_usable_are_collected(predictor: Predictor) -> None:
    problems: list[Exception] = []
    results = predictor(["Mary left.", None, 5, "She came."], on_error=problems.append)  # type: ignore[list-item]
    assert [result["text"] for result in results] == ["Mary left.", "She came."]
    assert [str(problem)[:14] for problem in problems] == ["inputs:2: 'tex", "inputs:3: 5; e"]


@pytest.mark.parametrize("callbacks", [None, 5, "a", Callback(), [Callback], [None], [print]])
def test_callbacks_are_checked_before_data_is_read(callbacks: Any) -> None:
    with pytest.raises(ArgumentError, match=r"callbacks is .*; expected a list of callbacks"):
        elmo_tasks.train("quickstart", "run", callbacks=callbacks)


def test_the_error_is_that_of_python_too() -> None:
    with pytest.raises(TypeError, match="text is None; expected a string") as raised:
        elmo_tasks.tokenize(None)  # type: ignore[arg-type]
    assert isinstance(raised.value, ArgumentError)
