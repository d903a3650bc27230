"""The Treebank's rules for words give what NLTK's tokenizer gives, which has the same rules."""

# ruff: noqa: RUF001

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from elmo_tasks.files.text import read_lines
from elmo_tasks.text.tokenization import rule_tokenizer

nltk = pytest.importorskip("nltk.tokenize.destructive")
# What NLTK's tokenizer would rewrite or not split off, and characters in their place that it splits off as they are.
STAND_INS = str.maketrans({'"': "”", "…": "—", "€": "$", "£": "$", "¥": "$"})
PIECES = """
    a b Zoe word U.S. Mr. etc. . .. ... ? ! " '' ' `` ` ’ “ ” ‘ „ « » 's 'S 'm 'd 'll 'LL 're 've n't N'T t s re n
    cannot CanNot d'ye gimme gonna gotta lemme more'n wanna 'tis 'Twas $ € £ ¥ 5 3:30 1,000 , : ; & @ # % * _ / \\
    http:// a@b.c - -- --- ( ) [ ] { } < > … – — ä ſ 我 \u0308 \u00ad
"""
TEXTS = re.compile(r'"(?:context|question)": ("(?:[^"\\]|\\.)*")|^# text = (.*)$', re.MULTILINE)


def check(text: str) -> None:
    """The lengths of words say where each begins, since both leave out nothing but spaces."""
    sentence = " ".join(text.split())
    expected = nltk.NLTKWordTokenizer().tokenize(sentence.translate(STAND_INS))
    assert list(map(len, rule_tokenizer().words(sentence))) == list(map(len, expected)), sentence


def random_texts(count: int) -> Iterator[str]:
    draw = random.Random(1)
    for _ in range(count):
        yield "".join(draw.choice([*PIECES.split(), *[" "] * 12]) for _ in range(draw.randint(1, 16)))


def test_random_texts_as_nltk() -> None:
    for text in random_texts(4_000):
        check(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "at_least"),
    [
        ("squad/dev-v1.1.json", 12_000),
        ("pos_ud_ewt/en_ewt-ud-dev.conllu", 2_001),
        ("pos_ud_ewt/en_ewt-ud-test.conllu", 2_077),
    ],
)
def test_benchmarks_as_nltk(data_folder: Path, name: str, at_least: int) -> None:
    text = "\n".join(line for _, line in read_lines(data_folder / name))
    found = [json.loads(quoted) if quoted else plain for quoted, plain in TEXTS.findall(text)]
    assert len(found) >= at_least
    for each in found:
        check(each)
