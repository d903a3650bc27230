"""A run that a cross-validation has scored: who predicts what, what decides what, and what is said of it."""

import csv
import itertools
import json
import random
import shutil
import statistics
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from elmo_tasks import cli
from elmo_tasks.data_readers.sources import Source
from elmo_tasks.errors import ElmoTasksError, RunError
from elmo_tasks.extras.calibration.calibration import answers_by_precision, calibrate
from elmo_tasks.extras.compare.error_report import errors
from elmo_tasks.extras.compare.systems import read_predictions
from elmo_tasks.extras.repeats import cross_validation
from elmo_tasks.extras.repeats.cross_validation import train_folds
from elmo_tasks.extras.repeats.report import headline, outlook
from elmo_tasks.files.tensor_files import read_tensors
from elmo_tasks.metrics import Accuracy
from elmo_tasks.metrics.span_f1 import SpanF1
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.runs.experiment_config import Calibration
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.learned import Learned
from elmo_tasks.runs.load import load_predictor, load_run
from elmo_tasks.runs.train import train
from elmo_tasks.tasks import Classification, Tagging
from elmo_tasks.training.trainer import Trainer
from tests.runs.small_runs import SmallRun, killed_at

WORDS = {"warm": ("sunny", "mild", "hot", "bright"), "cold": ("icy", "frozen", "snowy", "bitter")}
MODEL: dict[str, Any] = {
    "dataset_reader": {"type": "delimited", "task": "classification"},
    "train_data_path": "train.csv",
    "validation_data_path": "dev.csv",
    "folds": 4,
    "model": {
        "type": "text_classifier",
        "embedder": {"characters": {"embedding_size": 4, "filters": 8, "width": 2}},
        "pooling": "max",
    },
    "data_loader": {"batch_size": 4},
    "trainer": {
        "num_epochs": 5,
        "patience": 1,
        "validation_metric": "+accuracy",
        "optimizer": {"type": "adam", "lr": 0.05},
        "device": "cpu",
    },
}


def rows(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """Different texts with their labels, alternating."""
    drawn = random.Random(seed)
    labels = ["warm", "cold"] * count
    return [
        (f"It was a {drawn.choice(WORDS[label])} day number {number}", label)
        for number, label in enumerate(labels[:count])
    ]


def write(path: Path, table: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{text},{label}\n" for text, label in [("text", "label"), *table]))
    return path


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run on a table of 24 rows, one of which is labelled wrong."""
    folder = tmp_path_factory.mktemp("scored")
    table = rows(24)
    table[4] = (table[4][0], "cold")
    write(folder / "table.csv", table)
    train(MODEL, folder / "run", overrides=[f"train_data_path={folder / 'table.csv'}"])
    return RunFolder(folder / "run")


def pairs_of(run: RunFolder) -> list[dict[str, dict[str, Any]]]:
    return [json.loads(line) for line in run.validation_predictions.read_text().splitlines()]


def result_of(run: RunFolder) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run.cross_validation.read_text())
    return found


def accuracies(run: RunFolder, part: str) -> list[float]:
    """On the fold that is held out, after each epoch of a training on the others or on a share of them."""
    return [record["validation"]["accuracy"] for record in SmallRun(run.folds / part, MODEL).records()]


def table_of(run: RunFolder) -> Path:
    return run.path.parent / "table.csv"


def test_each_row_is_predicted_once_by_the_model_that_has_not_seen_it(scored: RunFolder) -> None:
    pairs = pairs_of(scored)
    assert [pair["example"]["line"] for pair in pairs] == list(range(2, 26))
    learned = Learned.read(scored.learned)
    assert learned
    assert Counter(learned.parts.values()) == {1: 6, 2: 6, 3: 6, 4: 6}
    task, temperature = Classification(), json.loads(scored.calibration.read_text())["temperature"]
    assert abs(temperature - 1) > 0.1
    for number in range(1, 5):
        fold = RunFolder(scored.folds / str(number))
        own = Learned.read(fold.learned)
        assert own
        held_out = [pair for pair in pairs if learned.parts[task.key(pair["example"])] == number]
        assert {task.key(pair["example"]) for pair in held_out} == {key for key, part in own.parts.items() if part < 0}
        assert len(own.parts) == 24
        predicted = load_predictor(fold.path)([{"tokens": pair["example"]["tokens"]} for pair in held_out])
        assert [pair["prediction"]["label"] for pair in held_out] == [each["label"] for each in predicted]
        odds = [
            (each["probabilities"]["warm"] / each["probabilities"]["cold"]) ** (1 / temperature) for each in predicted
        ]
        found = [pair["prediction"]["probabilities"]["warm"] for pair in held_out]
        assert found == pytest.approx([each / (1 + each) for each in odds], abs=1e-4)  # calibrated, as the run is
    metric = Accuracy("label")
    metric.update([pair["prediction"] for pair in pairs], [pair["example"] for pair in pairs])
    assert (
        json.loads(scored.metrics.read_text())["best"]["validation"] == result_of(scored)["scores"] == metric.compute()
    )


def test_other_folds_choose_the_epoch_of_a_fold(scored: RunFolder) -> None:
    scores = [accuracies(scored, str(number)) for number in range(1, 5)]
    assert all(len(each) == 5 for each in scores)  # no patience
    for number in range(4):  # all folds together choose the fourth epoch, and all but the first one the fifth
        means = [statistics.fmean(each[epoch] for at, each in enumerate(scores) if at != number) for epoch in range(5)]
        metrics = json.loads((scored.folds / str(number + 1) / "metrics.json").read_text())
        assert metrics["best"]["epoch"] == means.index(max(means)) + 1
    means = [statistics.fmean(each[epoch] for each in scores) for epoch in range(5)]
    epoch = result_of(scored)["epoch"]
    assert epoch == means.index(max(means)) + 1
    assert (
        len(SmallRun(scored.path, MODEL).records()) == epoch == json.loads(scored.metrics.read_text())["best"]["epoch"]
    )


def test_the_result_as_json_as_text_and_as_a_page(
    scored: RunFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = result_of(scored)
    assert (result["folds"], result["examples"], result["metric"]) == (4, 24, "accuracy")
    assert result["interval"]["low"] <= result["score"] <= result["interval"]["high"]
    assert result["most_frequent_label"] == pytest.approx(100 * 13 / 24)
    assert sum(map(sum, result["confusion"]["counts"])) == 24
    assert list(result["growth"]["scores"]) == ["6", "12", "24"]
    assert result["growth"]["scores"]["24"] == pytest.approx(result["score"])
    for share, examples in ((25, "6"), (50, "12")):  # of the first two folds, at the epochs that others have chosen
        lost = []
        for number in ("1", "2"):
            epoch = json.loads((scored.folds / number / "metrics.json").read_text())["best"]["epoch"] - 1
            of_part = Learned.read(scored.folds / f"{number}_{share}_percent" / "learned.safetensors")
            assert of_part
            assert Counter(of_part.parts.values()) == {-1: 6, 0: {25: 4, 50: 9}[share]}
            lost.append(accuracies(scored, number)[epoch] - accuracies(scored, f"{number}_{share}_percent")[epoch])
        assert result["growth"]["scores"][examples] == pytest.approx(result["score"] - statistics.fmean(lost))
    assert not [*scored.folds.glob("[34]_*")]  # a training by epochs takes long
    wrong = [pair for pair in pairs_of(scored) if pair["prediction"]["label"] != pair["example"]["label"]]
    assert len(result["doubtful"]) == min(10, len(wrong))
    margins = [each["probability"] for each in result["doubtful"]]
    assert margins == sorted(margins, reverse=True)
    place = f"{table_of(scored)}:6"
    (doubtful,) = [each for each in result["doubtful"] if each["place"] == place]
    assert (doubtful["label"], doubtful["predicted"]) == ("cold", "warm")

    write_config = {**MODEL, "train_data_path": str(table_of(scored))}
    monkeypatch.chdir(scored.path.parent)
    Path("config.json").write_text(json.dumps(write_config))
    assert (
        cli.main(["train", "config.json", "-s", "run", "--set", f"train_data_path={table_of(scored)}", "--resume"]) == 0
    )
    output = capsys.readouterr()
    assert output.out.rstrip().endswith(headline(result))
    assert outlook(result) in output.out
    assert place in output.out
    assert "run/report.html is a page about its score" in output.err
    assert "predict run new.csv --format reader --output predicted.csv" in output.err
    assert "folds" not in output.err
    page = scored.report.read_text()
    whole, half = result["score"], result["growth"]["scores"]["12"]
    bars = (
        f'<b>24 examples</b><i style="width:{whole:.1f}%"></i>',
        f'<span>12 examples</span><i style="width:{half:.1f}%"></i>',
        f'<b>accuracy</b><i style="width:{whole:.1f}%"></i>',
        '<span>always the most frequent label</span><i style="width:54.2%"></i>',
    )
    assert [each for each in (headline(result), outlook(result), place, *bars) if each not in page] == []


@pytest.fixture
def without_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model learns from a part of the examples only."""
    monkeypatch.setattr(cross_validation, "_FEWEST_TO_GROW", 1000)


@pytest.mark.usefixtures("without_growth")
def test_ten_rows_that_may_be_labelled_wrong_are_shown_by_their_beginning(tmp_path: Path) -> None:
    drawn = random.Random(7)
    table = [(f"{text} {'and so on ' * 8}end", drawn.choice(["warm", "cold"])) for text, _ in rows(40)]
    path = write(tmp_path / "table.csv", table)
    train(MODEL, tmp_path / "run", overrides=[f"train_data_path={path}", "trainer.num_epochs=1"])
    run = RunFolder(tmp_path / "run")
    wrong = [pair for pair in pairs_of(run) if pair["prediction"]["label"] != pair["example"]["label"]]
    assert len(wrong) > 10
    doubtful = result_of(run)["doubtful"]
    assert len(doubtful) == 10
    for each in doubtful:
        text = table[int(each["place"].rpartition(":")[2]) - 2][0]
        assert each["text"] == f"{text[:79]}…"


def test_rows_that_were_learned_from_are_scored_by_the_folds(
    scored: RunFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    score, pairs = result_of(scored)["scores"], pairs_of(scored)
    assert evaluate(scored.path, table_of(scored)) == score
    assert (
        f"{table_of(scored)}: 24 of 24 examples were learned from; for them, the folds' models predict" in caplog.text
    )
    half, fresh = rows(24)[:12], rows(8, seed=2)
    again = [(f"{text} again", label) for text, label in fresh]
    mixed = write(tmp_path / "mixed.csv", half + again)
    written = tmp_path / "predictions.jsonl"
    mixed_score = evaluate(scored.path, mixed, predictions=written)
    found = [json.loads(line)["prediction"]["label"] for line in written.read_text().splitlines()]
    assert found[:12] == [pair["prediction"]["label"] for pair in pairs[:12]]
    labels = [label for _, label in [*half, *fresh]]
    assert mixed_score == {"accuracy": pytest.approx(100 * statistics.fmean(map(str.__eq__, found, labels)))}
    few = write(tmp_path / "few.csv", [half[0], *again])  # also less than a fifth
    evaluate(scored.path, few, predictions=written)
    assert json.loads(written.read_text().splitlines()[0])["prediction"] == pairs[0]["prediction"]
    (scored_again,) = [read_predictions(scored.path)]
    assert [each["label"] for each in scored_again.predictions] == [pair["prediction"]["label"] for pair in pairs]


def test_the_worst_examples_have_their_place(
    scored: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["errors", str(scored.path), "--json"]) == 0
    worst = json.loads(capsys.readouterr().out)["worst"]
    wrong = [pair for pair in pairs_of(scored) if pair["prediction"]["label"] != pair["example"]["label"]]
    assert [each["place"] for each in worst] == [f"{table_of(scored)}:{pair['example']['line']}" for pair in wrong]
    assert worst[0]["example"] == {key: wrong[0]["example"][key] for key in ("tokens", "label")}
    assert cli.main(["errors", str(scored.path), "--examples", "1"]) == 0
    assert f" accuracy, {worst[0]['place']}\n" in capsys.readouterr().out
    run = RunFolder(shutil.copytree(scored.path, tmp_path / "run"))
    config = json.loads(run.config.read_text()) | {"train_data_path": "gone.csv"}
    run.config.write_text(json.dumps(config))
    first = wrong[0]["example"]["line"] - 1  # the table has a line of names, and this file has none
    assert errors(run.path).worst[0].place == f"{run.validation_predictions}:{first}"


def test_runs_of_other_tables_are_compared_on_named_data(
    scored: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunFolder(shutil.copytree(scored.path, tmp_path / "other"))
    run.validation_predictions.write_text(scored.validation_predictions.read_text().partition("\n")[2])
    assert cli.main(["compare", str(scored.path), str(run.path)]) == 2
    remedy = "as the last argument, name the data to evaluate both on"
    assert (message := capsys.readouterr().err).endswith(f"{remedy}\n")
    assert "23 examples, not 24; expected the same examples in the same order" in message
    assert cli.main(["compare", str(scored.path), str(run.validation_predictions)]) == 2  # a file has only its own
    assert remedy not in capsys.readouterr().err
    new = write(tmp_path / "new.csv", [(f"{text} again", label) for text, label in rows(12, seed=6)])
    assert cli.main(["compare", str(scored.path), str(run.path), str(new)]) == 0


def test_rows_that_were_learned_from_are_apart_without_a_cross_validation(
    scored: RunFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    fold = scored.folds / "1"
    learned = Learned.read(fold / "learned.safetensors")
    assert learned
    table = rows(24)
    keys = [Classification().key({"tokens": text.split()}) for text, _ in table]
    seen = [row for row, key in zip(table, keys, strict=True) if learned.parts[key] == 0]
    unseen = [row for row, key in zip(table, keys, strict=True) if learned.parts[key] < 0]
    assert (len(seen), len(unseen)) == (18, 6)
    separate = {
        name: evaluate(fold, write(tmp_path / f"{name}.csv", each))
        for name, each in (("seen", seen), ("unseen", unseen))
    }
    assert separate["seen"].pop("learned") == {"examples": 18}
    assert "all 18 were learned from: the score says nothing about other data" in caplog.text
    assert "learned" not in separate["unseen"]
    both = evaluate(fold, write(tmp_path / "all.csv", table), confusion=True)
    assert sum(map(sum, both.pop("confusion")["counts"])) == 6
    del both["label_scores"]
    assert both.pop("learned") == pytest.approx({"examples": 18, **separate["seen"]}, abs=1e-5)
    assert both == pytest.approx(separate["unseen"], abs=1e-5)
    assert len(read_predictions(fold, tmp_path / "all.csv").learned) == 18
    few = [*seen[:1], *((f"{text} again", label) for text, label in unseen[1:])]
    assert "learned" in evaluate(fold, write(tmp_path / "fifth.csv", few[:5]))
    assert "learned" not in evaluate(fold, write(tmp_path / "few.csv", few))
    assert f"{tmp_path / 'few.csv'}: 1 of 6 examples ask the same as training examples" in caplog.text
    assert cli.main(["errors", str(fold), str(tmp_path / "all.csv"), "--examples", "1", "--device", "cpu"]) == 0
    with pytest.raises(RunError, match="all 18 examples were learned from; expected others"):
        calibrate(fold, tmp_path / "seen.csv")
    shutil.copytree(fold, tmp_path / "copy")
    assert calibrate(tmp_path / "copy", tmp_path / "all.csv")["units/validation"] == 6
    with pytest.raises(RunError, match="to calibrate it on other data, name the data"):
        calibrate(scored.path)
    with pytest.raises(RunError, match="all 24 examples were learned from; expected others"):
        calibrate(scored.path, table_of(scored))


def test_a_run_of_an_earlier_version_does_not_know_what_it_learned_from(scored: RunFolder, tmp_path: Path) -> None:
    shutil.copytree(scored.folds / "1", tmp_path / "run")
    (tmp_path / "run" / "learned.safetensors").unlink()
    assert "learned" not in evaluate(tmp_path / "run", table_of(scored))


def test_without_the_predictions_of_the_folds_rows_that_were_learned_from_are_apart(
    scored: RunFolder, tmp_path: Path
) -> None:
    run = RunFolder(shutil.copytree(scored.path, tmp_path / "run"))
    lines = run.validation_predictions.read_text().splitlines(keepends=True)
    run.validation_predictions.write_text("".join(lines[1:]))
    assert evaluate(run.path, table_of(scored))["learned"] == {"examples": 24}


def test_labels_that_are_often_enough_right() -> None:
    chances = [0.99, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.4, 0.4]
    right = [1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0]
    units = np.array([chances, right]).T
    found = answers_by_precision(Classification(), units)
    assert found == [
        {"probability": 0.4, "share": 1.0, "precision": 0.75},
        {"probability": 0.5, "share": pytest.approx(10 / 12), "precision": 0.9},  # not fewer than ten
    ]
    all_right = [{"probability": 0.6, "share": 1.0, "precision": 1.0}]  # fewer labels are no more often right
    assert answers_by_precision(Classification(), units[[*range(7), *range(7)]]) == all_right
    assert answers_by_precision(Tagging(), units) == []
    calibration = Calibration.model_validate({"temperature": 1, "answers": found})
    assert [calibration.least_probability(each, "run") for each in (0.5, 0.75, 0.76, 0.9)] == [0.4, 0.4, 0.5, 0.5]
    with pytest.raises(
        RunError, match=r"run: no labels are right as often as 0\.95; expected at most 0\.900, which 83 % of"
    ):
        calibration.least_probability(0.95, "run")


def test_unsure_labels_are_none_and_the_least_certain_rows_have_a_rank(
    scored: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = write(tmp_path / "new.csv", [(f"{text} again", label) for text, label in rows(12, seed=6)])
    answers = json.loads(scored.calibration.read_text())["answers"]
    surest = answers[-1]
    command = ["predict", str(scored.path), str(new), "--format", "reader"]
    assert cli.main([*command, "--json"]) == 0
    everything = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    sure = [max(each["probabilities"].values()) for each in everything]
    assert all(each["label"] for each in everything)
    assert cli.main([*command, "--json", "--precision", str(surest["precision"])]) == 0
    given = [json.loads(line)["label"] for line in capsys.readouterr().out.splitlines()]
    least = surest["probability"] - 5e-7  # results are rounded
    assert given == [each["label"] if chance >= least else None for each, chance in zip(everything, sure, strict=True)]

    assert cli.main([*command, "--json", "--least-certain", "3"]) == 0
    fewest = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    order = sorted(range(12), key=lambda row: sure[row])
    assert [each["line"] for each in fewest] == [row + 2 for row in order[:3]]
    output = tmp_path / "out.csv"
    assert (
        cli.main([*command, "--output", str(output), "--least-certain", "3", "--precision", str(surest["precision"])])
        == 0
    )
    with output.open(encoding="utf-8-sig") as file:
        table = list(csv.DictReader(file))
    assert [row["text"] for row in table] == [f"{text} again" for text, _ in rows(12, seed=6)]
    ranks = {row: str(rank) for rank, row in enumerate(order[:3], start=1)}
    assert [row["rank_of_doubt"] for row in table] == [ranks.get(row, "") for row in range(12)]
    assert [row["predicted_label"] or None for row in table] == given
    assert [float(row["probability"]) for row in table] == pytest.approx(sure)


def test_a_new_calibration_also_promises_a_precision(
    scored: RunFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    run = RunFolder(shutil.copytree(scored.path, tmp_path / "run"))
    table = [(f"{text} again", label) for text, label in rows(12, seed=6)]
    table[0] = (table[0][0], "cold")
    found = calibrate(run.path, write(tmp_path / "new.csv", table))
    assert f"{run.path}: this calibration replaces that of the cross-validation" in caplog.messages
    answers = json.loads(run.calibration.read_text())["answers"]
    predicted = load_predictor(run.path)([text for text, _ in table])
    chances = [max(each["probabilities"].values()) for each in predicted]
    right = [each["label"] == label for each, (_, label) in zip(predicted, table, strict=True)]
    assert found["units/validation"] == 12
    assert answers[0]["precision"] == pytest.approx(statistics.fmean(right))
    assert answers[0]["probability"] == pytest.approx(min(chances), abs=1e-5)
    load_run(run.path, overrides=[f"wanted_precision={answers[-1]['precision']}"])


def test_a_run_says_why_it_promises_no_precision(scored: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="its calibration is turned off; expected no --uncalibrated"):
        load_run(scored.path, overrides=["wanted_precision=0.5", "calibrated=false"])
    run = RunFolder(shutil.copytree(scored.path, tmp_path / "run"))
    run.calibration.unlink()  # as if all were right
    with pytest.raises(RunError, match="in its cross-validation, all predictions were right, or all were wrong"):
        load_run(run.path, overrides=["wanted_precision=0.5"])
    run.cross_validation.unlink()
    with pytest.raises(RunError, match="it is not calibrated; expected a run that a cross-validation or `calibrate`"):
        load_run(run.path, overrides=["wanted_precision=0.5"])


def test_a_run_that_was_killed_goes_on(scored: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is killed after the epochs of a fold, after those of all, and at the end."""
    overrides = [f"train_data_path={table_of(scored)}"]

    def killed_in(number: int, **settings: Any) -> None:
        """The training after this many others is killed before it ends."""
        one, calls = cross_validation.train, itertools.count()

        def train_some(*arguments: Any, **own: Any) -> dict[str, Any]:
            if next(calls) == number:
                patch.setattr(Trainer, "set_parameters", Mock(side_effect=KeyboardInterrupt))
            return one(*arguments, **own)

        with monkeypatch.context() as patch:
            patch.setattr(cross_validation, "train", train_some)
            with pytest.raises(KeyboardInterrupt):
                train(MODEL, tmp_path / "run", overrides=overrides, **settings)

    killed_in(2)
    killed_in(8, resume=True)
    with killed_at(cross_validation, "write_report"):
        train(MODEL, tmp_path / "run", overrides=overrides, resume=True)
    assert not (tmp_path / "run" / "cross_validation.json").exists()
    train(MODEL, tmp_path / "run", overrides=overrides, resume=True)
    run = RunFolder(tmp_path / "run")
    for name in ("cross_validation.json", "predictions_validation.jsonl", "calibration.json"):
        assert (run.path / name).read_bytes() == (scored.path / name).read_bytes()
    expected, found = read_tensors(scored.model), read_tensors(run.model)
    assert all(found[name].equal(expected[name]) for name in expected)
    assert not [*run.folds.glob("*/epochs"), *run.folds.glob("*/training.pt")]


@pytest.mark.usefixtures("without_growth")
def test_training_again_keeps_what_was_held_out(
    scored: RunFolder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    before = Learned.read(scored.learned)
    corrected = [*rows(24)[3:], *((f"Then came a {text[9:]}", label) for text, label in rows(9, seed=3))]
    table = write(tmp_path / "table.csv", corrected)
    overrides = [f"train_data_path={table}", "trainer.num_epochs=1"]
    train(MODEL, tmp_path / "run", overrides=overrides, from_run=scored.path)
    after = Learned.read(tmp_path / "run" / "learned.safetensors")
    assert before
    assert after
    both = before.parts.keys() & after.parts.keys()
    assert len(both) == 21
    assert all(before.parts[key] == after.parts[key] for key in both)
    for number in range(1, 5):  # and its model has not seen it
        own = Learned.read(tmp_path / "run" / "folds" / str(number) / "learned.safetensors")
        assert own
        assert {key for key, part in own.parts.items() if part < 0} == {
            key for key, part in after.parts.items() if part == number
        }
    assert sorted(Counter(after.parts.values()).values()) == [7, 7, 8, 8]
    said = "9 new, 1 with another label, 20 as before, 3 no longer there"
    assert f"{scored.path}: its training data and this one, each text once: {said}" in caplog.text
    origin = json.loads((tmp_path / "run" / "folds" / "2" / "origin.json").read_text())
    assert Path(origin["run"]) == scored.folds / "2"
    assert Path(json.loads((tmp_path / "run" / "origin.json").read_text())["run"]) == scored.path

    other = tmp_path / "other"
    train(MODEL, other, overrides=[*overrides, "folds=2"], from_run=scored.path)
    assert "has learned from 21 of the examples, and has no 2 folds: all models start anew" in caplog.text
    assert not list(other.glob("**/origin.json"))
    plain = tmp_path / "plain"  # has learned from 18 of the first rows
    train(MODEL, plain, overrides=[f"train_data_path={table_of(scored)}", *overrides[1:]], from_run=scored.folds / "1")
    assert f"{scored.folds / '1'}: has learned from 18 of the examples, and has no 4 folds" in caplog.text
    assert not list(plain.glob("**/origin.json"))
    fresh = write(tmp_path / "fresh.csv", [(f"Nobody saw the {text[9:]}", label) for text, label in rows(8, seed=4)])
    train(MODEL, tmp_path / "fresh", overrides=[f"train_data_path={fresh}", "trainer.num_epochs=1"], from_run=other)
    assert len(list((tmp_path / "fresh").glob("**/origin.json"))) == 5  # none of the rows was seen
    (other / "learned.safetensors").unlink()
    overrides = [f"train_data_path={fresh}", "trainer.num_epochs=1", "folds=2"]
    train(MODEL, tmp_path / "unknown", overrides=overrides, from_run=other)
    assert f"{other}: does not say what it has learned from; if it has seen these examples, the" in caplog.text
    assert len(list((tmp_path / "unknown").glob("**/origin.json"))) == 3
    for run, start in (("fresh", None), ("unknown", str(other))):
        assert json.loads((tmp_path / run / "cross_validation.json").read_text())["unknown_start"] == start


@pytest.mark.usefixtures("without_growth")
def test_what_decides_whether_a_run_is_scored_by_folds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    monkeypatch.chdir(tmp_path)
    table = write(tmp_path / "table.csv", rows(20))
    quick = ["trainer.num_epochs=1"]
    only_table = [*quick, f"train_data_path={table}"]

    with pytest.raises(ElmoTasksError, match="20 examples for 21 folds; expected at least as many"):
        train(MODEL, tmp_path / "run", overrides=only_table, folds=21)
    assert "in 21 folds" not in caplog.text

    def is_scored(*overrides: str, **settings: Any) -> bool:
        train(MODEL, tmp_path / "run", overrides=overrides, force=True, **settings)
        return (tmp_path / "run" / "cross_validation.json").is_file()

    monkeypatch.setattr(cross_validation, "_MOST_EXAMPLES", 20)
    assert is_scored(*only_table)
    assert (tmp_path / "run" / "folds" / "4").is_dir()
    assert not is_scored(*only_table, folds=1)
    assert not (tmp_path / "run" / "folds").exists()
    assert "a fifth of the training data is held out as validation data" in caplog.text
    assert not is_scored(*only_table, "validation_data_path=null")
    data: dict[str, Source | None] = {
        "train_data_path": str(table),
        "validation_data_path": None,
        "test_data_path": None,
    }
    assert is_scored(*quick, datasets=data)
    assert not is_scored(*quick, "validation_share=0.5", datasets=data)
    with monkeypatch.context() as patch:
        patch.setattr(cross_validation, "_MOST_EXAMPLES", 19)
        assert not is_scored(*only_table)
        assert "20 examples: no cross-validation, which is the default for 2 to 19 different ones" in caplog.text
        assert is_scored(*only_table, folds=2)
    few = write(tmp_path / "few.csv", [*rows(2), ("It was a sunny day number 0", "warm")])
    assert is_scored(*quick, f"train_data_path={few}")
    assert result_of(RunFolder(tmp_path / "run"))["folds"] == len(
        {text for text, _ in [*rows(2), ("It was a sunny day number 0", "")]}
    )
    one: dict[str, Source | None] = {
        "train_data_path": [{"tokens": ["warm"], "label": "a"}, {"tokens": ["warm"], "label": "b"}]
    }
    assert not is_scored(*quick, datasets={**data, **one})
    write(tmp_path / "dev.csv", rows(4, seed=5))
    assert not is_scored(*only_table)
    assert is_scored(*only_table, folds=2)
    with pytest.raises(RunError, match="holds a run"):
        train(MODEL, tmp_path / "run", overrides=only_table, folds=2)


@pytest.mark.usefixtures("without_growth")
def test_spans_and_thresholds_of_other_tasks(config_file: Path, tmp_path: Path) -> None:
    overrides = ["trainer.num_epochs=2", "validation_seed=4"]
    train_folds(config_file, tmp_path / "names", 2, overrides=overrides, predictions=["test"])
    run = RunFolder(tmp_path / "names")
    pairs, metric = pairs_of(run), SpanF1()
    learned, parts = Learned.read(run.learned), dict[int, set[int]]()
    assert learned
    for pair in pairs:  # documents stay whole
        parts.setdefault(pair["example"]["document"], set()).add(learned.parts[Tagging().key(pair["example"])])
    assert all(len(each) == 1 for each in parts.values())
    metric.update([pair["prediction"] for pair in pairs], [pair["example"] for pair in pairs])
    assert result_of(run)["scores"] == pytest.approx(metric.compute())
    assert run.predictions.is_file()
    assert "test" in json.loads(run.metrics.read_text())
    assert not result_of(run)["doubtful"]
    page = run.report.read_text()
    assert "gold" in page  # the worst examples, with both sets of tags
    assert f"{load_run(run.path).config.train_data_path}:" in page

    topics = {**MODEL, "dataset_reader": {"type": "delimited", "task": "multi_label"}}
    topics["trainer"] = {**MODEL["trainer"], "validation_metric": "+micro_f1", "num_epochs": 2}
    table = tmp_path / "topics.csv"
    table.write_text("".join(f"{text},{label}\n" for text, label in [("text", "labels"), *rows(24)]))
    train(topics, tmp_path / "topics", overrides=[f"train_data_path={table}"])
    run = RunFolder(tmp_path / "topics")
    thresholds = [read_tensors(run.folds / str(number) / "model.safetensors")["threshold"] for number in range(1, 5)]
    assert len({each.item() for each in thresholds}) > 1  # that of each fold is of the others
    assert read_tensors(run.model)["threshold"] == pytest.approx(statistics.fmean(each.item() for each in thresholds))
    assert load_run(run.path).model.threshold != 0.5
    with pytest.raises(RunError, match="its task is texts with a set of labels each; expected a task with one label"):
        load_run(run.path, overrides=["wanted_precision=0.5"])
