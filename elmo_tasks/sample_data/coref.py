"""Sample data for coreference, in the columns of CoNLL-2012 with clusters in the last column.

A name does not show whether it names a man or a woman: only the text does, and it differs between documents. So "he"
and "her" can only be resolved from context. In a talk, the column of speakers shows who "I" and "you" are, and "my
brother" depends on who says it. The annotation follows OntoNotes: mentions can be nested, and a mention without another
one for the same thing is not in a cluster.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Mapping, Sequence

from elmo_tasks.data_readers.coreference_column import write_coreference_column
from elmo_tasks.sample_data.grammar import (
    Grammar,
    MarkedSentence,
    conll_2012_rows,
    load_grammar,
    parse_grammar,
    write_sentence,
)
from elmo_tasks.sample_data.task import SampleTask, files_of_splits

_SENTENCES_TO_A_DOCUMENT = 20  # that a document counts as
_PEOPLE = ("A", "B")

_GRAMMAR = load_grammar("coref")
# A person is introduced by name, and later mentioned by name or pronoun.
_PERSON = """\
introduce_{who}:
    ({who} [PERSON <@{who}>/NNP ] ) was/VBD a/DT <age> <kind_{who}> ./.
    ({who} [PERSON <@{who}>/NNP ] ) ,/, the/DT <kind_{who}> ,/, lived/VBD in/IN (P [GPE <@place>/NNP ] ) ./.
kind_{who}: {kind}
kin_{who}: {kin}
{who}: ({who} [PERSON <@{who}>/NNP ] ) | ({who} {subject}/PRP )
{who}_subject: {subject}/PRP
{who}_object: ({who} {object}/PRP )
{who}_possessive: ({who} {possessive}/PRP$ )
"""
_MAN = {
    "kind": "man/NN | king/NN | monk/NN",
    "kin": "brother/NN | uncle/NN | father/NN",
    **{"subject": "he", "object": "him", "possessive": "his"},
}
_WOMAN = {
    "kind": "woman/NN | queen/NN | nun/NN",
    "kin": "sister/NN | aunt/NN | mother/NN",
    **{"subject": "she", "object": "her", "possessive": "her"},
}
_THINGS = ("boat", "clock", "horse", "letter", "lamp")
_OTHER_THINGS = ("hat", "coat", "key", "ring", "book")


@dataclasses.dataclass
class Document:
    """Sentences, the speaker of each, and the mentions of each referent."""

    genre: str
    sentences: list[MarkedSentence] = dataclasses.field(default_factory=list)
    speakers: list[str] = dataclasses.field(default_factory=list)
    mentions: dict[str, list[list[int]]] = dataclasses.field(default_factory=dict)

    def num_tokens(self) -> int:
        return sum(len(sentence.tokens) for sentence in self.sentences)


def _document(names: Sequence[str], is_talk: bool, generator: random.Random) -> Document:
    """A story about two people and a thing, or a talk between two people about a third person."""
    first, second, third, place = generator.sample(names, 4)
    lists = {
        **{"A": [first], "B": [second], "C": [third], "place": [place]},
        **{"thing": [generator.choice(_THINGS)], "other_thing": _OTHER_THINGS},
    }
    return _talk(lists, generator) if is_talk else _story(lists, generator)


def _story(lists: dict[str, Sequence[str]], generator: random.Random) -> Document:
    document = Document("story")
    kinds = generator.sample((_MAN, _WOMAN), 2)
    people = (_PERSON.format(who=who, **kind) for who, kind in zip("AB", kinds, strict=True))
    grammar = {**_GRAMMAR, **parse_grammar("".join(people))}
    symbols = ["introduce_A", "introduce_B", "introduce_T", *["event"] * generator.randint(4, 7)]
    if generator.random() < 0.5:
        symbols += ["together", *["they"] * generator.randint(1, 2)]
    for symbol in symbols:
        _add_sentence(document, grammar, symbol, lists, generator)
    return document


def _talk(lists: dict[str, Sequence[str]], generator: random.Random) -> Document:
    document = Document("talk")
    grammar = {**_GRAMMAR, **parse_grammar(_PERSON.format(who="C", **generator.choice((_MAN, _WOMAN))))}
    symbols = ["greet", "greet", "mention_C", *["say"] * generator.randint(4, 8)]
    turn = 0
    for number, symbol in enumerate(symbols):
        if number == 1 or (number > 1 and generator.random() < 0.6):
            turn += 1
        speaker, listener = _PEOPLE[turn % 2], _PEOPLE[(turn + 1) % 2]
        meanings = {"S": speaker, "L": listener}
        spoken = {**lists, "L": lists[listener]}
        _add_sentence(document, grammar, symbol, spoken, generator, lists[speaker][0], meanings)
    return document


def _add_sentence(
    document: Document,
    grammar: Grammar,
    symbol: str,
    lists: Mapping[str, Sequence[str]],
    generator: random.Random,
    speaker: str = "-",
    meanings: Mapping[str, str] | None = None,
) -> None:
    """Adds a sentence and its mentions. `meanings` maps S and L to the people who speak and listen in this turn."""
    begin = document.num_tokens()
    sentence = write_sentence(grammar, symbol, lists, generator)
    for span in sentence.spans_in("("):
        meaning = (meanings or {}).get(span.label, span.label)
        document.mentions.setdefault(meaning, []).append([begin + span.start, begin + span.end])
    document.sentences.append(sentence)
    document.speakers.append(speaker)


def _lines(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterator[str]:
    """The lines of a file with at least one document. A document counts as 20 sentences."""
    for number in range(max(1, count // _SENTENCES_TO_A_DOCUMENT)):
        document = _document(names, number % 2 == 1, generator)
        name = f"{document.genre}/sample_{number:04}"
        clusters = [sorted(mentions) for mentions in document.mentions.values() if len(mentions) > 1]
        cells = iter(write_coreference_column(clusters, document.num_tokens()))
        yield f"#begin document ({name}); part 000"
        for sentence, speaker in zip(document.sentences, document.speakers, strict=True):
            column = [next(cells) for _ in sentence.tokens]
            yield from conll_2012_rows(name, sentence, [column], speaker)
        yield "#end document"


def _text(names: Sequence[str], generator: random.Random) -> Iterator[list[str]]:
    """The sentences of a story and a talk."""
    for is_talk in (False, True):
        yield from (sentence.tokens for sentence in _document(names, is_talk, generator).sentences)


COREF = SampleTask(
    files=files_of_splits(
        "coref_ontogum/ontogum.{split}.v4_gold_conll{xz}",
        "conll-2012/v4/data/{conll_2012}/data/english/annotations/coref/coref_0000.v4_gold_conll",
    ),
    lines=_lines,
    text=_text,
    num_texts=200,
    seed_prefix="coref ",
    split_seed="coref {split}",
)
