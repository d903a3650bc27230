"""What holds for the predictors of all tasks: inputs that they cannot use, and inputs without text."""

import json
from typing import Any

import pytest

from elmo_tasks.errors import ArgumentError, DataError
from elmo_tasks.predictors import Origin
from tests.predictors.stub_models import MAKERS

GOOD: dict[str, dict[str, Any]] = {
    "text_pairs": {"premise": "a", "hypothesis": "b"},
    "reading": {"passage": "a", "question": "a"},
}
TEXT = "tagging classification semantic_roles"
ANY_TEXT = f"{TEXT} coreference"
# The tasks, an input, and how the error goes on after the name of the source and the number
BAD_INPUTS: list[tuple[str, dict[str, Any], str]] = [
    (TEXT, {}, r"the keys are \[\]; expected either 'text' or 'tokens' among them$"),
    (TEXT, {"text": "a", "tokens": ["a"]}, "expected only one of 'text', 'tokens'"),
    (ANY_TEXT, {"text": 3}, "'text' is 3; expected a string"),
    (ANY_TEXT, {"text": None}, "'text' is null; expected a string"),
    (ANY_TEXT, {"tokens": []}, r"'tokens' is \[\]; expected a list of at least one string"),
    (ANY_TEXT, {"tokens": "a b"}, "'tokens' is 'a b'; expected a list"),
    (ANY_TEXT, {"tokens": ["a", ""]}, "'tokens' has '' at position 1; expected strings that are not empty"),
    (ANY_TEXT, {"tokens": ["a", 1]}, "'tokens' has 1 at position 1; expected strings"),
    ("tagging", {"sentence": "a"}, r"expected either .* among them; AllenNLP's 'sentence' is 'text' here$"),
    ("semantic_roles", {"text": "a b", "predicates": [1]},
     "'predicates' are indices of tokens; expected 'tokens' with them"),
    ("semantic_roles", {"tokens": ["a"], "predicates": 0}, "'predicates' is 0; expected a list of indices"),
    ("semantic_roles", {"tokens": ["a", "b"], "predicates": [2]},
     "'predicates' has 2; expected indices of tokens, from 0 to 1"),
    *(("semantic_roles", {"tokens": ["a", "b"], "predicates": [wrong]}, f"'predicates' has {wrong!r}; expected")
      for wrong in (-1, True, "a")),
    ("semantic_roles", {"tokens": ["a", "b"], "predicates": [1, 1]},
     r"'predicates' is \[1, 1\]; expected each index once"),
    ("coreference", {}, r"the keys are \[\]; expected either 'text' or 'sentences' or 'tokens'"),
    ("coreference", {"text": "a", "sentences": [["a"]]}, "expected only one of"),
    ("coreference", {"sentences": []}, r"'sentences' is \[\]; expected a list of at least one sentence"),
    ("coreference", {"sentences": "a"}, "'sentences' is 'a'; expected a list"),
    ("coreference", {"sentences": [["a"], []]}, r"'sentences\[1\]' is \[\]; expected a list of at least one string"),
    ("coreference", {"sentences": [["a", ""]]}, r"'sentences\[0\]' has '' at position 1; expected strings"),
    ("coreference", {"text": "a", "speakers": ["x"]}, "'speakers' are those of sentences; expected 'sentences' with"),
    ("coreference", {"sentences": [["a"]], "speakers": ["x", "y"]},
     r"'speakers' is \['x', 'y'\]; expected a list with as many"),
    ("coreference", {"sentences": [["a"]], "speakers": [["x", "y"]]},
     r"'speakers\[0\]' is \['x', 'y'\]; expected a speaker"),
    ("coreference", {"sentences": [["a"]], "speakers": [[1]]}, r"'speakers\[0\]' is \[1\]; expected a speaker"),
    ("coreference", {"text": "a", "genre": "tlak"},
     "'tlak' is not among the genres .*: story, talk. Did you mean 'talk'"),
    ("coreference", {"text": "a", "genre": 3}, "'genre' is 3; expected a string"),
    ("text_pairs", {"premise": "a"},
     r"the keys are \['premise'\]; expected either 'hypothesis' or 'sentence2' or .* among them$"),
    ("text_pairs", {"text": "a"}, r"plain text; expected JSON objects, such as \{.premise.: "),
    ("text_pairs", {"hypothesis": "a"}, "expected either 'premise' or 'sentence1' or 'premise_tokens'"),
    ("text_pairs", {"premise": "a", "sentence1": "a", "hypothesis": "b"}, "expected only one of 'premise'"),
    ("text_pairs", {"premise": "a", "hypothesis": " "}, "'hypothesis' is ' '; expected a string that is not blank"),
    ("text_pairs", {"premise": None, "hypothesis": "a"}, "'premise' is null; expected a string"),
    ("text_pairs", {"premise": "a", "hypothesis_tokens": []},
     r"'hypothesis_tokens' is \[\]; expected a list of at least one"),
    ("text_pairs", {"premise_tokens": ["a", 1], "hypothesis": "a"},
     "'premise_tokens' has 1 at position 1; expected strings"),
    ("reading", {}, r"the keys are \[\]; expected either 'passage' or 'context'"),
    ("reading", {"passage": "a"}, r"the keys are \['passage'\]; expected 'question'"),
    ("reading", {"question": "a"}, "expected either 'passage' or 'context'"),
    ("reading", {"passage": "a", "context": "a", "question": "a"}, "expected only one of"),
    ("reading", {"passage": " ", "question": "a"}, "'passage' is ' '; expected a string that is not blank"),
    ("reading", {"passage": "a", "question": ["a"]}, r"'question' is \['a'\]; expected a string"),
    ("reading", {"context": 3, "question": "a"}, "'context' is 3; expected a string"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "fields", "problem"),
    [(task, fields, problem) for tasks, fields, problem in BAD_INPUTS for task in tasks.split()],
)
def test_unusable_inputs_are_named(task: str, fields: dict[str, Any], problem: str) -> None:
    inputs = [GOOD.get(task, {"text": "a"}), fields]
    with pytest.raises(DataError, match=rf"^some\.jsonl:2: .*{problem}"):
        list(MAKERS[task]().predict(inputs, source="some.jsonl"))


@pytest.mark.parametrize("task", MAKERS)
def test_each_input_has_its_results_or_what_is_wrong_with_it(task: str) -> None:
    predictor, good = MAKERS[task](), GOOD.get(task, {"text": "Ann asked Bo. She left."})
    first, wrong, nothing, last = predictor.each([good, {"id": 3}, None, good])  # type: ignore[list-item]
    assert first == last == predictor(good)
    assert [list(result) for result in (*wrong, *nothing)] == [["error"]] * 2
    assert wrong[0]["error"].startswith("the keys are ['id']; expected ")
    assert predictor.each([]) == []
    for single in ("Ann left.", good, 3):
        with pytest.raises(ArgumentError, match="; expected a list of strings or dicts"):
            predictor.each(single)  # type: ignore[arg-type]


@pytest.mark.parametrize("task", ANY_TEXT.split())
def test_a_blank_text_has_no_result(task: str) -> None:
    assert list(MAKERS[task]().predict([{"text": " \n"}, {"text": ""}])) == []
    assert [len(each) for each in MAKERS[task]().each([" ", "Ann left.", ""])] == [0, 1, 0]


@pytest.mark.parametrize("task", MAKERS)
def test_results_are_json_with_the_other_keys_of_their_inputs(task: str) -> None:
    predictor = MAKERS[task]()
    assert list(predictor.predict([])) == []
    fields = {"source": {"page": 3}, "id": 7, **GOOD.get(task, {"text": "Ann asked Bo."})}
    (result,) = predictor.predict([fields])
    assert result.items() >= fields.items()
    assert json.loads(json.dumps(result)) == result


@pytest.mark.parametrize(
    ("task", "own_columns", "fields", "same_fields"),
    [
        *(
            (task, {"text": name}, {"text": given}, {key: given})
            for task, name in (("tagging", "tokens"), ("semantic_roles", "tokens"), ("coreference", "sentences"))
            for given, key in (("Orla left.", "text"), ([["Orla", "left", "."]], name))
        ),
        ("classification", {"tokens": "text"}, {"tokens": ["Orla", "left", "."]}, {"tokens": ["Orla", "left", "."]}),
    ],
)
def test_a_text_is_a_text_where_tokens_have_this_name(
    task: str,
    own_columns: dict[str, str],
    fields: dict[str, Any],
    same_fields: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    predictor = MAKERS[task]()
    expected = predictor(same_fields)
    monkeypatch.setattr(predictor, "origin", Origin(own_columns=own_columns))
    assert predictor(fields) == expected
