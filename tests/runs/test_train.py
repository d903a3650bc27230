"""A run, or one for each seed or fold, from its config to its results; refused configs; labels, numbers and pairs."""

import io
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from elmo_tasks.config import load_config
from elmo_tasks.errors import ConfigError, DataError
from elmo_tasks.extras.compare.error_report import WorstExample, errors, side_by_side
from elmo_tasks.extras.html.html import Sections
from elmo_tasks.files.tensor_files import read_state, read_tensors
from elmo_tasks.rendering import describe
from elmo_tasks.rendering.terminal import Terminal
from elmo_tasks.runs import load, train
from elmo_tasks.runs.archive import archive
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.training.trainer import Trainer
from tests.runs.small_runs import SmallRun, killed_at


def test_folder_is_the_runs_archive(trained: SmallRun) -> None:
    files = "bilm.json config.json data.json frozen.safetensors metrics.json metrics.jsonl model.safetensors"
    names = {*files.split(), "learned.safetensors", "tensorboard", "training.pt", "versions.json", "vocabulary.json"}
    assert {path.name for path in trained.path.iterdir()} == names
    assert trained.json("versions.json").keys() >= {"elmo-tasks", "python", "torch"}
    assert trained.json("config.json")["trainer"]["optimizer"]["betas"] == [0.9, 0.999]  # defaults are written out
    for name in ("frozen.safetensors", "model.safetensors"):
        assert not any("bilm" in tensor for tensor in read_tensors(trained.path / name))  # referred to, not copied


def test_a_finished_run_writes_predictions_that_are_missing(
    finished: SmallRun, trained: SmallRun, tmp_path: Path
) -> None:
    whole, splits = SmallRun(tmp_path / "whole", finished.config), ["test", "validation"]
    whole.train(predictions=splits)
    assert finished.resume(predictions=splits) == trained.json("metrics.json")
    for path in (RunFolder(whole.path).predictions, RunFolder(whole.path).validation_predictions):
        assert finished.files()[path.name] == path.read_bytes()
    assert finished.files()["model.safetensors"] == trained.files()["model.safetensors"]
    finished.remove(RunFolder(finished.path).predictions.name, "training.pt")
    problem = "finished before, without these predictions; `elmo-tasks evaluate "
    finished.refuses(problem, predictions=splits)


def test_predictions_of_test_data_need_test_data(run: SmallRun) -> None:
    problem = "run: cannot write predictions of test data, because the config evaluates none"
    run.refuses(problem, "evaluate_on_test=false", resume=False, predictions=["test"])
    assert not run.path.exists()


def test_without_an_evaluation_on_test_data_none_are_needed(run: SmallRun, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks.runs")
    assert "test" not in run.train("evaluate_on_test=false", "test_data_path=nowhere.txt")
    trained, frozen = (
        sum(each.numel() for each in read_tensors(run.path / f"{name}.safetensors").values())
        for name in ("model", "frozen")
    )
    parameters = f"{trained:,} trained parameters, {frozen:,} frozen ones, and 197,376 parameters in the frozen biLM"
    assert caplog.messages[:1] == [f"50 training examples and 12 validation examples; {parameters}"]


def test_the_saved_schedule_knows_the_last_epoch(run: SmallRun) -> None:
    run.train('trainer.learning_rate_scheduler={"type": "reduce_on_plateau", "patience": 0, "factor": 0.5}')
    assert read_state(run.path / "training.pt")["schedule"]["last_epoch"] == 2


# All but the first are high enough for another loss.
@pytest.mark.parametrize("rate", ["1e-30", "1e-4", "3e-4"])
def test_a_tie_goes_to_the_lowest_loss_and_does_not_delay_the_end(
    rate: str, run: SmallRun, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "without_names").write_text("It NN I-NP O\nrained NN I-VP O\n\n")  # so that F1 is 0 in every epoch
    overrides = [f"validation_data_path={tmp_path}/without_names", "trainer.num_epochs=5", "trainer.patience=2"]
    overrides += [f"trainer.optimizer.lr={rate}", "trainer.trackers=[]"]
    with caplog.at_level("INFO", "elmo_tasks"):
        best = run.train(*overrides)["best"]
    records = run.records()
    assert [record["validation"]["f1"] for record in records] == [0.0] * 3
    losses = [record["validation"]["loss"] for record in records]
    assert best == records[losses.index(min(losses))]
    assert [record["best"] for record in records] == [
        loss < min(losses[:number], default=math.inf) for number, loss in enumerate(losses)
    ]
    for record, loss in zip(records, losses, strict=True):
        said = f"training loss {record['training']['loss']:.4f}, validation loss {loss:.4f}, f1 0.00"
        assert f"epoch {record['epoch']}: {said}{' (best)' * record['best']}, " in caplog.text
    assert (best["epoch"] == 1) == (rate == "1e-30")


def test_a_run_that_is_killed_after_its_patience_is_at_its_last_epoch(run: SmallRun) -> None:
    overrides = ("trainer.num_epochs=5", "trainer.patience=1", "trainer.optimizer.lr=1e-30", "trainer.trackers=[]")
    with killed_at(Trainer, "set_parameters"):
        run.train(*overrides)
    assert run.resume(*overrides)["best"]["epoch"] == 1
    assert len(run.records()) == 2


@pytest.fixture
def no_data_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Data, "read", lambda *arguments: pytest.fail("data was read"))


MISMATCHES = [
    (
        'dataset_reader={"type": "sst"}',
        r"'sst' does not fit model 'crf_tagger': .* \(Classification\); expected .* \(Tagging\)\. R.*'conll2003'",
    ),
    (
        'dataset_reader={"type": "conll2003", "tag_scheme": "IOB2"}',
        r'in BIOUL\. Set model\.tag_scheme to "IOB2", or \S+ to "BIOUL"',
    ),
]


@pytest.mark.usefixtures("no_data_is_read")
@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("trainer.validation_metric=+f2", r"no metric 'f2'; there are accuracy, f1, loss, precision, recall"),
        ("trainer.validation_metric=+f2/PER", r"no metric 'f2/PER'; there are accuracy, f1"),
        ('trainer.regularizers=[{"parameters": "("}]', r"'\(' is not a regular expression"),
        *(
            (f"{kind}{reader}", rf"experiment\.json: model: {kind}dataset_reader .*{problem}")
            for kind in ("", "validation_")
            for reader, problem in MISMATCHES
        ),
    ],
)
def test_a_fault_is_found_before_any_data_is_read(override: str, problem: str, run: SmallRun) -> None:
    run.refuses(problem, override, resume=False, error=ConfigError)
    assert not run.path.exists()


@pytest.mark.usefixtures("no_data_is_read")
def test_all_faults_are_named_at_once(run: SmallRun) -> None:
    faults = ("trainer.patiense=3", "model.dropout=2", "trainer.optimizer.type=adan", "data_loader.batch_size=eight")
    with pytest.raises(ConfigError, match=r"Did you mean 'patience'\?") as caught:
        run.train(*faults, "random_seed=-1")
    assert len(str(caught.value).splitlines()) == 5
    assert not run.path.exists()


@pytest.mark.parametrize(("reader", "problem"), MISMATCHES)
def test_a_reader_that_does_not_fit_a_run_is_refused(reader: str, problem: str, trained: SmallRun) -> None:
    with pytest.raises(ConfigError, match=problem):
        evaluate(trained.path, "no-such-file", overrides=[reader])
    with pytest.raises(ConfigError, match=problem):
        load.load_predictor(trained.path, overrides=[f"validation_{reader}"])


def test_what_is_evaluated_has_a_reader_of_its_own_where_the_config_says_so(
    settings: dict[str, Any], run: SmallRun, caplog: pytest.LogCaptureFixture
) -> None:
    test_file, overrides = settings["test_data_path"], ["dataset_reader.input_scheme=IOB1", "trainer.num_epochs=1"]
    other = 'validation_dataset_reader={"type": "conll2003", "input_scheme": "IOB2"}'
    run.refuses(r"eng\.testa", *overrides, other, resume=False, error=DataError)  # the files are in IOB1
    results = run.train(*overrides, other.replace("IOB2", "IOB1"))
    assert evaluate(run.path, test_file) == pytest.approx(results["test"])
    assert "validation_dataset_reader" not in caplog.text
    evaluate(run.path, test_file, overrides=["dataset_reader.input_scheme=IOB2"])
    unused = "data is read by validation_dataset_reader; set it instead of dataset_reader.input_scheme"
    assert f"{run.path}: {unused}" in caplog.text
    with pytest.raises(DataError, match=r"eng\.testb"):
        evaluate(run.path, test_file, overrides=[other])


def test_a_run_learns_from_its_share_of_the_training_data(config_file: Path) -> None:
    for split, held_out in (((), 12), (("fold.number=1", "fold.of=2", "validation_data_path=null"), 25)):
        changes = ("train_share.share=0.4", *split)
        data = Data.read(load_config(config_file, ExperimentConfig, changes))
        assert (len(data.training), len(data.held_out["validation"])) == (10 if split else 20, held_out)  # of 50


TEXTS = [["cold", "soup"], ["warm", "soup"], ["warm", "bread"], ["cold", "day"], ["warm", "day"], ["dry", "bread"]]
FOOD, COLD = {"soup", "bread"}, {"cold"}
DATA: dict[str, list[dict[str, Any]]] = {
    "multi_label": [
        {"tokens": each, "labels": ["food"] * bool(FOOD & {*each}) + ["cold"] * bool(COLD & {*each})} for each in TEXTS
    ],
    "regression": [{"tokens": each, "score": 20.0 + 5 * (each[0] == "warm")} for each in TEXTS],
    "pair_regression": [
        {"premise": one, "hypothesis": other, "score": 2.5 * len({*one} & {*other})}
        for one in TEXTS[:4]
        for other in TEXTS[:4]
    ],
}
INPUTS: dict[str, dict[str, Any]] = {
    "multi_label": {"text": "Warm soup."},
    "regression": {"tokens": ["warm", "soup"]},
    "pair_regression": {"premise": "Warm soup.", "hypothesis": "A cold day."},
}


def text_classifier(task: str) -> dict[str, Any]:
    return {
        "dataset_reader": {"type": "jsonl", "task": task},
        "train_data_path": "train",
        "validation_data_path": "dev",
        "vocabulary": {"lowercase_words": True},
        "model": {"type": "text_classifier", "embedder": {"words": {"size": 8}}, "pooling": "attention"},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 4, "validation_metric": "-loss", "optimizer": {"type": "adam", "lr": 0.05}},
    }


def test_times_in_seconds_are_learned_as_small_numbers_are(tmp_path: Path) -> None:
    found = []
    for start in (0.0, 1_700_000_000.0):
        data = [{**each, "score": start + each["score"]} for each in DATA["regression"]]
        datasets = dict.fromkeys(("train_data_path", "validation_data_path"), data)
        folder = tmp_path / str(start)
        scores = train.train(text_classifier("regression"), folder, datasets=datasets)["best"]["validation"]
        (result,) = load.load_predictor(folder)(INPUTS["regression"])
        found.append([scores[name] for name in ("pearson", "mse", "loss")] + [result["score"] - start])
    assert found[1] == pytest.approx(found[0], rel=1e-4)
    assert found[0][1] > 0.1


@pytest.mark.parametrize("task", DATA)
def test_a_run_scores_and_predicts_the_same_wherever_it_is(task: str, tmp_path: Path) -> None:
    config = text_classifier(task)
    data = dict.fromkeys(("train_data_path", "validation_data_path"), DATA[task])
    found = train.train(config, tmp_path / "run", datasets=data)["best"]["validation"]
    archive(tmp_path / "run", tmp_path / "run.tar.gz")
    threshold = load.load_run(tmp_path / "run").model.threshold
    assert (threshold is None) == (task != "multi_label")
    assert threshold is None or threshold.item() != 0.5
    results = []
    for path in (tmp_path / "run", tmp_path / "run.tar.gz"):
        scores = evaluate(path, DATA[task])
        assert scores.pop("learned") == {"examples": len(DATA[task])}
        assert scores == pytest.approx(found, abs=1e-4)
        predictor = load.load_predictor(path)
        results += predictor(INPUTS[task])
    assert results[0] == results[1]

    report = errors(tmp_path / "run", DATA[task], num_examples=2)
    assert report.scores[report.metric] == pytest.approx(found[report.metric], abs=1e-4)
    stream = io.StringIO()
    drawings = [describe(predictor.task, results[0])]
    drawings += [side_by_side(predictor.task, WorstExample(1.0, each, each)) for each in DATA[task][:1]]
    for drawing in drawings:
        Terminal(Console(file=stream)).show(drawing)
        assert "<section>" in Sections().section(drawing)
    for word in (
        ("score", "20") if task == "regression" else ("food",) if task == "multi_label" else ("score", "premise")
    ):
        assert word in stream.getvalue()
