"""What a config and its weights know about their use."""

from __future__ import annotations

import pytest
import torch

from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.weights import Weights

VALUES = {"a": 1, "b": {"c": 2, "d": None, "e": {"f": [1, 2]}}, "g": "text"}


def test_what_was_not_read_is_known_by_its_path() -> None:
    params = Params(VALUES)
    assert params.unread() == ["a", "b", "g"]
    assert (params.get("a"), params.part("b").get("c"), params.get("h", 7)) == (1, 2, 7)
    assert params.unread() == ["g", "b.d", "b.e"]
    assert "c" in params.part("b")
    assert "d" not in params.part("b")
    params.ignore("g")
    assert params.part("b").part("e").place("f") == "b.e.f"
    params.part("missing").ignore("x")
    assert params.unread() == ["b.d", "b.e.f"]


def test_wrong_values_are_named() -> None:
    params = Params(VALUES)
    for read, message in (
        (lambda: params.get("h"), "config.json: h is missing"),
        (lambda: params.number("g"), "g is 'text'; wanted a number"),
        (lambda: params.part("b").number("e"), "b.e is .*; wanted a number"),
        (lambda: Params({"n": 1e9}).number("n"), "n is '1000000000.0'; wanted a number, from 0 to 1,048,576"),
        (lambda: Params({"n": (1 << 20) + 1}).number("n"), "n is '1048577'; wanted a number, from 0 to 1,048,576"),
        (lambda: Params({"n": -1}).number("n", 0), "n is '-1'; wanted a number"),
        (lambda: Params({"n": True}).number("n"), "n is 'True'; wanted a number"),
        (lambda: Params({"n": None}).number("n", 3), "n is 'None'; wanted a number"),
        (lambda: Params({"n": float("nan")}).number("n"), "n is 'nan'; wanted a number"),
        (lambda: params.part("a"), "a is '1'; wanted an object"),
        (lambda: params.expect("g", "other", None), "g is text; only other or None can be imported"),
    ):
        with pytest.raises(MigrationError, match=message):
            read()


def test_sizes_counts_and_probabilities_are_numbers() -> None:
    params = Params({"zero": 0, "most": 1 << 20, "share": 0.5})
    assert [params.number(key) for key in ("zero", "most", "share")] == [0, 1 << 20, 0.5]
    assert params.number("missing", None) is None
    assert params.number("missing", 3) == 3


def test_a_key_may_have_one_of_several_values() -> None:
    params = Params({"a": 2, "b": None})
    params.expect("a", 1, 2)
    params.expect("b", None)
    params.expect("missing", 5, default=5)
    with pytest.raises(MigrationError, match="missing is None; only 5 can be imported"):
        params.expect("missing", 5)
    assert params.unread() == []
    assert Params({"x": {"y": 1}}).part("x").place("y") == "x.y"


def test_tensors_are_taken_once() -> None:
    weights = Weights({"x.one": torch.zeros(2, 3), "x.two": torch.zeros(4), "y": torch.zeros(())})
    part = weights.part("x.")
    assert part.names() == ["one", "two"]
    assert part.take("one", 2, None).shape == (2, 3)
    assert "one" not in part
    assert part.take_optional("one") is None
    assert weights.unused() == ["x.two", "y"]
    assert part.unused() == ["x.two"]
    assert "two" in part
    for shape, wanted in (
        ((4, 1), "is 4; by its config it should be 4 x 1"),
        ((3,), "is 4; by its config it should be 3"),
    ):
        again = Weights({"two": torch.zeros(4)})
        with pytest.raises(MigrationError, match=wanted):
            again.take("two", *shape)
    assert Weights({"two": torch.zeros(4)}).take("two").shape == (4,)
    with pytest.raises(MigrationError, match="'y' is a single number; by its config it should be 2"):
        weights.take("y", 2)
    with pytest.raises(MigrationError, match=r"has no tensor 'x\.one'"):
        part.take("one")
    with pytest.raises(MigrationError, match=r"'x\.two' is 4; by its config it should be any x 2"):
        part.take("two", None, 2)
