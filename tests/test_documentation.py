"""What the documentation shows works: commands and Python are run, and pages show what they print."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib
import pytest

from elmo_tasks import cli, tasks
from elmo_tasks.config.packaged import find_config
from elmo_tasks.elmo import TINY_OPTIONS, random_bilm
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.sample_data import write_sample_data
from tests import pages

REPOSITORY = Path(__file__).parent.parent
README = REPOSITORY / "README.md"
FILES = [README, *sorted((REPOSITORY / "docs").rglob("*.md"))]
BILM_CARDS = [REPOSITORY / "elmo_tasks" / "elmo" / "default_bilm" / "README.md"]
PREDICTING = REPOSITORY / "docs" / "predicting.md"
LARGE_TEXTS = REPOSITORY / "docs" / "large_texts.md"
TOUR = REPOSITORY / "docs" / "tour.md"
WORDS_IN_CONTEXT = REPOSITORY / "docs" / "words_in_context.md"
SPECIAL_DOMAIN = REPOSITORY / "docs" / "special_domain.md"
OTHER_PACKAGES = REPOSITORY / "docs" / "scikit_learn_and_spacy.md"
TUTORIALS = sorted((REPOSITORY / "docs" / "tutorials").glob("*.md"))
NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
OWN_CONFIGS = {
    f"{name}.jsonnet" for name in ("topics", "reviews", "recipes", "small", "without", "domain", "labels")
}  # shown in full


def blocks(path: Path, language: str) -> list[str]:
    """The blocks of code in a language, "" being those without one."""
    return [block.content for block in pages.blocks(path) if block.language == language]


# Pages that are run as a whole. The others have no outputs; what they have of Python is run, too.
# These begin in an empty folder.
SIMPLE = [README, *TUTORIALS, PREDICTING, LARGE_TEXTS, WORDS_IN_CONTEXT, OTHER_PACKAGES]
RUN = {TOUR, SPECIAL_DOMAIN, REPOSITORY / "docs" / "own_data.md", *SIMPLE}
PYTHON = [path for path in FILES if blocks(path, "python") and path not in RUN]


def commands(path: Path) -> Iterator[list[str]]:
    """The arguments of every `elmo-tasks` in the code of a file, in blocks and within lines."""
    inline = re.findall(r"`(elmo-tasks [a-z-]+ [^`]+)`", path.read_text(encoding="utf-8"))
    for text in [*blocks(path, ""), *(" ".join(each.split()) for each in inline)]:
        for line in re.sub(r"<\([^)]*\)", "FILE", text).replace("\\\n", " ").splitlines():
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


@pytest.fixture
def check_page(shared_trainings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A function that runs a page in an empty folder, and compares what it shows with what is printed."""

    def check(page: Path) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("ELMO_TASKS_DATA", pages.OTHER_DATA)
        wrong = [each for each in pages.run(page, tmp_path, shared_trainings) if not each.is_right()]
        texts = [f"shown:\n{each.block.content}\nprinted:\n{each.printed}\nlog:\n{each.log}" for each in wrong]
        assert not wrong, f"python -m tests.pages {page} mends it, or better sentences\n" + "\n".join(texts)

    return check


@pytest.mark.slow
@pytest.mark.parametrize("path", SIMPLE, ids=lambda path: path.stem)
def test_pages_show_what_their_commands_print(path: Path, check_page: Callable[..., None]) -> None:
    check_page(path)


@pytest.mark.slow
def test_the_tour(tmp_path: Path, check_page: Callable[..., None]) -> None:
    check_page(TOUR)
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


@pytest.mark.slow
def test_small_data_is_learned_by_the_commands_of_the_guide(tmp_path: Path, check_page: Callable[..., None]) -> None:
    """60 reviews, 40 pairs and 80 sentences, with 15, 12 and 16 to choose the best epoch."""
    shutil.copytree(REPOSITORY / "tests" / "small_data", tmp_path, dirs_exist_ok=True)
    check_page(REPOSITORY / "docs" / "own_data.md")
    for name, data in {"table": "train.csv", "pairs": "pairs.csv", "names": "names.tsv"}.items():
        scores = evaluate(tmp_path / "runs" / name, tmp_path / data)
        assert scores["f1" if name == "names" else "accuracy"] >= 90


@pytest.mark.slow
def test_a_special_domain_has_the_scores_that_the_page_shows(tmp_path: Path, shared_trainings: Path) -> None:
    """A part of the rows of tables. Taggers of 40 sentences differ more between processors than other runs."""
    for each in pages.run(SPECIAL_DOMAIN, tmp_path, shared_trainings):
        printed = [table_row(line) for line in each.printed.splitlines() if "│" in line]
        for label, numbers in map(table_row, each.block.content.splitlines()):
            close = pytest.approx(numbers, rel=0.1, abs=3)
            assert [label for other, values in printed if other == label and values == close]


def table_row(line: str) -> tuple[str, list[float]]:
    """The first cell of a row, and the numbers in the others."""
    label, *cells = line.strip("│ ").split("│")
    return label.strip(), [float(number) for cell in cells for number in re.findall(r"-?\d+\.\d+", cell)]


def test_every_output_is_compared() -> None:
    """A page with outputs is one of those that are run."""
    for path in {*FILES, *BILM_CARDS} - RUN:
        assert not any(block.is_output for block in pages.blocks(path)), f"{path}: add it to the pages that are run"


@pytest.mark.parametrize(
    ("shown", "printed", "is_right"),
    [
        ("[Karvel ORG] closed a mill.", "[Karvel ORG] closed a mill.", True),
        ("[Karvel ORG] closed a mill.", "[Karvel PER] closed a mill.", False),
        ("…\nf1 81.52\n…", "test\nf1 82.30\nloss 1.0", True),
        ("…\nf1 81.52\n…", "test\nf1 60.00\nloss 1.0", False),
        ("f1 81.52", "f1 81.52\nloss 1.0", False),
        ("probability 0.98", "probability 0.52", False),
        ("read in 3 s", "read in 12 s", True),
    ],
)
def test_what_is_shown_is_compared(shown: str, printed: str, is_right: bool) -> None:
    block = pages.Block("text", f"{shown}\n", (0, 0), None, True)
    assert pages.Shown(block, f"{printed}\n", "").is_right() == is_right


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their code, with less data: the cell tagged as `parameters` is replaced."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMO_TASKS_DATA", pages.OTHER_DATA)
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
        tasks.MultiLabel,
        tasks.Regression,
        tasks.TextPairs,
        tasks.PairRegression,
        tasks.Reading,
        tasks.SemanticRoles,
        tasks.Coreference,
    )
    assert set(rows) == {task.__name__ for task in kinds}
    for task in kinds:
        named = set(re.findall(r"`(\w+)`", rows[task.__name__]))
        assert set(task.features) - task.optional <= named <= set(task.features)
