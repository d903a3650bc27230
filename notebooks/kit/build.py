"""Makes a folder with all that a class needs without a network: python notebooks/kit/build.py [FOLDER]

wheels/      of elmo-tasks, its trained models, JupyterLab, and all that these need
notebooks/   the course, with its data and the assignment
slides/      the notebooks as slides, with reveal.js
teacher/     solutions, reference outputs, hand-ins to compare with, and the script that makes a table of hand-ins
check.py     says on each laptop whether it is ready
README.md    what to do

It needs the environment of `make environment`, a network and npm. Where there is no wheel for a platform, the kit is
made without it; what is missing is printed for each platform, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import ast
import copy
import dataclasses
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import nbformat
from nbconvert.exporters import SlidesExporter
from nbconvert.preprocessors import CoalesceStreamsPreprocessor, ExecutePreprocessor
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

import elmo_tasks
from elmo_tasks.extras.samples import SENTENCES, write_sample_data
from elmo_tasks.files.atomic import atomic_folder

HERE = Path(__file__).resolve().parent
NOTEBOOKS, REPOSITORY = HERE.parent, HERE.parent.parent
REVEAL = "reveal.js@4"
HANDED_IN = ("config.json", "metrics.json", "predictions.jsonl")


@dataclasses.dataclass(frozen=True)
class Platform:
    """Laptops of one kind: pip's tags of their wheels, and what the markers of requirements see there."""

    tags: Sequence[str]
    sys_platform: str
    platform_system: str
    platform_machine: str

    def markers(self, python: str) -> dict[str, str]:
        return {
            "sys_platform": self.sys_platform,
            "platform_system": self.platform_system,
            "platform_machine": self.platform_machine,
            "os_name": "nt" if self.sys_platform == "win32" else "posix",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "python_version": python,
            "python_full_version": f"{python}.0",
        }


def linux(machine: str) -> Platform:
    """For pip, a tag of Linux does not include those of earlier versions."""
    tags = [f"manylinux_2_{version}_{machine}" for version in (28, 27, 26, 24, 17, 12, 5)]
    tags += [f"manylinux{year}_{machine}" for year in (2014, 2010, 1)]
    return Platform([*tags, f"linux_{machine}"], "linux", "Linux", machine)


PLATFORMS = {
    "windows": Platform(["win_amd64"], "win32", "Windows", "AMD64"),
    "mac-arm": Platform(["macosx_14_0_arm64"], "darwin", "Darwin", "arm64"),
    "mac-intel": Platform(["macosx_14_0_x86_64"], "darwin", "Darwin", "x86_64"),
    "linux": linux("x86_64"),
    "linux-arm": linux("aarch64"),
}


def main() -> int:
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(
        description="Make a folder with all that a class needs without a network.",
        epilog="What comes after -- goes to `pip download`.",
    )
    add = parser.add_argument
    add("folder", nargs="?", type=Path, default="build/class-kit", help="the kit to write (default: %(default)s)")
    platforms = f"of the laptops, out of {', '.join(PLATFORMS)} (default: %(default)s)"
    add("--platforms", default="windows,mac-arm,linux", help=platforms)
    python = ".".join(map(str, sys.version_info[:2]))
    add("--python", default=python, help="the version of Python on the laptops (default: %(default)s)")
    add("--front-end", default="jupyterlab", help="packages that open the notebooks (default: %(default)s)")
    add("--reveal", type=Path, help="the folder of reveal.js, if there is no npm to download it")
    add("--no-outputs", action="store_true", help="do not run the notebooks: slides without outputs, no reference")
    options = parser.parse_args(sys.argv[1:split])
    names = options.platforms.split(",")
    if unknown := [name for name in names if name not in PLATFORMS]:
        parser.error(f"unknown platforms: {', '.join(unknown)}; expected some of {', '.join(PLATFORMS)}")
    if options.folder.exists():
        parser.error(f"{options.folder} is there already; remove it, or name another folder")
    if not (options.reveal or shutil.which("npm")):
        parser.error(
            f"there is no npm, which downloads reveal.js; where there is one, run `npm pack {REVEAL}`, unpack the "
            "file, and give its folder `package` as --reveal"
        )
    options.folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(options.folder) as kit:
        problems = write_wheels(kit, names, options.python, options.front_end.split(","), sys.argv[split + 1 :])
        write_course(kit, options.reveal, run=not options.no_outputs)
        write_contents(kit, options.python)
    size = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    print(f"{options.folder}: {size / 1e6:.0f} MB")
    for name, missing in problems.items():
        print(f"{name}: {'missing' if missing else 'complete'}")
        for package, problem in missing.items():
            print(f"  {package}: {problem}")
    return 1 if any(problems.values()) else 0


def write_contents(kit: Path, python: str) -> None:
    """What `check.py` reads: the files that a laptop needs, and a few numbers of a vector."""
    shutil.copy(HERE / "check.py", kit)
    readme = (HERE / "README.md").read_text("utf-8").replace("PYTHON_VERSION", python)
    (kit / "README.md").write_text(readme, "utf-8")
    listed = {}
    for path in sorted(kit.rglob("*")):
        name = path.relative_to(kit).as_posix()
        if path.is_file() and not name.startswith("teacher/"):
            is_wheel = path.suffix == ".whl"  # a stick is slow, and pip notices a damaged wheel
            size = f"{path.stat().st_size} bytes"
            listed[name] = size if is_wheel else hashlib.sha256(path.read_bytes()).hexdigest()
    (vectors,) = elmo_tasks.embed("The dog barked.")
    numbers = [round(number, 4) for number in vectors[1, 1, :8].tolist()]
    contents = {"python": python, "files": listed, "vector": numbers}
    (kit / "kit.json").write_text(json.dumps(contents, indent=1) + "\n", "utf-8")


# Wheels


def write_wheels(
    kit: Path, platforms: Sequence[str], python: str, front_end: Sequence[str], pip_options: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Returns what is missing for each platform: problems by package."""
    wheels = kit / "wheels"
    wheels.mkdir()
    own = build_own_wheels(wheels)
    wanted = [*(f"{name}=={parse_wheel_filename(path.name)[1]}" for name, path in own.items()), *front_end]
    (kit / "requirements.txt").write_text("\n".join([*wanted, ""]), "utf-8")
    problems = {}
    for name in platforms:
        print(f"wheels for {name}", flush=True)
        downloads = Downloads(PLATFORMS[name], python, pip_options)
        with tempfile.TemporaryDirectory(dir=kit) as scratch:
            downloads.collect(wanted, own, Path(scratch))
            for path in Path(scratch).glob("*.whl"):
                path.replace(wheels / path.name)
        problems[name] = downloads.problems
    return problems


def build_own_wheels(wheels: Path) -> dict[str, Path]:
    """Builds the wheels of this repository, by the names of their packages."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True).stdout.decode()
    with tempfile.TemporaryDirectory() as scratch:  # setuptools writes into the folder that it builds from
        for name in listed.rstrip("\0").split("\0"):
            if (source := REPOSITORY / name).is_file():
                target = Path(scratch, name)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        options = ["--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(wheels)]
        run_pip("wheel", *options, scratch, f"{scratch}/trained_models")
    return named(wheels)


def named(folder: Path) -> dict[str, Path]:
    """The wheels in a folder, by the names of their packages."""
    return {str(parse_wheel_filename(path.name)[0]): path for path in sorted(folder.glob("*.whl"))}


def run_pip(*arguments: str) -> None:
    """Raises a CalledProcessError with what pip printed."""
    subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, capture_output=True, text=True)


class Downloads:
    """The wheels of one platform.

    pip evaluates the markers of requirements, such as `sys_platform == "win32"`, for the machine that it runs on, also
    where it downloads for another. So it downloads wheels without what they need, which each wheel says itself.

    Attributes:
        problems: why there is no wheel, by package.
    """

    def __init__(self, platform: Platform, python: str, pip_options: Sequence[str]) -> None:
        self.markers = platform.markers(python)
        self.any_platform = ["--no-deps", "--constraint", str(REPOSITORY / "constraints.txt"), *pip_options]
        self.options = [*self.any_platform, "--only-binary=:all:", "--python-version", python]
        self.options += [f"--platform={tag}" for tag in platform.tags]
        self.problems: dict[str, str] = {}

    def collect(self, wanted: Iterable[str], own: Mapping[str, Path], folder: Path) -> None:
        """Downloads wheels into a folder, with all that they need except for those that are there already."""
        todo, read = [Requirement(each) for each in wanted], set[tuple[str, str]]()
        while todo:
            found = {**named(folder), **own}
            needed: dict[str, list[str]] = {}
            for each in todo:
                if (name := canonicalize_name(each.name)) not in found and name not in self.problems:
                    needed.setdefault(name, []).append(f"{name}{each.specifier}")
            self.fetch(needed, folder)
            found = {**named(folder), **own}
            known = [each for each in todo if canonicalize_name(each.name) in found]
            todo = [new for each in known for new in self.needs(found[canonicalize_name(each.name)], each.extras, read)]

    def fetch(self, needed: Mapping[str, Sequence[str]], folder: Path) -> None:
        """Downloads all at once; pip refuses all because of one, so then each half by itself."""
        requirements = [text for texts in needed.values() for text in texts]
        problem = self.download(requirements, folder) if needed else None
        if problem and len(needed) > 1:
            names = list(needed)
            for half in (names[::2], names[1::2]):
                self.fetch({name: needed[name] for name in half}, folder)
        elif problem and not self.build(requirements, folder):
            self.problems[next(iter(needed))] = problem

    def download(self, requirements: Sequence[str], folder: Path) -> str | None:
        """Returns what pip says against it."""
        try:
            run_pip("download", *self.options, "--dest", str(folder), *requirements)
        except subprocess.CalledProcessError as error:
            lines = [line for line in error.stderr.splitlines() if line.startswith("ERROR: ")]
            return f"pip finds no wheel ({(lines or ['ERROR: no reason'])[0].removeprefix('ERROR: ')})"
        return None

    def build(self, requirements: Sequence[str], folder: Path) -> bool:
        """Whether a wheel could be built for any platform: some packages have no wheel, but are pure Python."""
        with tempfile.TemporaryDirectory() as scratch:
            try:
                run_pip("wheel", *self.any_platform, "--wheel-dir", scratch, *requirements)
            except subprocess.CalledProcessError:
                return False
            found = [path for path in Path(scratch).glob("*.whl") if path.name.endswith("-none-any.whl")]
            for path in found:
                shutil.copy(path, folder)
            return bool(found)

    def needs(self, wheel: Path, extras: Iterable[str], read: set[tuple[str, str]]) -> list[Requirement]:
        """What a wheel needs with these extras, as far as it was not asked before."""
        new = [each for each in ("", *extras) if (wheel.name, each) not in read]
        read |= {(wheel.name, each) for each in new}
        with ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
            metadata = HeaderParser().parsestr(archive.read(names[0]).decode("utf-8"))
        return [
            each
            for each in map(Requirement, metadata.get_all("Requires-Dist") or ())
            if any(not each.marker or each.marker.evaluate({**self.markers, "extra": extra}) for extra in new)
        ]


# The course


def write_course(kit: Path, reveal: Path | None, *, run: bool) -> None:
    students, teacher = kit / "notebooks", kit / "teacher"
    students.mkdir()
    teacher.mkdir()
    for path in (*NOTEBOOKS.glob("*.ipynb"), NOTEBOOKS / "assignment.md"):
        shutil.copy(path, students)
    shutil.copy(REPOSITORY / "LICENSE", kit)
    for task in ("ner", "pos", "srl", "squad"):
        write_sample_data(students / "data", task, force=True)
    shutil.copy(SENTENCES.parent / "files" / "README.md", students / "data")
    for name in ("solutions.py", "answers.md", "kit/hand_ins.py"):
        shutil.copy(NOTEBOOKS / name, teacher)
    with tempfile.TemporaryDirectory() as scratch:
        solved = {path.stem: solved_notebook(path) for path in sorted(NOTEBOOKS.glob("*.ipynb"))}
        for name, notebook in solved.items() if run else ():
            print(f"running {name}", flush=True)
            ExecutePreprocessor(timeout=3600).preprocess(notebook, {"metadata": {"path": scratch}})
            nbformat.write(notebook, teacher / f"{name}.ipynb")
        for folder in Path(scratch, "runs").glob("with*"):
            (teacher / "reference" / folder.name).mkdir(parents=True)
            for name in HANDED_IN:
                shutil.copy(folder / name, teacher / "reference" / folder.name)
    write_slides(kit / "slides", solved, reveal)


def solved_notebook(path: Path) -> Any:
    """A notebook with the solutions in place of `None` and of functions without a body."""
    text = (NOTEBOOKS / "solutions.py").read_text("utf-8")
    sources = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.Assign):
            name = node.name if isinstance(node, ast.FunctionDef) else ast.unparse(node.targets[0])
            sources[name] = ast.get_source_segment(text, node)
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if check := is_exercise(cell):
            cell.metadata["question"] = cell.source
            cell.source = f"{sources[check[1]]}\n\n\n{check[0]}"
    return notebook


def is_exercise(cell: Any) -> re.Match[str] | None:
    """The call of `check`, and the name of the answer in it."""
    return re.search(r'^check\("\w+", (\w+)\)$', cell.source, re.MULTILINE) if cell.cell_type == "code" else None


# Without what nbconvert would load from an address: jQuery, RequireJS, MathJax and Mermaid, which no slide needs.
SLIDES = """{% extends "reveal/index.html.j2" %}
{% block html_head_js %}{% endblock %}
{% block html_head_js_mathjax %}{% endblock %}
{% block footer_js %}
<script src="reveal.js/dist/reveal.js"></script>
<script>Reveal.initialize({ controls: true, progress: true, hash: true });</script>
{% endblock footer_js %}"""


def write_slides(folder: Path, solved: Mapping[str, Any], reveal: Path | None) -> None:
    """The notebooks as slides, with the exercises and without their solutions."""
    folder.mkdir()
    # Other themes load their fonts from an address.
    exporter = SlidesExporter(raw_template=SLIDES, reveal_url_prefix="reveal.js", reveal_theme="white")
    exporter.register_preprocessor(CoalesceStreamsPreprocessor, enabled=True)  # a progress bar is one line
    for name, notebook in solved.items():
        slides = copy.deepcopy(notebook)
        for cell in slides.cells:
            if question := cell.metadata.pop("question", None):
                cell.source, cell.outputs = question, []
        page, _ = exporter.from_notebook_node(slides, {"metadata": {"name": name}})
        (folder / f"{name}.html").write_text(page, "utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        if reveal is None:
            npm = shutil.which("npm")
            subprocess.run([str(npm), "pack", "--silent", REVEAL], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
            (archive,) = Path(scratch).glob("*.tgz")
            with tarfile.open(archive) as packed:
                packed.extractall(scratch, filter="data")
            reveal = Path(scratch, "package")
        shutil.copytree(reveal / "dist", folder / "reveal.js" / "dist")
        shutil.copy(reveal / "LICENSE", folder / "reveal.js")


if __name__ == "__main__":
    sys.exit(main())
