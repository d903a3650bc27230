from __future__ import annotations

import json
import re

import pytest

from elmo_tasks.files.installed_models import model_named
from elmo_tasks.rendering.drawing import PALETTE, Colors
from elmo_tasks.rendering.label_meanings import legend

TAGGERS = ("ner", "pos", "predicates", "roles")


def kinds_of(model: str) -> set[str]:
    """The labels of a trained model, without `B-` and the like."""
    pytest.importorskip("elmo_tasks_models", reason="the trained models are not installed")
    installed = model_named(model)
    assert installed
    vocabulary = installed.folder / "vocabulary.json"
    tags = json.loads(vocabulary.read_text(encoding="utf-8"))["labels"]["tags"]
    return {re.sub("^[BILU]-", "", tag) for tag in tags} - {"O"}


@pytest.mark.parametrize("model", TAGGERS)
def test_each_label_of_the_trained_models_is_explained(model: str) -> None:
    found = legend(sorted(kinds_of(model)))
    assert [label for label, each in found.items() if not each["meaning"]] == []


def test_labels_of_one_class_have_one_colour_and_punctuation_has_none() -> None:
    found = {
        label: each["color"] for label, each in legend(["NN", "NNS", "NNP", "NNPS", "IN", "VBD", ",", "``"]).items()
    }
    assert found["NN"] == found["NNS"]
    assert found["NNP"] == found["NNPS"]
    assert len({found["NN"], found["NNP"], found["IN"], found["VBD"]}) == 4
    assert (found[","], found["``"]) == (None, None)


def test_roles_that_continue_or_refer_are_explained_and_coloured_by_what_they_belong_to() -> None:
    found = legend(["ARG1", "C-ARG1", "R-ARG1"])
    assert {each["color"] for each in found.values()} == {1}
    assert found["C-ARG1"]["meaning"] == "continues: patient: whom or what it happens to"
    assert found["R-ARG1"]["meaning"] == "refers to: patient: whom or what it happens to"


def test_labels_of_another_set_are_not_explained() -> None:
    assert [each["meaning"] for each in legend(["LOC", "GENE", "DRUG"]).values()] == [None] * 3
    assert legend([]) == {}


def test_chains_have_the_colours_of_their_numbers_whichever_comes_first() -> None:
    colors, count = Colors(), len(PALETTE)
    assert [colors[str(number)] for number in (3, 1, count, count + 1)] == [2, 0, count - 1, 0]
