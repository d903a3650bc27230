"""Sample data for part-of-speech tagging, in CoNLL-U with universal and Penn Treebank tags.

Most words can have several parts of speech, and only their neighbours show which: "a watch" and "to watch", "cold
water" and "the cold", three uses of "that", two of "her", and forms that end in -ed and -s.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from elmo_tasks.sample_data.grammar import MarkedSentence, load_grammar, write_sentence
from elmo_tasks.sample_data.task import SampleTask, files_of_splits

_SENTENCES_OF_DOCUMENT = 10
_GRAMMAR = load_grammar("pos")
_NUMBERS = list(map(str, range(2, 60)))
_PENN_TAGS = {
    "PUNCT": ". ,",
    "CCONJ": "CC",
    "NUM": "CD",
    "DET": "DT",
    "ADP": "IN",
    "ADJ": "JJ",
    "AUX": "MD",
    "NOUN": "NN NNS",
    "PROPN": "NNP",
    "PRON": "PRP PRP$ WDT",
    "PART": "RB",
    "VERB": "VB VBD VBN VBP VBZ",
    "ADV": "WRB",
}
_UNIVERSAL = {tag: universal for universal, tags in _PENN_TAGS.items() for tag in tags.split()}
_AUXILIARIES = ("is", "was", "had", "did", "do")


def _sentence(names: Sequence[str], generator: random.Random) -> MarkedSentence:
    return write_sentence(_GRAMMAR, "sentence", {"name": names, "number": _NUMBERS}, generator)


def _lines(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterator[str]:
    for number in range(count):
        if number % _SENTENCES_OF_DOCUMENT == 0:
            yield f"# newdoc id = sample-{number // _SENTENCES_OF_DOCUMENT:04}"
        sentence = _sentence(names, generator)
        # Raw text has no spaces before punctuation and "n't".
        spaced = (token if token in (".", ",", "!", "n't") else f" {token}" for token in sentence.tokens)
        yield f"# sent_id = sample-{number:05}"
        yield f"# text = {''.join(spaced).lstrip()}"
        yield from _words(sentence)
        yield ""


def _words(sentence: MarkedSentence) -> Iterator[str]:
    """A line for each word. The two words of "didn't" or "don't" follow a line for the range of both."""
    following = [*sentence.tokens[1:], ""]
    for number, (token, tag) in enumerate(zip(sentence.tokens, sentence.parts_of_speech, strict=True), start=1):
        if following[number - 1] == "n't":
            yield "\t".join([f"{number}-{number + 1}", f"{token}n't", *["_"] * 8])
        yield "\t".join([str(number), token, "_", _universal(token.lower(), tag), tag, *["_"] * 5])


def _universal(word: str, tag: str) -> str:
    """The universal tag of a word, which depends on the word for auxiliaries and for "that" as a conjunction."""
    if word in _AUXILIARIES:
        return "AUX"
    return "SCONJ" if (word, tag) == ("that", "IN") else _UNIVERSAL[tag]


POS = SampleTask(
    files=files_of_splits("pos_ud_ewt/en_ewt-ud-{split}.conllu{xz}", "pos_ud/made_up-ud-{split}.conllu{xz}"),
    lines=_lines,
    text=lambda names, generator: [_sentence(names, generator).tokens],
    num_texts=4000,
    seed_prefix="pos ",
    split_seed="{file}",
)
