"""The course in `notebooks`: its notebooks run, and its exercises take the right answers and no others."""

import json
import math
import re
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.teaching import check
from tests import command_server, pages

FOLDER = pages.REPOSITORY / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PARAMETERS = {"2_language_model": "epochs = 0.2", "3_a_task": "epochs = 1"}  # in place of the cell tagged `parameters`
LONGEST_CELL, LONGEST = 120, 900  # seconds, also next to other tests; alone it is a minute and five

SOLUTIONS = runpy.run_path(str(FOLDER / "solutions.py"))["SOLUTIONS"]
_SENTENCE = "The sound of the bells was loud."
WRONG: dict[str, list[Any]] = {
    "1a": [lambda u, v: u @ v, lambda u, v: u @ v / u.norm(), lambda u, v: (u - v).norm()],
    "1b": [[0, 1, 2], [1, 2], 0],
    "1c": [
        lambda layers, w, gamma: gamma * (w[:, None, None] * layers).sum(0),
        lambda layers, w, gamma: (w.softmax(0)[:, None, None] * layers).sum(0),
        lambda layers, w, gamma: gamma * layers.mean(0),
    ],
    "1d": [[0, 0, 1], [4, 0, 0], [0, 4]],
    "2a": [
        lambda bits: math.exp(np.mean(bits)),
        lambda bits: sum(bits) / len(bits),
        lambda bits: 2 ** sum(bits),
        lambda bits: 2 ** np.median(bits),
    ],
    "2b": [
        (_SENTENCE, _SENTENCE.replace("was", "were")),  # not fooled
        SOLUTIONS["2b"][::-1],
        ("The dog was old.", "The cats were old."),
    ],
    "2c": [968.0 / 70.4, 968.0 - 70.4, math.log(968.0 / 70.4)],
    "2d": [140.2 / 232.2, math.sqrt(232.2 / 140.2), 0.5],
    "3a": [
        lambda tags: [(tag[2:], place, place) for place, tag in enumerate(tags) if tag != "O"],
        lambda tags: [(label, first, last + 1) for label, first, last in SOLUTIONS["3a"](tags)],
        lambda tags: [("LOC", 0, 0), ("PER", 2, 4)],  # names next to each other as one
        lambda tags: [("LOC", 0, 1), ("PER", 2, 3), ("PER", 4, 4)],  # an O as part of a name
    ],
    "3b": [
        lambda right, found, gold: right / found,
        lambda right, found, gold: (right / found + right / gold) / 2,
        lambda right, found, gold: 2 / (found / right + gold / right),  # fails if none is right
    ],
    "3c": [
        lambda scores: (min(scores), max(scores)),
        lambda scores: np.percentile(scores, [5, 95]),
        lambda scores: (np.mean(scores) - np.std(scores), np.mean(scores) + np.std(scores)),
        lambda scores: (scores[25], scores[975]),  # not sorted
    ],
    "3d": [
        lambda vector, centroids: min(centroids, key=lambda sense: (vector - centroids[sense]).norm()),
        lambda vector, centroids: min(centroids, key=lambda sense: SOLUTIONS["1a"](vector, centroids[sense])),
        lambda vector, centroids: max(centroids, key=lambda sense: vector @ centroids[sense]),
        lambda vector, centroids: max(SOLUTIONS["1a"](vector, each) for each in centroids.values()),
    ],
}  # fmt: skip


def test_each_exercise_has_a_check_and_a_solution() -> None:
    sources = ["".join(cell["source"]) for path in NOTEBOOKS for cell in json.loads(path.read_text("utf-8"))["cells"]]
    checked = [name for source in sources for name in re.findall(r'^check\("(\w+)"', source, re.MULTILINE)]
    assert checked == [name for source in sources for name in re.findall(r"^\*\*Exercise (\w+)\.", source)]
    assert checked == list(SOLUTIONS) == list(WRONG)


@pytest.mark.parametrize("exercise", SOLUTIONS)
def test_the_solution_is_right_and_other_answers_get_a_hint(exercise: str, capsys: pytest.CaptureFixture[str]) -> None:
    check(exercise, SOLUTIONS[exercise])
    assert capsys.readouterr().out == f"{exercise}: right\n"
    assert len(WRONG[exercise]) >= 3
    for answer in (*WRONG[exercise], "a word", lambda *_: None):
        check(exercise, answer)
        assert re.fullmatch(
            rf"{exercise}: (not yet|it fails with \w+: .*)\. Hint: .+\n", capsys.readouterr().out, re.DOTALL
        )


def test_an_exercise_without_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    def stub(u: object, v: object) -> object:
        raise NotImplementedError

    for answer in (None, stub):
        check("1a", answer)
        assert capsys.readouterr().out == "1a: no answer yet\n"


def test_an_unknown_exercise() -> None:
    with pytest.raises(ElmoTasksError, match="'9z' is not an exercise; expected one of 1a, 1b,"):
        check("9z", 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell is run, in this process and with one thread, with shorter trainings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMO_TASKS_CACHE", "cache")
    monkeypatch.setenv("ELMO_TASKS_DATA", pages.OTHER_DATA)
    monkeypatch.setattr(sys, "executable", command_server.start())
    shown: list[int] = []  # how many drawings each figure has
    monkeypatch.setattr(plt, "show", lambda: shown.extend(len(plt.figure(each).axes) for each in plt.get_fignums()))
    notebook = json.loads(path.read_text(encoding="utf-8"))
    nbformat.validate(notebook)
    names: dict[str, Any] = {}
    seconds = []
    for cell in notebook["cells"]:
        assert not cell.get("outputs"), "a notebook is kept without its outputs"
        if cell["cell_type"] == "code":
            is_parameter = "parameters" in cell["metadata"].get("tags", ())
            source = PARAMETERS[path.stem] if is_parameter else "".join(cell["source"])
            begin = time.monotonic()
            exec(compile(source, f"{path}: {cell['id']}", "exec"), names)
            plt.close("all")
            seconds.append(time.monotonic() - begin)
    assert max(seconds) < LONGEST_CELL
    assert sum(seconds) < LONGEST
    assert shown
    assert all(shown)
