"""Examples in memory: what a reader has read from a file, it also reads from memory, for every task."""

import sys
from typing import Any

import datasets
import pandas as pd
import pytest

from elmo_tasks.data_readers.sources import source_name
from elmo_tasks.errors import DataError
from tests.data_readers.readers import (
    CONLLU,
    COREF,
    HERE,
    LINES,
    NER,
    ROLES,
    SNLI,
    SQUAD,
    SQUAD2,
    SST,
    STARS,
    Settings,
    build,
)

RATINGS: Settings = {"type": "jsonl", "task": "regression"}
PROPOSITION = {"tokens": ["She", "left"], "tags": ["B-ARG0", "B-V"], "predicate": 1}
ANSWER = {
    "question": "b?",
    "question_tokens": ["b", "?"],
    "passage": "a b",
    "token_starts": [0, 2],
    "token_ends": [1, 3],
    "answers": ["b"],
    "answer_spans": [[1, 1]],
}
UNANSWERED = ANSWER | {"answers": [], "answer_spans": []}
DOCUMENT = {"sentences": [["a"], ["b"]], "clusters": [[[0, 0], [1, 1]]]}

PAIRS: Settings = {
    "type": "jsonl",
    "task": "text_pairs",
    "columns": {"premise": "q1", "hypothesis": "q2", "label": "same"},
}
SWAPPED = PAIRS | {"columns": {"premise": "hypothesis", "hypothesis": "premise"}}


def test_the_name_depends_on_the_content_only() -> None:
    examples = build(SST).read(HERE / "samples" / "sst.txt")
    assert source_name([{"tokens": ["\N{GRINNING FACE}"]}]) != source_name([{"tokens": ["a"]}])
    assert source_name(examples) == source_name(examples.to_list()) != source_name(examples.to_list()[1:])
    assert source_name("hub:sst") == "hub:sst"
    assert source_name([{"a": 1, "b": 2}]) == source_name([{"b": 2, "a": 1}]) != source_name([{"a": 2, "b": 1}])


@pytest.mark.parametrize(
    ("given", "message"), [([], "has no example"), ("memory:0123", "given in memory, and are not kept")]
)
def test_examples_that_are_not_there(given: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(NER).read(given)


@pytest.mark.parametrize("given", [{"tokens": ["a"]}, 3, iter([{"tokens": ["a"]}])])
def test_what_is_no_data_set(given: Any) -> None:
    with pytest.raises(TypeError, match=f"got {type(given).__name__} as a data set; expected a path, a list of dicts"):
        source_name(given)


def test_how_a_table_of_pandas_is_given() -> None:
    with pytest.raises(TypeError, match=r"; of a pandas table, DATA\.to_dict\('records'\)"):
        source_name(pd.DataFrame({"text": ["a"], "label": [1]}))


@pytest.mark.parametrize("wrong", [3, {"tokens": {"a"}}, [["tokens", ["a"]]], {"tokens": ["\ud800"]}])
def test_an_example_that_is_no_json_is_named(wrong: Any) -> None:
    with pytest.raises(DataError, match=r"memory: example 1: .*; expected a dict of strings, numbers and lists"):
        source_name([{"tokens": ["a"]}, wrong])


@pytest.mark.parametrize(
    ("reader", "example", "message"),
    [
        (SST, {"tokens": ["a"], "label": 3.5}, "'label' is 3.5; expected a string"),
        (SST, {"tokens": ["a"], "label": -1}, "'label' is -1; expected a string"),
        (SST, {"txt": "a", "label": "3"}, "there is no 'text' or 'tokens'; expected a text, or a list of tokens"),
        (SST, {"text": 5, "label": "3"}, "'text' is 5; expected a text, or a list of tokens"),
        (SST, {"tokens": ["a", 3], "label": "3"}, r"'tokens' is \['a', 3\]; expected a list of strings"),
        (SST, {"tokens": [], "label": "3"}, "there is a text without a token; expected at least one in each"),
        (SST, {"tokens": [""], "label": "3"}, r"'tokens' is \[''\]; expected a list of strings that are not empty"),
        (SST, {"tokens": ["a"], "label": ""}, "'label' is ''; expected a string that is not empty"),
        (RATINGS, {"tokens": ["a"], "score": "3"}, "'score' is '3'; expected a number"),
        (RATINGS, {"tokens": ["a"], "score": float("inf")}, "'score' is inf; expected a number"),
        (RATINGS, {"tokens": ["a"], "score": 10**400}, "'score' is 10+; expected a number"),
        (NER, {"tokens": ["a"], "tags": ["O"], "sentence": 2**31}, "expected a whole number"),
        (NER, {"tokens": ["a"], "tags": ["O"], "document": "a"}, "'document' is 'a'; expected a whole number"),
        (NER, {"tokens": ["a"]}, "there is no 'tags'; expected a list of strings"),
        (NER, {"tokens": ["a"], "tags": [0]}, "'0' is not a tag"),
        (CONLLU, {"tokens": ["a"], "tags": [-100]}, r"'tags' is \[-100\]; expected a list of strings"),
        (NER, {"tokens": ["a"], "tags": ["X"]}, "'X' is not a tag"),
        (SNLI, {"premise": ["a"], "hypothesis": [], "label": "x"}, "there is a text without a token"),
        (ROLES, PROPOSITION | {"tokens": [], "tags": []}, "there is a text without a token"),
        (ROLES, PROPOSITION | {"predicate": 2}, "no token 2 in a sentence of 2 tokens; expected the index of"),
        (ROLES, PROPOSITION | {"tags": ["ARG1", "B-V"]}, "'ARG1' is not a tag of IOB2; expected O or a tag such as"),
        (SQUAD, UNANSWERED, "no answer; expected one, as in SQuAD v1.1"),
        (SQUAD, ANSWER | {"answers": ["a", "b"]}, "2 answers and 1 spans; expected a span for each answer"),
        (SQUAD, ANSWER | {"answer_spans": [[1, 2]]}, r"the answer span \[1, 2\]; expected \[first, last token\]"),
        (SQUAD, ANSWER | {"answer_spans": [[1, 0]]}, r"the answer span \[1, 0\]; expected \[first, last token\]"),
        (SQUAD, ANSWER | {"answer_spans": []}, "1 answers and 0 spans; expected a span for each answer"),
        (SQUAD, ANSWER | {"answer_spans": [[1]]}, r"the answer span \[1\]; expected \[first, last token\]"),
        (SQUAD, ANSWER | {"token_ends": [1]}, "expected a start and an end for each token"),
        (SQUAD2, UNANSWERED | {"question_tokens": []}, "there is a text without a token"),
        (SQUAD2, UNANSWERED | {"token_starts": [], "token_ends": []}, "there is a text without a token"),
        (SQUAD, ANSWER | {"token_ends": [1, 2]}, "in order, in a passage of 3 characters"),
        (SQUAD, ANSWER | {"token_ends": [1, 4]}, "in order, in a passage of 3 characters"),
        (COREF, DOCUMENT | {"clusters": [[[0, 2]]]}, r"the mention \[0, 2\]; expected"),
        (COREF, DOCUMENT | {"sentences": [["a"], [], ["b"]]}, "there is a text without a token"),
        (COREF, {"sentences": [], "clusters": []}, "there is a text without a token"),
        (COREF, DOCUMENT | {"speakers": [["x"]]}, "speakers do not fit the sentences"),
        *((reader, {"tokens": ["a", "b"], "tags": ["O"] * number, "predicate": 1}, f"{number} tags for 2 tokens")
          for reader in (NER, CONLLU, ROLES) for number in (1, 3)),
        (SST, {"tokens": "a b", "label": "3"}, "'tokens' is 'a b'; expected a list of strings"),
        (COREF, {"sentences": [["a"]], "clusters": [[0]]}, "of lists of lists of whole numbers"),
        (SQUAD, {"question": "a"}, "there is no 'question_tokens'; expected a list of strings"),
    ],
)  # fmt: skip
def test_wrong_values_are_named(reader: Settings, example: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=r"^memory:[0-9a-f]{16}: example 0(, token 0)?: .*" + message):
        build(reader).read([example])


@pytest.mark.parametrize(
    ("reader", "example"),
    [
        (ROLES, PROPOSITION),
        (SQUAD, ANSWER),
        (SQUAD2, UNANSWERED),
        (COREF, DOCUMENT),
        (RATINGS, {"tokens": ["a"], "score": int(sys.float_info.max)}),
    ],
)
def test_examples_without_a_fault_are_read(reader: Settings, example: dict[str, object]) -> None:
    assert len(build(reader).read([example])) == 1


def test_class_ids_get_the_names_of_their_data_set(caplog: pytest.LogCaptureFixture) -> None:
    def labelled(names: list[str], ids: list[int]) -> datasets.Dataset:
        features = {"tokens": datasets.Sequence(datasets.Value("string")), "label": datasets.ClassLabel(names=names)}
        return datasets.Dataset.from_dict({"tokens": [["a"]] * len(ids), "label": ids}, datasets.Features(features))

    reader = build(SST | {"on_error": "skip"})
    caplog.set_level("INFO", "elmo_tasks")
    assert reader.read(labelled(["bad", "good"], [1, 0]))["label"][:] == ["good", "bad"]
    assert reader.read(labelled(["good", "bad"], [1, 0]))["label"][:] == ["bad", "good"]
    assert reader.read(labelled(["good", "bad"], [-1, 0]))["label"][:] == ["good"]
    assert ": 1 row(s) without a gold label left out" in caplog.text
    with pytest.raises(DataError, match="has no example; 2 row\\(s\\) without a gold label left out"):
        build(SST).read(labelled(["good", "bad"], [-1, -1]))


def test_class_ids_of_tags_become_names() -> None:
    tags = datasets.Sequence(datasets.ClassLabel(names=["O", "B-LOC"]))
    features = datasets.Features({"tokens": datasets.Sequence(datasets.Value("string")), "tags": tags})
    given = datasets.Dataset.from_dict({"tokens": [["Oslo", "sleeps"]], "tags": [[1, 0]]}, features)
    assert build(NER).read(given)["tags"][:] == [["U-LOC", "O"]]


@pytest.mark.parametrize("reader", [NER, {"type": "jsonl", "task": "tagging", "tag_scheme": "BIOUL"}])
def test_tags_in_another_scheme_are_converted_and_bad_examples_skipped(
    reader: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    given = [
        {"tokens": ["Mary", "left", "New", "Brusk"], "tags": ["B-PER", "O", "B-LOC", "I-LOC"]},
        {"tokens": ["Brusk"], "tags": ["LOC"]},
        {"tokens": ["Brusk"], "tags": []},
        {"tokens": ("Tavo", "left"), "tags": ("B-PER", "O")},
    ]
    found = build(reader | {"on_error": "skip"}).read(given)
    assert found["tags"][:] == [["U-PER", "O", "B-LOC", "L-LOC"], ["U-PER", "O"]]
    assert found["line"][:] == [0, 3]
    assert "example 1, token 0: 'LOC'" in caplog.text
    assert "example 2: 0 tags for 1 tokens" in caplog.text


@pytest.mark.parametrize(
    ("reader", "own", "of_the_task"),
    [
        (SST, {"text": "It's fine.", "label": "3"}, {"tokens": ["It", "'s", "fine", "."], "label": "3"}),
        (SST, {"text": "No", "label": 3}, {"tokens": ["No"], "label": "3"}),
        (SST, {"text": "No", "label": True}, {"tokens": ["No"], "label": "true"}),
        (CONLLU, {"tokens": ["a", "b"], "tags": [3, 4]}, {"tokens": ["a", "b"], "tags": ["3", "4"]}),
        *((SST, {"text": text, "tokens": ["It"], "label": "3"}, {"tokens": ["It"], "label": "3"})
          for text in ("No.", ["No"])),
        (STARS, {"review": "It's fine.", "stars": "5"}, {"tokens": ["It", "'s", "fine", "."], "label": "5"}),
        (STARS, {"text": "It's fine.", "label": "5"}, {"tokens": ["It", "'s", "fine", "."], "label": "5"}),
        (SNLI, {"premise": "It's Bo.", "hypothesis": ["Bo"], "label": "x"},
         {"premise": ["It", "'s", "Bo", "."], "hypothesis": ["Bo"], "label": "x"}),
        (PAIRS, {"q1": "Who?", "q2": "Who now?", "same": "yes"},
         {"premise": ["Who", "?"], "hypothesis": ["Who", "now", "?"], "label": "yes"}),
        *((LINES | {"columns": {"text": name}}, {name: ["It's"], "label": "5"}, {"tokens": ["It's"], "label": "5"})
          for name in ("review", "tokens")),
        # The columns of the config are read, as from files
        (STARS, {"text": "No.", "review": "It's fine.", "label": "1", "stars": "5"},
         {"tokens": ["It", "'s", "fine", "."], "label": "5"}),
        (STARS, {"review": "Fine.", "tokens": ["No"], "stars": "5"}, {"tokens": ["Fine", "."], "label": "5"}),
        (SWAPPED, {"premise": "Who?", "hypothesis": "Who now?", "label": "yes"},
         {"hypothesis": ["Who", "?"], "premise": ["Who", "now", "?"], "label": "yes"}),
    ],
)  # fmt: skip
def test_texts_and_own_columns(reader: Settings, own: dict[str, Any], of_the_task: dict[str, Any]) -> None:
    for given in ([own], datasets.Dataset.from_list([own])):
        plain = {key: reader[key] for key in reader if key != "columns"}
        assert build(reader).read(given).to_list() == build(plain).read([of_the_task]).to_list()
