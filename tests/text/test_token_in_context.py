"""A token in its sentence."""

from __future__ import annotations

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.text.token_in_context import find_token


def test_a_token_is_found_whatever_its_case_and_marked_in_its_sentence() -> None:
    token = find_token(["The", "dog", "let", "out", "a", "sharp", "Bark", "."], "bark")
    assert (token.index, token.word) == (6, "Bark")
    assert token.marked() == "The dog let out a sharp [Bark] ."


def test_what_cannot_be_found_is_named() -> None:
    with pytest.raises(ElmoTasksError, match=r"'bird' is not in 'a dog'"):
        find_token(["a", "dog"], "bird")
    with pytest.raises(ElmoTasksError, match=r"'A' occurs 2 times in 'a dog and a cat'"):
        find_token(["a", "dog", "and", "a", "cat"], "A")
