"""Resolved texts: what a person would write."""

from __future__ import annotations

from typing import Any

import pytest

from elmo_tasks.extras.resolve.resolution import resolved_text

# Sentences with the mentions of a chain between equal digits: `<1 Orla> sold <1 her> boat`.
CASES = {
    "<1 Orla> sold <2 <1 her> boat> . <2 It> sank .": "Orla sold Orla's boat . Her boat sank .",
    "<1 The miller> came , and Bo saw <1 him> .": "The miller came , and Bo saw the miller .",
    "Bo saw <1 the miller> . <1 He> left .": "Bo saw the miller . The miller left .",
    "<1 The sailors> lost <1 their> ship .": "The sailors lost the sailors' ship .",
    "<1 He> left . Then <1 Tavo> wept .": "Tavo left . Then Tavo wept .",
    "<1 I> hope that <1 my> boat floats .": "I hope that my boat floats .",
    "<1 Tavo 's> boat is <1 his> pride .": "Tavo 's boat is Tavo's pride .",
    "<2 <1 The man> 's dog> slept . <2 It> saw <1 him> .": "The man 's dog slept . The man 's dog saw the man .",
    "Bo told <1 Ann> that <1 her> mother had called <1 her> .": "Bo told Ann that Ann's mother had called Ann .",
    "<1 Ann> slept .": "Ann slept .",
    "<1 Ann> has <2 a boat> . <2 The boat> is <1 hers> .": "Ann has a boat . A boat is Ann's .",
    "<1 Tavo> came . The boat is <1 his> .": "Tavo came . The boat is Tavo's .",
    "<1 The gold mine> closed . Bo saw <1 the mine> .": "The gold mine closed . Bo saw the gold mine .",
    "<1 Ann 's friend who said <1 she> left> slept . <1 She> woke .": (
        "Ann 's friend who said she left slept . Ann 's friend who said she left woke ."
    ),
    "<1 Ida> came . <1 Her> Majesty spoke . Bo saw <1 her> .": "Ida came . Her Majesty spoke . Bo saw Ida .",
    "<1 Ida> came . <1 Her Majesty> spoke .": "Ida came . Ida spoke .",
    "<1 Her Majesty> spoke . Bo saw <1 her> .": "Her Majesty spoke . Bo saw Her Majesty .",
}


def result_of(text: str) -> dict[str, Any]:
    """A result of coreference."""
    tokens: list[str] = []
    open_mentions: list[tuple[int, int]] = []
    clusters: dict[int, list[list[int]]] = {}
    for piece in text.split():
        if piece.startswith("<"):
            open_mentions.append((int(piece[1:]), len(tokens)))
            continue
        word = piece.rstrip(">")
        tokens.append(word)
        for _ in range(len(piece) - len(word)):
            number, start = open_mentions.pop()
            clusters.setdefault(number, []).append([start, len(tokens) - 1])
    ends = [place for place, token in enumerate(tokens, start=1) if token == "."]
    sentences = [tokens[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    return {"sentences": sentences, "clusters": [sorted(each) for each in clusters.values() if len(each) > 1]}


@pytest.mark.parametrize("text", CASES)
def test_mentions_become_names(text: str) -> None:
    assert resolved_text(result_of(text)).replace("\n", " ") == CASES[text]


def test_tags_tell_possessives() -> None:
    result = result_of("<1 Ann> came . Bo saw <1 her> yesterday .")
    assert resolved_text(result).endswith("Bo saw Ann's yesterday .")
    tags = [["NNP", "VBD", "."], ["NNP", "VBD", "PRP", "NN", "."]]
    assert resolved_text(result, lambda sentences: tags).endswith("Bo saw Ann yesterday .")


@pytest.mark.parametrize("gap", [" ", "\n"])
def test_a_pronoun_before_a_line_break(gap: str) -> None:
    result = result_of("<1 Ann> came . Bo lost <1 her> boat .")
    for word, new in (("boat", "Ann's"), ("Then", "Ann" if gap == "\n" else "Ann's")):
        text = f"Ann came . Bo lost her{gap}{word} ."
        offsets = [[[0, 3], [4, 8], [9, 10]], [[11, 13], [14, 18], [19, 22], [23, 27], [28, 29]]]
        result["sentences"][1][3] = word
        assert resolved_text(result | {"text": text, "offsets": offsets}) == text.replace("her", new)


def test_blanks_of_the_text_stay() -> None:
    result = {
        "text": "Ann  left.\nShe slept.",
        "sentences": [["Ann", "left", "."], ["She", "slept", "."]],
        "offsets": [[[0, 3], [5, 9], [9, 10]], [[11, 14], [15, 20], [20, 21]]],
        "clusters": [[[0, 0], [3, 3]]],
    }
    assert resolved_text(result) == "Ann  left.\nAnn slept."
