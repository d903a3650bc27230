"""What a config and its weights know about their use."""

from __future__ import annotations

import pytest
import torch

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import Params, Weights

VALUES = {"a": 1, "b": {"c": 2, "d": None, "e": {"f": [1, 2]}}, "g": "text"}


def test_what_was_not_read_is_known_by_its_path() -> None:
    params = Params(VALUES)
    assert params.unread() == ["a", "b", "g"]
    assert (params.get("a"), params.part("b").get("c"), params.get("h", 7)) == (1, 2, 7)
    assert params.unread() == ["g", "b.d", "b.e"]
    assert "c" in params.part("b")
    assert "d" not in params.part("b")
    params.ignore("g")
    assert params.part("b").part("e").path("f") == "b.e.f"
    params.part("missing").ignore("x")
    assert params.unread() == ["b.d", "b.e.f"]


def test_wrong_values_are_named() -> None:
    params = Params(VALUES)
    for read, message in (
        (lambda: params.get("h"), "config.json: h is missing"),
        (lambda: params.number("g"), "g is 'text'; expected a number"),
        (lambda: params.part("b").number("e"), "b.e is .*; expected a number"),
        (lambda: Params({"n": 1e9}).number("n"), "n is '1000000000.0'; expected a number, from 0 to 1,048,576"),
        (lambda: Params({"n": (1 << 20) + 1}).number("n"), "n is '1048577'; expected a number, from 0 to 1,048,576"),
        (lambda: Params({"n": -1}).number("n", 0), "n is '-1'; expected a number"),
        (lambda: Params({"n": True}).number("n"), "n is 'True'; expected a number"),
        (lambda: Params({"n": None}).number("n", 3), "n is 'None'; expected a number"),
        (lambda: Params({"n": float("nan")}).number("n"), "n is 'nan'; expected a number"),
        (lambda: params.part("a"), "a is '1'; expected an object"),
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


def test_tensors_are_taken_once() -> None:
    weights = Weights({"x.one": torch.zeros(2, 3), "x.two": torch.zeros(4), "y": torch.zeros(())})
    part = weights.part("x.")
    assert part.names() == ["one", "two"]
    assert part.take("one", 2, None).shape == (2, 3)
    assert "one" not in part
    assert part.take_optional("one") is None
    assert weights.names() == ["x.two", "y"]
    assert part.names() == ["two"]
    assert "two" in part
    assert part.take("two").shape == (4,)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("x.two", (4, 1), "'x.two' is 4; by its config it should be 4 x 1"),
        ("x.two", (3,), "'x.two' is 4; by its config it should be 3"),
        ("x.two", (None, 2), "'x.two' is 4; by its config it should be any x 2"),
        ("x.y", (2,), "'x.y' is a single number; by its config it should be 2"),
        ("x.one", (), "has no tensor 'x.one'"),
    ],
)
def test_tensors_of_another_shape_are_refused(name: str, shape: tuple[int | None, ...], message: str) -> None:
    weights = Weights({"x.two": torch.zeros(4), "x.y": torch.zeros(())})
    with pytest.raises(MigrationError) as error:
        weights.part("x.").take(name.removeprefix("x."), *shape)
    assert message in str(error.value)
