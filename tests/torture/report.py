"""Counts outcomes, keeps the files of the first failures of each fault, and prints the table."""

from __future__ import annotations

import collections
import dataclasses
import shutil
from pathlib import Path

from tests.torture.sandbox import Outcome

_KEPT = 3  # failed cases of a fault whose files are kept


@dataclasses.dataclass
class Row:
    """What a line of the table says."""

    tried: int = 0
    failed: int = 0
    cpu: float = 0.0  # seconds of the case that has taken most
    memory: int = 0  # bytes, the peak of the processes up to the last case


class Report:
    """The outcomes of a torture.

    Arguments:
        folder: where the reproducers of failures are written: `PART/FAULT/problem.txt` and the files of a few cases.
        seed: of the random cases, for the commands that repeat them.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rows: dict[tuple[str, str], Row] = collections.defaultdict(Row)
        self.faults: collections.Counter[tuple[str, str, str]] = collections.Counter()
        self._seed = seed

    def add(self, part: str, outcome: Outcome) -> None:
        row = self.rows[part, outcome.kind]
        row.tried += 1
        row.cpu, row.memory = max(row.cpu, outcome.cpu), max(row.memory, outcome.memory)
        if outcome.problem:
            row.failed += 1
            self._keep(part, outcome)

    def _keep(self, part: str, outcome: Outcome) -> None:
        key = part, outcome.kind, outcome.signature
        self.faults[key] += 1
        number = list(self.faults).index(key) + 1
        if self.faults[key] <= _KEPT:
            target = self.folder / part / f"{number:03}-{self.faults[key]}"
            target.mkdir(parents=True, exist_ok=True)
            again = f"python -m tests.torture --part {part} --seed {self._seed} --first {outcome.number} --cases 1"
            text = f"{outcome.kind}, {outcome.name}\nagain: {again}\n\n{outcome.problem}\n"
            (target / "problem.txt").write_text(text, encoding="utf-8", errors="backslashreplace")
            if outcome.folder and Path(outcome.folder).is_dir():
                shutil.move(outcome.folder, target / "files")
        elif outcome.folder:
            shutil.rmtree(outcome.folder, ignore_errors=True)

    def show(self) -> None:
        """Prints the table of all kinds and the faults, the most frequent first."""
        from rich.console import Console
        from rich.table import Table

        console = Console(markup=False, highlight=False)
        table = Table("part", "kind")
        for column in ("tried", "failed", "worst CPU s", "peak MB"):
            table.add_column(column, justify="right")
        for (part, kind), row in sorted(self.rows.items()):
            numbers = f"{row.tried:,}", f"{row.failed:,}", f"{row.cpu:.2f}", f"{row.memory >> 20:,}"
            table.add_row(part, kind, *numbers)
        table.add_section()
        table.add_row("all", "", f"{sum(row.tried for row in self.rows.values()):,}", f"{self.failed:,}")
        console.print(table)
        for (part, kind, signature), count in self.faults.most_common():
            console.print(f"{count:5}  {part}, {kind}: {signature}", soft_wrap=True)
        if self.faults:
            console.print(f"reproducers: {self.folder}")

    @property
    def failed(self) -> int:
        return sum(row.failed for row in self.rows.values())
