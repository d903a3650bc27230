"""Tortures the package: `python -m tests.torture`, or `make torture`.

fuzz      damaged, odd and wrong files of every format
kills     commands killed at any moment; what comes after equals what an uninterrupted run gives
disk      commands on a full disk
writers   two commands that write to the same place
hostile   runs, archives, weights and configs that try to read, write or run what they must not
soak      many inputs in one process
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.torture.full_disk import FullDisk
from tests.torture.fuzz import Fuzz
from tests.torture.hostile import Hostile
from tests.torture.kills import Kills
from tests.torture.report import Report
from tests.torture.sandbox import Part, run_cases
from tests.torture.scenarios import make_references
from tests.torture.soak import Soak
from tests.torture.workshop import apart, import_everything, make_workshop
from tests.torture.writers import Writers

_SHARES = {"fuzz": 0.5, "kills": 0.25, "disk": 0.1, "writers": 0.05, "hostile": 0.05, "soak": 0.05}


def main() -> int:
    options = _parse()
    report = Report(options.output, options.seed)
    chosen = options.part or list(_SHARES)
    whole = sum(_SHARES[name] for name in chosen)
    shutil.rmtree(options.output, ignore_errors=True)
    import_everything()
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        folder = Path(name)
        apart(lambda: make_workshop(folder / "shop"), folder / "log.txt")
        if {"kills", "disk", "writers"} & set(chosen):
            make_references(folder / "shop")
        for part in chosen:
            _torture(part, report, folder, options, 60 * options.minutes * _SHARES[part] / whole)
    report.show()
    return 1 if report.failed else 0


def _torture(name: str, report: Report, folder: Path, options: argparse.Namespace, seconds: float) -> None:
    """Runs the cases of a part for some seconds, or as many as wanted."""
    scratch = folder / f"{name}-cases"
    scratch.mkdir()
    print(f"{name} ...", flush=True)
    part = _PARTS[name](folder / "shop", options, seconds)
    until = None if options.cases else time.monotonic() + seconds
    for outcome in run_cases(part, scratch, first=options.first, most=options.cases, until=until):
        report.add(name, outcome)
    shutil.rmtree(scratch, ignore_errors=True)


_PARTS: dict[str, Callable[[Path, argparse.Namespace, float], Part]] = {
    "fuzz": lambda shop, options, seconds: Fuzz(shop, options.seed, tuple(options.kind or [""])),
    "kills": lambda shop, options, seconds: Kills(shop, options.seed),
    "disk": lambda shop, options, seconds: FullDisk(shop, options.seed),
    "writers": lambda shop, options, seconds: Writers(shop, options.seed),
    "hostile": lambda shop, options, seconds: Hostile(shop),
    "soak": lambda shop, options, seconds: Soak(seconds, options.seed),
}


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--minutes", type=float, default=6, metavar="N", help="how long, roughly (default: 6)")
    amount.add_argument("--cases", type=int, metavar="N", help="how many cases of each part, instead")
    parser.add_argument("--part", action="append", choices=_SHARES, help="only this part; can be repeated")
    parser.add_argument("--kind", action="append", metavar="NAME", help="of fuzz, only the kinds that begin so")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random cases (default: 1)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first case (default: 0)")
    output = Path("build") / "torture"
    parser.add_argument("--output", type=Path, default=output, metavar="DIR", help=f"for failures (default: {output})")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
