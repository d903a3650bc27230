"""A run from its config to predictions, and every way in which it can be refused."""

from __future__ import annotations

import ast
import json
import math
import re
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import PartialState

from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.elmo import TINY_OPTIONS, BiLM, random_bilm
from elmo_tasks.errors import ConfigError, DataError, ElmoTasksError, RunError, WeightsError
from elmo_tasks.evaluation.systems import read_predictions
from elmo_tasks.files.tensor_files import read_state
from elmo_tasks.files.text import read_lines
from elmo_tasks.metrics.span_f1 import SpanF1
from elmo_tasks.predictors import build_predictor
from elmo_tasks.runs import load, repeated, train
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.load import load_run
from elmo_tasks.runs.repeated import mean_and_deviation
from elmo_tasks.text.tokenizers import TREEBANK
from elmo_tasks.training import trainer_config as training_config
from elmo_tasks.training.processes import start_accelerator
from elmo_tasks.training.trainer import Trainer

QUICK = ("trainer.num_epochs=2",)


@pytest.fixture(scope="module")
def trained(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    config_file = folder / "experiment.json"
    config_file.write_text(json.dumps(settings), encoding="utf-8")
    train.train(config_file, folder / "run", overrides=QUICK)
    return folder / "run"


def test_folder_is_the_runs_archive(trained: Path) -> None:
    names = {path.name for path in trained.iterdir()}
    assert names == {
        "bilm.json",
        "config.json",
        "data.json",
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


def test_the_tokenizer_of_the_config_splits_what_is_predicted(trained: Path) -> None:
    assert load.load_predictor(trained).tokenizer.version == TREEBANK.version
    predictor = load.load_predictor(trained, overrides=["dataset_reader.tokenizer=unicode"])
    (result,) = predictor.predict([{"text": "\u6211\u6765"}])
    assert result["tokens"] == ["\u6211", "\u6765"]


def load_names(folder: Path) -> set[str]:
    from elmo_tasks.files.tensor_files import read_tensors

    return {*read_tensors(folder / "frozen.safetensors"), *read_tensors(folder / "model.safetensors")}


def test_evaluate_gives_the_metrics_of_training(trained: Path, sample_folder: Path, tmp_path: Path) -> None:
    expected = json.loads((trained / "metrics.json").read_text())["test"]
    predictions = tmp_path / "predictions.jsonl"
    for limit in (None, 30):  # other batches change nothing
        found = load.evaluate(
            trained, str(sample_folder / "ner_conll2003" / "eng.testb"), predictions=predictions, batch_tokens=limit
        )
        assert found == pytest.approx(expected, abs=1e-4)
    records = [json.loads(line) for line in predictions.read_text().splitlines()]
    assert [record["example"]["sentence"] for record in records if record["example"]["document"] == 0] == list(
        range(sum(record["example"]["document"] == 0 for record in records))
    )
    assert all(len(each["prediction"]["probabilities"]) == len(each["example"]["tokens"]) for each in records)


def test_training_stores_what_the_best_epoch_predicts(
    settings: dict[str, Any], trained: Path, sample_folder: Path, tmp_path: Path
) -> None:
    run = RunFolder(tmp_path / "run")
    results = train.train(settings, run.path, overrides=QUICK, predictions=["test", "validation"])
    assert results["test"] == json.loads((trained / "metrics.json").read_text())["test"]  # as without
    data = str(sample_folder / "ner_conll2003" / "eng.testb")
    load.evaluate(run.path, data, predictions=tmp_path / "full.jsonl")
    for split, scores in (("test", results["test"]), ("validation", results["best"]["validation"])):
        stored = read_predictions(run.predictions_for(split))
        metric = stored.task.build_metric()
        metric.update(stored.predictions, stored.examples)
        assert metric.compute()["f1"] == scores["f1"]
    full, brief = (path.read_text().splitlines() for path in (tmp_path / "full.jsonl", run.predictions))
    for more, less in zip(map(json.loads, full), map(json.loads, brief), strict=True):
        assert less["prediction"] == {"tags": more["prediction"]["tags"]}
        assert less["example"].items() <= more["example"].items()


def test_a_finished_run_writes_predictions_that_are_missing(
    settings: dict[str, Any], trained: Path, tmp_path: Path
) -> None:
    run, wanted = RunFolder(shutil.copytree(trained, tmp_path / "run")), RunFolder(tmp_path / "wanted")
    splits = ["test", "validation"]
    train.train(settings, wanted.path, overrides=QUICK, predictions=splits)
    results = train.train(settings, run.path, overrides=QUICK, predictions=splits, resume=True)
    assert results == json.loads((trained / "metrics.json").read_text())
    for one, other in (
        (run.predictions, wanted.predictions),
        (run.validation_predictions, wanted.validation_predictions),
    ):
        assert one.read_bytes() == other.read_bytes()
    assert run.model.read_bytes() == (trained / "model.safetensors").read_bytes()
    run.predictions.unlink()
    run.training_state.unlink()
    with pytest.raises(RunError, match="finished before, without these predictions; `elmo-tasks evaluate "):
        train.train(settings, run.path, overrides=QUICK, predictions=splits, resume=True)


def test_predictions_of_test_data_need_test_data(settings: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(RunError, match="run: cannot write predictions of test data, because the config evaluates none"):
        train.train(settings, tmp_path / "run", overrides=["evaluate_on_test=false"], predictions=["test"])
    assert not (tmp_path / "run").exists()


def test_evaluate_counts_confusions(trained: Path, sample_folder: Path) -> None:
    data = str(sample_folder / "ner_conll2003" / "eng.testb")
    table = load.evaluate(trained, data, confusion=True)["confusion"]
    lines = (line.split() for line in Path(data).read_text().splitlines())
    tags = [words[-1] for words in lines if words and words[0] != "-DOCSTART-"]
    gold = Counter(tag if tag == "O" else tag[2:] for tag in tags)
    rows = dict(zip(table["labels"], map(sum, table["counts"]), strict=True))
    assert rows == {label: gold[label] for label in table["labels"]}
    assert sum(rows.values()) == len(tags)


def test_archive_predicts_the_same_where_nothing_else_is_left(
    settings: dict[str, Any], tmp_path: Path, sample_folder: Path
) -> None:
    bilm = tmp_path / "bilm"
    shutil.copytree(sample_folder / "bilm", bilm)
    settings = json.loads(json.dumps(settings))
    settings["model"]["embedder"]["elmo"] = {"bilm": str(bilm)}
    config_file = tmp_path / "experiment.json"
    config_file.write_text(json.dumps(settings), encoding="utf-8")
    train.train(config_file, tmp_path / "run", overrides=QUICK)
    inputs = [{"text": "Mira went to Karvel. She met Dolvane Group."}, {"tokens": ["Mira", "slept"]}]

    def predictions(path: Path) -> list[dict[str, Any]]:
        run = load_run(path)
        return list(build_predictor(run.model, run.vocabulary).predict(inputs))

    expected = predictions(tmp_path / "run")
    load.archive(tmp_path / "run", tmp_path / "run.tar.gz")
    shutil.rmtree(bilm)
    shutil.rmtree(tmp_path / "run")
    assert predictions(tmp_path / "run.tar.gz") == expected
    assert [each["tokens"] for each in expected][-1] == ["Mira", "slept"]


def test_a_bilm_that_was_trained_is_part_of_the_run(
    settings: dict[str, Any], tmp_path: Path, sample_folder: Path
) -> None:
    bilm, run = tmp_path / "bilm", tmp_path / "run"
    shutil.copytree(sample_folder / "bilm", bilm)
    settings = json.loads(json.dumps(settings))
    settings["model"]["embedder"]["elmo"] = {"bilm": str(bilm), "requires_grad": True, "mixes": ["input", "output"]}
    metrics = train.train(settings, run, overrides=QUICK, self_contained=True)
    assert not (run / "bilm").exists()
    inputs = [{"text": "Mira went to Karvel. She met Dolvane Group."}, {"tokens": ["Mira", "slept"]}]
    expected = load.load_predictor(run)(inputs)
    learned = load_run(run).model.state_dict()["embedder.elmo.bilm.token_encoder.projection.weight"]
    assert not learned.equal(BiLM.load(bilm).state_dict()["token_encoder.projection.weight"])
    for name, self_contained in (("with", True), ("without", False)):
        load.archive(run, tmp_path / f"{name}.tar.gz", self_contained=self_contained)
    shutil.rmtree(bilm)
    archives = [tmp_path / "with.tar.gz", tmp_path / "without.tar.gz"]
    for path in (run, *archives):
        assert load.load_predictor(path)(inputs) == expected
        found = load.evaluate(path, settings["test_data_path"])
        assert found == pytest.approx(metrics["test"], abs=1e-4)
    private = tmp_path / "private.json"
    private.write_text('{"lstm": "the-secret"}')
    other = {"options": str(private), "weights": str(private), "requires_grad": True}
    reference = (run / "bilm.json").read_text()
    with pytest.raises(RunError, match=r"private\.json: not the biLM that the run was trained with"):
        load_run(run, overrides=[f"model.embedder.elmo={json.dumps(other)}"])
    (run / "bilm.json").unlink()
    with pytest.raises(RunError, match=r"bilm\.json: no such file"):  # nothing that the config names is opened
        load_run(run, overrides=[f"model.embedder.elmo={json.dumps(other)}"])
    (run / "bilm.json").write_text(reference)
    with pytest.raises(RunError, match=r"the weights do not fit the config: embedder\.elmo\.bilm"):
        load_run(
            run, overrides=["model.embedder.elmo.requires_grad=false", f"model.embedder.elmo.bilm={sample_folder}/bilm"]
        )
    (run / "model.safetensors").unlink()
    with pytest.raises(RunError, match=r"model\.safetensors: no such file; the run has not finished its first epoch"):
        load_run(run)


def test_a_trained_bilm_resumes_only_from_the_one_that_it_began_with(
    settings: dict[str, Any], tmp_path: Path, sample_folder: Path
) -> None:
    bilm = tmp_path / "bilm"
    shutil.copytree(sample_folder / "bilm", bilm)
    settings = json.loads(json.dumps(settings))
    settings["model"]["embedder"]["elmo"] = {"bilm": str(bilm), "requires_grad": True}
    train.train(settings, tmp_path / "run", overrides=QUICK)
    (tmp_path / "run" / "metrics.json").unlink()  # as if the run had been stopped
    train.train(settings, tmp_path / "run", overrides=QUICK, resume=True)
    (tmp_path / "run" / "metrics.json").unlink()
    random_bilm(TINY_OPTIONS, seed=5).save(bilm / "options.json", bilm / "weights.hdf5")
    with pytest.raises(RunError, match="not the biLM that the run was trained with"):
        train.train(settings, tmp_path / "run", overrides=QUICK, resume=True)


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
    place = r"name a folder with the run's biLM by --set model\.embedder\.elmo\.bilm=DIR"
    with pytest.raises(RunError, match=rf"not the biLM that the run was trained with \(.*\): {place}"):
        load_run(run)
    (run / "bilm.json").write_text(json.dumps({"bilm": "default", "fingerprint": "0" * 64}))
    with pytest.raises(RunError, match=rf"\(.*\): the package has a newer biLM than .*; train again, or {place}"):
        load_run(run)


def test_a_strangers_run_reads_no_other_file(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "the-secret")
    private = tmp_path / "private.json"
    private.write_text('{"lstm": "the-secret"}')
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    config = (run / "config.json").read_text()
    for value in (f'importstr "{private}"', 'std.extVar("SECRET")', 'error std.extVar("SECRET")'):
        (run / "config.json").write_text(config.replace('"+f1"', value))
        with pytest.raises(ConfigError, match=r"config\.json:\d+: Invalid JSON") as caught:
            load_run(run)
        assert "secret" not in str(caught.value)

    elsewhere = json.loads(config)
    elsewhere["model"]["embedder"]["elmo"] |= {"options": str(private), "weights": str(private)}
    (run / "config.json").write_text(json.dumps(elsewhere))
    (run / "bilm.json").unlink()
    with pytest.raises(RunError, match=r"bilm\.json: no such file; expected the reference to the biLM of a run"):
        load_run(run)
    reference = {"options": str(private), "weights": str(private), "fingerprint": "0" * 64}
    (run / "bilm.json").write_text(json.dumps(reference))
    with pytest.raises(RunError, match="not the biLM that the run was trained with") as raised:
        load_run(run)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("config.json", "[]", "Input should be an object"),
        ("config.json", "{" * 1000, "Invalid JSON"),
        ("metrics.json", "{}", "the key 'best' is missing; expected the metrics of a run"),
        ("metrics.json", '{"best": {"epoch": "1", "validation": {}}}', "best.epoch: .*; got '1'"),
    ],
)
def test_resuming_with_a_damaged_file_is_one_clear_error(
    name: str, content: str, problem: str, trained: Path, config_file: Path, tmp_path: Path
) -> None:
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / name).write_text(content)
    with pytest.raises(RunError, match=rf"{name}(:1)?: .*{problem}") as caught:
        train.train(config_file, tmp_path / "run", overrides=QUICK, resume=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", ":1: Invalid JSON"),
        ("[]", ": Input should be an object"),
        ('{"fingerprint": "0"}', ": expected 'bilm' or 'options' and 'weights', got neither"),
        ('{"fingerprint": "0", "options": "x"}', ": expected 'bilm' or 'options' and 'weights', got 'options'"),
        ('{"fingerprint": "0", "options": 1, "weights": "x"}', ": options: .*; got 1"),
        ('{"bilm": "default"}', ": the key 'fingerprint' is missing"),
        ('{"bilm": "other", "fingerprint": "0"}', ": bilm: .*'default'; got 'other'"),
    ],
)
def test_a_damaged_reference_is_one_clear_error(content: str, problem: str, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run" / "bilm.json").write_text(content)
    with pytest.raises(RunError, match=rf"bilm\.json{problem}") as caught:
        load_run(tmp_path / "run")
    assert "\n" not in str(caught.value)


def test_a_folder_with_a_run_is_not_overwritten(trained: Path, config_file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    with pytest.raises(RunError, match=r"--resume \(resume=True\) continues it, --force"):
        train.train(config_file, run, overrides=QUICK)
    with pytest.raises(RunError, match=r"these keys differ: model\.dropout, random_seed"):
        train.train(config_file, run, overrides=(*QUICK, "random_seed=9", "model.dropout=0.1"), resume=True)
    finished = json.loads((run / "metrics.json").read_text())
    assert train.train(config_file, run, overrides=QUICK, resume=True) == finished
    assert train.train(config_file, run, overrides=("trainer.num_epochs=1",), force=True) != finished


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def train_until_killed(
    described: Path | dict[str, Any], run: Path, overrides: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trains, and is killed after the last epoch."""

    def killed(trainer: Trainer, values: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "set_parameters", killed)
        with pytest.raises(KeyboardInterrupt):
            train.train(described, run, overrides=overrides)


def test_a_run_does_not_resume_with_another_vocabulary_or_bilm(
    settings: dict[str, Any], config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Path(settings["train_data_path"]).read_text(encoding="utf-8")
    data, bilm = tmp_path / "train.txt", tmp_path / "bilm"
    data.write_text(original, encoding="utf-8")
    random_bilm(TINY_OPTIONS, seed=2).save(bilm / "options.json", bilm / "weights.hdf5")
    overrides = [*QUICK, f"train_data_path={data}", f'model.embedder.elmo={{"bilm": "{bilm}"}}']

    train_until_killed(config_file, tmp_path / "run", overrides, monkeypatch)
    before = files_of(tmp_path / "run")

    data.write_text(f"{original}\n\nXyzzy NN I-NP O\n", encoding="utf-8")
    (record := tmp_path / "run" / "data.json").unlink()  # which earlier versions did not write
    with pytest.raises(RunError, match=r"cannot resume with other data: its vocabulary differs in words"):
        train.train(config_file, tmp_path / "run", overrides=overrides, resume=True)
    record.write_bytes(before["data.json"])
    data.write_text(original, encoding="utf-8")
    random_bilm(TINY_OPTIONS, seed=3).save(bilm / "options.json", bilm / "weights.hdf5")
    with pytest.raises(RunError, match="not the biLM that the run was trained with"):
        train.train(config_file, tmp_path / "run", overrides=overrides, resume=True)
    assert files_of(tmp_path / "run") == before

    random_bilm(TINY_OPTIONS, seed=2).save(bilm / "options.json", bilm / "weights.hdf5")
    train.train(config_file, tmp_path / "run", overrides=overrides, resume=True)
    after = files_of(tmp_path / "run")
    assert all(after[name] == before[name] for name in ("vocabulary.json", "frozen.safetensors", "bilm.json"))


def test_a_run_resumes_where_a_later_version_has_more_keys(trained: Path, config_file: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    config = json.loads((run / "config.json").read_text())
    # As if these keys were new: some of them nested, one of them set to what is not its default.
    del config["evaluate_on_test"], config["trainer"]["grad_clipping"], config["model"]["embedder"]["elmo"]["stateful"]
    (run / "config.json").write_text(json.dumps(config))
    assert train.train(config_file, run, overrides=QUICK, resume=True)
    del config["model"]["embedder"]["words"]["unknown_probability"]
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(RunError, match=r"these keys differ: model\.embedder\.words\.unknown_probability$"):
        train.train(config_file, run, overrides=QUICK, resume=True)


def test_a_run_resumes_with_the_word_vectors_that_it_began_with(
    settings: dict[str, Any], config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = tmp_path / "vectors.txt"
    lines = [line for _, line in read_lines(settings["model"]["embedder"]["words"]["vectors"])]
    vectors.write_text("\n".join(lines), encoding="utf-8")
    overrides = [*QUICK, f"model.embedder.words.vectors={vectors}"]
    expected = train.train(config_file, tmp_path / "whole", overrides=overrides)

    train_until_killed(config_file, tmp_path / "run", overrides, monkeypatch)
    words = [line.split(" ") for line in lines]
    others = [" ".join([word, *(str(3 - float(number)) for number in numbers)]) for word, *numbers in words]
    vectors.write_text("\n".join(others), encoding="utf-8")
    resumed = train.train(config_file, tmp_path / "run", overrides=overrides, resume=True)
    assert resumed["test"] == expected["test"]


def test_a_run_resumes_in_the_precision_that_it_began_with(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faster = "bfloat16"  # on the machine where it begins

    def chosen(precision: str, device: torch.device) -> torch.dtype:
        return getattr(torch, faster if precision == "auto" else precision)

    monkeypatch.setattr(training_config, "product_type", chosen)
    overrides = [*QUICK, "trainer.precision=auto"]

    train_until_killed(config_file, tmp_path / "run", overrides, monkeypatch)
    precisions: list[str] = []

    def noted(config: Any, folder: Any = None) -> Any:
        precisions.append(config.precision)
        return start_accelerator(config, folder)

    monkeypatch.setattr(train, "start_accelerator", noted)
    faster = "float32"  # on the machine where it goes on
    train.train(config_file, tmp_path / "run", overrides=overrides, resume=True)
    assert precisions == ["bfloat16"]
    assert json.loads((tmp_path / "run" / "config.json").read_text())["trainer"]["precision"] == "auto"


OTHER_DATA = {
    "other words": (lambda text: text.replace("e", "a", 1), None),
    "other tags": (lambda text: text.replace("B-LOC", "O").replace("I-LOC", "O"), None),
    "another order": (lambda text: "\n\n".join(reversed(text.strip().split("\n\n"))) + "\n", None),
    "one sentence less": (lambda text: text.strip().rpartition("\n\n")[0] + "\n", None),
    "blank lines": (lambda text: text.replace("\n\n", "\n\n\n"), "the same"),
}


@pytest.mark.parametrize("change", OTHER_DATA)
@pytest.mark.parametrize("split", ["training", "validation", "test"])
def test_a_run_resumes_only_with_the_same_data(
    split: str,
    change: str,
    settings: dict[str, Any],
    config_file: Path,
    tmp_path: Path,
    interrupted: Path,
) -> None:
    key = f"{split.removesuffix('ing')}_data_path"
    data, run = tmp_path / "data.txt", tmp_path / "run"
    shutil.copytree(interrupted, run)
    edit, same = OTHER_DATA[change]
    original = Path(settings[key]).read_text(encoding="utf-8")
    data.write_text(edit(original), encoding="utf-8")
    assert data.read_text(encoding="utf-8") != original
    before = files_of(run)
    overrides = [*QUICK, f"{key}={data}"]
    if same:
        assert train.train(config_file, run, overrides=overrides, resume=True)
        assert json.loads((run / "config.json").read_text())[key] == str(data)
        return
    with pytest.raises(RunError, match=f"cannot resume with other {split} data: expected the same content as when"):
        train.train(config_file, run, overrides=overrides, resume=True)
    assert files_of(run) == before


@pytest.fixture(scope="module")
def interrupted(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose data set is complete but whose results are not; not to be changed."""
    folder = tmp_path_factory.mktemp("interrupted") / "run"
    with pytest.MonkeyPatch.context() as patch:
        train_until_killed(settings, folder, list(QUICK), patch)
    return folder


def test_what_has_moved_can_be_resumed(
    settings: dict[str, Any], trained: Path, sample_folder: Path, config_file: Path, tmp_path: Path, interrupted: Path
) -> None:
    shutil.copytree(sample_folder, moved := tmp_path / "moved")
    run, bilm = tmp_path / "run", moved / "bilm"
    elsewhere = str(settings).replace(str(sample_folder), str(moved))
    for earlier in (interrupted, trained):  # a finished run only takes over the places
        shutil.copytree(earlier, run)
        results = train.train(ast.literal_eval(elsewhere), run, overrides=QUICK, resume=True)
        expected = json.loads((trained / "metrics.json").read_text())
        assert (results["test"], results["best"]["epoch"]) == (expected["test"], expected["best"]["epoch"])
        assert str(sample_folder) not in (run / "config.json").read_text() + (run / "bilm.json").read_text()
        assert str(bilm / "weights.hdf5") in (run / "bilm.json").read_text()
        shutil.rmtree(run)

    shutil.copytree(interrupted, run)
    (run / "data.json").unlink()  # as of an earlier version: nothing says that the content is the same
    with pytest.raises(RunError, match=r"these keys differ: model\.embedder\.elmo\.options, .*, train_data_path, vali"):
        train.train(ast.literal_eval(elsewhere), run, overrides=QUICK, resume=True)
    assert train.train(config_file, run, overrides=QUICK, resume=True)


def test_other_word_vectors_are_not_taken_for_moved_ones(
    settings: dict[str, Any], config_file: Path, tmp_path: Path, interrupted: Path
) -> None:
    shutil.copytree(interrupted, tmp_path / "run")
    vectors = [line for _, line in read_lines(settings["model"]["embedder"]["words"]["vectors"])]
    (tmp_path / "other.txt").write_text("\n".join(vectors).replace("0.1", "0.2"), encoding="utf-8")
    for path in (tmp_path / "other.txt", "null"):
        overrides = [*QUICK, f"model.embedder.words.vectors={path}"]
        with pytest.raises(RunError, match="cannot resume with other word vectors: "):
            train.train(config_file, tmp_path / "run", overrides=overrides, resume=True)


def test_examples_in_memory_are_compared_by_content(config_file: Path, tmp_path: Path) -> None:
    examples = [{"tokens": ["Mira", "left", "Oslo"], "tags": ["B-PER", "O", "B-LOC"]}] * 3
    given = {"train_data_path": examples, "validation_data_path": examples}
    overrides = ["test_data_path=null", 'trainer.learning_rate_scheduler={"type": "constant"}', "trainer.num_epochs=1"]
    train.train(config_file, tmp_path / "run", datasets=given, overrides=overrides)
    more = [*overrides, "trainer.num_epochs=2"]
    noted = [{**example, "note": "a column that is not read"} for example in examples]
    again = {"train_data_path": noted, "validation_data_path": examples}
    train.train(config_file, tmp_path / "run", datasets=again, overrides=more, resume=True)
    other = {"train_data_path": examples, "validation_data_path": examples[1:]}
    with pytest.raises(RunError, match="cannot resume with other validation data: "):
        train.train(config_file, tmp_path / "run", datasets=other, overrides=more, resume=True)


NOT_SPANNING = 'trainer.learning_rate_scheduler={"type": "exponential", "gamma": 0.9}'
NO_PROGRESS = ("trainer.optimizer.lr=1e-30", "trainer.patience=1")  # ends after two epochs


def test_a_run_keeps_its_balanced_weights_and_a_run_from_it_has_its_own(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {**settings["model"], "type": "simple_tagger", "tag_scheme": "BIOUL", "class_weights": "balanced"}
    loader, run = {"batch_size": 4, "sampling": "balanced"}, tmp_path / "run"
    values = {**settings, "model": model, "data_loader": loader}
    train_until_killed(values, run, [*QUICK], monkeypatch)
    before = files_of(run)
    results = train.train(values, run, overrides=QUICK, resume=True)
    train.train(values, tmp_path / "whole", overrides=QUICK)
    whole, resumed = files_of(tmp_path / "whole"), files_of(run)
    assert before["frozen.safetensors"] == resumed["frozen.safetensors"] == whole["frozen.safetensors"]
    assert resumed["model.safetensors"] == whole["model.safetensors"]

    loaded = load_run(run)
    weights = dict(zip(loaded.vocabulary.labels["tags"], loaded.model.class_weights.tolist(), strict=True))
    assert weights["O"] < 0.3 < 1 < weights["U-PER"]
    assert load.evaluate(run, settings["test_data_path"]) == pytest.approx(results["test"], abs=1e-4)
    overrides = [*QUICK, 'model.class_weights={"O": 0.25}']
    train.train(values, tmp_path / "next", from_run=run, overrides=overrides)
    other = load_run(tmp_path / "next")
    weights = dict(zip(other.vocabulary.labels["tags"], other.model.class_weights.tolist(), strict=True))
    assert set(weights.values()) == {0.25, 1}


@pytest.mark.parametrize(
    ("first", "then", "epochs"),
    [
        (("trainer.num_epochs=2",), ("trainer.num_epochs=4",), 4),
        (("trainer.num_epochs=1", "trainer.patience=3"), ("trainer.num_epochs=3", "trainer.patience=null"), 3),
        (("trainer.num_epochs=5", *NO_PROGRESS), ("trainer.num_epochs=5", *NO_PROGRESS, "trainer.patience=2"), 3),
    ],
)
def test_a_finished_run_trains_more_as_if_it_had_not_ended(
    first: tuple[str, ...], then: tuple[str, ...], epochs: int, config_file: Path, tmp_path: Path
) -> None:
    expected = train.train(config_file, tmp_path / "whole", overrides=(NOT_SPANNING, *then))
    train.train(config_file, tmp_path / "run", overrides=(NOT_SPANNING, *first), predictions=("test",))
    results = train.train(config_file, tmp_path / "run", overrides=(NOT_SPANNING, *then), resume=True)
    whole, run = (files_of(tmp_path / name) for name in ("whole", "run"))
    assert results["test"] == expected["test"]
    for name in ("model.safetensors", "frozen.safetensors", "config.json", "data.json"):
        assert run[name] == whole[name]
    assert len(run["metrics.jsonl"].splitlines()) == len(whole["metrics.jsonl"].splitlines()) == epochs
    assert "predictions.jsonl" not in run  # of an earlier epoch
    again = train.train(config_file, tmp_path / "run", overrides=(NOT_SPANNING, *then), resume=True)
    assert again == results


def test_an_extended_run_that_is_killed_goes_on(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, longer = tmp_path / "run", (NOT_SPANNING, "trainer.num_epochs=3")
    train.train(config_file, run, overrides=(NOT_SPANNING, "trainer.num_epochs=1"))
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", lambda trainer, parts: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train.train(config_file, run, overrides=longer, resume=True)
    assert not (run / "metrics.json").exists()
    train.train(config_file, run, overrides=longer, resume=True)
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (("trainer.num_epochs=3",), r"num_epochs cannot change: the learning rates of 'linear_decay' depend on it"),
        (("trainer.num_epochs=3", "model.dropout=0.1"), r"these keys differ: model\.dropout$"),
        ((NOT_SPANNING, "trainer.num_epochs=3"), r"these keys differ: trainer\.learning_rate_scheduler"),
        (("trainer.num_epochs=2", "data_loader.batch_size=4"), r"these keys differ: data_loader\.batch_size$"),
        (("trainer.num_epochs=2", "train_share.share=0.5"), r"these keys differ: train_share$"),
    ],
)
def test_what_would_be_another_training_does_not_go_on(
    overrides: tuple[str, ...], problem: str, config_file: Path, tmp_path: Path, trained: Path
) -> None:
    shutil.copytree(trained, run := tmp_path / "run")
    before = files_of(run)
    with pytest.raises(RunError, match=problem):
        train.train(config_file, run, overrides=overrides, resume=True)
    assert files_of(run) == before


def test_fewer_epochs_than_are_done_and_a_lost_state_are_refused(config_file: Path, tmp_path: Path) -> None:
    run, shorter = tmp_path / "run", (NOT_SPANNING, "trainer.num_epochs=1")
    train.train(config_file, run, overrides=(NOT_SPANNING, *QUICK))
    before = files_of(run)
    with pytest.raises(RunError, match=r"2 epochs have begun; expected trainer\.num_epochs=2 or more"):
        train.train(config_file, run, overrides=shorter, resume=True)
    assert files_of(run) == before
    (run / "training.pt").unlink()
    with pytest.raises(RunError, match=r"finished before, and there is no training\.pt to continue from; .* --from"):
        train.train(config_file, run, overrides=(NOT_SPANNING, "trainer.num_epochs=3"), resume=True)


def test_resuming_without_a_state_says_that_it_starts_again(
    trained: Path, config_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(trained, run := tmp_path / "run")
    for name in ("training.pt", "metrics.json", "metrics.jsonl"):
        (run / name).unlink()
    train.train(config_file, run, overrides=QUICK, resume=True)
    assert "no state was saved there to resume from; the training starts again from step 0" in caplog.text


def test_without_an_evaluation_on_test_data_none_are_needed(config_file: Path, tmp_path: Path) -> None:
    overrides = [*QUICK, "evaluate_on_test=false", "test_data_path=nowhere.txt"]
    assert "test" not in train.train(config_file, tmp_path / "run", overrides=overrides)


FAILING = {
    "no data": ["train_data_path=nowhere.txt"],
    "a bad regular expression": ['trainer.regularizers=[{"parameters": "("}]'],
    "no such metric": ["trainer.validation_metric=+f2"],
    # In bfloat16, so that no layers are there from other tests.
    "a full cache": [
        "model.embedder.elmo.precision=bfloat16",
        'model.embedder.elmo.layer_cache={"max_gigabytes": 1e-9}',
    ],
}


@pytest.mark.parametrize("fault", FAILING.values(), ids=FAILING.keys())
def test_a_start_that_fails_leaves_no_run_and_removes_none(
    fault: list[str], trained: Path, config_file: Path, tmp_path: Path
) -> None:
    overrides = [*QUICK, *fault]
    with pytest.raises(ElmoTasksError):
        train.train(config_file, tmp_path / "new", overrides=overrides)
    assert not (tmp_path / "new").exists()
    shutil.copytree(trained, tmp_path / "run")
    with pytest.raises(ElmoTasksError):
        train.train(config_file, tmp_path / "run", overrides=overrides, force=True)
    assert files_of(tmp_path / "run") == files_of(trained)


def test_a_run_knows_its_bilm_whatever_else_is_overridden(trained: Path, tmp_path: Path, sample_folder: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    config = json.loads((run / "config.json").read_text())
    config["model"]["embedder"]["elmo"] |= {"options": "gone.json", "weights": "gone.hdf5"}  # bilm.json says where
    (run / "config.json").write_text(json.dumps(config))
    elmo = "model.embedder.elmo"
    assert load_run(run, overrides=[f"{elmo}.layer_cache=null", f"{elmo}.precision=bfloat16"]).config.elmo()
    assert load_run(run, overrides=[f"{elmo}.bilm={sample_folder / 'bilm'}"]).config.elmo()
    with pytest.raises(WeightsError, match=r"gone\.hdf5"):
        load_run(run, overrides=[f"{elmo}.options={sample_folder / 'bilm' / 'options.json'}"])


def test_a_seed_of_several_comes_before_that_of_the_overrides(settings: dict[str, Any], tmp_path: Path) -> None:
    repeated.train_seeds(settings, tmp_path, [4], overrides=["trainer.num_epochs=1", "random_seed=1"])
    assert json.loads((tmp_path / "seed_4" / "config.json").read_text())["random_seed"] == 4


def test_the_saved_schedule_knows_the_last_epoch(settings: dict[str, Any], tmp_path: Path) -> None:
    schedule = 'trainer.learning_rate_scheduler={"type": "reduce_on_plateau", "patience": 0, "factor": 0.5}'
    train.train(settings, tmp_path, overrides=["trainer.num_epochs=2", schedule])
    assert read_state(tmp_path / "training.pt")["schedule"]["last_epoch"] == 2


def test_loading_a_run_does_not_import_the_compiler_of_torch(trained: Path) -> None:
    """It takes a second, and a tensor without memory that gets random values imports it."""
    program = "import sys; from elmo_tasks.runs.load import load_run; load_run(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, trained], check=True, capture_output=True, text=True)
    assert not {"torch._dynamo", "torch.fx.experimental.symbolic_shapes"} & {*done.stdout.split()}


def test_weights_that_do_not_fit_the_config_are_named_with_their_shapes(trained: Path) -> None:
    with pytest.raises(
        RunError, match=r"the weights do not fit the config: .* is \(.*\) \(expected \(.*\)\), .* and \d+ more"
    ) as error:
        load_run(trained, overrides=["model.encoder.hidden_sizes=[8, 7]"])
    names = re.findall(r"(\S+) is", str(error.value))
    assert len(names) == 3
    assert names == sorted(names)


def test_a_predictor_leaves_the_device_of_others_open(trained: Path) -> None:
    load.load_predictor(trained, overrides=["trainer.device=cpu"])
    assert not PartialState._shared_state


def test_seeds_give_mean_and_deviation(config_file: Path, tmp_path: Path) -> None:
    summary = repeated.train_seeds(config_file, tmp_path / "runs", (1, 2), overrides=("trainer.num_epochs=1",))
    losses = [
        json.loads((tmp_path / "runs" / f"seed_{seed}" / "metrics.json").read_text())["test"]["loss"] for seed in (1, 2)
    ]
    assert losses[0] != losses[1]
    assert summary["mean"]["test/loss"] == pytest.approx(statistics.fmean(losses))
    assert summary["std"]["test/loss"] == pytest.approx(statistics.stdev(losses))
    assert json.loads((tmp_path / "runs" / "seeds.json").read_text())["seeds"] == [1, 2]


@pytest.mark.parametrize(
    "rate", ["1e-30", "1e-4", "3e-4"]
)  # too low for another metric; all but the first, for another loss
def test_a_tie_goes_to_the_lowest_loss_and_does_not_delay_the_end(
    rate: str, config_file: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    overrides = ("trainer.num_epochs=5", "trainer.patience=2", f"trainer.optimizer.lr={rate}", "trainer.trackers=[]")
    with caplog.at_level("INFO", "elmo_tasks"):
        best = train.train(config_file, tmp_path / "run", overrides=overrides)["best"]
    records = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [record["validation"]["f1"] for record in records] == [0.0] * 3
    losses = [record["validation"]["loss"] for record in records]
    assert best == records[losses.index(min(losses))]
    assert [record["best"] for record in records] == [
        loss < min(losses[:number], default=math.inf) for number, loss in enumerate(losses)
    ]
    assert f"validation loss {losses[-1]:.4f}, f1 0.00{' (best)' * records[-1]['best']}, " in caplog.text
    assert (best["epoch"] == 1) == (rate == "1e-30")


def test_mean_and_deviation_of_what_all_runs_have() -> None:
    summary = mean_and_deviation([{"test": {"f1": 90.0, "f1/LOC": 80.0}}, {"test": {"f1": 92.0}}])
    assert summary == {"mean": {"test/f1": 91.0}, "std": {"test/f1": pytest.approx(2**0.5)}}


def test_faults_are_found_before_any_data_is_read(
    config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Data, "read", lambda *arguments: pytest.fail("data was read"))
    faults = ("trainer.patiense=3", "model.dropout=2", "trainer.optimizer.type=adan", "data_loader.batch_size=eight")
    for fault, problem in (
        ("trainer.validation_metric=+f2", r"no metric 'f2'; there are accuracy, f1"),
        ('trainer.regularizers=[{"parameters": "("}]', r"'\(' is not a regular expression"),
    ):
        with pytest.raises(ConfigError, match=problem):
            train.train(config_file, tmp_path / "run", overrides=[fault])
    with pytest.raises(ConfigError) as caught:
        train.train(config_file, tmp_path / "run", overrides=(*faults, "random_seed=-1"))
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    assert "Did you mean 'patience'?" in str(caught.value)
    assert not (tmp_path / "run").exists()


MISFITS = [
    (
        '{"type": "sst"}',
        r"'sst' does not fit model 'crf_tagger': .* \(Classification\); expected .* \(Tagging\)\. R.*'conll2003'",
    ),
    ('{"type": "conll2003", "tag_scheme": "IOB2"}', r'in BIOUL\. Set model\.tag_scheme to "IOB2", or \S+ to "BIOUL"'),
]


@pytest.mark.parametrize("key", ["dataset_reader", "validation_dataset_reader"])
@pytest.mark.parametrize(("reader", "problem"), MISFITS)
def test_a_reader_that_does_not_fit_the_model_is_refused_with_the_config(
    key: str, reader: str, problem: str, config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Data, "read", lambda *arguments: pytest.fail("data was read"))
    with pytest.raises(ConfigError, match=rf"experiment\.json:\d+: model: {key} .*{problem}"):
        train.train(config_file, tmp_path / "run", overrides=[f"{key}={reader}"])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("reader", "problem"), MISFITS)
def test_a_reader_that_does_not_fit_a_run_is_refused(reader: str, problem: str, trained: Path) -> None:
    with pytest.raises(ConfigError, match=problem):
        load.evaluate(trained, "no-such-file", overrides=[f"dataset_reader={reader}"])
    with pytest.raises(ConfigError, match=problem):
        load.load_predictor(trained, overrides=[f"validation_dataset_reader={reader}"])


def test_what_is_evaluated_has_a_reader_of_its_own_where_the_config_says_so(
    config_file: Path, sample_folder: Path, tmp_path: Path
) -> None:
    overrides = ["dataset_reader.input_scheme=IOB1", "trainer.num_epochs=1"]
    other = 'validation_dataset_reader={"type": "conll2003", "input_scheme": "IOB2"}'
    with pytest.raises(DataError, match=r"eng\.testa"):  # the files are in IOB1
        train.train(config_file, tmp_path / "wrong", overrides=[*overrides, other])
    same = other.replace("IOB2", "IOB1")
    trained = train.train(config_file, tmp_path / "run", overrides=[*overrides, same])
    test_file = str(sample_folder / "ner_conll2003" / "eng.testb")
    assert load.evaluate(tmp_path / "run", test_file) == pytest.approx(trained["test"])
    with pytest.raises(DataError, match=r"eng\.testb"):
        load.evaluate(tmp_path / "run", test_file, overrides=[other])


def test_a_label_that_the_run_does_not_know_is_located(trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("Ann -X- -X- I-PER\n\nBrusk -X- -X- I-LOC\n- -X- -X- I-ROCK\n")
    with pytest.raises(
        DataError, match=r"other\.txt:3: in the example that begins here: the label '.-ROCK' is not among"
    ):
        load.evaluate(trained, str(path))


UNSEEN = Path(__file__).parents[1] / "odd_files" / "unseen.txt"  # a span TIME, which no run here knows
KNOWN = "Brusk B-LOC\n- O\n\nMira B-PER\nworks O\n"


@pytest.mark.parametrize("command", ["evaluate", "compare", "errors"])
def test_a_label_that_the_run_does_not_know_is_refused_or_counted(
    command: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    words = [command, str(trained), str(UNSEEN), "--json"]
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert "unseen.txt:1: in the example that begins here: the label 'U-TIME' is not among" in error
    assert "--unknown-labels count (unknown_labels='count') counts it as an error of the run" in error

    assert cli.main([*words, "--unknown-labels", "count"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert "unseen.txt: the run does not know some labels, which count as its errors: 'U-TIME' (1); the" in caplog.text
    predictions = load.load_predictor(trained)({"tokens": ["Mira", "works", "Monday"]})
    metric = SpanF1()
    metric.update(predictions, [{"tags": ["B-PER", "O", "B-TIME"]}])
    if command == "compare":
        assert (shown["num_examples"], shown["systems"][0]["score"]) == (1, metric.compute()["f1"])
    else:
        assert (shown["scores"] if command == "errors" else shown) == metric.compute()
        assert metric.compute()["recall"] <= 50


def test_examples_with_unknown_labels_have_no_loss(trained: Path, tmp_path: Path) -> None:
    known, both = tmp_path / "known.txt", tmp_path / "both.txt"
    known.write_text(KNOWN)
    both.write_text(f"{UNSEEN.read_text()}\n{KNOWN}")
    found, known_only = (load.evaluate(trained, path, unknown_labels="count") for path in (both, known))
    assert known_only == load.evaluate(trained, known)
    assert found["loss"] == pytest.approx(known_only["loss"], rel=1e-5)
    assert found["support/TIME"] == 1
    assert "loss" not in load.evaluate(trained, UNSEEN, unknown_labels="count")


def test_folds_hold_out_every_training_example_once(config_file: Path, sample_folder: Path, tmp_path: Path) -> None:
    overrides = (
        "trainer.num_epochs=2",
        "test_data_path=gone.txt",
        "fold.seed=4",
    )  # the fold takes the place of test data
    summary = repeated.train_folds(config_file, tmp_path / "runs", 2, overrides=overrides)
    pairs = [
        [json.loads(line) for _, line in read_lines(tmp_path / "runs" / f"fold_{number}" / "predictions.jsonl")]
        for number in (1, 2)
    ]
    held_out = [[pair["example"]["line"] for pair in fold] for fold in pairs]
    assert all(lines == sorted(lines) for lines in held_out)
    data = Data.read(load_config(config_file, ExperimentConfig))
    assert sorted(held_out[0] + held_out[1]) == list(data.training["line"])
    documents = [{pair["example"]["document"] for pair in fold} for fold in pairs]
    assert documents[0].isdisjoint(documents[1])

    metric = SpanF1()
    for pair in pairs[0] + pairs[1]:
        metric.update([pair["prediction"]], [pair["example"]])
    assert summary["pooled"] == metric.compute()
    assert summary == json.loads((tmp_path / "runs" / "folds.json").read_text())
    single = [json.loads((tmp_path / "runs" / f"fold_{number}" / "metrics.json").read_text()) for number in (1, 2)]
    assert summary["mean"]["test/f1"] == pytest.approx(statistics.fmean(each["test"]["f1"] for each in single))
    again = repeated.train_folds(config_file, tmp_path / "runs", 2, overrides=overrides, resume=True)
    assert again == summary
    with pytest.raises(
        RunError, match=r"a folder of runs, one for each fold \(fold_1, fold_2\); name one of them, such as .*fold_1"
    ):
        load_run(tmp_path / "runs")


def test_a_run_learns_from_its_share_of_the_training_data(config_file: Path) -> None:
    shares = ("", "train_share.share=0.5", "train_share.share=0.1")
    parts = [Data.read(load_config(config_file, ExperimentConfig, (share,) if share else ())) for share in shares]
    whole, half, tenth = ([tuple(tokens) for tokens in part.training["tokens"]] for part in parts)
    assert (len(half), len(tenth)) == (len(whole) // 2, len(whole) // 10)
    assert set(tenth) < set(half) < set(whole)
    assert {len(part.held_out["validation"]) for part in parts} == {len(parts[0].held_out["validation"])}
    fold = Data.read(load_config(config_file, ExperimentConfig, (shares[1], "fold.number=1", "fold.of=2")))
    assert len(fold.training) == round((len(whole) - len(fold.held_out["test"])) / 2)  # a share of what is not held out
