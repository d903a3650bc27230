"""Makes sets of labels and numbers out of treebanks, to measure the plain classifier on real text.

`python -m benchmarks.text_tasks FOLDER` reads `$ELMO_TASKS_DATA` and writes JSON lines:

- `multi_label_{train,dev,test}.jsonl`, of UD English-EWT: the features in `FEATURES` that the words of a sentence have.
- `regression_{train,dev,test}.jsonl`, of SST-5: the sentiment of a sentence as a number from 0 to 4.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.common import real_data
from elmo_tasks.data_readers.sst import SENTIMENTS, SstConfig
from elmo_tasks.files.json_files import json_text
from elmo_tasks.files.text import read_lines

FEATURES = (
    "Degree=Cmp",
    "Mood=Imp",
    "Person=1",
    "Person=2",
    "Polarity=Neg",
    "PronType=Int",
    "Tense=Past",
    "Voice=Pass",
)


def ewt_sentences(path: Path) -> Iterator[dict[str, Any]]:
    """The tokens of each sentence of a CoNLL-U file, and those of the features that any of its words has."""
    tokens: list[str] = []
    found: set[str] = set()
    for _, line in read_lines(path):
        cells = line.split("\t")
        if cells[0].isdecimal():
            tokens.append(cells[1])
            found.update(cells[5].split("|"))
        elif not line.strip() and tokens:
            yield {"text": tokens, "labels": sorted(found.intersection(FEATURES))}
            tokens, found = [], set()


def sst_sentences(path: Path) -> Iterator[dict[str, Any]]:
    numbers = {label: number for number, label in SENTIMENTS[5].items()}
    for example in SstConfig().build().read(path):
        yield {"text": example["tokens"], "score": numbers[example["label"]]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the files are written")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    data = real_data()
    for split in ("train", "dev", "test"):
        ewt = data / "pos_ud_ewt" / f"en_ewt-ud-{split}.conllu{'.xz' if split == 'train' else ''}"
        sentences = {"multi_label": ewt_sentences(ewt), "regression": sst_sentences(data / "sst5" / f"{split}.txt")}
        for name, each in sentences.items():
            text = "".join(f"{json_text(sentence)}\n" for sentence in each)
            (folder / f"{name}_{split}.jsonl").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
