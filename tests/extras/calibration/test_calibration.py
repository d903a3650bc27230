"""The temperature of a run: how it is found and kept, and what it changes."""

import dataclasses
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_tasks import cli, load
from elmo_tasks.errors import RunError
from elmo_tasks.extras.calibration.calibration import calibrate, calibration_error, units_of
from elmo_tasks.runs.archive import archive
from elmo_tasks.runs.evaluate import evaluate, evaluate_run
from elmo_tasks.runs.load import load_run
from elmo_tasks.tasks import Classification, Coreference, MultiLabel, Reading, Regression, SemanticRoles, Tagging
from tests.runs.small_runs import INPUTS, SmallRun

CALIBRATION = "calibration.json"


@pytest.fixture(scope="module")
def tagged(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> SmallRun:
    """A finished run whose units are tags, most of which are right; not to be changed."""
    embedder = {**settings["model"]["embedder"], "elmo": None}
    model = {**settings["model"], "type": "simple_tagger", "tag_scheme": None, "embedder": embedder}
    trainer = {**settings["trainer"], "validation_metric": "+accuracy", "regularizers": []}
    del trainer["learning_rate_scheduler"]
    changes = {"dataset_reader": {"type": "conll2003", "tag_scheme": None}, "model": model, "trainer": trainer}
    run = SmallRun(tmp_path_factory.mktemp("tagged") / "run", {**settings, **changes})
    run.train()
    return run


@pytest.fixture
def finished(tagged: SmallRun, tmp_path: Path) -> SmallRun:
    """A copy of it."""
    shutil.copytree(tagged.path, tmp_path / "run")
    return dataclasses.replace(tagged, path=tmp_path / "run")


@pytest.fixture
def stopped(killed: SmallRun, tmp_path: Path) -> Path:
    shutil.copytree(killed.path, tmp_path / "run")
    return tmp_path / "run"


def test_error_worked_out_by_hand() -> None:
    # Bins of 1/15: 0.91 and 0.92 are in one, 0.5 is in another, and 1 is in the last.
    units = np.array([[0.91, 1], [0.92, 0], [0.5, 1], [1, 1]])
    assert calibration_error(units) == pytest.approx(100 * (abs(0.91 + 0.92 - 1) + 0.5 + 0) / 4)
    assert calibration_error(np.array([[0.5, 1], [0.5, 0]])) == 0


@pytest.mark.parametrize(
    ("task", "example", "prediction", "expected"),
    [
        (Classification(), {"label": "a"}, {"label": "b", "probabilities": {"a": 0.3, "b": 0.7}}, [(0.7, False)]),
        (MultiLabel(), {"labels": ["a"]}, {"labels": [], "probabilities": {"a": 0.3, "b": 0.2}},
         [(0.3, True), (0.2, False)]),
        (Tagging(), {"tags": ["N", "V"]}, {"tags": ["N", "N"], "probabilities": [0.9, 0.8]},
         [(0.9, True), (0.8, False)]),
        (Tagging("IOB2"), {"tags": ["B-A", "I-A", "O", "B-B"]},
         {"tags": ["B-A", "I-A", "B-A", "O"], "probabilities": [0.9, 0.8, 0.7, 0.6]}, [(0.8, True), (0.7, False)]),
        (SemanticRoles(), {"tags": ["B-ARG0", "B-V", "O"]},
         {"tags": ["B-ARG0", "B-V", "B-ARG1"], "probabilities": [0.9, 0.8, 0.7]}, [(0.9, True), (0.7, False)]),
        (Reading(), {"answers": ["Rome", "in Rome"]},
         {"answer": "the rome", "best": [{"probability": 0.6}, {"probability": 0.2}]}, [(0.6, True)]),
        (Reading(no_answer=True), {"answers": []},
         {"answer": "", "best": [{"probability": 0.2}], "probability": 0.75}, [(0.75, True)]),
        (Coreference(), {"clusters": [[[0, 0], [3, 4]], [[6, 6], [8, 8]]]},
         {"mentions": [[0, 0], [3, 4], [6, 6]], "antecedents": [None, 0, 1], "probabilities": [0.9, 0.8, 0.4]},
         [(0.8, True), (0.4, False)]),
    ],
)  # fmt: skip
def test_units_and_whether_they_are_right(
    task: Any, example: dict[str, Any], prediction: dict[str, Any], expected: list[tuple[float, bool]]
) -> None:
    assert list(units_of(task, example, prediction)) == expected


def test_numbers_are_not_calibrated() -> None:
    with pytest.raises(RunError, match="expected predictions with probabilities, got texts with a number"):
        list(units_of(Regression(), {"score": 1.0}, {"score": 1.0}))


def test_a_run_is_calibrated_and_decides_as_before(
    finished: SmallRun, settings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    validation, test = settings["validation_data_path"], settings["test_data_path"]
    before, scores = load(finished.path)(INPUTS), evaluate(finished.path, test)
    assert cli.main(["calibrate", str(finished.path)]) == 0
    found, printed = finished.json(CALIBRATION), capsys.readouterr().out
    assert found.pop("answers") == []  # for labels only
    assert all(f"{value:.2f}" in printed or f" {value} " in printed for value in found.values())
    assert found.keys() == {"temperature"} | {
        f"{key}/{part}" for key in ("units", "error", "uncalibrated_error") for part in ("validation", "test")
    }
    model = load_run(finished.path).model
    assert model.temperature == found["temperature"] != 1

    best, *others = (
        negative_log_likelihood(finished.path, validation, found["temperature"] * factor)
        for factor in (1, 0.9, 1.1, 1 / found["temperature"])
    )
    assert best < min(others)

    after = load(finished.path)(INPUTS)
    assert [without_probabilities(each) for each in after] == [without_probabilities(each) for each in before]
    assert after != before
    assert evaluate(finished.path, test) == scores
    assert load(finished.path, overrides={"calibrated": False})(INPUTS) == before
    archive(finished.path, tmp_path / "run.tar.gz")
    assert load(tmp_path / "run.tar.gz")(INPUTS) == after
    with pytest.raises(RunError, match=r"run\.tar\.gz: an archive, or not finished; expected the folder"):
        calibrate(tmp_path / "run.tar.gz")


def without_probabilities(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_probabilities(each) for key, each in value.items() if not key.startswith("probabilit")}
    return [without_probabilities(each) for each in value] if isinstance(value, list) else value


def negative_log_likelihood(path: Path, data: str, temperature: float) -> float:
    """The mean over the spans that a run finds, read from a file of predictions."""
    run = load_run(path, overrides={"calibrated": False})
    run.model.temperature = temperature
    found: list[tuple[float, bool]] = []

    def keep(row: int, example: dict[str, Any], prediction: dict[str, Any]) -> None:
        found.extend(units_of(run.model.task, example, prediction))

    evaluate_run(run, data, sink=keep)
    return -sum(math.log(max(1e-6, chance if is_right else 1 - chance)) for chance, is_right in found) / len(found)


def test_data_can_be_named(finished: SmallRun, settings: dict[str, Any]) -> None:
    found = calibrate(finished.path, settings["test_data_path"])
    assert found.keys() == {"temperature", "units/validation", "error/validation", "uncalibrated_error/validation"}
    assert found["units/validation"] > 0
    both = calibrate(finished.path, settings["test_data_path"], settings["test_data_path"])
    assert both["error/test"] == both["error/validation"] == found["error/validation"]


def test_few_examples_are_warned_of(
    finished: SmallRun, settings: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each token is a prediction."""
    sentences = Path(settings["test_data_path"]).read_text(encoding="utf-8").split("\n\n")
    tokens = [len([line for line in each.splitlines() if not line.startswith("-DOCSTART-")]) for each in sentences]
    enough = next(number for number in range(len(tokens)) if sum(tokens[:number]) >= 100)
    for number in (enough - 1, enough):
        caplog.clear()
        (tmp_path / "few.txt").write_text("\n\n".join(sentences[:number]) + "\n", encoding="utf-8")
        count = calibrate(finished.path, tmp_path / "few.txt")["units/validation"]
        assert count == sum(tokens[:number])
        problem = f"{finished.path}: the temperature depends on chance: {count} predictions; expected 100"
        assert (problem in caplog.messages) == (number < enough)


def test_without_validation_data_some_must_be_named(finished: SmallRun) -> None:
    finished.write("config.json", {**finished.json("config.json"), "validation_data_path": None})
    with pytest.raises(RunError, match="has no validation data; expected DATA that it was not trained on"):
        calibrate(finished.path)


@pytest.mark.parametrize("content", ["{", "{}", '{"temperature": 0}', '{"temperature": 1e9}', "[]"])
def test_a_damaged_file_is_refused(finished: SmallRun, content: str) -> None:
    finished.write(CALIBRATION, content)
    with pytest.raises(RunError, match=r"calibration\.json:.*(temperature: |the calibration of a run)") as caught:
        load_run(finished.path)
    assert "\n" not in str(caught.value)
    assert load_run(finished.path, overrides={"calibrated": False}).model.temperature == 1
    assert calibrate(finished.path)["temperature"] == load_run(finished.path).model.temperature


def test_more_training_removes_the_calibration(finished: SmallRun) -> None:
    finished.write(CALIBRATION, {"temperature": 2})
    finished.resume()
    assert load_run(finished.path).model.temperature == 2
    finished.resume("trainer.num_epochs=3")
    assert CALIBRATION not in finished.files()


def test_a_run_in_training_is_refused(stopped: Path) -> None:
    with pytest.raises(RunError, match="an archive, or not finished"):
        calibrate(stopped)


def test_a_run_that_finds_nothing_is_refused(trained: SmallRun) -> None:
    with pytest.raises(RunError, match="no prediction is right, or none is wrong; expected data with both"):
        calibrate(trained.path)
    assert CALIBRATION not in trained.files()


def test_predict_without_calibration(finished: SmallRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("Mary went to Boeing.\n")
    printed = []
    for temperature, option in ((1, None), (8, None), (8, "--uncalibrated")):
        finished.write(CALIBRATION, {"temperature": temperature})
        words = ["predict", str(finished.path), str(tmp_path / "in.txt"), "--json", *([option] if option else [])]
        assert cli.main(words) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[2] != printed[1]
