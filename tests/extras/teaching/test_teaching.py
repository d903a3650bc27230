"""The course in `notebooks`: its notebooks run, and its exercises take the right answers and no others."""

import fractions
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
import torch

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.teaching import check
from elmo_tasks.text.tag_schemes import spans_of_tags
from tests import command_server, pages

FOLDER = pages.REPOSITORY / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
PARAMETERS = {"2_language_model": "epochs = 0.05", "3_a_task": "epochs = 1"}  # in place of the cell tagged `parameters`
LONGEST_CELL, LONGEST = 120, 900  # seconds, also next to other tests; alone it is a minute and five

SOLUTIONS = runpy.run_path(str(FOLDER / "solutions.py"))["SOLUTIONS"]
_SENTENCE = "The sound of the bells was loud."
WRONG: dict[str, list[Any]] = {
    "1a": [lambda u, v: u @ v, lambda u, v: u @ v / u.norm(), lambda u, v: (u - v).norm()],
    "1b": [[0, 1, 2], [1, 2], 1, [], "a word", torch.tensor([0, 2])],
    "1c": [
        lambda layers, w, gamma: gamma * (w[:, None, None] * layers).sum(0),
        lambda layers, w, gamma: (w.softmax(0)[:, None, None] * layers).sum(0),
        lambda layers, w, gamma: gamma * layers.mean(0),
        lambda layers, w, gamma: [[8.0], [10.0]],  # features and tokens exchanged
    ],
    "1d": [[0, 0, 1], [4, 0, 0], [0, 4], {0, 1, 9}, 9],
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
        (_SENTENCE, _SENTENCE),
        {*SOLUTIONS["2b"]},
    ],
    "2c": [968.0 / 70.4, 968.0 - 70.4, math.log(968.0 / 70.4), 3.7, 3.74, [3.8, 3.8]],
    "2d": [140.2 / 232.2, math.sqrt(232.2 / 140.2), 0.5, 0.7, 0.74],
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
        lambda scores: (1027, 1973),
    ],
    "3d": [
        lambda vector, centroids: min(centroids, key=lambda sense: (vector - centroids[sense]).norm()),
        lambda vector, centroids: min(centroids, key=lambda sense: SOLUTIONS["1a"](vector, centroids[sense])),
        lambda vector, centroids: max(centroids, key=lambda sense: vector @ centroids[sense]),
        lambda vector, centroids: max(SOLUTIONS["1a"](vector, each) for each in centroids.values()),
    ],
}  # fmt: skip
# What a student may also write: other types and libraries, and numbers with the decimals that the notebooks print.
RIGHT: dict[str, list[Any]] = {
    "1a": [
        lambda u, v: np.dot(u, v) / (np.linalg.norm(u) * np.linalg.norm(v)),
        lambda u, v: round(float(u @ v) / math.sqrt(u @ u) / math.sqrt(v @ v), 1),
    ],
    "1b": [0, (0,), {0}, iter([0]), np.int64(0), np.array([0]), torch.tensor(0), torch.tensor([0]), [torch.tensor(0)]],
    "1c": [
        lambda layers, w, gamma: gamma * (layers.double() * w.double().softmax(0)[:, None, None]).sum(0),
        lambda layers, w, gamma: torch.nn.Parameter(SOLUTIONS["1c"](layers, w, gamma)),
        lambda layers, w, gamma: SOLUTIONS["1c"](layers, w, gamma).tolist(),
    ],
    "1d": [(0, 0, 4), iter([0, 0, 4]), np.array([0.0, 0, 4]), torch.tensor([0, 0, 4]), [-np.inf, 0, np.float32(9)]],
    "2a": [
        lambda bits: 2 ** np.mean(bits),
        lambda bits: torch.tensor(bits).mean().exp2(),
    ],
    "2b": [[*SOLUTIONS["2b"]], iter(SOLUTIONS["2b"]), np.array(SOLUTIONS["2b"])],
    "2c": [3.8, 3.78, 9.9 - 6.1, np.float32(3.781), torch.tensor(3.78), [3.78], np.log2(968) - np.log2(70.4)],
    "2d": [0.8, 0.78, np.float64(0.777), torch.tensor([0.777]), (181.4 / 232.2 + 140.2 / 181.4) / 2],
    "3a": [
        lambda tags: (each for each in SOLUTIONS["3a"](tags)),
        lambda tags: tuple([each[0], np.int64(each[1]), torch.tensor(each[2])] for each in SOLUTIONS["3a"](tags)),
        spans_of_tags,
    ],
    "3b": [
        lambda right, found, gold: np.float64(SOLUTIONS["3b"](right, found, gold)),
        lambda right, found, gold: fractions.Fraction(2 * right, found + gold),
    ],
    "3c": [
        lambda scores: np.quantile(scores, [0.025, 0.975]),
        lambda scores: [sorted(scores)[25], sorted(scores)[-26]],
        lambda scores: {*SOLUTIONS["3c"](scores)},
        lambda scores: scores[np.argsort(scores)][[25, 975]],
    ],
    "3d": [
        lambda vector, centroids: np.str_(SOLUTIONS["3d"](vector, centroids)),
        lambda vector, centroids: [SOLUTIONS["3d"](vector, centroids)],
    ],
}  # fmt: skip


def test_each_exercise_has_a_check_and_a_solution() -> None:
    sources = ["".join(cell["source"]) for path in NOTEBOOKS for cell in json.loads(path.read_text("utf-8"))["cells"]]
    checked = [name for source in sources for name in re.findall(r'^check\("(\w+)"', source, re.MULTILINE)]
    assert checked == [name for source in sources for name in re.findall(r"^\*\*Exercise (\w+)\.", source)]
    assert checked == list(SOLUTIONS) == list(WRONG) == list(RIGHT)


@pytest.mark.filterwarnings("ignore:__array_:DeprecationWarning")  # where answers give tensors to NumPy's functions
@pytest.mark.parametrize("exercise", SOLUTIONS)
def test_the_solution_is_right_and_other_answers_get_a_hint(exercise: str, capsys: pytest.CaptureFixture[str]) -> None:
    for answer in (SOLUTIONS[exercise], *RIGHT[exercise]):
        check(exercise, answer)
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


def test_a_function_in_place_of_a_value_and_a_set_in_place_of_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    check("1a", 0.6)
    assert "Hint: the answer is the function itself" in capsys.readouterr().out
    check("1b", lambda: [0])
    assert "Hint: the answer is not a function" in capsys.readouterr().out
    check("1d", {0, 1, 9})
    assert "Hint: a set has no order" in capsys.readouterr().out


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
