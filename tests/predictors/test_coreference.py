"""The coreference predictor with a model that links equal words."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import pytest
import torch
from torch import nn

from elmo_tasks.errors import DataError
from elmo_tasks.models.model import TaskModel
from elmo_tasks.predictors.allennlp_format import AllenNlpPredictor
from elmo_tasks.predictors.coreference import CoreferencePredictor, marked_text
from elmo_tasks.tasks.coreference import Coreference, CoreferenceBatch
from elmo_tasks.text.tokens import TensorRecord
from elmo_tasks.text.vocabulary import VocabularyConfig


@dataclasses.dataclass(frozen=True)
class NoOutput(TensorRecord):
    pass


class EqualWords(TaskModel[CoreferenceBatch, NoOutput]):
    """Links each capitalized word to the one of the same form before it; remembers its batches."""

    task = Coreference()

    def __init__(self) -> None:
        super().__init__(nn.Linear(1, 1))  # type: ignore[arg-type]
        self.batches: list[CoreferenceBatch] = []

    def forward(self, batch: CoreferenceBatch) -> NoOutput:
        assert torch.is_inference_mode_enabled()
        assert batch.mentions is None
        self.batches.append(batch)
        return NoOutput()

    def loss(self, output: NoOutput, batch: CoreferenceBatch) -> torch.Tensor:
        raise NotImplementedError

    def decode(self, output: NoOutput, batch: CoreferenceBatch, *, probabilities: bool = True) -> list[dict[str, Any]]:
        return [_link([token for sentence in example["sentences"] for token in sentence]) for example in batch.examples]


def _link(tokens: list[str]) -> dict[str, Any]:
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        if token[0].isupper():
            places.setdefault(token, []).append(place)
    clusters = [found for found in places.values() if len(found) > 1]
    mentions = sorted(place for cluster in clusters for place in cluster)
    before = {later: mentions.index(place) for found in clusters for place, later in itertools.pairwise(found)}
    return {
        "clusters": [[[place, place] for place in cluster] for cluster in clusters],
        "mentions": [[place, place] for place in mentions],
        "antecedents": [before.get(place) for place in mentions],
        "probabilities": [1 / 3] * len(mentions),
    }


@pytest.fixture
def predictor() -> CoreferencePredictor:
    examples = [{"sentences": [["Ann", "left"]], "genre": genre} for genre in ("story", "talk")]
    vocabulary = VocabularyConfig().build(Coreference(), examples, [])
    return CoreferencePredictor(EqualWords(), vocabulary, batch_tokens=12)


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
        "mentions": [
            mention(0, 0, "Ann", 1, None),
            mention(1, 2, "Bo", 9, None),
            mention(1, 5, "Bo", 18, 1),
            mention(0, 7, "Ann", 26, 0),
        ],
        "description": " [0 Ann] met [1 Bo].\nThen [1 Bo] left [0 Ann]!",
    }
    assert json.loads(json.dumps(result)) == result
    assert batches(predictor)[0].genres.tolist() == [2]


def mention(cluster: int, place: int, text: str, start: int, antecedent: int | None) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "start": place,
        "end": place,
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
    assert result["mentions"][1] == {
        "cluster": 0,
        "start": 4,
        "end": 4,
        "text": "Ann",
        "antecedent": 0,
        "probability": 0.333333,
    }
    assert batches(predictor)[0].speakers.tolist() == [1, 1, 2, 2, 0]
    assert batches(predictor)[0].genres.tolist() == [0]


@pytest.mark.parametrize(
    "speakers",
    [
        [],
        None,
        ["", None],
        [
            ["", None],
            [],
        ],
    ],
    ids=repr,
)
def test_speakers_that_are_not_known(predictor: CoreferencePredictor, speakers: Any) -> None:
    (result,) = predictor.predict([{"sentences": [["Ann", "!"], ["Ann"]], "speakers": speakers}])
    assert result["speakers"] == [["-", "-"], ["-"]]


def test_tokens_are_a_document_of_one_sentence(predictor: CoreferencePredictor) -> None:
    (result,) = predictor.predict([{"tokens": ["Bo", "saw", "Bo"], "genre": None}])
    assert result["sentences"] == [["Bo", "saw", "Bo"]]
    assert result["description"] == "[0 Bo] saw [0 Bo]"
    assert "genre" not in result


def test_a_document_without_clusters(predictor: CoreferencePredictor) -> None:
    (result,) = predictor.predict([{"text": "Nothing here."}])
    assert (result["clusters"], result["mentions"], result["description"]) == ([], [], "Nothing here.")


def test_a_blank_text_has_no_result(predictor: CoreferencePredictor) -> None:
    assert list(predictor.predict([{"text": " \n"}, {"text": ""}])) == []


def test_marked_mentions_can_be_nested_and_touch() -> None:
    text = "ab cd e"
    spans = [(0, 7), (0, 2), (0, 5), (3, 5), (5, 6), (6, 7)]
    marked = marked_text(text, spans, [0, 1, 2, 3, 4, 5])
    assert marked == "[0 [2 [1 ab] [3 cd]][4  ][5 e]]"
    assert marked_text("", [], []) == ""


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, r"the keys are \[\]; expected either 'text' or 'sentences' or 'tokens'"),
        ({"text": "a", "sentences": [["a"]]}, "expected only one of"),
        ({"text": 3}, "'text' is 3; expected a string"),
        ({"tokens": []}, r"'tokens' is \[\]; expected a list of at least one string"),
        ({"sentences": []}, r"'sentences' is \[\]; expected a list of at least one sentence"),
        ({"sentences": "a"}, "'sentences' is 'a'; expected a list"),
        ({"sentences": [["a"], []]}, r"'sentences\[1\]' is \[\]; expected a list of at least one string"),
        ({"sentences": [["a", ""]]}, r"'sentences\[0\]' has '' at position 1; expected strings that are not empty"),
        ({"text": "a", "speakers": ["x"]}, "'speakers' are those of sentences; expected 'sentences' with them"),
        ({"sentences": [["a"]], "speakers": ["x", "y"]}, r"'speakers' is \['x', 'y'\]; expected a list with as many"),
        ({"sentences": [["a"]], "speakers": [["x", "y"]]}, r"'speakers\[0\]' is \['x', 'y'\]; expected a speaker"),
        ({"sentences": [["a"]], "speakers": [[1]]}, r"'speakers\[0\]' is \[1\]; expected a speaker"),
        ({"text": "a", "genre": "tlak"}, "'tlak' is not among the genres .*: story, talk. Did you mean 'talk'"),
        ({"text": "a", "genre": 3}, "'genre' is 3; expected a string"),
    ],
)
def test_unusable_inputs_are_named(predictor: CoreferencePredictor, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=rf"^some\.jsonl:2: .*{problem}"):
        list(predictor.predict([{"text": "a"}, fields], source="some.jsonl"))


def test_the_keys_of_allennlp(predictor: CoreferencePredictor) -> None:
    (result,) = AllenNlpPredictor(predictor)([{"document": "Ann saw Bo. Bo saw Ann."}])
    document = ["Ann", "saw", "Bo", ".", "Bo", "saw", "Ann", "."]
    assert result == {"document": document, "clusters": [[[0, 0], [6, 6]], [[2, 2], [4, 4]]]}
    (same,) = AllenNlpPredictor(predictor)([{"sentences": [document[:4], document[4:]]}])
    assert same == result
    with pytest.raises(DataError, match="'document' is ' '; expected a string that is not blank"):
        AllenNlpPredictor(predictor)([{"document": " "}])
