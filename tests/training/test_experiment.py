"""A run from its config to predictions, and every way in which it can be refused."""

from __future__ import annotations

import json
import shutil
import statistics
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import experiment
from elmo_tasks.errors import ConfigError, DataError, RunError
from elmo_tasks.experiment import load_run, mean_and_deviation
from elmo_tasks.predictors import build_predictor

QUICK = ("trainer.num_epochs=2",)


@pytest.fixture(scope="module")
def trained(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    config_file = folder / "experiment.json"
    config_file.write_text(json.dumps(settings), encoding="utf-8")
    experiment.train(config_file, folder / "run", overrides=QUICK)
    return folder / "run"


def test_folder_is_the_runs_archive(trained: Path) -> None:
    names = {path.name for path in trained.iterdir()}
    assert names == {
        "bilm.json",
        "config.json",
        "frozen.safetensors",
        "metrics.json",
        "metrics.jsonl",
        "model.safetensors",
        "tensorboard",
        "training.pt",
        "versions.json",
        "vocabulary.json",
    }
    assert json.loads((trained / "versions.json").read_text()).keys() >= {"elmo-tasks", "python", "torch"}
    config = json.loads((trained / "config.json").read_text())
    assert config["trainer"]["optimizer"]["betas"] == [0.9, 0.999]  # defaults are written out
    assert not any("bilm" in name for name in load_names(trained))  # referred to, not copied


def load_names(folder: Path) -> set[str]:
    from elmo_tasks.runs import read_tensors

    return {*read_tensors(folder / "frozen.safetensors"), *read_tensors(folder / "model.safetensors")}


def test_evaluate_gives_the_metrics_of_training(trained: Path, sample_folder: Path, tmp_path: Path) -> None:
    expected = json.loads((trained / "metrics.json").read_text())["test"]
    predictions = tmp_path / "predictions.jsonl"
    for limit in (None, 30):  # other batches change nothing
        found = experiment.evaluate(
            trained, str(sample_folder / "ner_conll2003" / "eng.testb"), predictions=predictions, batch_tokens=limit
        )
        assert found == pytest.approx(expected, abs=1e-4)
    records = [json.loads(line) for line in predictions.read_text().splitlines()]
    assert [record["example"]["sentence"] for record in records if record["example"]["document"] == 0] == list(
        range(sum(record["example"]["document"] == 0 for record in records))
    )
    assert all(len(each["prediction"]["probabilities"]) == len(each["example"]["tokens"]) for each in records)


def test_archive_predicts_the_same_where_nothing_else_is_left(
    settings: dict[str, Any], tmp_path: Path, sample_folder: Path
) -> None:
    bilm = tmp_path / "bilm"
    shutil.copytree(sample_folder / "bilm", bilm)
    settings = json.loads(json.dumps(settings))
    settings["model"]["embedder"]["elmo"] = {"bilm": str(bilm)}
    config_file = tmp_path / "experiment.json"
    config_file.write_text(json.dumps(settings), encoding="utf-8")
    experiment.train(config_file, tmp_path / "run", overrides=QUICK)
    inputs = [{"text": "Mira went to Karvel. She met Dolvane Group."}, {"tokens": ["Mira", "slept"]}]

    def predictions(path: Path) -> list[dict[str, Any]]:
        run = load_run(path)
        return list(build_predictor(run.model, run.vocabulary, run.reader).predict(inputs))

    expected = predictions(tmp_path / "run")
    experiment.archive(tmp_path / "run", tmp_path / "run.tar.gz")
    shutil.rmtree(bilm)
    shutil.rmtree(tmp_path / "run")
    assert predictions(tmp_path / "run.tar.gz") == expected
    assert [each["tokens"] for each in expected][-1] == ["Mira", "slept"]


def test_run_whose_bilm_has_gone_or_changed_says_so(trained: Path, sample_folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    reference = json.loads((run / "bilm.json").read_text())
    (run / "bilm.json").write_text(json.dumps({**reference, "weights": str(tmp_path / "gone.hdf5")}))
    with pytest.raises(RunError, match=r"no longer at .*gone\.hdf5.*--set model\.embedder\.elmo\.bilm=DIR"):
        load_run(run)
    there = [f"model.embedder.elmo={json.dumps({'bilm': str(sample_folder / 'bilm')})}"]
    assert load_run(run, overrides=there).config.elmo() is not None
    (run / "bilm.json").write_text(json.dumps({**reference, "fingerprint": "0" * 64}))
    with pytest.raises(RunError, match="not the biLM that the run was trained with"):
        load_run(run)


def test_a_folder_with_a_run_is_not_overwritten(trained: Path, config_file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    with pytest.raises(RunError, match="--resume goes on with it, --force removes it"):
        experiment.train(config_file, run, overrides=QUICK)
    with pytest.raises(RunError, match=r"these keys differ: model\.dropout, random_seed"):
        experiment.train(config_file, run, overrides=(*QUICK, "random_seed=9", "model.dropout=0.1"), resume=True)
    finished = json.loads((run / "metrics.json").read_text())
    assert experiment.train(config_file, run, overrides=QUICK, resume=True) == finished
    assert experiment.train(config_file, run, overrides=("trainer.num_epochs=1",), force=True) != finished


def test_seeds_give_mean_and_deviation(config_file: Path, tmp_path: Path) -> None:
    summary = experiment.train(config_file, tmp_path / "runs", overrides=("trainer.num_epochs=1",), seeds=(1, 2))
    losses = [
        json.loads((tmp_path / "runs" / f"seed_{seed}" / "metrics.json").read_text())["test"]["loss"] for seed in (1, 2)
    ]
    assert losses[0] != losses[1]
    assert summary["mean"]["test/loss"] == pytest.approx(statistics.fmean(losses))
    assert summary["std"]["test/loss"] == pytest.approx(statistics.stdev(losses))
    assert json.loads((tmp_path / "runs" / "seeds.json").read_text())["seeds"] == [1, 2]


def test_mean_and_deviation_of_what_all_runs_have() -> None:
    summary = mean_and_deviation([{"test": {"f1": 90.0, "f1/LOC": 80.0}}, {"test": {"f1": 92.0}}])
    assert summary == {"mean": {"test/f1": 91.0}, "std": {"test/f1": pytest.approx(2**0.5)}}


def test_faults_are_found_before_any_data_is_read(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment.Data, "read", lambda *arguments: pytest.fail("data was read"))
    faults = ("trainer.patiense=3", "model.dropout=2", "trainer.optimizer.type=adan", "data_loader.batch_size=eight")
    with pytest.raises(ConfigError) as caught:
        experiment.train(config_file, tmp_path / "run", overrides=(*faults, "random_seed=-1"))
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    assert "Did you mean 'patience'?" in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_what_is_evaluated_has_a_reader_of_its_own_where_the_config_says_so(
    config_file: Path, sample_folder: Path, tmp_path: Path
) -> None:
    overrides = ["dataset_reader.input_scheme=IOB1", "trainer.num_epochs=1"]
    other = 'validation_dataset_reader={"type": "conll2003", "input_scheme": "IOB2"}'
    with pytest.raises(DataError, match=r"eng\.testa"):  # the files are in IOB1
        experiment.train(config_file, tmp_path / "wrong", overrides=[*overrides, other])
    same = other.replace("IOB2", "IOB1")
    trained = experiment.train(config_file, tmp_path / "run", overrides=[*overrides, same])
    test_file = str(sample_folder / "ner_conll2003" / "eng.testb")
    assert experiment.evaluate(tmp_path / "run", test_file) == pytest.approx(trained["test"])
    with pytest.raises(DataError, match=r"eng\.testb"):
        experiment.evaluate(tmp_path / "run", test_file, overrides=[other])


def test_a_label_that_the_run_does_not_know_is_located(trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("Ann -X- -X- I-PER\n\nBrusk -X- -X- I-LOC\n- -X- -X- I-ROCK\n")
    with pytest.raises(DataError, match=r"other\.txt: example 2: the label '.-ROCK' is not among the tags of the run"):
        experiment.evaluate(trained, str(path))
