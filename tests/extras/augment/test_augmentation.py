"""Changed copies of training examples: their texts and labels, and of which examples they are."""

from typing import Any

import datasets
import pytest

from elmo_tasks.data_readers.reader import PLACE_FEATURES
from elmo_tasks.data_readers.sources import features_of
from elmo_tasks.extras.augment.augmentation import Change, ChangedCopies, changed
from elmo_tasks.tasks import Classification, Coreference, SemanticRoles, Tagging, Task, TextPairs

NAMES, PARTS, ROLES = Tagging("BIOUL"), Tagging(), SemanticRoles()
SENTENCE = {"tokens": ["Mira", "McKay", "does", "n't", "like", "IKEA", "."], "line": 5}
TAGS = ["B-PER", "L-PER", "O", "O", "O", "U-ORG", "O"]
DOCUMENT = {
    "sentences": [["Ada", "sang", "."], ["She", "left", "."]],
    "speakers": [["Bob"] * 3, ["Ada"] * 3],
    "clusters": [[[0, 0], [3, 3]]],
}


@pytest.mark.parametrize(
    ("change", "tokens"),
    [
        ("lower", ["mira", "mckay", "does", "n't", "like", "ikea", "."]),
        ("upper", ["MIRA", "MCKAY", "DOES", "N'T", "LIKE", "IKEA", "."]),
        ("title", ["Mira", "McKay", "Does", "n't", "Like", "IKEA", "."]),
    ],
)
def test_the_case_of_a_sentence_changes_and_nothing_else(change: Change, tokens: list[str]) -> None:
    example = {**SENTENCE, "tags": TAGS}
    assert changed(example, change, NAMES) == {**example, "tokens": tokens}
    assert example["tokens"] == SENTENCE["tokens"]
    assert changed({**example, "tokens": tokens}, change, NAMES) is None


def test_the_case_of_a_whole_document_changes() -> None:
    sentences = [["ADA", "SANG", "."], ["SHE", "LEFT", "."]]
    assert changed(DOCUMENT, "upper", Coreference()) == {**DOCUMENT, "sentences": sentences}
    assert changed(DOCUMENT, "no_final_mark", Coreference()) is None


@pytest.mark.parametrize(
    ("task", "tokens", "tags", "predicate", "has_copy"),
    [
        (NAMES, ["Oslo", "."], ["U-LOC", "O"], None, True),
        (NAMES, ["Oslo", "!"], ["U-LOC", "O"], None, True),
        (NAMES, ["Yahoo", "!"], ["B-ORG", "L-ORG"], None, False),
        (NAMES, ["Oslo", ","], ["U-LOC", "O"], None, False),
        (NAMES, ["?"], ["O"], None, False),
        (PARTS, ["Stop", "."], ["VB", "."], None, True),
        (ROLES, ["Stop", "."], ["B-V", "O"], 0, True),
        (ROLES, ["Stop", "."], ["B-V", "B-ARG1"], 0, False),
        (ROLES, ["Oslo", "?"], ["O", "O"], 1, False),
    ],
)
def test_a_final_mark_is_left_out_with_its_tag_if_it_is_in_no_span(
    task: Task, tokens: list[str], tags: list[str], predicate: int | None, has_copy: bool
) -> None:
    example: dict[str, Any] = {"tokens": tokens, "tags": tags}
    example |= {} if predicate is None else {"predicate": predicate, "lemma": "x"}
    expected = {**example, "tokens": tokens[:-1], "tags": tags[:-1]} if has_copy else None
    assert changed(example, "no_final_mark", task) == expected


def sentences(number: int) -> datasets.Dataset:
    """Sentences with names of their own, each with two predicates in lines of their own."""
    rows = [
        {"tokens": [f"Ada{row}", "came", "and", "sang", "."], "predicate": predicate, "lemma": "x", "document": None}
        | {"tags": ["B-ARG0", *("B-V" if place == predicate else "O" for place in range(1, 5))], "sentence": row}
        | {"file": 0, "line": 10 * row + predicate}
        for row in range(number)
        for predicate in (1, 3)
    ]
    features = features_of({**ROLES.features, **PLACE_FEATURES})
    return datasets.Dataset.from_list(rows, features=features)


def test_copies_of_shares_of_the_sentences_follow_the_data() -> None:
    data = sentences(20)
    augment = ChangedCopies(lower=0.3, upper=0.2, no_final_mark=0.5)
    found = augment.with_copies(data, ROLES)
    assert found.features == data.features
    rows, copies = found.to_list()[:40], found.to_list()[40:]
    assert rows == data.to_list()
    numbers = [copy["sentence"] for copy in copies]
    assert numbers[::2] == numbers[1::2]  # both predicates of each
    assert sorted(numbers[::2]) == list(range(20))  # the shares add up to 1
    assert [copy["tokens"][0][:3] for copy in copies] == ["ada"] * 12 + ["ADA"] * 8 + ["Ada"] * 20
    assert [len(copy["tokens"]) for copy in copies] == [5] * 20 + [4] * 20
    originals = {row["line"]: row for row in rows}
    for copy in copies:
        original = originals[copy["line"]]
        assert copy["tags"] == original["tags"][: len(copy["tokens"])]
        assert {**copy, "tokens": 0, "tags": 0} == {**original, "tokens": 0, "tags": 0}
    assert augment.with_copies(data, ROLES).to_list() == found.to_list()
    assert numbers[:12:2] != sorted(numbers)[:12:2]  # not the first ones


def test_examples_that_a_change_leaves_alone_have_no_copy(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    rows = [{"tokens": [token], "tags": ["O"], "document": 0, "sentence": 0} for token in ("Oslo", "oslo", "7")]
    data = datasets.Dataset.from_list(rows, features=features_of(Tagging.features))
    copies = ChangedCopies(lower=1, upper=1, title=1).with_copies(data, NAMES).to_list()[3:]
    assert [copy["tokens"] for copy in copies] == [["oslo"], ["OSLO"], ["OSLO"], ["Oslo"]]
    assert caplog.messages == ["augment: changed copies added to the training examples: lower 1, upper 2, title 1"]
    assert ChangedCopies().with_copies(data, NAMES).to_list() == rows
    assert caplog.messages[1:] == ["augment: changed copies added to the training examples: none"]


def test_other_tasks_are_refused() -> None:
    assert ChangedCopies(lower=0.1).fault(Coreference()) is None
    assert ChangedCopies(no_final_mark=0.1).fault(ROLES) is None
    expected = "no_final_mark: expected a task of single sentences, got coreference"
    assert ChangedCopies(no_final_mark=0.1).fault(Coreference()) == expected
    expected = "expected one of the tasks tagging, semantic_roles, coreference, classification, got text_pairs"
    assert ChangedCopies(lower=0.1).fault(TextPairs()) == expected


@pytest.mark.parametrize(
    ("tokens", "change", "copies"),
    [
        (["So", "Good", "!"], "upper", [["SO", "GOOD", "!"]]),
        (["So", "Good", "!"], "lower", [["so", "good", "!"]]),
        (["So", "Good", "!"], "no_final_mark", [["So", "Good"]]),
        (["So", "Good"], "no_final_mark", []),
        (["!"], "no_final_mark", []),
    ],
)
def test_copies_of_labelled_texts_keep_the_label(tokens: list[str], change: str, copies: list[list[str]]) -> None:
    data = datasets.Dataset.from_list(
        [{"tokens": tokens, "label": "praise"}], features=features_of(Classification.features)
    )
    found = ChangedCopies.model_validate({change: 1.0}).with_copies(data, Classification()).to_list()
    assert found == [{"tokens": each, "label": "praise"} for each in (tokens, *copies)]
