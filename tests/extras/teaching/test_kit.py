"""The kit for a class without a network: it is made, installed into an empty environment, and checked there."""

import contextlib
import importlib.metadata
import io
import math
import os
import platform
import re
import resource
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pytest
import torch
from packaging.requirements import Requirement

import notebooks.kit.build as builder
from elmo_tasks.extras.teaching import check
from tests import pages

NOTEBOOKS = pages.REPOSITORY / "notebooks"
FRONT_END = ("ipykernel", "nbclient")
CHECK_SECONDS = 20  # of a processor
# Packages that `check.py` does not import, see `NOT_FOR_ANSWERS` in test_cli.py: their wheels have no code.
EMPTY = {
    *("accelerate", "contourpy", "datasets", "debugpy", "fonttools", "grpcio", "ipykernel", "ipython", "jedi"),
    *("kiwisolver", "matplotlib", "networkx", "pandas", "pillow", "prompt-toolkit", "pyarrow", "pyzmq"),
    *("scikit-learn", "scipy", "seqeval", "sympy", "tensorboard", "tornado"),
}
HERE = "linux-arm" if platform.machine() == "aarch64" else "linux"  # tests of the kit only run on Linux


def wheel(folder: Path, name: str, needs: Iterable[str] = (), tag: str = "py3-none-any") -> None:
    """A wheel without code."""
    with zipfile.ZipFile(folder / f"{name}-1.0-{tag}.whl", "w") as archive:
        lines = [
            "Metadata-Version: 2.1",
            f"Name: {name}",
            "Version: 1.0",
            *(f"Requires-Dist: {each}" for each in needs),
        ]
        archive.writestr(f"{name}-1.0.dist-info/METADATA", "\n".join(lines) + "\n")
        archive.writestr(f"{name}-1.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")


@pytest.mark.slow  # calls pip several times
def test_each_platform_has_what_it_needs_there(tmp_path: Path) -> None:
    (published := tmp_path / "published").mkdir()
    wheel(published, "tagger", ["bar; sys_platform == 'win32'", "lock; os_name == 'posix'", "extra[fast]", "numbers"])
    for name in ("bar", "lock", "quick"):
        wheel(published, name)
    wheel(published, "extra", ["quick; extra == 'fast'", "never; extra == 'slow'"])
    wheel(published, "numbers", tag="cp311-cp311-manylinux_2_17_x86_64")
    found, problems = {}, {}
    for name in ("linux", "windows"):
        (folder := tmp_path / name).mkdir()
        options = ["--no-index", "--find-links", str(published)]
        downloads = builder.Downloads(builder.PLATFORMS[name], "3.11", options)
        downloads.collect(["tagger"], {}, folder)
        found[name], problems[name] = set(builder.named(folder)), downloads.problems
    assert found == {
        "linux": {"tagger", "lock", "extra", "quick", "numbers"},
        "windows": {"tagger", "bar", "extra", "quick"},
    }
    assert problems["linux"] == {}
    assert list(problems["windows"]) == ["numbers"]
    assert problems["windows"]["numbers"].startswith("pip finds no wheel (Could not find a version")


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_reference_answers_all_exercises(path: Path) -> None:
    cells = [cell for cell in builder.solved_notebook(path).cells if builder.is_exercise(cell)]
    assert len(cells) == 4
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(cell.source, {"check": check, "math": math, "np": np, "torch": torch})
        assert printed.getvalue().endswith(": right\n")


def needed(names: Iterable[str]) -> dict[str, importlib.metadata.Distribution]:
    """The installed packages that these need, and themselves."""
    found: dict[str, importlib.metadata.Distribution] = {}
    todo = [Requirement(name) for name in names]
    while todo:
        each = todo.pop()
        if (name := builder.canonicalize_name(each.name)) in found:
            continue
        found[name] = importlib.metadata.distribution(name)
        todo += [
            needs
            for needs in map(Requirement, found[name].requires or ())
            if not needs.marker or any(needs.marker.evaluate({"extra": extra}) for extra in ("", *each.extras))
        ]
    return found


def is_used(file: PurePath) -> bool:
    """Half of the files are headers and tests, which nothing here needs."""
    return file.suffix not in (".pyc", ".h", ".hpp", ".cuh", ".pyi") and not {"tests", "include"} & {*file.parts}


def repack(distribution: importlib.metadata.Distribution, folder: Path, *, is_empty: bool) -> None:
    """The wheel of an installed package, as far as its files lie below one folder. It runs at least on this machine.

    Arguments:
        is_empty: whether it has only what is said about the package.
    """
    tags = re.findall(r"^Tag: (\S+)-(\S+)-(\S+)$", str(distribution.read_text("WHEEL")), re.MULTILINE)
    pythons, abis, _ = (".".join(dict.fromkeys(parts)) for parts in zip(*tags, strict=True))
    tag = f"{pythons}-{abis}-{'any' if tags[0][2] == 'any' else f'linux_{platform.machine()}'}"
    files = [each for each in distribution.files or () if ".." not in each.parts and is_used(each)]
    (info,) = {each.parts[0] for each in files if each.name == "METADATA" and len(each.parts) == 2}
    files = [each for each in files if each.parts[0] == info] if is_empty else files
    with zipfile.ZipFile(folder / f"{info.removesuffix('.dist-info')}-{tag}.whl", "w") as archive:
        for each in files:
            if each.name != "RECORD":
                archive.write(str(each.locate()), str(each))
        archive.writestr(f"{info}/RECORD", "".join(f'"{each}",,\n' for each in files))


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of the packages that are installed here, so that it needs no network."""
    folder = tmp_path_factory.mktemp("kit")
    (wheels := folder / "installed").mkdir()
    for name, distribution in needed(["elmo-tasks", *FRONT_END]).items():
        if name != "elmo-tasks":
            repack(distribution, wheels, is_empty=name in EMPTY)
    for name in ("dist/reveal.js", "dist/reveal.css", "dist/theme/white.css", "LICENSE"):
        (file := folder / "reveal" / name).parent.mkdir(parents=True, exist_ok=True)
        file.write_text("// reveal.js\n")
    command = [sys.executable, str(NOTEBOOKS / "kit" / "build.py"), str(folder / "class-kit"), "--platforms", HERE]
    command += ["--front-end", ",".join(FRONT_END), "--reveal", str(folder / "reveal"), "--no-outputs"]
    subprocess.run([*command, "--", "--no-index", "--find-links", str(wheels)], check=True)
    shutil.rmtree(wheels)
    return folder / "class-kit"


@pytest.mark.slow
def test_slides_need_no_address(kit: Path) -> None:
    pages_of_slides = sorted((kit / "slides").glob("*.html"))
    assert [path.stem for path in pages_of_slides] == [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb"))]
    for path in pages_of_slides:
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="([^"]*)"', text)
        assert [name for name in loaded if not name.startswith("data:")] == [
            "reveal.js/dist/reveal.css", "reveal.js/dist/theme/white.css", "reveal.js/dist/reveal.js"
        ]  # fmt: skip
        assert all((path.parent / name).is_file() for name in loaded)
        assert not re.search(r"@import|url\(['\"]?http|\bimport\b[^;]*from ['\"]http|MathJax|require\(", text)
        assert "no answer yet" not in text
        assert "NotImplementedError" in text


@pytest.mark.slow
def test_a_laptop_without_a_network(kit: Path, tmp_path: Path) -> None:
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "ELMO_TASKS", "PIP"))}
    nowhere = {f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https")}
    variables |= {**nowhere, "PIP_NO_COMPILE": "1", "OMP_NUM_THREADS": "1", "ELMO_TASKS_CACHE": str(tmp_path / "cache")}

    def run(*command: Any) -> tuple[int, str]:
        done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    code, printed = run(python, kit / "check.py")
    assert code == 1
    assert "missing: elmo-tasks 0" in printed
    assert "missing: ipykernel" in printed
    code, log = run(*shlex.split(printed.splitlines()[-1]), "--quiet")
    assert code == 0, log

    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    code, printed = run(python, kit / "check.py")
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert re.fullmatch(r"ready \(\d+ s\)\n", printed)
    assert end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime < CHECK_SECONDS

    shutil.rmtree(next((tmp_path / "env").glob("lib/python*/site-packages/seqeval-*")))
    (kit / "notebooks" / "assignment.md").unlink()
    (kit / "slides" / "1_vectors.html").write_text("damaged")
    code, printed = run(python, kit / "check.py")
    assert code == 1
    assert "missing: notebooks/assignment.md: it is not in" in printed
    assert "missing: slides/1_vectors.html: it is not as in the kit" in printed
    assert re.search("missing: elmo-tasks .* requires seqeval, which is not installed", printed)
    assert printed.count("missing: ") == 3
