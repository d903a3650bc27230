"""One table for all hand-ins of a class: python hand_ins.py REFERENCE FOLDER [--output TABLE.csv]

REFERENCE is a run or a hand-in to compare with, such as `reference/without`. Each folder in FOLDER is a hand-in, with
config.json, metrics.json and predictions.jsonl of a run. The table has a row for each of them: its seed, its score
counted from its predictions, and the difference to the reference with its p-value, corrected by Holm for all hand-ins.
What is unusual or cannot be read is said in the row; then the exit status is 1.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_tasks.commands.console import print_table
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.compare.comparison import compare_predictions
from elmo_tasks.extras.compare.systems import Predictions, System, read_predictions
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.json_files import read_json

FILES = ("config.json", "metrics.json", "predictions.jsonl")
COLUMNS = ("hand-in", "seed", "score", "from", "to", "difference", "p", "remarks")


def read(folder: Path, reference: Predictions) -> tuple[Predictions, dict[str, Any], dict[str, Any]]:
    """The predictions, the config and the metrics; raises an ElmoTasksError if one cannot be used."""
    if missing := [name for name in FILES if not (folder / name).is_file()]:
        raise ElmoTasksError(f"no {' and no '.join(missing)}")
    predictions = read_predictions(folder / "predictions.jsonl")
    reference.check_same_examples(predictions)
    predictions.sums(predictions.units())  # they can be scored
    config, metrics = (read_json(folder / name, dict[str, Any], name) for name in FILES[:2])
    return predictions, config, metrics


def rows_of(reference: Path, folder: Path) -> list[dict[str, str]]:
    """A row for each hand-in, in the order of their names."""
    own = read_predictions(reference)
    folders = sorted(each for each in folder.iterdir() if each.is_dir())
    rows = [dict.fromkeys(COLUMNS, "") | {"hand-in": each.name} for each in folders]
    usable: list[tuple[dict[str, str], Predictions, dict[str, Any]]] = []
    for row, each in zip(rows, folders, strict=True):
        try:
            predictions, config, metrics = read(each, own)
        except ElmoTasksError as error:
            row["remarks"] = " ".join(str(error).split()).replace(f"{folder}{os.sep}", "")
            continue
        row["seed"] = str(config.get("random_seed", ""))
        same = [other["hand-in"] for other, found, _ in usable if found.predictions == predictions.predictions]
        row["remarks"] = f"the same predictions as {', '.join(same)}" if same else ""
        usable.append((row, predictions, metrics))
    systems = [(System(row["hand-in"], []), [predictions]) for row, predictions, _ in usable]
    comparison = compare_predictions([(System(reference.name, []), [own]), *systems])
    for (row, _, metrics), system, difference in zip(
        usable, comparison.systems[1:], comparison.differences, strict=True
    ):
        row["score"] = f"{system.score:.1f}"
        row["from"], row["to"] = (
            f"{system.interval.low:.1f}",
            f"{system.interval.high:.1f}",
        )
        row["difference"] = f"{difference.difference:+.1f}"
        row["p"] = f"{(difference.corrected or difference.p_values)['randomization']:.4f}"
        test = metrics.get("test")
        told = test.get(comparison.metric) if isinstance(test, dict) else None
        if not isinstance(told, (int, float)) or abs(told - system.score) > 0.05:
            said = f"{told:.1f}" if isinstance(told, (int, float)) else "no score"
            row["remarks"] = "; ".join(filter(None, [row["remarks"], f"metrics.json has {said}"]))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print one table for all hand-ins of a class.")
    parser.add_argument("reference", type=Path, help="a run or a hand-in to compare with")
    parser.add_argument("folder", type=Path, help="its folders are the hand-ins")
    parser.add_argument("--output", type=Path, metavar="TABLE.csv", help="also write the table")
    options = parser.parse_args(arguments)
    try:
        rows = rows_of(options.reference, options.folder)
    except (ElmoTasksError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print_table(
        f"{len(rows)} hand-ins",
        COLUMNS,
        [[row[name] for name in COLUMNS] for row in rows],
    )
    if options.output:
        table = io.StringIO(newline="")
        writer = csv.DictWriter(table, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
        with atomic_write(options.output) as stream:
            stream.write(table.getvalue().encode("utf-8"))
    return 1 if any(row["remarks"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
