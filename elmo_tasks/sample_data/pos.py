"""Sample data for part-of-speech tagging, in CoNLL-U with universal and Penn Treebank tags.

Most words can have several parts of speech, and only their neighbours show which: "a watch" and "to watch", "cold
water" and "the cold", three uses of "that", two of "her", and forms that end in -ed and -s. The development and test
files have other names than the training file.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from elmo_tasks.sample_data.files import write_lines
from elmo_tasks.sample_data.grammar import AnnotatedSentence, Grammar, write_sentence
from elmo_tasks.sample_data.names import make_names

_NAMES_OF_SPLIT = (200, 50, 50)
_CORPUS_SENTENCES = 4000
_SENTENCES_OF_DOCUMENT = 10
_FILES = ("en_ewt-ud-train.conllu.xz", "en_ewt-ud-dev.conllu", "en_ewt-ud-test.conllu")

_GRAMMAR: Grammar = {
    "sentence": (
        "<clause> ./.",
        "<clause> ./.",
        "<clause> <when> ./.",
        "<name> <knows> that/IN <clause> ./.",
        "<clause> and/CC <clause> ./.",
        "When/WRB <clause> ,/, <clause> ./.",
        "Do/VBP n't/RB <base> <object> !/.",
    ),
    "clause": (
        "<subject> <past> <object>",
        "<subject> <past> <object> <where>",
        "they/PRP <base_present> <object>",
        "the/DT <plural> <base_present> her/PRP",
        "<singular> <third> <object>",
        "<subject> will/MD <base> <object>",
        "<subject> did/VBD n't/RB <base> <object>",
        "<object> was/VBD <participle> by/IN <subject>",
        "<subject> had/VBD <participle> <object>",
        "the/DT <noun> is/VBZ <adjective>",
        "the/DT <adjective_noun> is/VBZ <adjective>",
        "<number> <plural> <past> <object>",
    ),
    "subject": ("<name>", "the/DT <noun>", "she/PRP", "that/DT <noun>"),
    "singular": ("<name>", "the/DT <noun>", "she/PRP"),
    "object": (
        "the/DT <noun>",
        "her/PRP",
        "her/PRP$ <noun>",
        "a/DT <adjective> <noun>",
        "the/DT <adjective_noun>",
        "the/DT <noun> that/WDT <singular> <past>",
        "<name>",
        "<number> <plural>",
    ),
    "where": ("in/IN <name>", "by/IN the/DT <noun>", "near/IN <name>"),
    "when": ("on/IN Monday/NNP", "last/JJ week/NN", "in/IN <number>"),
    "name": ("<@name>/NNP", "<@name>/NNP", "<@name>/NNP <@name>/NNP"),
    "knows": ("knows/VBZ", "said/VBD", "hopes/VBZ"),
    "noun": ("watch/NN", "walk/NN", "paint/NN", "water/NN", "ring/NN", "plant/NN", "boat/NN", "cut/NN"),
    "plural": ("watches/NNS", "walks/NNS", "paints/NNS", "waters/NNS", "rings/NNS", "plants/NNS", "cuts/NNS"),
    "third": ("watches/VBZ", "walks/VBZ", "paints/VBZ", "waters/VBZ", "rings/VBZ", "plants/VBZ", "cuts/VBZ"),
    "base": ("watch/VB", "walk/VB", "paint/VB", "water/VB", "ring/VB", "plant/VB", "cut/VB"),
    "base_present": ("watch/VBP", "walk/VBP", "paint/VBP", "water/VBP", "ring/VBP", "plant/VBP", "cut/VBP"),
    "past": ("watched/VBD", "walked/VBD", "painted/VBD", "watered/VBD", "planted/VBD", "cut/VBD"),
    "participle": ("watched/VBN", "walked/VBN", "painted/VBN", "watered/VBN", "planted/VBN", "cut/VBN"),
    "adjective": ("cold/JJ", "painted/JJ", "light/JJ", "round/JJ", "cut/JJ"),
    "adjective_noun": ("cold/NN", "light/NN", "round/NN"),
    "number": ("<@number>/CD",),
}
_UNIVERSAL = {
    ".": "PUNCT",
    ",": "PUNCT",
    "CC": "CCONJ",
    "CD": "NUM",
    "DT": "DET",
    "IN": "ADP",
    "JJ": "ADJ",
    "MD": "AUX",
    "NN": "NOUN",
    "NNP": "PROPN",
    "NNS": "NOUN",
    "PRP": "PRON",
    "PRP$": "PRON",
    "RB": "PART",
    "VB": "VERB",
    "VBD": "VERB",
    "VBN": "VERB",
    "VBP": "VERB",
    "VBZ": "VERB",
    "WDT": "PRON",
    "WRB": "ADV",
}
_AUXILIARIES = ("is", "was", "had", "did", "do")


def write(folder: Path, seed: int, sentences: tuple[int, int, int]) -> list[Path]:
    """Writes `folder/pos_ud_ewt/en_ewt-ud-train.conllu.xz`, `en_ewt-ud-dev.conllu` and `en_ewt-ud-test.conllu`."""
    paths = []
    for file, names, count in zip(_FILES, _names_of_splits(seed), sentences, strict=True):
        lines = _lines(names, count, random.Random(f"{seed} {file}"))
        paths.append(write_lines(folder / "pos_ud_ewt" / file, lines))
    return paths


def corpus(seed: int) -> Iterator[list[str]]:
    """Sentences without labels, with the names of all three files. Word vectors are made from them."""
    lists = _lists([name for names in _names_of_splits(seed) for name in names])
    generator = random.Random(f"{seed} pos corpus")
    for _ in range(_CORPUS_SENTENCES):
        yield write_sentence(_GRAMMAR, "sentence", lists, generator).tokens


def _names_of_splits(seed: int) -> list[list[str]]:
    return make_names(random.Random(f"{seed} pos names"), _NAMES_OF_SPLIT)


def _lists(names: Sequence[str]) -> dict[str, Sequence[str]]:
    return {"name": names, "number": [str(number) for number in range(2, 60)]}


def _lines(names: Sequence[str], count: int, generator: random.Random) -> Iterator[str]:
    lists = _lists(names)
    for number in range(count):
        if number % _SENTENCES_OF_DOCUMENT == 0:
            yield f"# newdoc id = sample-{number // _SENTENCES_OF_DOCUMENT:04}"
        sentence = write_sentence(_GRAMMAR, "sentence", lists, generator)
        yield f"# sent_id = sample-{number:05}"
        yield f"# text = {_text(sentence.tokens)}"
        yield from _words(sentence)
        yield ""


def _text(tokens: Sequence[str]) -> str:
    """The sentence as raw text, without spaces before punctuation and "n't"."""
    return "".join(token if token in (".", ",", "!", "n't") else f" {token}" for token in tokens).lstrip()


def _words(sentence: AnnotatedSentence) -> Iterator[str]:
    """A line for each word. The two words of "didn't" or "don't" follow a line for the range of both."""
    tokens = sentence.tokens
    for place, (token, tag) in enumerate(zip(tokens, sentence.parts_of_speech, strict=True)):
        if place + 1 < len(tokens) and tokens[place + 1] == "n't":
            yield "\t".join([f"{place + 1}-{place + 2}", f"{token}n't", *["_"] * 8])
        yield "\t".join([str(place + 1), token, "_", _universal(token.lower(), tag), tag, *["_"] * 5])


def _universal(word: str, tag: str) -> str:
    """The universal tag of a word, which depends on the word for auxiliaries and for "that" as a conjunction."""
    if word in _AUXILIARIES:
        return "AUX"
    return "SCONJ" if (word, tag) == ("that", "IN") else _UNIVERSAL[tag]
