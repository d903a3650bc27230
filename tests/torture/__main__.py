"""Tortures the package: `python -m tests.torture`, or `make torture`.

fuzz      damaged, odd and wrong files of every format
kills     commands killed at any moment; what comes after equals what an uninterrupted run gives
disk      commands on a full disk
writers   two commands that write to the same place
hostile   runs, weights and configs that try to read, write or run what they must not
soak      many inputs in one process
"""

import argparse
import collections
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from tests.torture.fuzz import fuzz
from tests.torture.hostile import hostile
from tests.torture.kills import full_disk, kills
from tests.torture.sandbox import Cases, Outcome, run_cases
from tests.torture.soak import soak
from tests.torture.workshop import apart, import_everything, make_workshop
from tests.torture.writers import writers

Faults: TypeAlias = collections.Counter[tuple[str, str, str]]  # part, kind, signature

_SHARES = {"fuzz": 0.5, "kills": 0.25, "disk": 0.1, "writers": 0.05, "hostile": 0.05, "soak": 0.05}
_KEPT = 3  # failed cases of a fault whose files are kept


def main() -> int:
    options = _parse()
    chosen = dict(options.part or ((name, None) for name in _SHARES))
    whole = sum(_SHARES[name] for name in chosen)
    shutil.rmtree(options.output, ignore_errors=True)
    import_everything()
    faults: Faults = collections.Counter()
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        folder = Path(name)
        apart(lambda: make_workshop(folder / "shop"), folder / "log.txt")
        for part, most in chosen.items():
            _torture(part, most, faults, folder, options, 60 * options.minutes * _SHARES[part] / whole)
    for (part, kind, signature), count in faults.most_common():
        print(f"{count:5}  {part}, {kind}: {signature}")
    if faults:
        print(f"reproducers: {options.output}")
    return int(bool(faults))


def _torture(
    part: str, most: int | None, faults: Faults, folder: Path, options: argparse.Namespace, seconds: float
) -> None:
    """Runs the cases of a part, `most` of them or for some seconds, and counts their faults."""
    scratch, tried, before = folder / f"{part}-cases", 0, faults.total()
    scratch.mkdir()
    cases = _PARTS[part](folder / "shop", options, seconds)
    until = time.monotonic() + seconds if most is None else None
    for outcome in run_cases(cases, scratch, first=options.first, most=most, until=until):
        tried += 1
        if outcome.problem:
            faults[part, outcome.kind, outcome.signature] += 1
            _keep(part, outcome, faults, options)
    shutil.rmtree(scratch, ignore_errors=True)
    print(f"{part}: {tried:,} cases, {faults.total() - before:,} failed", flush=True)


def _keep(part: str, outcome: Outcome, faults: Faults, options: argparse.Namespace) -> None:
    """Writes the reproducers of the first cases of a fault: `PART/FAULT/problem.txt`, and their files."""
    key = part, outcome.kind, outcome.signature
    if faults[key] <= _KEPT:
        target = options.output / part / f"{list(faults).index(key) + 1:03}-{faults[key]}"
        target.mkdir(parents=True)
        again = f"python -m tests.torture --part {part}=1 --seed {options.seed} --first {outcome.number}"
        text = f"{outcome.kind}\nagain: {again}\n\n{outcome.problem}\n"
        (target / "problem.txt").write_text(text, encoding="utf-8", errors="backslashreplace")
        if outcome.folder and Path(outcome.folder).is_dir():
            shutil.move(outcome.folder, target / "files")


_PARTS: dict[str, Callable[[Path, argparse.Namespace, float], Cases]] = {
    "fuzz": lambda shop, options, seconds: fuzz(shop, options.seed, tuple(options.kind or [""])),
    "kills": lambda shop, options, seconds: kills(shop, options.seed),
    "disk": lambda shop, options, seconds: full_disk(shop, options.seed),
    "writers": lambda shop, options, seconds: writers(shop, options.seed),
    "hostile": lambda shop, options, seconds: hostile(shop),
    "soak": lambda shop, options, seconds: soak(seconds, options.seed),
}


def _part(text: str) -> tuple[str, int | None]:
    name, _, most = text.partition("=")
    if name not in _SHARES:
        raise argparse.ArgumentTypeError(f"expected one of {', '.join(_SHARES)}")
    return name, int(most) if most else None


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=6, metavar="N", help="how long, roughly (default: 6)")
    part = "only this part, with N cases or for its share of the minutes; can be repeated"
    parser.add_argument("--part", action="append", type=_part, metavar="NAME[=N]", help=part)
    parser.add_argument("--kind", action="append", metavar="NAME", help="of fuzz, only the kinds that begin so")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random cases (default: 1)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first case (default: 0)")
    output = Path("build") / "torture"
    parser.add_argument("--output", type=Path, default=output, metavar="DIR", help=f"for failures (default: {output})")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
