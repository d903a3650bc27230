"""Writes made-up training data for two of the trained models: `python trained_models/made_data.py DIR`.

Each file adds to a public data set what it has too little of. The texts are made from lists of forms and words. They
are plain on purpose: two of them often differ in one word, and have different labels.

- `pairs.jsonl`, for inference, in SNLI's format: who does what, negations, possibilities, conditions, quantities,
  kinds.
- `sentences.txt`, for sentiment, as flat trees of the Stanford Sentiment Treebank: negations that turn an opinion,
  facts without one, goods and services.

The sentences in `own_texts` are left out, so that these can measure the models.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
from pathlib import Path
from typing import Any, NamedTuple

from nltk.tokenize import TreebankWordTokenizer

from elmo_tasks.files.atomic import atomic_write

GRAMMARS = Path(__file__).resolve().with_suffix("")  # a folder
OWN_TEXTS = Path(__file__).resolve().parent / "own_texts"
LABELS = {"e": "entailment", "n": "neutral", "c": "contradiction"}


class Verb(NamedTuple):
    """A verb, or a verb with what it takes. Only transitive verbs have a participle here."""

    base: str
    past: str
    ing: str
    participle: str = ""


def lines_of(name: str) -> list[str]:
    lines = (GRAMMARS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def read_words() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines_of("words"):
        name, *items = line.split()
        found.setdefault(name, []).extend(item.replace("_", " ") for item in items)
    return found


WORDS = read_words()


def plural(noun: str) -> str:
    irregular = {"man": "men", "woman": "women", "child": "children", "policeman": "policemen", "sheep": "sheep"}
    irregular |= {"wolf": "wolves", "person": "people"}
    if noun in irregular:
        return irregular[noun]
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "ss")) else f"{noun}s"


def sentence(text: str) -> str:
    text = re.sub(r"\ba (?=[aeiou])", "an ", text)
    return f"{text[0].upper()}{text[1:]}."


class Slots(dict[str, Any]):
    """What the slots of a pair of texts stand for, drawn once: persons, animals, verbs, things and so on."""

    def __init__(self, rng: random.Random) -> None:
        beings = rng.sample(WORDS["people"] + WORDS["animals"], 2)
        persons = rng.sample([each for each in WORDS["people"] if each not in beings], 2)
        verb, action, other = (
            Verb(*rng.choice(WORDS[name]).split("/")) for name in ("transitive", "actions", "actions")
        )
        (kind, wider), (second, _) = (kind.split("/") for kind in rng.sample(WORDS["kinds"], 2))
        compared = rng.sample(rng.choice(WORDS["compared"]).split("/"), 2)
        of_things = rng.random() < 0.7
        state, opposite = rng.sample(rng.choice(WORDS["states_of_things" if of_things else "states"]).split("/"), 2)
        with_state, another = rng.sample(WORDS["with_states"], 2) if of_things else persons
        few, many = rng.sample(["two", "three", "four", "five", "six", "seven"], 2)
        color, other_color = rng.sample(WORDS["colors"], 2)
        super().__init__(
            zip("XYPQ", beings + persons, strict=True),
            v=verb,
            a=action,
            b=other,
            K=kind,
            W=wider,
            J=second,
            more=compared[0],
            less=compared[1],
            state=state,
            opposite=opposite,
            T=with_state,
            U=another,
            few=few,
            many=many,
            color=color,
            other=other_color,
            garment=rng.choice(WORDS["garments"]),
            place=rng.choice(WORDS["places"]),
            thing=rng.choice(WORDS["given"]),
            got=rng.choice(WORDS["got"]),
            Xs=plural(beings[0]),
            Ks=plural(kind),
        )


def pairs(number: int = 6000) -> list[dict[str, str]]:
    """Pairs of texts as in SNLI, each label a third of them, and about that of each group of forms."""
    rng, own = random.Random(1), own_pairs()
    groups = [
        [line.split("\t") for line in group.splitlines()]
        for group in "\n".join(lines_of("pairs")).strip().split("\n\n")
    ]
    found: dict[tuple[str, str], str] = {}
    for drawn in itertools.count():
        if len(found) >= number:
            break
        group, letter = rng.choice(groups), "enc"[drawn % 3]
        _, *forms = rng.choice([form for form in group if form[0] == letter])
        slots = Slots(rng)
        premise, hypothesis = (sentence(form.format(**slots)) for form in forms)
        if premise != hypothesis and (premise, hypothesis) not in own:
            found[premise, hypothesis] = LABELS[letter]
    return [{"sentence1": p, "sentence2": h, "gold_label": label} for (p, h), label in found.items()]


def own_pairs() -> set[tuple[str, str]]:
    lines = (OWN_TEXTS / "visitors/inference.txt").read_text(encoding="utf-8").splitlines()
    return {tuple(line.split("\t")[1:]) for line in lines}  # type: ignore[misc]


def sentences(number: int = 1500) -> list[tuple[int, str]]:
    rng, found = random.Random(1), dict[tuple[int, str], None]()
    own = own_sentences()
    while len(found) < number:
        blanks = {"s": rng.choice(WORDS["subjects"]), "n": str(rng.randint(7, 180)), "y": str(rng.randint(1950, 2025))}
        blanks |= {"d": rng.choice(WORDS["days"]), "p": rng.choice(WORDS["cities"])}
        if rng.random() < 0.5:
            good, bad, form = rng.choice(lines_of("turns")).split(" ", 2)
            is_good = rng.random() < 0.5
            words, others = (WORDS["good"], WORDS["bad"]) if is_good else (WORDS["bad"], WORDS["good"])
            text = form.format(**blanks, w=rng.choice(words), x=rng.choice(others))
            found[int(good if is_good else bad), text] = None
        else:
            facts = [each for each in lines_of("sayings") if each.startswith("2")]
            opinions = [each for each in lines_of("sayings") if not each.startswith("2")]
            sentiment, _, form = rng.choice(facts if rng.random() < 0.5 else opinions).partition(" ")
            found[int(sentiment), form.format(**blanks)] = None
    kept = [(value, _contracted(text, rng)) for value, text in found if plain(text) not in own]
    kept = [each for each in kept if plain(each[1]) not in own]
    rng.shuffle(kept)
    return [
        (value, f"{text[0].upper()}{text[1:]} {rng.choice(['.', '.', '.', '!', ''])}".strip()) for value, text in kept
    ]


def _contracted(text: str, rng: random.Random) -> str:
    """Half of the texts with "don't" in place of "do not", and the like."""
    if rng.random() < 0.5:
        return text
    text = text.replace("will not", "won't").replace("can not", "can't")
    return re.sub(r"\b(do|does|did|is|was|would|could) not\b", r"\1n't", text)


def plain(text: str) -> str:
    return re.sub(r"[^a-z]+", "", text.lower())


def own_sentences() -> set[str]:
    visitors = (OWN_TEXTS / "visitors/sentiment.txt").read_text(encoding="utf-8").splitlines()
    files = [OWN_TEXTS / f"sentiment_{name}.txt" for name in ("films", "other", "ewt")]
    trees = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return {plain(line.partition("\t")[2]) for line in visitors} | {
        plain(re.sub(r"\(\d|\)", "", tree)) for tree in trees
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    records, opinions = pairs(), sentences()
    split = TreebankWordTokenizer().tokenize
    trees = [f"({value} {' '.join(f'(2 {token})' for token in split(text))})" for value, text in opinions]
    files = {
        "pairs.jsonl": "".join(f"{json.dumps(record)}\n" for record in records),
        "sentences.txt": "".join(f"{tree}\n" for tree in trees),
    }
    for name, text in files.items():
        with atomic_write(folder / name) as stream:
            stream.write(text.encode())
    print(f"{len(records):,} pairs, {len(trees):,} sentences")


if __name__ == "__main__":
    main()
