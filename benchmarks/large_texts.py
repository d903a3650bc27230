"""How fast processes that share the work embed a large text into Parquet files, and the memory that they take.

    python -m benchmarks.large_texts [--words 1000000]

The text is the beginning of the real one in $ELMO_TASKS_DATA/lm. Each process has one thread. A line is the time from
the start of the processes to the end of the last one, which includes reading the text once to find its parts, and the
start of Python and torch.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.common import PRECISIONS, real_data, run_commands
from elmo_tasks.files.text import read_lines

_BILLION = 1_000_000_000


def write_text(path: Path, words: int) -> int:
    """Writes the first lines of the real text with at least this many words; returns their number."""
    count = 0
    with path.open("w", encoding="utf-8") as stream:
        for _, line in read_lines(real_data() / "lm" / "wikipedia_en_2015.txt.xz"):
            stream.write(f"{line}\n")
            count += len(line.split())
            if count >= words:
                break
    return count


def measure(name: str, text: Path, words: int, commands: list[list[str]]) -> None:
    """Runs commands at the same time, and prints a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/parts/"
        embed = [sys.executable, "-m", "elmo_tasks", "embed", str(text), "--output", output, "--quiet"]
        embed += ["--part-tokens", str(max(10_000, words // 20))]
        costs = run_commands(*([*embed, *command] for command in commands))
        seconds = max(cost.seconds for cost in costs)
        memory = max(cost.peak_gigabytes for cost in costs)
        size = sum(path.stat().st_size for path in Path(output).iterdir()) / 1e9
    hours = _BILLION / words * seconds / 3600
    cells = [name, f"{words / seconds:,.0f}", f"{hours:,.0f}", f"{memory:.1f}", f"{size:.2f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        words = write_text(text, arguments.words)
        print(f"{words:,} words\n")
        print("| processes of one thread | words/s | hours for a billion words | GB of memory of one | GB on disk |")
        print("|---|---:|---:|---:|---:|")
        for precision in PRECISIONS:
            options = ["--precision", precision]
            measure(f"one, {precision}", text, words, [options])
            measure(f"two shards, {precision}", text, words, [[*options, "--shard", f"{n}/2"] for n in (1, 2)])


if __name__ == "__main__":
    main()
