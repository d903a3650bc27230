from __future__ import annotations

import pytest

from elmo_tasks.text.tokenizers import TREEBANK


def sentences(text: str) -> list[str]:
    return [" ".join(sentence) for sentence in TREEBANK.strings(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She walked in the park.", "She walked in the park ."),
        ("I don't, can't and cannot.", "I do n't , ca n't and can not ."),
        ("In the 1990\u2019s", "In the 1990 \u2019s"),
        ("Don\u2019t say it\u2019s Ann\u2019s.", "Do n\u2019t say it \u2019s Ann \u2019s ."),
        ("It cost $5.50, £3 or €1,000.", "It cost $ 5.50 , £ 3 or € 1,000 ."),
        ("A well-known 5% rise at 5:30", "A well-known 5 % rise at 5:30"),
        ('"Why," she asked (twice) [so]', '" Why , " she asked ( twice ) [ so ]'),
        ("“Yes,” he said ``now''.", "“ Yes , ” he said `` now '' ."),
        ("the dogs' bowls and 'ours'", "the dogs ' bowls and ' ours '"),
        ("Wait... no -- wait… yes", "Wait ... no -- wait … yes"),
        ("See https://a.example/b?c=d&e, or www.b.example.", "See https://a.example/b?c=d&e , or www.b.example ."),
        ("Write to ann.lee+x@mail.example.org!", "Write to ann.lee+x@mail.example.org !"),
        ("Q&A at B&B; salt & pepper", "Q&A at B&B ; salt & pepper"),
        ("She lives in the U.S.", "She lives in the U.S."),
        ('He said "Wow." and (to cats, dogs, etc.) no.', 'He said " Wow . " and ( to cats , dogs , etc. ) no .'),
        ('Say "Yes."; (not "No."), or *go.*', 'Say " Yes . " ; ( not " No . " ) , or * go . *'),
        ("an U.S.-based firm, i.e. at 5 p.m. sharp", "an U.S.-based firm , i.e. at 5 p.m. sharp"),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert sentences(text) == [expected]


def test_a_blank_line_ends_a_sentence() -> None:
    text = "A heading\r\nOne line\r\nand another.\r\n \r\nThe end"
    assert sentences(text) == ["A heading One line and another .", "The end"]


def test_nothing_but_white_space_has_no_sentence() -> None:
    assert TREEBANK.tokenize("") == TREEBANK.tokenize(" \n\t\r\n \u2003 ") == []


def test_a_long_text_has_the_sentences_of_its_parts() -> None:
    part = "Mr. Lee left the U.S. in 1996. She stayed, and so did J. Moe! "
    assert sentences(part * 800) == sentences(part) * 800


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    assert [len(sentence) for sentence in TREEBANK.tokenize("words " * 4000)] == [3333, 667]  # 20,000 characters
    assert {token.text for sentence in TREEBANK.tokenize("words " * 4000) for token in sentence} == {"words"}
