"""The choice of a tokenizer: in configs, in commands, and by the folder of a biLM."""

from __future__ import annotations

import json
from pathlib import Path

import pydantic
import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.text.tokenizer_config import (
    RegexConfig,
    TokenizerChoice,
    build_tokenizer,
    parse_tokenizer,
    tokenizer_of_bilm,
)
from elmo_tasks.text.tokenizers import RegexTokenizer, TreebankTokenizer, UnicodeTokenizer, WhitespaceTokenizer

CHOICE = pydantic.TypeAdapter(TokenizerChoice)


@pytest.mark.parametrize(
    ("choice", "kind"),
    [
        ('"treebank"', TreebankTokenizer),
        ('"whitespace"', WhitespaceTokenizer),
        ('"unicode"', UnicodeTokenizer),
        ('{"type": "unicode"}', UnicodeTokenizer),
        ('{"type": "regex", "pattern": "a+"}', RegexTokenizer),
    ],
)
def test_choices(choice: str, kind: type) -> None:
    assert type(build_tokenizer(CHOICE.validate_json(choice))) is kind
    assert type(parse_tokenizer(choice if choice.startswith("{") else json.loads(choice))) is kind


def test_wrong_choices() -> None:
    with pytest.raises(pydantic.ValidationError, match=r"'\(' is not a regular expression"):
        RegexConfig(pattern="(")
    for text, problem in (
        ("unicod", "the tokenizer 'unicod': unknown type; expected one of regex, treebank, unicode, whitespace"),
        ("{", "the tokenizer '{': its settings: '{' is not valid Jsonnet"),
        ('{"type": "regex"}', "Field required; expected one of"),
    ):
        with pytest.raises(ElmoTasksError) as caught:
            parse_tokenizer(text)
        assert problem in str(caught.value)


def test_the_tokenizer_of_a_bilm(tmp_path: Path) -> None:
    assert type(tokenizer_of_bilm(tmp_path)) is TreebankTokenizer
    for corpus in ({"tokenizer": "unicode"}, {"dataset_reader": {"tokenizer": {"type": "unicode"}}}):
        (tmp_path / "config.json").write_text(json.dumps({"corpus": corpus}))
        assert type(tokenizer_of_bilm(tmp_path)) is UnicodeTokenizer
    (tmp_path / "config.json").write_text('{"corpus": {"tokenized": true}}')
    assert type(tokenizer_of_bilm(tmp_path)) is TreebankTokenizer
