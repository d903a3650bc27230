"""The coreference predictor with a model that links equal words."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_tasks.errors import DataError
from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.extras.explain.saliency import findings
from elmo_tasks.predictors.coreference import CoreferencePredictor, marked_text
from elmo_tasks.tasks.coreference import CoreferenceBatch
from tests.predictors.stub_models import make_coreference


@pytest.fixture
def predictor() -> CoreferencePredictor:
    return make_coreference()


def batches(predictor: CoreferencePredictor) -> list[CoreferenceBatch]:
    return predictor.model.batches  # type: ignore[return-value]


def test_raw_text(predictor: CoreferencePredictor) -> None:
    text = " Ann met Bo.\nThen Bo left Ann!"
    (result,) = predictor.predict([{"text": text, "id": 7, "genre": "talk"}])
    assert result == {
        "id": 7,
        "genre": "talk",
        "text": text,
        "sentences": [["Ann", "met", "Bo", "."], ["Then", "Bo", "left", "Ann", "!"]],
        "offsets": [[[1, 4], [5, 8], [9, 11], [11, 12]], [[13, 17], [18, 20], [21, 25], [26, 29], [29, 30]]],
        "clusters": [[[0, 0], [7, 7]], [[2, 2], [5, 5]]],
        "cluster_probabilities": [0.333333, 0.333333],
        "mentions": [
            mention(0, 0, "Ann", 1, None),
            mention(1, 2, "Bo", 9, None),
            mention(1, 5, "Bo", 18, 1),
            mention(0, 7, "Ann", 26, 0),
        ],
        "description": " [0 Ann] met [1 Bo].\nThen [1 Bo] left [0 Ann]!",
    }
    assert batches(predictor)[0].genres.tolist() == [2]


def test_the_probability_of_a_cluster_is_the_mean_of_its_links(predictor: CoreferencePredictor) -> None:
    (example,) = predictor.examples({"tokens": ["Ann", "met", "Ann", "and", "Ann"]})
    prediction = {
        "clusters": [[[0, 0], [2, 2], [4, 4]]],
        "mentions": [[0, 0], [2, 2], [4, 4]],
        "antecedents": [None, 0, 1],
        "probabilities": [0.1, 0.9, 0.5],
    }
    assert predictor.result(example, prediction)["cluster_probabilities"] == [0.7]


def test_allennlps_results_are_not_calibrated(predictor: CoreferencePredictor) -> None:
    predictor.model.temperature = 2.0
    assert AllenNlpPredictor(predictor).inner.model.temperature == 1
    assert predictor.model.temperature == 2


def mention(cluster: int, index: int, text: str, start: int, antecedent: int | None) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "start": index,
        "end": index,
        "start_char": start,
        "end_char": start + len(text),
        "text": text,
        "antecedent": antecedent,
        "probability": 0.333333,
    }


def test_sentences_with_speakers(predictor: CoreferencePredictor) -> None:
    fields = {"sentences": [["Ann", "!"], ["I", "saw", "Ann"]], "speakers": ["b", ["a", "a", "-"]], "page": 3}
    (result,) = predictor.predict([fields])
    assert result["page"] == 3
    assert result["speakers"] == [["b", "b"], ["a", "a", "-"]]
    assert result["description"] == "[0 Ann] !\nI saw [0 Ann]"
    characters = {"start_char", "end_char"}  # are those of raw text
    expected = mention(0, 4, "Ann", 0, 0)
    assert result["mentions"][1] == {key: expected[key] for key in expected if key not in characters}
    assert batches(predictor)[0].speakers.tolist() == [1, 1, 2, 2, 0]
    assert batches(predictor)[0].genres.tolist() == [0]


@pytest.mark.parametrize("speakers", [[], None, ["", None], [["", None], []]], ids=repr)
def test_speakers_that_are_not_known(predictor: CoreferencePredictor, speakers: Any) -> None:
    (result,) = predictor.predict([{"sentences": [["Ann", "!"], ["Ann"]], "speakers": speakers}])
    assert result["speakers"] == [["-", "-"], ["-"]]


def test_tokens_are_a_document_of_one_sentence(predictor: CoreferencePredictor) -> None:
    (result,) = predictor.predict([{"tokens": ["Bo", "saw", "Bo"], "genre": None}])
    assert result["sentences"] == [["Bo", "saw", "Bo"]]
    assert result["description"] == "[0 Bo] saw [0 Bo]"
    assert "genre" not in result


@pytest.mark.parametrize(("genre", "given"), [("talk", {"genre": "talk"}), ("news", {})])
def test_only_a_genre_that_the_model_knows_is_read_from_data(
    genre: str, given: dict[str, str], predictor: CoreferencePredictor
) -> None:
    example = {"document": "a", "sentences": [["Ann"]], "speakers": [["-"]]}
    assert predictor.input_of({**example, "genre": genre}) == {**example, **given}


def test_a_document_without_clusters(predictor: CoreferencePredictor) -> None:
    (result,) = predictor.predict([{"text": "Nothing here."}])
    assert (result["clusters"], result["mentions"], result["description"]) == ([], [], "Nothing here.")


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("Nothing here.", []),
        ("Ann left.", []),
        ("Ann saw Ann.", [({"of": "Ann → Ann", "mention": 1}, ([2, 2], [0, 0]))]),
        (
            "Ann saw Bo. Bo saw Ann. Bo left.",
            [
                ({"of": "Bo → Bo", "mention": 2}, ([4, 4], [2, 2])),
                ({"of": "Ann → Ann", "mention": 3}, ([6, 6], [0, 0])),
                ({"of": "Bo → Bo", "mention": 4}, ([8, 8], [4, 4])),
            ],
        ),
    ],
)
def test_each_link_is_explained(predictor: CoreferencePredictor, text: str, links: list[Any]) -> None:
    (example,) = predictor.checked_examples({"text": text})
    (prediction,) = predictor.predictions([example])
    found = list(findings(predictor, example, prediction))
    assert [(each.about, tuple(map(list, each.prediction["link"]))) for each in found] == links
    assert all(each.example is example for each in found)


def test_marked_mentions_can_be_nested_and_touch() -> None:
    text = "ab cd e"
    spans = [(0, 7), (0, 2), (0, 5), (3, 5), (5, 6), (6, 7)]
    marked = marked_text(text, spans, [0, 1, 2, 3, 4, 5])
    assert marked == "[0 [2 [1 ab] [3 cd]][4  ][5 e]]"
    assert marked_text("", [], []) == ""


def test_the_keys_of_allennlp(predictor: CoreferencePredictor) -> None:
    (result,) = AllenNlpPredictor(predictor)([{"document": "Ann saw Bo. Bo saw Ann."}])
    document = ["Ann", "saw", "Bo", ".", "Bo", "saw", "Ann", "."]
    assert result == {"document": document, "clusters": [[[2, 2], [4, 4]], [[0, 0], [6, 6]]]}  # by first links
    (same,) = AllenNlpPredictor(predictor)([{"sentences": [document[:4], document[4:]]}])
    assert same == result
    with pytest.raises(DataError, match="'document' is ' '; expected a string that is not blank"):
        AllenNlpPredictor(predictor)([{"document": " "}])
