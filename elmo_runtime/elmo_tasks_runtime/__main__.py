"""The command `elmo-tasks-runtime`: text or JSON lines in, JSON lines out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from elmo_tasks_runtime.model import Model


def main() -> None:
    parser = argparse.ArgumentParser("elmo-tasks-runtime", description="Uses what `elmo-tasks export` has written.")
    parser.add_argument("folder", metavar="DIR", help="the folder of an exported tagger or biLM")
    about = "a paragraph, or a JSON object with `text` or `tokens`, on each line; - for standard input"
    parser.add_argument("input", metavar="FILE", help=about)
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="(default: 1)")
    arguments = parser.parse_args()
    try:
        model = Model(arguments.folder, arguments.threads)
        with open(0 if arguments.input == "-" else arguments.input, encoding="utf-8-sig") as file:
            for result in model.predict(_inputs(file)) if "tags" in model.about else _vectors(model, file):
                print(json.dumps(result, ensure_ascii=False), flush=True)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")


def _inputs(file: TextIO) -> Iterator[Any]:
    for line in filter(str.strip, file):
        yield json.loads(line) if line.lstrip().startswith("{") else line.rstrip("\n")


def _vectors(model: Model, file: TextIO) -> Iterator[dict[str, Any]]:
    """Of each sentence its `tokens` and its `layers`, each with a vector for each token."""
    for line in file:
        sentences = [[line[start:end] for start, end in spans] for spans in model.tokenize(line)]
        for tokens, layers in zip(sentences, model.layers(sentences), strict=True):
            yield {"tokens": tokens, "layers": layers.round(6).tolist()}


if __name__ == "__main__":
    main()
