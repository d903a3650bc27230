"""How much a prediction's score falls when the tokens that count most for it are replaced.

`python -m benchmarks.deletion RUN DATA` explains predictions of a classifier or a tagger. Then it replaces some of the
tokens by a token that says nothing, those with the largest contributions first. It prints by how much the log
probability of the prediction falls, the mean over the predictions: for the explanation and for
tokens in a random order. The better an explanation, the larger the fall.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence

import torch
from torch import Tensor

from elmo_tasks.commands.console import print_table
from elmo_tasks.extras.explain.saliency import Finding, findings, saliency
from elmo_tasks.predictors.predictor import Predictor
from elmo_tasks.runs.experiment_data import read_examples
from elmo_tasks.runs.load import load_run, run_predictor
from elmo_tasks.tasks import Batch

REPLACEMENT = "…"
SHARES = (0.1, 0.2, 0.3, 0.5)  # of a text's tokens, rounded up
BATCH = 16

Order = list[int]


def batch_of(predictor: Predictor, texts: Sequence[Sequence[str]]) -> Batch:
    return predictor.task.collate([{"tokens": list(tokens)} for tokens in texts], predictor.vocabulary)


@torch.inference_mode()
def scores(predictor: Predictor, parts: Sequence[Finding], texts: Sequence[Sequence[str]]) -> Tensor:
    """The scores of the parts of predictions for other texts."""
    batch = batch_of(predictor, texts)
    return predictor.model.prediction_scores(predictor.model(batch), batch, [part.prediction for part in parts])


def orders(predictor: Predictor, parts: Sequence[Finding], shuffle: random.Random) -> dict[str, list[Order]]:
    """The tokens of the texts, those that count most first, as explained, and in a random order."""
    batch = batch_of(predictor, [part.example["tokens"] for part in parts])
    lengths = [len(part.example["tokens"]) for part in parts]
    found = {"random": [shuffle.sample(range(length), length) for length in lengths]}
    explained = saliency(predictor.model, batch, [part.prediction for part in parts])
    rows = zip(explained.contributions["tokens"], lengths, strict=True)
    return found | {"explained": [row[:length].argsort(descending=True).tolist() for row, length in rows]}


def without(tokens: Sequence[str], order: Order, share: float) -> list[str]:
    replaced = set(order[: -int(-share * len(tokens) // 1)])
    return [REPLACEMENT if number in replaced else token for number, token in enumerate(tokens)]


def falls(predictor: Predictor, parts: Sequence[Finding], seed: int) -> dict[str, list[float]]:
    """By how much the score falls at each of the `SHARES`, by the names of the orders."""
    shuffle = random.Random(seed)
    sums: dict[str, Tensor] = {}
    for start in range(0, len(parts), BATCH):
        chosen = parts[start : start + BATCH]
        texts = [part.example["tokens"] for part in chosen]
        whole = scores(predictor, chosen, texts)
        for name, found in orders(predictor, chosen, shuffle).items():
            shortened = ([without(*pair, share) for pair in zip(texts, found, strict=True)] for share in SHARES)
            lost = torch.stack([(whole - scores(predictor, chosen, each)).sum() for each in shortened])
            sums[name] = sums.get(name, torch.zeros(len(SHARES))) + lost
    return {name: (each / len(parts)).tolist() for name, each in sums.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="of a classifier or a tagger")
    parser.add_argument("data", help="a file that the run's reader can read")
    parser.add_argument("--examples", type=int, default=200, help="the first of the data (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="of the random order (default: 1)")
    arguments = parser.parse_args()
    run = load_run(arguments.run, overrides=["trainer.device=cpu"])
    predictor = run_predictor(run)
    examples = [
        {"tokens": each["tokens"]} for each in read_examples(run.reader, arguments.data).take(arguments.examples)
    ]
    pairs = zip(examples, predictor.predictions(examples), strict=True)
    parts = [part for pair in pairs for part in findings(predictor, *pair)]
    rows = [[name, *(f"{fall:.2f}" for fall in each)] for name, each in falls(predictor, parts, arguments.seed).items()]
    title = f"{arguments.run}: {len(parts)} predictions in {len(examples)} texts"
    print_table(title, ["first replaced", *(f"{share:.0%}" for share in SHARES)], rows)


if __name__ == "__main__":
    main()
