"""Runs and weights that try to read, write or run what they must not, through the command line.

Whether a command refuses them or works is not asked. It must not touch the folder `outside`, show what is in it or in
the environment, write more than some bound, crash, or take long.
"""

import contextlib
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from tests.torture.hostile_runs import MAKERS, Maker
from tests.torture.sandbox import Case, Cases
from tests.torture.watching import watched
from tests.torture.workshop import check_end, fork, wait_for

CANARY = "canary-2f8a91"
_SECONDS = 20.0  # of CPU time
_MOST_BYTES = 400 << 20  # of all files that a command may leave

_COMMANDS = {
    "predict": ("predict", "{run}", "{shop}/text.txt", "--output", "{here}/out.jsonl"),
    "evaluate": ("evaluate", "{run}", "{shop}/test.txt", "--predictions", "{here}/out.jsonl"),
    "archive": ("archive", "{run}", "{here}/out.tar.gz"),
    "resume": ("train", "{shop}/tagger.json", "-s", "{run}", "--resume"),
    "embed": ("embed", "{shop}/text.txt", "--output", "{here}/out.hdf5", "--bilm", "{run}/bilm"),
}


def hostile(shop: Path) -> Cases:
    """Every hostile run with every command that reads it. Hostile archives are in `tests/files/test_archives.py`.

    Arguments:
        shop: see `make_workshop`.
    """
    runs = [(name, make, command) for name, make in MAKERS.items() for command in _COMMANDS]
    cases = [case for case in runs if case[2] != "embed" or "weights" in case[0] or "options" in case[0]]

    def case(number: int) -> Case | None:
        if number >= len(cases):
            return None
        name, make, command = cases[number]
        return Case(f"{command}: {name}", lambda folder: _try(make, command, shop, folder), _SECONDS)

    return case


def _try(make: Maker, command: str, shop: Path, folder: Path) -> None:
    """Makes something hostile and gives it to a command."""
    here, outside = folder / "here", folder / "outside"
    here.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text(f"{CANARY}\n" * 400)
    with watched(outside) as check:
        (outside / "secret.txt").read_bytes()
    assert check, "the watch does not work"
    run, is_sealed = make(shop, here, outside)
    before = {path: path.read_bytes() for path in outside.iterdir()}
    arguments = [part.format(run=run, shop=shop, here=here) for part in _COMMANDS[command]]
    with watched(outside) as seen:
        code, output = _run(arguments, here, folder / "log.txt")
    end = output[-2500:]
    assert not seen or not is_sealed, f"{seen[0]}\n{end}"
    assert {path: path.read_bytes() for path in outside.iterdir()} == before, f"files were changed\n{end}"
    assert CANARY not in output, f"a secret is shown\n{end}"
    check_end(code, output)
    _check_files(here, run)


def _run(arguments: list[str], here: Path, log: Path) -> tuple[int, str]:
    """The exit code and the output."""
    from elmo_tasks import cli

    def command() -> int:
        os.environ |= {"ELMO_TASKS_CACHE": str(here / "cache"), "SECRET": CANARY}
        return cli.main(arguments)

    return wait_for(fork(command, log)), log.read_text(errors="replace")


def _check_files(here: Path, run: Path) -> None:
    """The command must not have copied secrets to its files, or written very much."""
    written = [path for path in here.rglob("*") if run not in (path, *path.parents)]
    files = [path for path in written if path.is_file() and not path.is_symlink()]
    assert sum(path.stat().st_size for path in files) < _MOST_BYTES, "very large files were written"
    assert not [path for path in written if path.is_symlink()], "a link was unpacked"
    for path in files:
        assert CANARY.encode() not in path.read_bytes(), f"a secret is in {path.name}"
    for content in _packed(here / "out.tar.gz"):
        assert CANARY.encode() not in content, "a secret was packed"


def _packed(archive: Path) -> Iterator[bytes]:
    with contextlib.suppress(FileNotFoundError), tarfile.open(archive) as tar:
        for member in tar:
            stream = tar.extractfile(member)
            yield stream.read() if stream else b""
