"""What the documentation shows works: Python is run, and the arguments of commands are parsed."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest

from elmo_tasks import cli, tasks, trained_runs
from elmo_tasks.elmo import TINY_OPTIONS, random_bilm
from elmo_tasks.packaged import find_config
from elmo_tasks.sample_data import write_sample_data

REPOSITORY = Path(__file__).parent.parent
FILES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
TOUR = REPOSITORY / "docs" / "tour.md"
SPECIAL_DOMAIN = REPOSITORY / "docs" / "special_domain.md"
TUTORIALS = sorted((REPOSITORY / "docs" / "tutorials").glob("*.md"))
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
OWN_CONFIGS = {
    f"{name}.jsonnet" for name in ("topics", "reviews", "recipes", "small", "without", "domain", "labels")
}  # shown in full


def blocks(path: Path, language: str) -> list[str]:
    """The blocks of code in a language, "" being those without one."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [block for name, block in found if name == language]


PYTHON = [path for path in FILES if blocks(path, "python")]


def commands(path: Path) -> Iterator[list[str]]:
    """The arguments of every `elmo-tasks` in the code of a file, in blocks and within lines."""
    inline = re.findall(r"`(elmo-tasks [a-z-]+ [^`]+)`", path.read_text(encoding="utf-8"))
    for text in [*blocks(path, ""), *(" ".join(each.split()) for each in inline)]:
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if "elmo-tasks" in words:
                yield words[words.index("elmo-tasks") + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.name)
def test_python_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a file one after the other, in a folder with sample data for the quickstart and a biLM in DIR."""
    monkeypatch.chdir(tmp_path)
    write_sample_data("runs/quickstart-data", "ner", sentences=(40, 10, 10))
    random_bilm(TINY_OPTIONS).save("DIR/options.json", "DIR/weights.hdf5")
    names: dict[str, object] = {}
    for block in blocks(path, "python"):
        exec(compile(block, str(path), "exec"), names)


def run_page(path: Path, folder: Path, *, sentences: str = "", files: Path | None = None) -> str:
    """Runs the commands of a page in an empty folder, after writing the files that it shows; returns what they print.

    Arguments:
        sentences: makes sample data of this size, if given.
        files: a folder with longer files, in place of those that the page shows.
    """
    parts = re.split(r"^```(\w*)\n(.*?)^```$", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for before, language, content in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        names = re.findall(r"`(\w+\.\w+)`", before)  # the text before it names the file
        if language in ("csv", "jsonnet") and names:
            (folder / names[-1]).write_text(content, encoding="utf-8")
    if files:
        shutil.copytree(files, folder, dirs_exist_ok=True)
    settings = {**os.environ, "ELMO_TASKS_CACHE": str(folder / "cache"), "PYTHONPATH": str(REPOSITORY)}
    settings.pop("ELMO_TASKS_DATA", None)
    size = f'[ "$1" != sample-data ] || set -- "$@" --sentences {sentences}; ' if sentences else ""
    script = f'set -e\nelmo-tasks() {{ {size}"$PYTHON" -m elmo_tasks "$@"; }}\npython() {{ "$PYTHON" "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", script + "".join(blocks(path, ""))],
        cwd=folder,
        env={**settings, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_tour(tmp_path: Path) -> None:
    printed = run_page(TOUR, tmp_path)
    best = {
        name: json.loads((tmp_path / "runs" / name / "metrics.json").read_text())["best"]["validation"]["f1"]
        for name in ("recipes", "without")
    }
    shown = re.search(r"The F1 on `dev.csv` is (\d+) with ELMo and (\d+) without", TOUR.read_text(encoding="utf-8"))
    assert shown
    assert best["recipes"] == pytest.approx(float(shown[1]), abs=8)
    assert best["without"] == pytest.approx(float(shown[2]), abs=16)  # of 8 spans, one is 12
    assert best["recipes"] > best["without"]
    assert (tmp_path / "recipes.svg").is_file()
    assert "apples" in printed


@pytest.mark.slow
def test_small_data_is_learned_by_the_commands_of_the_guide(tmp_path: Path) -> None:
    """60 reviews, 40 pairs and 80 sentences, with 15, 12 and 16 to choose the best epoch."""
    run_page(REPOSITORY / "docs" / "own_data.md", tmp_path, files=REPOSITORY / "tests" / "small_data")
    for name, data in {"table": "train.csv", "pairs": "pairs.csv", "names": "names.tsv"}.items():
        scores = trained_runs.evaluate(tmp_path / "runs" / name, tmp_path / data)
        assert scores["f1" if name == "names" else "accuracy"] >= 90


@pytest.mark.slow
def test_a_special_domain_has_the_scores_that_the_page_shows(tmp_path: Path) -> None:
    printed = [table_row(line) for line in run_page(SPECIAL_DOMAIN, tmp_path).splitlines() if "│" in line]
    shown = [table_row(line) for block in blocks(SPECIAL_DOMAIN, "text") for line in block.splitlines()]
    assert len(shown) > 3
    for label, numbers in shown:
        close = pytest.approx(numbers, rel=0.1, abs=3)
        assert [label for other, values in printed if other == label and values == close]


def table_row(line: str) -> tuple[str, list[float]]:
    """The first cell of a row, and the numbers in the others."""
    label, *cells = line.strip("│ ").split("│")
    return label.strip(), [float(number) for cell in cells for number in re.findall(r"-?\d+\.\d+", cell)]


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorials(path: Path, tmp_path: Path) -> None:
    """Their commands, with less data."""
    run_page(path, tmp_path, sentences="60,20,20")
    assert list(tmp_path.glob("runs/*/metrics.json"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their code, with less data: the cell tagged as `parameters` is replaced."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    matplotlib.use("agg")
    names: dict[str, object] = {}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            assert not cell["outputs"], "a notebook is kept without its results"
            source = "".join(cell["source"])
            if "parameters" in cell["metadata"].get("tags", ()):
                source = "sentences, epochs = (40, 12, 12), 1"
            exec(compile(source, f"{path}, cell {number}", "exec"), names)
    assert list(tmp_path.glob("runs/*/metrics.json"))


def test_the_readme_shows_python() -> None:
    assert FILES[0] in PYTHON


@pytest.mark.parametrize("path", [*FILES, REPOSITORY / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_commands_exist_and_configs_are_found(path: Path) -> None:
    for words in commands(path):
        if not any(word in words for word in ("…", "--help")):
            parsed = cli.make_parser(words).parse_args(words)
            config = getattr(parsed, "config", None)
            # What lies below runs/ is made by an earlier command.
            if config not in {None, "FILE", "NAME", *OWN_CONFIGS} and not config.startswith("runs/"):
                find_config(config)


def test_the_columns_of_each_task_are_listed() -> None:
    text = (REPOSITORY / "docs" / "configs_and_runs.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", text, re.MULTILINE))
    kinds = (
        tasks.Tagging,
        tasks.Classification,
        tasks.TextPairs,
        tasks.Reading,
        tasks.SemanticRoles,
        tasks.Coreference,
    )
    assert set(rows) == {task.__name__ for task in kinds}
    for task in kinds:
        named = set(re.findall(r"`(\w+)`", rows[task.__name__]))
        assert set(task.features) - task.optional <= named <= set(task.features)
