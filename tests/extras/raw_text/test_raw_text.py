"""What is shared by all that reads raw text with a biLM."""

import json
from pathlib import Path

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.raw_text import find_token, tokenizer_of_bilm
from elmo_tasks.extras.raw_text.tokenizers import UnicodeTokenizer
from elmo_tasks.text.tokenizers import TreebankTokenizer


def test_the_tokenizer_of_a_bilm(tmp_path: Path) -> None:
    assert type(tokenizer_of_bilm(tmp_path)) is TreebankTokenizer
    for corpus in ({"tokenizer": "unicode"}, {"dataset_reader": {"tokenizer": {"type": "unicode"}}}):
        (tmp_path / "config.json").write_text(json.dumps({"corpus": corpus}))
        assert type(tokenizer_of_bilm(tmp_path)) is UnicodeTokenizer
    (tmp_path / "config.json").write_text('{"corpus": {"tokenized": true}}')
    assert type(tokenizer_of_bilm(tmp_path)) is TreebankTokenizer


def test_a_token_is_found_whatever_its_case_and_marked_in_its_sentence() -> None:
    token = find_token(["The", "dog", "let", "out", "a", "sharp", "Bark", "."], "bark")
    assert (token.index, token.word) == (6, "Bark")
    assert token.marked() == "The dog let out a sharp [Bark] ."


def test_what_cannot_be_found_is_named() -> None:
    with pytest.raises(ElmoTasksError, match=r"'bird' is not in 'a dog'"):
        find_token(["a", "dog"], "bird")
    with pytest.raises(ElmoTasksError, match=r"'A' occurs 2 times in 'a dog and a cat'"):
        find_token(["a", "dog", "and", "a", "cat"], "A")
