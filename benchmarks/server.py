"""Measures the server under load: requests one at a time, and in batches.

Locust (`pip install locust`) is the load: clients that send a sentence as soon as they have the answer to the last one.
The server computes all layers: its cache is an empty folder.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import make_parser, markdown_table, read_sentences, write_results

_MODES = {"one at a time": ("--batch-tokens", "1"), "in batches": ()}


def main() -> None:
    """Prints a table with a row for each mode."""
    parser = make_parser(__doc__, sentences=5000)
    parser.add_argument("run", metavar="RUN", help="the run of a tagger")
    parser.add_argument("--clients", type=int, default=64, metavar="N", help="clients at once (default: 64)")
    parser.add_argument("--seconds", type=int, default=30, metavar="N", help="seconds for each mode (default: 30)")
    parser.add_argument("--locust", default="locust", metavar="FILE", help="the program (default: that on the path)")
    arguments = parser.parse_args()
    sentences = read_sentences(arguments)
    results = {name: _measure(arguments, options, sentences) for name, options in _MODES.items()}
    header = ("", "answers/s", "median ms", "99th percentile ms", "refused", "server MB")
    keys = ("per_second", "median", "percentile_99", "errors", "megabytes")
    print(markdown_table(header, [[name, *(f"{each[key]:.4g}" for key in keys)] for name, each in results.items()]))
    first, last = (each["per_second"] for each in results.values())
    print(f"\n{last / first:.2f} times as many answers per second, with {arguments.clients} clients")
    write_results(arguments.json, clients=arguments.clients, results=results)


def _measure(
    arguments: argparse.Namespace, options: Sequence[str], sentences: Sequence[Sequence[str]]
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "elmo_tasks", "serve", f"tagger={arguments.run}", "--port", "0", *options]
        cache = {**os.environ, "ELMO_TASKS_CACHE": folder}
        with subprocess.Popen(command, env=cache, stderr=subprocess.PIPE, text=True) as server:
            try:
                assert server.stderr is not None
                lines = (re.search(r"serving at (\S+);", line) for line in server.stderr)
                if (found := next(filter(None, lines), None)) is None:
                    raise SystemExit("the server has not started")
                return _load(arguments, found[1], Path(folder), sentences) | {"megabytes": _peak(server.pid)}
            finally:
                server.send_signal(signal.SIGTERM)


def _load(
    arguments: argparse.Namespace, address: str, folder: Path, sentences: Sequence[Sequence[str]]
) -> dict[str, float]:
    (folder / "sentences.json").write_text(json.dumps(sentences), encoding="utf-8")
    names = {"SENTENCES": str(folder / "sentences.json"), "ADDRESS": "/api/runs/tagger/predict"}
    file = Path(__file__).with_name("server_load.py")
    users = ["-u", str(arguments.clients), "-r", str(arguments.clients), "-t", f"{arguments.seconds}s", "--reset-stats"]
    done = subprocess.run(
        [arguments.locust, "-f", file, "--headless", "--json", "--host", address, *users],
        env={**os.environ, **names},
        stdout=subprocess.PIPE,
        check=False,  # it fails if a request does, which the table shows
    )
    (stats,) = json.loads(done.stdout)
    times = {int(float(time)): count for time, count in stats["response_times"].items()}
    seconds = stats["last_request_timestamp"] - stats["start_time"]
    return {
        "per_second": (stats["num_requests"] - stats["num_failures"]) / seconds,
        "median": _percentile(times, 0.5),
        "percentile_99": _percentile(times, 0.99),
        "errors": stats["num_failures"],
    }


def _percentile(times: dict[int, int], share: float) -> int:
    """The milliseconds that this share of the requests takes at most."""
    left = share * sum(times.values())
    for time in sorted(times):
        left -= times[time]
        if left <= 0:
            return time
    raise ValueError("no request")


def _peak(process: int) -> float:
    """The most memory that a process has had, in MB; 0 if the system does not say."""
    try:
        fields: Any = dict(
            re.findall(r"^(\w+):\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(encoding="utf-8"), re.MULTILINE)
        )
    except OSError:
        return 0.0
    return int(fields["VmHWM"]) / 1000


if __name__ == "__main__":
    main()
