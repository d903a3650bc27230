"""Extras that are not there: what they add is not there either, nor what needs them, and messages name them."""

import importlib.util
import math
from typing import Any

import pytest

from elmo_tasks import hooks
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras import EXTRAS


def test_an_extra_needs_others_and_what_these_need(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Any = importlib.util.find_spec
    missing = "elmo_tasks.extras.tables"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == missing else find(name, *rest))
    hooks.extras.cache_clear()
    without = hooks.extras()
    hooks.extras.cache_clear()
    assert EXTRAS.keys() - without.keys() == {"tables", "pretraining", "server", "teaching", "export"}
    monkeypatch.undo()
    assert hooks.extras() == EXTRAS


def test_what_is_registered_last_is_found() -> None:
    for value in (1, 2):
        hooks.register("a place of tests", "one", value)
        assert (hooks.names("a place of tests"), hooks.find("a place of tests", "one")) == (["one"], value)
    hooks.announce("a place of tests", {"two": "math:pi"})
    assert (hooks.names("a place of tests"), [*hooks.everything("a place of tests")]) == (["one", "two"], [2, math.pi])


@pytest.mark.parametrize(
    ("name", "what", "problem"),
    [
        ("pdf", "--pdf", "--pdf: is in an extra, which is not installed here"),
        ("html", "", "html: is in the extra 'html', which is not installed here"),
    ],
)
def test_what_is_not_there_is_in_an_extra(name: str, what: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hooks.required("page", "html")
    monkeypatch.setattr(hooks, "find", lambda *_: None)
    with pytest.raises(ElmoTasksError) as caught:
        hooks.required("page", name, what)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("module", "error", "problem"),
    [
        ("elmo_tasks.extras.html.none", ElmoTasksError, "^this is in the extra 'html', which is not installed here$"),
        ("elmo_tasks.extras", ElmoTasksError, "^this is in an extra, which is not installed here$"),
        ("nopackage", ModuleNotFoundError, "nopackage"),
        (None, ModuleNotFoundError, "not found"),
    ],
)
def test_imports_of_extras(module: str | None, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem), hooks.importing_extra():
        raise ModuleNotFoundError(f"{module} not found", name=module)
