"""The scores of a model on text in lower case, in capitals, as titles and without final marks, as a row of a table.

    python -m benchmarks.letter_case MODEL DATA

The changes are those of `augment` in a config. An example to which a change does nothing is scored as it is. There is
no score if that is true of all, such as documents of coreference, which keep their final marks.
"""

from __future__ import annotations

import argparse
import logging

from benchmarks.common import markdown_table
from elmo_tasks.extras.augment.augmentation import CHANGES, changed
from elmo_tasks.runs.evaluate import evaluate_run
from elmo_tasks.runs.experiment_data import read_examples
from elmo_tasks.runs.load import load_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="of tagging, semantic roles or coreference: an installed one, or a run")
    parser.add_argument("data", help="a file with labels that the model's reader can read")
    parser.add_argument("--examples", type=int, metavar="N", help="only the first N of the data")
    arguments = parser.parse_args()
    logging.disable(logging.INFO)
    run = load_run(arguments.model, overrides=["trainer.device=cpu"])
    task = run.reader.task
    examples = read_examples(run.reader, arguments.data).to_list()[: arguments.examples]
    metric, scores = task.build_metric().main, ["-"] * (1 + len(CHANGES))
    for column, change in enumerate([None, *CHANGES]):
        copies = [changed(each, change, task) if change else each for each in examples]
        if any(copies):
            texts = [copy or each for copy, each in zip(copies, examples, strict=True)]
            scores[column] = f"{evaluate_run(run, texts, unknown_labels='count').metrics[metric]:.2f}"
    print(markdown_table([metric, "as it is", *CHANGES], [[arguments.model, *scores]]))


if __name__ == "__main__":
    main()
