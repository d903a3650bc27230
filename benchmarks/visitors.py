"""How many short texts, such as a visitor tries first, each trained model gets wholly right.

    python -m benchmarks.visitors [--tasks names coreference ...] [--models coreference=runs/coref ...] [--show]

The texts and what is right are in `trained_models/own_texts/visitors`, 30 for each task. They were written before any
model had seen them. A text counts if its whole answer is right: all names, all tags, all chains, all roles of the
frame, the polarity, the label, the answer. `mixed` counts texts in which one chain joins what should be apart.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import elmo_tasks
from benchmarks.common import markdown_table

FOLDER = Path(__file__).resolve().parent.parent / "trained_models/own_texts/visitors"
MODELS = {
    "names": "ner",
    "parts_of_speech": "pos",
    "sentiment": "sentiment",
    "inference": "inference",
    "coreference": "coreference",
    "reading": "reading",
    "roles": "roles",
}
Span = tuple[str, int, int]  # label, first character, end
Answer = tuple[Any, Any, bool]  # what is right, what the model says, whether it joins what should be apart


def bracketed(line: str) -> tuple[str, list[Span]]:
    """A text without its brackets, and the spans that they mark: `[PER Anna] sings` -> `Anna sings`, PER 0 to 4."""
    text, spans, opened = "", list[Span](), list[tuple[str, int]]()
    for part in re.findall(r"\[\S+ |\]|[^\[\]]+", line):
        if part == "]":
            label, first = opened.pop()
            spans.append((label, first, len(text)))
        elif part.startswith("["):
            opened.append((part[1:-1], len(text)))
        else:
            text += part
    return text, sorted(spans)


def names(predictor: Any, line: str) -> Answer:
    text, spans = bracketed(line)
    found = [(span["label"], span["start_char"], span["end_char"]) for span in predictor(text)[0]["spans"]]
    return spans, sorted(found), False


def parts_of_speech(predictor: Any, line: str) -> Answer:
    tokens, tags = zip(*(pair.rsplit("/", 1) for pair in line.split()), strict=True)
    return list(tags), predictor({"tokens": list(tokens)})[0]["tags"], False


def sentiment(predictor: Any, line: str) -> Answer:
    right, text = line.split("\t")
    chances = predictor(text)[0]["probabilities"]
    sides = {
        side: sum(chance for label, chance in chances.items() if side in label)
        for side in ("negative", "neutral", "positive")
    }
    return right, max(sides, key=sides.__getitem__), False


def inference(predictor: Any, line: str) -> Answer:
    right, premise, hypothesis = line.split("\t")
    return right, predictor({"premise": premise, "hypothesis": hypothesis})[0]["label"], False


def coreference(predictor: Any, line: str) -> Answer:
    text, spans = bracketed(line)
    gold: dict[str, set[tuple[int, int]]] = {}
    for label, first, end in spans:
        gold.setdefault(label, set()).add((first, end))
    chains: dict[int, set[tuple[int, int]]] = {}
    for mention in predictor(text)[0]["mentions"]:
        chains.setdefault(mention["cluster"], set()).add((mention["start_char"], mention["end_char"]))
    mixed = any(sum(bool(chain & each) for each in gold.values()) > 1 for chain in chains.values())
    right = sorted(sorted(chain) for chain in gold.values() if len(chain) > 1)
    return right, sorted(map(sorted, chains.values())), mixed


def reading(predictor: Any, line: str) -> Answer:
    passage, question, right = line.split("\t")
    found = predictor({"passage": passage, "question": question})[0]["answer"] or ""
    return (found if found in right.split("|") else right), found, False


def roles(predictor: Any, line: str) -> Answer:
    text, spans = bracketed(line)
    verb = next(first for label, first, _ in spans if label == "V")
    result = predictor(text)[0]
    frames = {result["offsets"][frame["predicate"]][0]: frame for frame in result["frames"]}
    found = [(span["role"], span["start_char"], span["end_char"]) for span in frames.get(verb, {"roles": []})["roles"]]
    return [span for span in spans if span[0] != "V"], sorted(found), False


CHECKS: dict[str, Callable[[Any, str], Answer]] = {
    "names": names,
    "parts_of_speech": parts_of_speech,
    "sentiment": sentiment,
    "inference": inference,
    "coreference": coreference,
    "reading": reading,
    "roles": roles,
}


def answers(task: str, model: str) -> Iterator[tuple[str, Answer]]:
    predictor = elmo_tasks.load(model)
    for line in (FOLDER / f"{task}.txt").read_text(encoding="utf-8").splitlines():
        yield line, CHECKS[task](predictor, line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument(
        "--models", nargs="+", default=[], metavar="TASK=RUN", help="other models than the shipped ones"
    )
    parser.add_argument("--show", action="store_true", help="print the texts that are wrong")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    models = MODELS | dict(each.split("=", 1) for each in arguments.models)
    rows = []
    for task in arguments.tasks:
        found = list(answers(task, models[task]))
        wrong = [(line, right, said) for line, (right, said, _) in found if right != said]
        for line, right, said in wrong if arguments.show else ():
            print(f"{line}\n    expected {right}\n    got      {said}")
        mixed = sum(joined for _, (_, _, joined) in found)
        rows.append([task, f"{len(found) - len(wrong)} of {len(found)}", str(mixed) if task == "coreference" else ""])
    print(markdown_table(["", "right", "mixed"], rows))


if __name__ == "__main__":
    main()
