"""The grammar: alternatives, drawn names, spans in brackets, and the rows of CoNLL-2012 that are written from them."""

from __future__ import annotations

import random

from elmo_tasks.sample_data.grammar import bracket_column, conll_2012_rows, parse_grammar, write_sentence
from elmo_tasks.text.tag_schemes import Span

GRAMMAR = """\
# A comment: not a rule
sentence:
    { (A0 [PER the/DT <kind> <@name>/NNP ] ) (V=see.01 saw/VBD ) (A1 <thing> ) } ./.

kind: tall/JJ
# another one
thing: one/CD | two/CD
    three/CD
"""


def test_a_rule_has_its_alternatives_on_one_line_or_on_several() -> None:
    grammar = parse_grammar(GRAMMAR)
    assert list(grammar) == ["sentence", "kind", "thing"]
    assert grammar["kind"] == ["tall/JJ"]
    assert grammar["thing"] == ["one/CD", "two/CD", "three/CD"]


def test_a_sentence_has_its_tokens_and_its_spans_in_the_order_of_their_ends() -> None:
    drawn = set()
    for seed in range(20):
        sentence = write_sentence(parse_grammar(GRAMMAR), "sentence", {"name": ["Orla", "Mira"]}, random.Random(seed))
        the, tall, name, saw, thing, end = sentence.tokens
        assert (the, tall, saw, end) == ("The", "tall", "saw", ".")
        drawn |= {name, thing}
        assert sentence.parts_of_speech == ["DT", "JJ", "NNP", "VBD", "CD", "."]
        person, agent, verb, patient, frame = sentence.spans
        assert [(each.bracket, each.label, each.start, each.end) for each in sentence.spans] == [
            ("[", "PER", 0, 2), ("(", "A0", 0, 2), ("(", "V=see.01", 3, 3), ("(", "A1", 4, 4), ("{", "", 0, 4),
        ]  # fmt: skip
        assert frame.inner == [agent, verb, patient]
        assert agent.inner == [person]
        assert sentence.spans_in("[") == [Span("PER", 0, 2)]
    assert drawn == {"Orla", "Mira", "one", "two", "three"}


def test_only_the_first_letter_of_a_sentence_is_made_a_capital() -> None:
    (token,) = write_sentence({"s": ["mcDONALD/NNP"]}, "s", {}, random.Random(1)).tokens
    assert token == "McDONALD"


def test_rows_of_conll_2012() -> None:
    sentence = write_sentence({"s": ["orla/NNP ran/VBD far/RB"]}, "s", {}, random.Random(1))
    columns = [["(A0*)", "(V*)", "*"], ["(0)", "-", "-"]]
    assert [row.split() for row in conll_2012_rows("d", sentence, columns, "Mira", {1: ("run", "02")})] == [
        ["d", "0", "0", "Orla", "NNP", "(TOP*", "-", "-", "-", "Mira", "*", "(A0*)", "(0)"],
        ["d", "0", "1", "ran", "VBD", "*", "run", "02", "-", "Mira", "*", "(V*)", "-"],
        ["d", "0", "2", "far", "RB", "*)", "-", "-", "-", "Mira", "*", "*", "-"],
        [],
    ]
    assert {row.split()[9] for row in conll_2012_rows("d", sentence, columns) if row} == {"-"}


def test_a_column_of_brackets() -> None:
    spans = [Span("A0", 0, 0), Span("V", 1, 2), Span("A1", 3, 5)]
    assert bracket_column(spans, 7) == ["(A0*)", "(V*", "*)", "(A1*", "*", "*)", "*"]
