"""A copy of the package whose extras can be taken away, and a process for each use of what is left.

`python tests/deleted_extras.py FOLDER` reads tasks from standard input, one a line: the folder of the package that is
taken away, command lines, and variables of the environment. Without any command lines, all modules are imported and the
help of all commands is shown. It prints what was wrong with each as a line of JSON. Each task has a process of its own,
with everything imported that the package itself imports, and with those modules of the core that know no commands.
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1] / "elmo_tasks"
_NAMES_OF_EXTRAS = ("batches", "compat", "estimators")  # modules under which users import them
_IMPORTED_BEFORE = (
    *("torch", "datasets", "accelerate", "pandas", "sklearn.base", "scipy.stats", "transformers", "rich.progress"),
    *("spacy", "optuna", "fastapi", "uvicorn", "matplotlib.figure", "h5py", "pyarrow.parquet", "tokenizers"),
    *("seqeval.metrics", "pydantic", "filelock", "safetensors.torch", "torchcrf", "_jsonnet", "huggingface_hub"),
)


@contextlib.contextmanager
def copied_package(folder: Path) -> Iterator[Callable[..., str]]:
    """Copies the package into a folder, for a function that uses the copy.

    It is given what is taken away, `extras` or `extras/NAME`, command lines, and variables of the environment. It
    returns what is wrong when the command lines, or without any all of the help, are run; empty if nothing is.
    """
    shutil.copytree(PACKAGE, folder / PACKAGE.name, copy_function=_link)
    command = [sys.executable, __file__, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        streams = process.stdin, process.stdout

        def use_without(missing: str, *commands: list[str], **environment: str) -> str:
            print(json.dumps([missing, commands, environment]), file=streams[0], flush=True)
            return str(json.loads(streams[1].readline()))

        yield use_without
        process.stdin.close()
        assert process.wait() == 0


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # on another disk
        shutil.copyfile(source, target)


def _use(folder: str, commands: list[list[str]]) -> str:
    """Uses the package of a folder; returns what went wrong."""
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


@contextlib.contextmanager
def _without(package: Path, missing: str) -> Iterator[None]:
    away = package.with_name("away")
    (package / missing).rename(away)
    importlib.invalidate_caches()
    yield
    away.rename(package / missing)


def _import_core(package: Path) -> None:
    """Imports the core, except for what lists commands. What fails here fails again in the processes, which say so."""
    sys.path.insert(0, str(package.parent))
    import elmo_tasks

    own = ("cli", "commands", "__main__", *_NAMES_OF_EXTRAS)
    for module in pkgutil.walk_packages(elmo_tasks.__path__, "elmo_tasks.", onerror=lambda _: None):
        if module.name.split(".")[1] not in own:
            with contextlib.suppress(Exception):
                importlib.import_module(module.name)
    if hooks := sys.modules.get("elmo_tasks.hooks"):  # it looks again which extras there are
        for function in (hooks.extras, hooks._added):
            function.cache_clear()


def _main(folder: str) -> None:
    # Installed for development, the package would be found although the copy does not have it.
    sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in repr(finder)]
    for name in _IMPORTED_BEFORE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    package = Path(folder, PACKAGE.name)
    with _without(package, "extras"):
        _import_core(package)
    for line in sys.stdin:
        missing, commands, environment = json.loads(line)
        with _without(package, missing):
            if os.fork() == 0:
                os.environ.update(environment)
                output = sys.stdout
                with contextlib.redirect_stdout(sys.stderr):
                    try:
                        found = _use(folder, commands)
                    except BaseException:
                        found = traceback.format_exc()
                print(json.dumps(found), file=output, flush=True)
                os._exit(0)
            os.wait()


if __name__ == "__main__":
    _main(sys.argv[1])
