"""Tokens per second of the trained models on one core, from tokens to results.

    OMP_NUM_THREADS=1 python -m benchmarks.trained_models

Each installed model predicts the texts of its task in `trained_models/own_texts`. All layers are computed, and each
repetition computes each word anew. The times are processor seconds of the fastest repetition.
"""

from __future__ import annotations

import argparse
import collections
import gc
import time
from pathlib import Path

from elmo_tasks.elmo.fast import forget_words
from elmo_tasks.files.installed_models import installed_models
from elmo_tasks.runs.load import load_predictor, load_run

OWN_TEXTS = Path(__file__).resolve().parents[1] / "trained_models" / "own_texts"
FILES = {
    "coreference": "coreference.v4_gold_conll",
    "inference": "inference.jsonl",
    "ner": "ner.txt",
    "pos": "pos.conllu",
    "predicates": "roles.gold_conll",
    "reading": "reading.json",
    "roles": "roles.gold_conll",
    "sentiment": "sentiment_films.txt",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print("| model | examples | tokens | tokens per second |\n|---|---:|---:|---:|")
    for name in (model.name for model in installed_models() if model.name in FILES):
        reader, predictor = load_run(name).reader, load_predictor(name)
        inputs = list(predictor.inputs_of(reader.read(OWN_TEXTS / FILES[name]).to_list()))
        examples = [example for each in inputs for example in predictor.checked_examples(each)]
        tokens = sum(len(text) for example in examples for text in reader.task.texts(example))
        predictor.warm_up()
        gc.freeze()  # as the command
        seconds = []
        for _ in range(arguments.repeats):
            forget_words()
            begin = time.process_time()
            collections.deque(predictor.predict(inputs), maxlen=0)
            seconds.append(time.process_time() - begin)
        print(f"| `{name}` | {len(inputs):,} | {tokens:,} | {tokens / min(seconds):,.0f} |", flush=True)


if __name__ == "__main__":
    main()
