from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize.destructive import NLTKWordTokenizer

from elmo_tasks.text.word_tokenizer import WordTokenizer

_PIECES = """
    a Cannot d'ye GIMME gonna Gotta lemme more'n Wanna 'Tis 'twas 's 'LL n't 're ' '' ` `` " “ ” \u2018 \u2019 „ « »
    . .. : , 5 ; @ # $ % & - -- \u2012 \u2015 ? ! * [ ] ( ) { } < > \u0131 \u0130 \u017f \u212a
"""
PIECES = _PIECES.split()


def check(text: str) -> None:
    """Nothing but the time differs from what NLTK does."""
    text = " ".join(text.split())
    assert WordTokenizer().tokenize(text) == NLTKWordTokenizer().tokenize(text)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from([*PIECES, " ", " "]), max_size=25).map("".join) | st.text(max_size=60))
@example("\" Say \"no\", I cannot -- 'tis more'n I'll do: (gimme [a] break)...")
def test_any_text(text: str) -> None:
    check(text)


@pytest.mark.parametrize("piece", PIECES)
def test_every_piece(piece: str) -> None:
    for text in (piece, f"a{piece}b", f"a {piece} b", f"a {piece}b", f"a{piece} b", f"{piece}."):
        check(text)


def test_expressions_of_another_release_are_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_tasks.text.word_tokenizer._NEEDS", {})
    from elmo_tasks.text.word_tokenizer import _Rule

    assert _Rule(re.compile("b+")).sub("x", "abbc") == "axc"
    assert _Rule(re.compile("(?i)b+")).sub("x", "aBbc") == "axc"
