"""Copies of the package without some of its extras, and a process for each that uses it.

`python tests/deleted_extras.py` reads tasks from standard input, one a line: a folder that has such a copy, and command
lines to run there; without any, all of its modules are imported and the help of all of its commands is shown. It prints
what was wrong with each as a line of JSON. Each task has a process of its own, with everything imported that the
package itself imports.
"""

import contextlib
import importlib
import io
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "elmo_tasks"
_NAMES_OF_EXTRAS = ("batches", "compat", "estimators")  # modules under which users import them
_IMPORTED_BEFORE = (
    *("torch", "datasets", "accelerate", "pandas", "sklearn.base", "scipy.stats", "transformers", "rich.progress"),
    *("spacy", "fastapi", "uvicorn", "matplotlib.figure", "h5py", "pyarrow.parquet", "nltk", "tokenizers"),
    *("seqeval.metrics", "pydantic", "filelock", "safetensors.torch", "torchcrf", "_jsonnet", "huggingface_hub"),
)


def copy_without(folder: Path, extras: Iterable[str] = ()) -> Path:
    """Makes a folder that has the package without these extras, or without any."""
    missing = {f"extras/{name}" for name in extras} or {"extras"}

    def ignored(inner: str, names: list[str]) -> list[str]:
        place = Path(inner).relative_to(PACKAGE)
        return [name for name in names if (place / name).as_posix() in missing]

    shutil.copytree(PACKAGE, folder / PACKAGE.name, ignore=ignored, copy_function=_link)
    return folder


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another disk
        shutil.copyfile(source, target)


def problems(tasks: Sequence[tuple[Path, list[list[str]]]], **environment: str) -> list[str]:
    """What is wrong with each copy, when these command lines, or all of its help, are run there; empty if nothing is.

    Arguments:
        tasks: for each copy its folder and the command lines.
    """
    lines = "\n".join(json.dumps([str(folder), commands]) for folder, commands in tasks)
    process = subprocess.run(
        [sys.executable, __file__], input=lines, text=True, stdout=subprocess.PIPE, env={**os.environ, **environment}
    )
    assert process.returncode == 0
    return [json.loads(line) for line in process.stdout.splitlines()]


def _use(folder: str, commands: list[list[str]]) -> str:
    """Uses the package of a folder; returns what went wrong."""
    sys.path.insert(0, folder)
    import elmo_tasks
    from elmo_tasks.cli import main

    assert Path(str(elmo_tasks.__file__)).is_relative_to(folder)
    found = []
    if not commands:
        from elmo_tasks import hooks
        from elmo_tasks.commands.command import COMMANDS

        found += _import_all(elmo_tasks.__path__, hooks.extras())
        commands = [["--help"], *([name, "--help"] for name in COMMANDS)]
    for command in commands:
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code: object
            try:
                code = main(command)
            except SystemExit as ended:
                code = ended.code
            except Exception:
                traceback.print_exc()
                code = 1
        if code != 0:
            found.append(f"{' '.join(command)}: {code}\n{output.getvalue()}")
    return "\n".join(found)


def _import_all(paths: Iterable[str], extras: Mapping[str, Any]) -> list[str]:
    """Imports all modules, except those of extras that need another one which is not there."""
    found = []
    for module in pkgutil.walk_packages(paths, "elmo_tasks.", onerror=lambda _: None):
        steps = module.name.split(".")
        is_there = steps[1] != "extras" or not steps[2:] or steps[2] in extras
        if steps[-1] != "__main__" and is_there:
            try:
                importlib.import_module(module.name)
            except Exception as error:
                if not (steps[1] in _NAMES_OF_EXTRAS and "which is not installed here" in str(error)):
                    found.append(f"{module.name}: {error}")
    return found


def _main() -> None:
    # Installed for development, the package would be found although the copy does not have it.
    sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in repr(finder)]
    for name in _IMPORTED_BEFORE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        if os.fork() == 0:
            output = sys.stdout
            with contextlib.redirect_stdout(sys.stderr):
                try:
                    found = _use(*json.loads(line))
                except BaseException:
                    found = traceback.format_exc()
            print(json.dumps(found), file=output, flush=True)
            os._exit(0)
        os.wait()


if __name__ == "__main__":
    _main()
