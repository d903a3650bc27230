from __future__ import annotations

import itertools
from typing import Any

import pytest

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.predictors.semantic_roles import SemanticRolesPredictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.text.tag_schemes import Span
from tests.predictors.stub_models import Neighbours, PastTagger, make_predicate_tagger, make_roles, vocabulary


@pytest.fixture
def predictor() -> SemanticRolesPredictor:
    return make_roles(make_predicate_tagger("O", "B-V"))


def role(name: str, span: tuple[int, int], text: str, probability: float) -> dict[str, Any]:
    return {"role": name, "start": span[0], "end": span[1], "text": text, "probability": probability}


def test_raw_text(predictor: SemanticRolesPredictor) -> None:
    text = " Ann asked  Bo Lee.\nQuiet now."
    first, second = predictor.predict([{"text": text, "id": 7}])
    assert first == {
        "id": 7,
        "text": "Ann asked  Bo Lee.",
        "start_char": 1,
        "end_char": 19,
        "tokens": ["Ann", "asked", "Bo", "Lee", "."],
        "offsets": [[1, 4], [5, 10], [12, 14], [15, 18], [18, 19]],
        "frames": [
            {
                "predicate": 1,
                "predicate_text": "asked",
                "probability": 0.0625,
                "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O"],
                "roles": [
                    role("ARG0", (0, 0), "Ann", 0.25) | {"start_char": 1, "end_char": 4},
                    role("ARG1", (2, 3), "Bo Lee", 0.25) | {"start_char": 12, "end_char": 18},
                ],
                "description": "[ARG0 Ann] [V asked] [ARG1 Bo Lee] .",
            }
        ],
    }
    assert (second["text"], second["frames"], second["id"]) == ("Quiet now.", [], 7)


def test_several_predicates_of_tokens(predictor: SemanticRolesPredictor) -> None:
    (result,) = predictor.predict([{"tokens": ["Bo", "hoped", "Ann", "agreed"], "source": {"page": 3}}])
    assert list(result) == ["source", "tokens", "frames"]
    assert [frame["predicate_text"] for frame in result["frames"]] == ["hoped", "agreed"]
    assert [frame["description"] for frame in result["frames"]] == [
        "[ARG0 Bo] [V hoped] [ARG1 Ann agreed]",
        "Bo hoped [ARG0 Ann] [V agreed]",
    ]
    assert result["frames"][0]["roles"][1] == role("ARG1", (2, 3), "Ann agreed", 0.142857)


def test_given_predicates_are_taken_as_they_are(predictor: SemanticRolesPredictor) -> None:
    inputs = [{"tokens": ["Bo", "agreed", "twice"], "predicates": indices} for indices in ([2, 0], [])]
    for each in (predictor, make_roles(None)):
        some, none = each.predict(inputs)
        assert [frame["predicate"] for frame in some["frames"]] == [2, 0]
        assert "predicates" not in some
        assert none == {"tokens": ["Bo", "agreed", "twice"], "frames": []}


def test_given_and_found_predicates_mixed(predictor: SemanticRolesPredictor) -> None:
    given: dict[str, Any] = {"tokens": ["Bo", "agreed"], "predicates": [0]}
    inputs = [{"tokens": ["Bo", "agreed"]}, given, {"tokens": ["Ann"]}]
    indices = [[frame["predicate"] for frame in result["frames"]] for result in predictor.predict(inputs)]
    assert indices == [[1], [0], []]


def test_warming_up_uses_both_models(predictor: SemanticRolesPredictor) -> None:
    assert predictor.predicates is not None
    predictor.warm_up()
    assert predictor.model.shapes
    assert predictor.predicates.model.shapes


def test_results_are_in_order_and_batches_bounded(predictor: SemanticRolesPredictor) -> None:
    inputs = [{"tokens": ["Bo", *["nodded"] * (number % 5)], "id": number} for number in range(200)]
    results = list(predictor.predict(inputs))
    assert [result["id"] for result in results] == list(range(200))
    assert [len(result["frames"]) for result in results] == [number % 5 for number in range(200)]
    assert predictor.predicates is not None
    for model, most in ((predictor.model, 8 * 12), (predictor.predicates.model, 12)):
        shapes: list[tuple[int, int]] = model.shapes  # type: ignore[assignment]
        assert all(size * longest <= most or size == 1 for size, longest in shapes)
        assert any(size > 1 for size, _ in shapes)


def test_a_sentence_with_many_predicates_is_read_in_few_batches() -> None:
    tokens, indices = ["ran"] * 300, list(range(300))
    many, single = (SemanticRolesPredictor(Neighbours(), vocabulary("O"), batch_tokens=tokens) for tokens in (2048, 1))
    (result,) = many.predict([{"tokens": tokens, "predicates": indices}])
    assert many.model.shapes == [*[(32, 300)] * 9, (12, 300)]
    assert [result] == list(single.predict([{"tokens": tokens, "predicates": indices}]))
    assert single.model.shapes == [(1, 300)] * 300


def test_a_hundred_predicates_are_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    predictor = SemanticRolesPredictor(Neighbours(), vocabulary("O"), batch_tokens=2048)
    with caplog.at_level("INFO", "elmo_tasks"):
        for number in (100, 101):
            predictor([{"tokens": ["ran"] * number, "predicates": list(range(number))}])
    assert caplog.messages == ["a sentence of 101 tokens has 101 predicates, and is read once for each of them"]


@pytest.mark.parametrize(
    "crowd", [{"tokens": ["ran"] * 5, "predicates": [0, 1, 3]}, {"tokens": ["asked"] * 3 + ["ran"] * 2}]
)
def test_a_sentence_that_would_take_too_long_is_refused(
    predictor: SemanticRolesPredictor, monkeypatch: pytest.MonkeyPatch, crowd: dict[str, Any]
) -> None:
    monkeypatch.setattr(SemanticRolesPredictor, "most_tags", 14)
    results = predictor.predict([{"text": "Ann ran. Bo asked Ann."}, None, crowd, {"text": "Ann asked."}])
    assert [len(result["frames"]) for result in itertools.islice(results, 2)] == [0, 1]
    with pytest.raises(DataError, match=r"^inputs:3: 5 tokens x 3 predicates are 15 tags; .* 14; .*ELMO_TASKS_LIMITS"):
        next(results)
    monkeypatch.setenv("ELMO_TASKS_LIMITS", "1.1")
    assert len(predictor([crowd])[0]["frames"]) == 3


def test_no_part_of_a_refused_text_is_predicted(
    predictor: SemanticRolesPredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SemanticRolesPredictor, "most_tags", 4)
    results = predictor.predict([{"text": "Ann ran."}, {"text": "Bo ran. Ann asked Bo and Bo asked Ann."}])
    assert next(results)["tokens"] == ["Ann", "ran", "."]
    with pytest.raises(DataError, match=r"^inputs:2: "):
        next(results)


def test_only_what_the_tagger_takes_for_a_verb_is_a_predicate() -> None:
    class Everything(PastTagger):
        def spans(self, example: dict[str, Any]) -> list[Span]:
            return [Span("V" if index else "X", index, index) for index in range(len(example["tokens"]))]

    tagger = TaggerPredictor(Everything(), vocabulary("O", "B-V", "B-X"))
    (result,) = make_roles(tagger)([{"tokens": ["Bo", "ran"]}])
    assert [frame["predicate"] for frame in result["frames"]] == [1]


def test_without_a_tagger_predicates_must_be_given() -> None:
    predictor = make_roles(None)
    for fields in ({"text": "Bo agreed."}, {"tokens": ["Bo", "agreed"]}):
        with pytest.raises(DataError, match=r"inputs:1: no 'predicates', and no tagger .*--predicates RUN"):
            list(predictor.predict([fields]))


def test_refuses_a_tagger_of_something_else() -> None:
    with pytest.raises(ElmoTasksError, match=r"has no tag B-V, only O, B-PER; expected one that was trained"):
        make_roles(make_predicate_tagger("O", "B-PER"))


def test_the_keys_of_allennlp(predictor: SemanticRolesPredictor) -> None:
    words = ["Bo", "agreed", ".", "Ann", "smiled", "at", "Bo", "."]
    expected = {
        "words": words,
        "verbs": [
            {
                "verb": "agreed",
                "description": "[ARG0: Bo] [V: agreed] [ARG1: . Ann] smiled at Bo .",
                "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O", "O", "O", "O"],
            },
            {
                "verb": "smiled",
                "description": "Bo agreed . [ARG0: Ann] [V: smiled] [ARG1: at Bo] .",
                "tags": ["O", "O", "O", "B-ARG0", "B-V", "B-ARG1", "I-ARG1", "O"],
            },
        ],
    }
    sentence = {"sentence": "Bo agreed. Ann smiled at Bo."}  # one sentence, as AllenNLP takes it
    assert AllenNlpPredictor(predictor)([sentence, {"tokens": ["Ann"]}]) == [expected, {"words": ["Ann"], "verbs": []}]
    indices = {"tokens": words, "predicates": [4]}
    by_function = AllenNlpPredictor(make_roles(None), lambda tokens: [tokens.index("agreed")])
    first, second = by_function([sentence, indices])
    assert [*first["verbs"], *second["verbs"]] == expected["verbs"]


def test_predicates_that_allennlps_format_cannot_place(predictor: SemanticRolesPredictor) -> None:
    both = {"sentence": "Bo agreed.", "predicates": [1]}
    with pytest.raises(DataError, match="expected 'tokens' with them, not 'sentence'"):
        AllenNlpPredictor(predictor)([both])
    with pytest.raises(DataError, match="'predicates' has 9; expected indices of tokens, from 0 to 2"):
        AllenNlpPredictor(predictor, lambda _: [9])([{"sentence": "Bo agreed."}])
    with pytest.raises(DataError, match="no 'predicates', and no tagger that finds them"):
        AllenNlpPredictor(make_roles(None))([{"sentence": "Bo agreed."}])
    with pytest.raises(ElmoTasksError, match="predicates are for semantic roles; the model is a PastTagger"):
        AllenNlpPredictor(make_predicate_tagger("B-V"), lambda _: [0])
