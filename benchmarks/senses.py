"""How well each layer of a biLM tells the senses of *bank*, *bark* and *play* apart.

    python -m benchmarks.senses [--bilm DIR ...]

`senses.json` has forty sentences for each of two senses of a word. For each sentence, the ten others are found whose
word has the nearest vector. The table shows how many of the ten use the word in the same sense, as a mean over the 80
sentences. Chance is 4.9, and 10 is best.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import common
from elmo_tasks.elmo import BiLM, FastBiLM
from elmo_tasks.elmo.frozen_layers import LayerSource
from elmo_tasks.extras.probes.neighbors import nearest_tokens
from elmo_tasks.extras.raw_text import find_token

COUNT = 10


def same_sense(bilm: LayerSource, word: str, senses: Mapping[str, Sequence[str]]) -> list[float]:
    """For each layer: how many of the ten nearest occurrences of the word have the same sense, on average."""
    sense_of = {tuple(sentence.split()): sense for sense, sentences in senses.items() for sentence in sentences}
    counts = []
    for sentence, sense in sense_of.items():
        layers = nearest_tokens(bilm, find_token(sentence, word), list(sense_of), count=COUNT, same_word=True)
        counts.append([sum(sense_of[each.token.sentence] == sense for each in layer) for layer in layers])
    return [statistics.mean(layer) for layer in zip(*counts, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bilm", nargs="+", default=["default"], metavar="DIR")
    arguments = parser.parse_args()
    words = json.loads(Path(__file__).with_name("senses.json").read_text(encoding="utf-8"))
    rows = []
    for folder in arguments.bilm:
        bilm = FastBiLM(BiLM.load(folder))
        found = [same_sense(bilm, word, senses) for word, senses in words.items()]
        rows += [
            [folder, str(layer), *(f"{mean:.1f}" for mean in means)]
            for layer, means in enumerate(zip(*found, strict=True))
        ]
    print(common.markdown_table(("biLM", "layer", *words), rows))


if __name__ == "__main__":
    main()
