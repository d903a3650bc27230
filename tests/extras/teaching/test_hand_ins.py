"""The table of a class's hand-ins: a row for each, also for those that cannot be read."""

import csv
import json
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import pages
from tests.prediction_files import CASES, write

MAIN = runpy.run_path(str(pages.REPOSITORY / "notebooks" / "kit" / "hand_ins.py"))["main"]
EXAMPLE, GOOD, BAD = CASES["Tagging"]  # has two names, and BAD finds one of them


def hand_in(folder: Path, right: Sequence[bool], f1: float, seed: int = 1, **change: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"random_seed": seed}))
    (folder / "metrics.json").write_text(json.dumps({"test": {"f1": f1}}))
    pairs = [({**EXAMPLE, **change}, GOOD if is_right else BAD) for is_right in right]
    return write(folder / "predictions.jsonl", pairs)


def test_each_hand_in_has_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, table = tmp_path / "class", tmp_path / "table.csv"
    hand_in(tmp_path / "reference", [True, False, False, False], 62.5)
    hand_in(folder / "ann", [True, True, True, True], 100.0, seed=7)
    hand_in(folder / "bob", [True, True, True, True], 100.0)
    hand_in(folder / "cem", [True, True, False, False], 99.0)
    hand_in(folder / "dana", [True, True, False, True], 87.5).unlink()
    hand_in(folder / "eva", [True] * 4, 100.0, tokens=["John", "left", "Oslo", "."])
    hand_in(folder / "fay", [True] * 4, 100.0).write_text("{")
    hand_in(folder / "gil", [True] * 4, 100.0)
    (folder / "gil" / "metrics.json").write_text("[]")
    (folder / "read me.txt").touch()
    assert MAIN([str(tmp_path / "reference"), str(folder), "--output", str(table)]) == 1
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert [(row["hand-in"], row["seed"], row["score"], row["difference"]) for row in rows] == [
        ("ann", "7", "100.0", "+37.5"),
        ("bob", "1", "100.0", "+37.5"),
        ("cem", "1", "75.0", "+12.5"),
        *((name, "", "", "") for name in ("dana", "eva", "fay", "gil")),
    ]
    expected = {
        "bob": "the same predictions as ann",
        "cem": "metrics.json has 99.0",
        "dana": "no predictions.jsonl",
        "eva": "eva/predictions.jsonl: example 0 has other tokens",
        "fay": "fay/predictions.jsonl:1: ",
        "gil": "gil/metrics.json: ",
    }
    remarks = {row["hand-in"]: row["remarks"] for row in rows}
    assert remarks.pop("ann") == ""
    assert {name: remark[: len(expected[name])] for name, remark in remarks.items()} == expected
    printed = capsys.readouterr().out
    assert all(row["hand-in"] in printed for row in rows)


def test_a_class_without_faults(tmp_path: Path) -> None:
    hand_in(tmp_path / "reference", [False] * 4, 50.0)
    hand_in(tmp_path / "class" / "ann", [True] * 4, 100.0)
    assert MAIN([str(tmp_path / "reference"), str(tmp_path / "class")]) == 0
    assert MAIN([str(tmp_path / "none"), str(tmp_path / "class")]) == 2
