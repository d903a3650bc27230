"""Sample data for sentiment in five classes, in the bracketed trees of the Stanford Sentiment Treebank.

Words do not have a sentiment by themselves: "cold" is good for lemonade and bad for a welcome, and a negation reverses
it. If there are two clauses, one decides: the one after "but", or the one that does not begin with "although". So only
a whole clause has a sentiment, and the sentiment of a sentence depends on the order of its clauses.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from typing import NamedTuple

from elmo_tasks.sample_data.task import SampleTask, files_of_splits

NEUTRAL = 2

# For each thing, its good qualities and its bad ones.
_QUALITIES = {
    "lemonade": (("cold", "cheap", "sharp"), ("thin",)),
    "welcome": (("loud", "long"), ("cold", "sharp")),
    "waltz": (("slow", "long"), ("loud", "quick")),
    "service": (("cheap", "quick"), ("slow", "unpredictable")),
    "laughter": (("loud", "long"), ("thin",)),
    "plot": (("unpredictable", "quick"), ("thin", "slow")),
    "wit": (("sharp", "quick"), ("thin", "cheap")),
    "queue": (("thin", "quick"), ("long", "slow")),
    "pastry": (("thin", "cheap"), ("cold",)),
}
_STRENGTHENING = ("very", "remarkably", "altogether")
_DENYING = ("not", "never", "hardly")
_FACTS = ("came from", "was delivered to", "was described by", "belonged to")


class Phrase(NamedTuple):
    """A part of a sentence."""

    sentiment: int  # from 0 (very bad) to 4 (very good)
    tree: str  # bracketed, with the escapes of the Treebank
    tokens: tuple[str, ...]  # without escapes


def _sentence(names: Sequence[str], generator: random.Random) -> Phrase:
    """A sentence of one clause, or of two clauses of which one decides the sentiment."""
    first, second = make_clause(names, generator), make_clause(names, generator)
    comma = _word(",")
    form = generator.choice(("one", "one", "but", "although first", "although second"))
    sentiment = first.sentiment if form in ("one", "although second") else second.sentiment
    if form == "although first":
        first = _join(first.sentiment, _word("although"), first)
    elif form != "one":
        second = _join(second.sentiment, _word(form.split()[0]), second)
    sentence = first if form == "one" else _join(sentiment, _join(first.sentiment, first, comma), second)
    if generator.random() < 0.2:
        source = _join(NEUTRAL, _word("says"), _word(generator.choice(names)))
        aside = _join(NEUTRAL, _word("(", "-LRB-"), _join(NEUTRAL, source, _word(")", "-RRB-")))
        sentence = _join(sentence.sentiment, sentence, aside)
    return _capitalized(_join(sentence.sentiment, sentence, _word(".")))


def make_clause(names: Sequence[str], generator: random.Random) -> Phrase:
    """A clause about a thing: an opinion or a neutral fact."""
    thing = generator.choice(tuple(_QUALITIES))
    subject = _join(NEUTRAL, _word("the"), _word(thing))
    if generator.random() < 0.4:
        subject = _join(NEUTRAL, subject, _join(NEUTRAL, _word("of"), _word(generator.choice(names))))
    if generator.random() < 0.2:
        verb = functools.reduce(functools.partial(_join, NEUTRAL), map(_word, generator.choice(_FACTS).split()))
        return _join(NEUTRAL, subject, _join(NEUTRAL, verb, _word(generator.choice(names))))
    is_good = generator.random() < 0.5
    quality = _word(generator.choice(_QUALITIES[thing][0 if is_good else 1]))
    sentiment = NEUTRAL + (1 if is_good else -1)
    strength = generator.choice(("plain", "strong", "denied"))
    if strength == "strong":
        sentiment = 4 if is_good else 0
        quality = _join(NEUTRAL, _word(generator.choice(_STRENGTHENING)), quality)
    elif strength == "denied":
        sentiment = 4 - sentiment
        quality = _join(NEUTRAL, _word(generator.choice(_DENYING)), quality)
    return _join(sentiment, subject, _join(NEUTRAL, _word("was"), quality))


def _word(token: str, written: str | None = None) -> Phrase:
    """A phrase of a single token, which is neutral. `written` is the token with the escapes of the Treebank."""
    return Phrase(NEUTRAL, f"({NEUTRAL} {written or token})", (token,))


def _join(sentiment: int, left: Phrase, right: Phrase) -> Phrase:
    return Phrase(sentiment, f"({sentiment} {left.tree} {right.tree})", left.tokens + right.tokens)


def _capitalized(phrase: Phrase) -> Phrase:
    """The phrase with a capital letter at the beginning."""
    first, *rest = phrase.tokens
    return Phrase(phrase.sentiment, phrase.tree.replace(first, first.capitalize(), 1), (first.capitalize(), *rest))


SST5 = SampleTask(
    files=files_of_splits("sst5/{split}.txt"),
    lines=lambda names, count, generator, file: (_sentence(names, generator).tree for _ in range(count)),
    text=lambda names, generator: [list(_sentence(names, generator).tokens)],
    num_texts=4000,
    seed_prefix="sst5 ",
    split_seed="sst5 {split}",
)
