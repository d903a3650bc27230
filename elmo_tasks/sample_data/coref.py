"""Sample data for coreference, in the columns of CoNLL-2012 with clusters in the last column.

A name does not show whether it names a man or a woman: only the text does, and it differs between documents. So "he"
and "her" can only be resolved from context. In a talk, the column of speakers shows who "I" and "you" are, and "my
brother" depends on who says it. The development and test files have other names than the training file. The annotation
follows OntoNotes: mentions can be nested, and a mention without another one for the same thing is not in a cluster.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from elmo_tasks.data_readers.coreference_column import write_coreference_column
from elmo_tasks.sample_data.files import CONLL_2012_SPLITS, SPLITS, write_lines
from elmo_tasks.sample_data.grammar import Grammar, expand
from elmo_tasks.sample_data.names import make_names

_NAMES_OF_SPLIT = (200, 50, 50)
_CORPUS_DOCUMENTS = 400
_SENTENCES_TO_A_DOCUMENT = 20  # that a document counts as

_NO_SPEAKER = "-"
_PEOPLE = ("A", "B")

# Parentheses enclose mentions, such as (A ... ). The letter is what they refer to: the people A and B, a third person
# C, a thing T, a place P, or X, which is A and B together. In talks, S is the speaker and L is the listener.
_GRAMMAR: Grammar = {
    "introduce_T": (
        "<A> bought/VBD (T a/DT <quality> <@thing>/NN ) ./.",
        "<B> had/VBD (T a/DT <quality> <@thing>/NN ) in/IN (P <@place>/NNP ) ./.",
    ),
    "event": (
        "<A> <did> <B_object> ./.",
        "<B> <did> <A_object> ./.",
        "<A> <did> <B_possessive> <relative> ./.",
        "<A> showed/VBD <B_object> (T <T_name> ) ./.",
        "<B> wanted/VBD (T it/PRP ) ./.",
        "(T <T_name> ) was/VBD <quality> ,/, but/CC <B> <did_not> <A_object> ./.",
        "(T it/PRP ) was/VBD lost/VBN in/IN (P <@place>/NNP ) ./.",
        "<A> said/VBD that/IN <B> <did> (T it/PRP ) ./.",
        "<B> said/VBD that/IN <A> <did> (T <T_name> ) ./.",
        "<A> came/VBD back/RB to/TO (P <@place>/NNP ) with/IN <A_possessive> <@other_thing>/NN ./.",
        "<B> lost/VBD <B_possessive> <@other_thing>/NN there/RB ./.",
    ),
    "together": ("(X <A> and/CC <B> ) left/VBD (P <@place>/NNP ) ./.", "(X <B> and/CC <A> ) met/VBD again/RB ./."),
    "they": ("(X they/PRP ) <did> (T <T_name> ) ./.", "nobody/NN saw/VBD (X them/PRP ) ./."),
    "T_name": ("the/DT <@thing>/NN",),
    "greet": (
        "(L <@L>/NNP ) ,/, (S I/PRP ) <did> (L you/PRP ) in/IN (P <@place>/NNP ) ./.",
        "are/VBP (L you/PRP ) well/RB ,/, (L <@L>/NNP ) ?/.",
    ),
    "mention_C": (
        "(S I/PRP ) <did> (C (S my/PRP$ ) <kin_C> <@C>/NNP ) ./.",
        "(L you/PRP ) <did> (C (L your/PRP$ ) <kin_C> <@C>/NNP ) ./.",
    ),
    "say": (
        "(S I/PRP ) <did> <C_object> ./.",
        "(C <C_subject> ) <did> (S me/PRP ) ,/, not/RB (L you/PRP ) ./.",
        "(C <C_subject> ) <did> (L you/PRP ) ,/, not/RB (S me/PRP ) ./.",
        "(L you/PRP ) lost/VBD (S my/PRP$ ) <@other_thing>/NN ./.",
        "did/VBD (L you/PRP ) see/VB <C_object> in/IN (P <@place>/NNP ) ?/.",
        "(S I/PRP ) was/VBD in/IN (P <@place>/NNP ) too/RB ./.",
    ),
    "did": ("remembered/VBD", "found/VBD", "liked/VBD", "followed/VBD", "forgot/VBD"),
    "did_not": ("blamed/VBD", "missed/VBD"),
    "relative": ("brother/NN", "sister/NN", "friend/NN"),
    "quality": ("new/JJ", "broken/JJ", "heavy/JJ", "small/JJ"),
    "age": ("young/JJ", "tall/JJ", "rich/JJ"),
}
_MAN: Grammar = {
    "kind": ("man/NN", "king/NN", "monk/NN"),
    "kin": ("brother/NN", "uncle/NN", "father/NN"),
    "subject": ("he/PRP",),
    "object": ("him/PRP",),
    "possessive": ("his/PRP$",),
}
_WOMAN: Grammar = {
    "kind": ("woman/NN", "queen/NN", "nun/NN"),
    "kin": ("sister/NN", "aunt/NN", "mother/NN"),
    "subject": ("she/PRP",),
    "object": ("her/PRP",),
    "possessive": ("her/PRP$",),
}
_THINGS = ("boat", "clock", "horse", "letter", "lamp")
_OTHER_THINGS = ("hat", "coat", "key", "ring", "book")


@dataclasses.dataclass
class Document:
    """Sentences of (token, part of speech) pairs, the speaker of each sentence, and the mentions of each referent."""

    genre: str
    sentences: list[list[tuple[str, str]]] = dataclasses.field(default_factory=list)
    speakers: list[str] = dataclasses.field(default_factory=list)
    mentions: dict[str, list[list[int]]] = dataclasses.field(default_factory=dict)

    def num_tokens(self) -> int:
        return sum(map(len, self.sentences))

    def clusters(self) -> list[list[list[int]]]:
        """The mentions of every referent with more than one mention."""
        return [sorted(mentions) for mentions in self.mentions.values() if len(mentions) > 1]


def write(folder: Path, seed: int, sentences: tuple[int, int, int]) -> list[Path]:
    """Writes `folder/coref_ontogum/ontogum.train.v4_gold_conll.xz` and so on, and the same below `folder/conll-2012`.

    A document counts as 20 sentences; each file has at least one document.
    """
    paths = []
    for split, names, count in zip(SPLITS, _names_of_splits(seed), sentences, strict=True):
        generator = random.Random(f"{seed} coref {split}")
        num_documents = max(1, count // _SENTENCES_TO_A_DOCUMENT)
        lines = [
            line
            for number in range(num_documents)
            for line in _lines(_document(names, number % 2 == 1, generator), number)
        ]
        ending = ".xz" if split == "train" else ""
        paths.append(write_lines(folder / "coref_ontogum" / f"ontogum.{split}.v4_gold_conll{ending}", lines))
        below = Path("conll-2012/v4/data", CONLL_2012_SPLITS[split], "data/english/annotations/coref")
        paths.append(write_lines(folder / below / "coref_0000.v4_gold_conll", lines))
    return paths


def corpus(seed: int) -> Iterator[list[str]]:
    """Sentences without labels, with the names of all three files. Word vectors are made from them."""
    names = [name for names in _names_of_splits(seed) for name in names]
    generator = random.Random(f"{seed} coref corpus")
    for number in range(_CORPUS_DOCUMENTS):
        for sentence in _document(names, number % 2 == 1, generator).sentences:
            yield [token for token, _ in sentence]


def _names_of_splits(seed: int) -> list[list[str]]:
    return make_names(random.Random(f"{seed} coref names"), _NAMES_OF_SPLIT)


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
    people = _person("A", kinds[0]) | _person("B", kinds[1])
    symbols = ["introduce_A", "introduce_B", "introduce_T", *["event"] * generator.randint(4, 7)]
    if generator.random() < 0.5:
        symbols += ["together", *["they"] * generator.randint(1, 2)]
    for symbol in symbols:
        _add_sentence(document, {**_GRAMMAR, **people}, symbol, lists, generator)
    return document


def _talk(lists: dict[str, Sequence[str]], generator: random.Random) -> Document:
    document = Document("talk")
    third = _person("C", generator.choice((_MAN, _WOMAN)))
    symbols = ["greet", "greet", "mention_C", *["say"] * generator.randint(4, 8)]
    turn = 0
    for number, symbol in enumerate(symbols):
        if number == 1 or (number > 1 and generator.random() < 0.6):
            turn += 1
        speaker, listener = _PEOPLE[turn % 2], _PEOPLE[(turn + 1) % 2]
        meanings = {"S": speaker, "L": listener}
        spoken = {**lists, "L": lists[listener]}
        _add_sentence(document, {**_GRAMMAR, **third}, symbol, spoken, generator, lists[speaker][0], meanings)
    return document


def _person(letter: str, kind: Grammar) -> dict[str, Sequence[str]]:
    """The rules of the grammar for a person, who is introduced by name and later mentioned by name or pronoun."""
    named = f"({letter} <@{letter}>/NNP )"
    return {
        f"introduce_{letter}": (
            f"{named} was/VBD a/DT <age> <kind_{letter}> ./.",
            f"{named} ,/, the/DT <kind_{letter}> ,/, lived/VBD in/IN (P <@place>/NNP ) ./.",
        ),
        f"kind_{letter}": kind["kind"],
        f"kin_{letter}": kind["kin"],
        letter: (named, *(f"({letter} {pronoun} )" for pronoun in kind["subject"])),
        f"{letter}_subject": kind["subject"],
        f"{letter}_object": tuple(f"({letter} {pronoun} )" for pronoun in kind["object"]),
        f"{letter}_possessive": tuple(f"({letter} {pronoun} )" for pronoun in kind["possessive"]),
    }


def _add_sentence(
    document: Document,
    grammar: Grammar,
    symbol: str,
    lists: dict[str, Sequence[str]],
    generator: random.Random,
    speaker: str = _NO_SPEAKER,
    meanings: dict[str, str] | None = None,
) -> None:
    """Adds a sentence and its mentions. `meanings` maps S and L to the people who speak and listen in this turn."""
    begin = document.num_tokens()
    sentence: list[tuple[str, str]] = []
    opened: list[tuple[str, int]] = []
    for item in expand(grammar, symbol, lists, generator):
        if item[0] == "(":
            opened.append((item[1:], begin + len(sentence)))
        elif item == ")":
            letter, start = opened.pop()
            meaning = (meanings or {}).get(letter, letter)
            document.mentions.setdefault(meaning, []).append([start, begin + len(sentence) - 1])
        else:
            token, _, part_of_speech = item.rpartition("/")
            sentence.append((token, part_of_speech))
    token, part_of_speech = sentence[0]
    sentence[0] = (token[:1].upper() + token[1:], part_of_speech)
    document.sentences.append(sentence)
    document.speakers.append(speaker)


def _lines(document: Document, number: int) -> Iterator[str]:
    name = f"{document.genre}/sample_{number:04}"
    cells = iter(write_coreference_column(document.clusters(), document.num_tokens()))
    yield f"#begin document ({name}); part 000"
    for sentence, speaker in zip(document.sentences, document.speakers, strict=True):
        last = len(sentence) - 1
        for place, (token, part_of_speech) in enumerate(sentence):
            parse = f"{'(TOP' if place == 0 else ''}*{')' if place == last else ''}"
            annotations = [part_of_speech, parse, "-", "-", "-", speaker, "*", next(cells)]
            yield "   ".join([name, "0", str(place), token, *annotations])
        yield ""
    yield "#end document"
