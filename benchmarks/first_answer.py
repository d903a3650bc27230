"""How long a command takes for one sentence, and the memory, next to `import torch`, which nothing can be faster than.

    python -m benchmarks.first_answer [--before CHECKOUT] [--runs 5] [--command 'predict ner']

The commands run in turn, each in a process with one thread, on a sentence in a file; the table has the medians. Both
checkouts need compiled files, as an installation has them: `python -m compileall -q elmo_tasks`.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.common import CommandCost, make_parser, markdown_table, run_commands
from elmo_tasks.files.json_files import write_json

_SENTENCE = "Alan Turing worked at Bletchley Park, and the BBC filmed it.\n"
_PROGRAM = "import os, sys; sys.path.insert(0, sys.argv[1]); sys.stdout = open(os.devnull, 'w'); "
_PROGRAM += "from elmo_tasks.cli import main; sys.exit(main(sys.argv[2:]))"


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--command", default="predict ner", help="without its input (default: %(default)s)")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="also measure this one")
    parser.add_argument("--runs", type=int, default=5, help="(default: %(default)s)")
    arguments = parser.parse_args()
    checkouts = {"before": arguments.before, "here": Path(__file__).resolve().parents[1]}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        text.write_text(_SENTENCE, encoding="utf-8")
        words = [*arguments.command.split(), str(text)]
        commands = {"import torch": [sys.executable, "-c", "import torch"]}
        commands |= {
            name: [sys.executable, "-c", _PROGRAM, str(path), *words] for name, path in checkouts.items() if path
        }
        costs: dict[str, list[CommandCost]] = {name: [] for name in commands}
        for _ in range(arguments.runs):
            for name, command in commands.items():
                costs[name] += run_commands(command)
    fields = ("seconds", "processor_seconds", "peak_gigabytes")
    found = {
        name: {field: statistics.median(getattr(cost, field) for cost in several) for field in fields}
        for name, several in costs.items()
    }
    torch = found["import torch"]["processor_seconds"]
    rows = [
        [name, *(f"{each[field]:.2f}" for field in fields), f"{each['processor_seconds'] / torch:.2f}"]
        for name, each in found.items()
    ]
    print(markdown_table(("", "seconds", "of the processor", "GB", "times `import torch`"), rows))
    if arguments.json:
        write_json(arguments.json, found)


if __name__ == "__main__":
    main()
