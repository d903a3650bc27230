"""`elmo-tasks` for the pages of the documentation. A training that another page has run already is copied.

Without `SHARED_TRAININGS`, the folder where they are kept, it is just `elmo-tasks`. `ONE_EPOCH` gives a training one.
Two trainings are the same if their config with all defaults is the same, and the files that it names.
"""

import contextlib
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock

from elmo_tasks import cli

_NOT_SHARED = ("dry_run", "folds", "from", "resume", "seeds", "predictions", "include_package", "self_contained")


def main(arguments: list[str]) -> int:
    if "ONE_EPOCH" in os.environ and arguments[:1] == ["train"]:
        arguments = [*arguments, "--set", "trainer.num_epochs=1"]
    is_shared = "SHARED_TRAININGS" in os.environ and arguments[:1] == ["train"]
    if not is_shared or any(f"--{name.replace('_', '-')}" in arguments for name in _NOT_SHARED):
        return cli.main(arguments)
    from elmo_tasks.commands.options import default_run_folder
    from elmo_tasks.config import describe, load_config
    from elmo_tasks.runs.experiment_config import ExperimentConfig

    parsed = cli.make_parser(arguments).parse_args(arguments)
    config = load_config(parsed.config, ExperimentConfig, parsed.set, dict(parsed.ext_var))
    key = hashlib.sha256(describe(config).encode())
    for file in sorted(set(_files(config.model_dump(mode="json")))):
        key.update(file.read_bytes())
    kept = Path(os.environ["SHARED_TRAININGS"], key.hexdigest())
    run = Path(parsed.run_folder or default_run_folder(parsed.config))
    kept.mkdir(parents=True, exist_ok=True)
    code = 0
    with filelock.FileLock(kept / "lock"):
        if not (kept / "run").exists():
            code = _train(arguments, kept)
            if code == 0:
                shutil.copytree(run, kept / "run")
    if code == 0 and not run.exists():
        shutil.copytree(kept / "run", run)
    sys.stdout.write((kept / "1").read_text(encoding="utf-8"))
    sys.stderr.write((kept / "2").read_text(encoding="utf-8"))
    return code


def _files(value: Any) -> Iterator[Path]:
    """The files that a config names, compressed or not."""
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _files(each)
    elif isinstance(value, str) and value and len(value) < 200:
        with contextlib.suppress(ValueError, NotImplementedError):  # not a pattern of a relative path
            for path in Path().glob(f"{value}*"):
                yield from (each for each in (path.rglob("*") if path.is_dir() else [path]) if each.is_file())


def _train(arguments: list[str], kept: Path) -> int:
    """Runs the command, and keeps what it prints in the files `1` and `2`."""
    streams = {number: os.dup(number) for number in (1, 2)}
    try:
        for number in streams:
            with (kept / str(number)).open("wb") as file:
                os.dup2(file.fileno(), number)
        return cli.main(arguments)
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        for number, stream in streams.items():
            os.dup2(stream, number)
            os.close(stream)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
