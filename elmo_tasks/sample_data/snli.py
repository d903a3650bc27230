"""Sample data for natural language inference, in the JSON lines of SNLI.

A premise states one to three facts about a person, on different topics. A hypothesis states one fact, either in the
same words or in more general words. The label is entailment if the premise states the same fact, contradiction if it
states another fact on this topic, and neutral if it does not mention the topic. Hypotheses are drawn in the same way
for all three labels, so that a hypothesis without its premise does not reveal the label.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from elmo_tasks.sample_data.task import SampleTask
from elmo_tasks.text.label_order import INFERENCE_LABELS

_NO_LABEL = "-"
_WITHOUT_LABEL = 0.02  # the share of pairs without a majority label, as in the official files

# The official names, and the name of the part of the training data that configs/cpu uses.
_FILES = (
    ("snli/snli_1.0_train.jsonl", "snli/snli_1.0_train_subset.jsonl"),
    ("snli/snli_1.0_dev.jsonl",),
    ("snli/snli_1.0_test.jsonl",),
)

_PERSONS = ("a man", "a woman", "a boy", "a girl", "somebody")

# The facts of each topic: general words, and specific words that entail them.
_TOPICS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "clothes": {
        "dressed in red": ("in a red coat", "in a red scarf"),
        "dressed in blue": ("in a blue coat", "in a blue scarf"),
    },
    "activity": {
        "making music": ("playing the fiddle", "beating a drum"),
        "preparing food": ("peeling potatoes", "kneading dough"),
        "repairing something": ("mending a fence", "patching a roof"),
    },
    "place": {
        "in the mountains": ("below a glacier", "near a summit"),
        "in a town": ("behind the station", "beside the town hall"),
        "on the coast": ("under a lighthouse", "near the tidal flats"),
    },
    "time": {
        "there in the morning": ("at dawn", "before breakfast"),
        "there at night": ("at midnight", "under the stars"),
    },
}


class Fact(NamedTuple):
    """A fact about a person."""

    topic: str
    general: str
    particular: str


class Pair(NamedTuple):
    """The tokens of a premise and a hypothesis, and their label."""

    premise: list[str]
    hypothesis: list[str]
    label: str


def _lines(names: Sequence[str], count: int, generator: random.Random, file: str) -> Iterator[str]:
    """The lines of a file with `count` labelled pairs and some unlabelled ones."""
    for number in itertools.count():
        if not count:
            return
        pair = _pair(generator)
        annotators = [pair.label] * 5
        if generator.random() < _WITHOUT_LABEL:
            annotators = [*INFERENCE_LABELS[:2], *INFERENCE_LABELS[:2], INFERENCE_LABELS[2]]
            pair = pair._replace(label=_NO_LABEL)
        else:
            count -= 1
        line = {"annotator_labels": annotators, "gold_label": pair.label, "pairID": f"{file}#{number}"}
        for key, tokens in (("sentence1", pair.premise), ("sentence2", pair.hypothesis)):
            line[key] = f"{' '.join(tokens[:-1])}{tokens[-1]}"  # no space before the period
        yield json.dumps(line)


def _pair(generator: random.Random) -> Pair:
    stated, unstated = _facts(generator)
    label = generator.choice(INFERENCE_LABELS)
    fact = generator.choice(unstated if label == "neutral" else stated)
    if label == "contradiction":
        others = [general for general in _TOPICS[fact.topic] if general != fact.general]
        fact = _fact(fact.topic, generator.choice(others), generator)
    wording = fact.general if generator.random() < 0.5 else fact.particular
    return Pair(_premise(stated, generator.choice(_PERSONS)), ["This", "person", "is", *wording.split(), "."], label)


def _facts(generator: random.Random) -> tuple[list[Fact], list[Fact]]:
    """A fact for each topic: those that the premise states and those that it does not. Neither list is empty."""
    facts = [_fact(topic, generator.choice(tuple(_TOPICS[topic])), generator) for topic in _TOPICS]
    stated = set(generator.sample(range(len(facts)), generator.randint(1, len(facts) - 1)))
    return [facts[row] for row in sorted(stated)], [fact for row, fact in enumerate(facts) if row not in stated]


def _fact(topic: str, general: str, generator: random.Random) -> Fact:
    return Fact(topic, general, generator.choice(_TOPICS[topic][general]))


def _premise(stated: list[Fact], person: str) -> list[str]:
    """The facts as a single sentence."""
    words = {"person": person, **{fact.topic: fact.particular for fact in stated}}
    words["verb"] = "is" if "activity" in words else "is seen"
    order = ("person", "clothes", "verb", "activity", "place", "time")
    text = " ".join(words[part] for part in order if part in words)
    return [*(text[0].upper() + text[1:]).split(), "."]


SNLI = SampleTask(
    files=_FILES,
    lines=_lines,
    text=lambda names, generator: _pair(generator)[:2],
    num_texts=2000,
    seed_prefix="snli ",
    split_seed="{file}",
    num_names=(0, 0, 0),
)
