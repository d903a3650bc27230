from __future__ import annotations

import dataclasses

import pytest

from elmo_tasks.rendering.drawing import PALETTE, Bars, Colors, HeatMap, Mark, MarkedText, Part, Rows, ShadedText
from elmo_tasks.rendering.html import Page


def test_labels_get_colors_in_turn_and_keep_them() -> None:
    colors = Colors()
    labels = [f"label {number}" for number in range(len(PALETTE) + 2)]
    assert [colors[label] for label in labels] == [*range(len(PALETTE)), 0, 1]
    assert [colors[label] for label in labels[:3]] == [0, 1, 2]


def test_weights_are_shares_of_the_largest() -> None:
    assert ShadedText("a b", [(0, 1), (2, 3)], [0.1, 0.4]).shares() == [0.25, 1]
    assert ShadedText("a b", [(0, 1), (2, 3)], [0.0, 0.0]).shares() == [0, 0]
    assert ShadedText("", [], []).shares() == []


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (Mark(0, 1, "X"), "label"),
        (MarkedText("a"), "text"),
        (ShadedText("a", ((0, 1),), (1.0,)), "weights"),
        (Bars((("a", 1.0),)), "shares"),
        (HeatMap(("a",), ("b",), ((1.0,),)), "values"),
        (Rows((("a", "b"),)), "items"),
        (Page("<p>a</p>"), "html"),
    ],
)
def test_a_described_result_cannot_change_and_can_be_a_key(part: Mark | Part | Page, name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(part, name, "other")
    assert {part: 1}[dataclasses.replace(part)] == 1
