"""Which data a run learns from and which chooses its best epoch: files, folders, patterns, a share, or none at all."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.config.data_folder import MissingDataError
from elmo_tasks.errors import ConfigError, ElmoTasksError, RunError
from elmo_tasks.extras.advice.data_analysis import analyse
from elmo_tasks.extras.compare.plots import RunCurves, plot_runs
from elmo_tasks.extras.studies.study import Study
from elmo_tasks.extras.studies.study_runs import StudyFolder, run_study
from elmo_tasks.files.tensor_files import read_state, read_tensors
from elmo_tasks.runs import load, train
from elmo_tasks.runs.archive import archive
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data, with_validation
from elmo_tasks.tasks import Classification
from elmo_tasks.training.data_splits import Fold, most_folds, split_off
from elmo_tasks.training.trainer import Trainer
from tests.runs.small_runs import SmallRun, killed_at

NONE = ("validation_data_path=null", "trainer.num_epochs=2")
SHARE = (*NONE, "validation_share=0.25")
COPIES = ("augment.upper=1",)
NOT_SPANNING = 'trainer.learning_rate_scheduler={"type": "exponential", "gamma": 0.9}'


def test_without_validation_data_the_last_epoch_is_kept(
    config_file: Path, settings: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    run = tmp_path / "run"
    without_average = (*NONE, NOT_SPANNING, "trainer.moving_average=null")
    results = train.train(config_file, run, overrides=without_average)
    assert "no validation data: the last epoch is kept, whatever it has learned" in caplog.messages
    assert (results["best"]["epoch"], results["best"]["validation"]) == (2, {})
    last, kept = read_state(run / "training.pt")["parameters"], read_tensors(run / "model.safetensors").values()
    assert sorted(each.numpy().tobytes() for each in kept) == sorted(each.numpy().tobytes() for each in last)

    assert evaluate(run, settings["test_data_path"]) == pytest.approx(results["test"], abs=1e-4)
    archive(run, tmp_path / "run.tar.gz")
    said = load.load_predictor(run)("Mary went to Boeing.")
    assert load.load_predictor(tmp_path / "run.tar.gz")("Mary went to Boeing.") == said
    other = train.train(config_file, tmp_path / "other", overrides=["trainer.num_epochs=1"], from_run=run)
    assert "f1" in other["best"]["validation"]
    plot_runs(tmp_path / "one.svg", [RunCurves.read(run)])
    plot_runs(tmp_path / "two.svg", [RunCurves.read(run), RunCurves.read(tmp_path / "other")])
    longer = train.train(config_file, run, overrides=(*without_average, "trainer.num_epochs=3"), resume=True)
    assert longer["best"]["epoch"] == 3
    with pytest.raises(RunError, match="cannot write predictions of validation data, because the config has none"):
        train.train(config_file, tmp_path / "third", overrides=NONE, predictions=["validation"])


@pytest.mark.slow
def test_a_study_of_runs_without_validation_data_reports_the_test_data(config_file: Path, tmp_path: Path) -> None:
    def load_study(**changes: Any) -> Study:
        study = {"title": "A study", "arms": [{"name": "a", "config": config_file.name, "changes": changes}]}
        (path := config_file.with_name("study.json")).write_text(json.dumps(study), encoding="utf-8")
        return Study.load(str(path))

    none = {"validation_data_path": None, "trainer": {"num_epochs": 1}}
    folder = StudyFolder(tmp_path / "study", load_study(**none))
    assert run_study(folder, command="a command") == []
    (result,) = folder.results()
    assert (result.split, result.metrics["validation"]) == ("test", {})
    with pytest.raises(ConfigError, match=r"arm 'a': experiment\.json has no validation data whose score can be rep"):
        load_study(**none, test_data_path=None)


def test_a_share_of_the_training_data_is_held_out_by_its_seed(config_file: Path, tmp_path: Path) -> None:
    def read(*changes: str) -> Data:
        return Data.read(load_config(config_file, ExperimentConfig, changes))

    whole, part, again, other = read(), read(*SHARE), read(*SHARE, "random_seed=9"), read(*SHARE, "validation_seed=2")
    held_out = list(part.held_out["validation"]["line"])
    assert sorted([*part.training["line"], *held_out]) == list(whole.training["line"])
    assert held_out == list(again.held_out["validation"]["line"]) != list(other.held_out["validation"]["line"])
    assert 5 <= len(held_out) <= 20  # of 50 sentences
    assert set(part.training["document"]).isdisjoint(part.held_out["validation"]["document"])
    folds = [read(*NONE, f"fold.number={number}", "fold.of=2") for number in (1, 2)]
    lines = [list(fold.held_out["validation"]["line"]) for fold in folds]
    assert sorted(lines[0] + lines[1]) == list(whole.training["line"])
    assert [list(fold.training["line"]) for fold in folds] == lines[::-1]
    with pytest.raises(ConfigError, match="fold: expected validation_share: null, which it replaces"):
        read(*SHARE, "fold.number=1", "fold.of=2")


def test_a_run_with_a_share_resumes_bit_for_bit_and_lists_the_share(
    settings: dict[str, Any], run: SmallRun, tmp_path: Path
) -> None:
    whole = SmallRun(tmp_path / "whole", run.config)
    expected = whole.train(*SHARE, predictions=["validation"])
    with killed_at(Trainer, "set_parameters"):
        run.train(*SHARE)
    results = run.resume(*SHARE, predictions=["validation"])
    assert results["test"] == expected["test"]
    for name in ("model.safetensors", "data.json", "validation_examples.json", "predictions_validation.jsonl"):
        assert run.files()[name] == whole.files()[name]
    listed = run.json("validation_examples.json")
    assert len(listed) == len(run.files()["predictions_validation.jsonl"].splitlines())
    assert all(each.startswith(f"{settings['train_data_path']}:") for each in listed)
    run.refuses("these keys differ: validation_seed", *SHARE, "validation_seed=2")


def test_changed_copies_are_only_of_what_is_learned_from(config_file: Path) -> None:
    def read(*changes: str) -> tuple[ExperimentConfig, Data]:
        config = load_config(config_file, ExperimentConfig, changes)
        return config, Data.read(config)

    split = (*NONE, "fold.number=1", "fold.of=3", "train_share.share=0.5")
    (plain_config, plain), (config, data) = read(*split), read(*split, *COPIES)
    assert {name: part.to_list() for name, part in data.held_out.items()} == {
        name: part.to_list() for name, part in plain.held_out.items()
    }
    assert data.training.to_list()[: len(plain.training)] == plain.training.to_list()
    copies = data.training.to_list()[len(plain.training) :]
    assert len(copies) > len(plain.training) / 2
    lines = dict(zip(plain.training["line"], plain.training["tokens"], strict=True))
    assert all([token.upper() for token in lines[copy["line"]]] == copy["tokens"] for copy in copies)
    locations = data.reader.locations(config.train_data_path, copies)
    assert [*locations] == [f"{config.train_data_path}:{copy['line']}" for copy in copies]
    assert data.vocabulary(config).labels == plain.vocabulary(plain_config).labels
    assert analyse(config) == analyse(plain_config)


def test_a_run_with_changed_copies_resumes_bit_for_bit(
    settings: dict[str, Any], run: SmallRun, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    whole = SmallRun(tmp_path / "whole", run.config)
    expected = whole.train(*COPIES)
    assert "augment: changed copies added to the training examples: upper 50" in caplog.messages
    with killed_at(Trainer, "set_parameters"):
        run.train(*COPIES)
    assert run.resume(*COPIES) == {**expected, "best": run.records()[expected["best"]["epoch"] - 1]}
    assert run.files()["model.safetensors"] == whole.files()["model.safetensors"]
    assert evaluate(run.path, settings["test_data_path"]) == pytest.approx(expected["test"], abs=1e-4)
    run.refuses("these keys differ: augment", "augment.upper=0.5")


@pytest.mark.parametrize(
    ("config", "change", "problem"),
    [
        (
            "small/text_pairs",
            "lower",
            r"augment: expected one of the tasks tagging, .*, got text_pairs",
        ),
        ("small/coreference", "no_final_mark", "augment: no_final_mark: expected a task of single sentences, got cor"),
        ("small/tagging", "reversed", "augment.reversed: unknown key"),
    ],
)
def test_changes_that_do_not_fit_the_task_are_refused(config: str, change: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_config(config, ExperimentConfig, [f"augment.{change}=0.1"])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ((*NONE, "trainer.patience=3"), "trainer: expected patience: null and a learning_rate_scheduler that does not"),
        (
            (*NONE, 'trainer.learning_rate_scheduler={"type": "reduce_on_plateau"}'),
            "because there is no validation data",
        ),
        (("validation_share=0.1",), "validation_share: expected validation_data_path: null, which it replaces"),
        (("train_data_path=[]",), "train_data_path: expected a string or a list of at least 1 entry, each a string"),
        (('train_data_path=["a", "https://b.org/c"]',), "train_data_path: https://b.org/c: is a URL; expected"),
        (('train_data_path=["gone.txt", "b.txt"]',), "gone.txt: no such file"),
        (("train_data_path=gone/*.txt",), "gone/*.txt: no such file, and no file's name matches this pattern"),
    ],
)
def test_mistakes_are_one_line(
    changes: tuple[str, ...], problem: str, config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for change in changes for word in ("--set", change)]
    assert cli.main(["train", str(config_file), "-s", str(tmp_path / "run"), *words]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert problem in error
    assert error.startswith("error: ")


def test_a_share_of_each_label_is_held_out() -> None:
    """A fifth of 20, 15, 5, 2 and 1 examples, rounded: 4, 3, 1, 0 and 0."""
    labels = [label for label, count in {"a": 20, "b": 15, "c": 5, "d": 2, "e": 1}.items() for _ in range(count)]
    rows = {"tokens": [[f"x{row}"] for row in range(43)], "label": labels, "file": [0] * 43, "line": list(range(43))}
    data = Dataset.from_dict(rows)
    training, held_out = split_off(data, data, Classification(), 0.2, 1)
    assert Counter(held_out["label"]) == {"a": 4, "b": 3, "c": 1}
    assert Counter(training["label"]) == {"a": 16, "b": 12, "c": 4, "d": 2, "e": 1}
    assert sorted([*training["line"], *held_out["line"]]) == rows["line"]
    assert list(held_out["line"]) == list(split_off(data, data, Classification(), 0.2, 1)[1]["line"])
    assert list(held_out["line"]) != list(split_off(data, data, Classification(), 0.2, 2)[1]["line"])
    for seed in range(3):
        two = split_off(data.select(range(35)), data.select(range(35)), Classification(), 0.2, seed)[1]
        assert Counter(two["label"]) == {"a": 4, "b": 3}
    for number in range(1, 6):
        fold = Counter(Fold(number=number, of=5).split(data, data, Classification())[1]["label"])
        assert (fold["a"], fold["b"], fold["c"]) == (4, 3, 1)
    few = data.select([40, 42])  # a fifth of each is none
    for share in (0.2, 0.8):  # or all
        assert [len(part) for part in split_off(few, few, Classification(), share, 1)] == [1, 1]


def test_examples_that_ask_the_same_are_held_out_together() -> None:
    """Also those that differ only in case, spaces and marks."""
    copies = ["same"], ["Same", "!"], ["SA", "me"]
    texts = [copies[row % 9 // 3] if row % 3 == 0 else [f"x{row}"] for row in range(30)]
    data = Dataset.from_dict({"tokens": texts, "label": ["a", "b"] * 15, "file": [0] * 30, "line": list(range(30))})
    splits = [Fold(number=number, of=3).split(data, data, Classification()) for number in (1, 2, 3)]
    for training, held_out in [*splits, split_off(data, data, Classification(), 0.3, 1)]:
        one, other = ({"".join(text).lower().strip("!") for text in part["tokens"]} for part in (training, held_out))
        assert not one & other
    marks = Dataset.from_dict({"tokens": [["!"], ["?"]], "label": ["a", "b"], "file": [0, 0], "line": [0, 1]})
    assert len(Fold(number=1, of=2).split(marks, marks, Classification())[1]) == 1
    assert (most_folds(data, Classification()), most_folds(marks, Classification())) == (21, 2)
    assert sorted(line for _, held_out in splits for line in held_out["line"]) == list(range(30))


def test_what_an_earlier_run_has_held_out_is_held_out_again() -> None:
    task, texts, labels = Classification(), [[f"x{row}"] for row in range(20)], ["a", "b"] * 10
    data = Dataset.from_dict({"tokens": texts, "label": labels, "file": [0] * 20, "line": list(range(20))})
    key = [task.key({"tokens": text}) for text in texts]
    earlier = {key[row]: -1 if row in (0, 5) else 0 for row in range(15)}
    training, held_out = split_off(data, data, task, 0.2, 1, earlier)
    assert {0, 5} < set(held_out["line"])
    fresh = set(held_out["line"]) - {0, 5}
    assert len(fresh) == 1  # a fifth of 2 and of 3, rounded
    assert fresh < set(range(15, 20))
    assert len(training) == 17
    for count in (15, 16):  # a fifth of one is none
        known = data.select(range(count))
        assert list(split_off(known, known, task, 0.2, 1, earlier)[1]["line"]) == [0, 5]
    of_folds = {key[row]: 1 + row % 5 for row in range(15)}  # a run of all of them
    assert set(split_off(data, data, task, 0.2, 1, of_folds)[1]["line"]) < set(range(15, 20))
    folds = {key[row]: 1 + row % 2 for row in range(10)} | {key[10]: 3, key[11]: -1, key[12]: 0}  # no folds
    first, second = (Fold(number=number, of=2).split(data, data, task, folds)[1] for number in (1, 2))
    assert set(range(0, 10, 2)) < set(first["line"])
    assert set(range(1, 10, 2)) < set(second["line"])
    assert (len(first), len(second)) == (10, 10)


def test_one_file_is_enough(tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    caplog.set_level("INFO", "elmo_tasks")
    table = "".join(f"It was day {row};{('gut', 'übel', 'na ja')[row % 3]}\n" for row in range(60))
    Path("table.csv").write_text(f"Text;Urteil\n{table}", encoding="cp1252")

    def read(*changes: str) -> Data:
        config = load_config("small/classification", ExperimentConfig, changes)
        return Data.read(with_validation(config, changes))

    data = read("train_data_path=table.csv")
    assert Counter(data.held_out["validation"]["label"]) == {"gut": 4, "übel": 4, "na ja": 4}
    assert len(data.training) == 48
    assert caplog.messages[0] == (
        "a fifth of the training data is held out as validation data, of each label if there are labels"
    )
    assert sum("table.csv: Windows-1252, separated by semicolons" in each for each in caplog.messages) == 1
    for missing in (("train_data_path=table.csv", "validation_data_path=gone.csv"), ("random_seed=2",)):
        with pytest.raises(MissingDataError, match="train.csv" if missing == ("random_seed=2",) else "gone.csv"):
            read(*missing)
    Path("dev.csv").write_text("text,label\nIt was fine,gut\n")
    assert len(read("train_data_path=table.csv").training) == 60
    one_file = read("train_data_path=table.csv", "validation_data_path=null", "trainer.patience=null")
    assert (len(one_file.training), one_file.held_out) == (60, {})


def test_one_example_cannot_be_split(config_file: Path, tmp_path: Path) -> None:
    given = {"train_data_path": [{"tokens": ["Oslo"], "tags": ["B-LOC"]}], "validation_data_path": None}
    with pytest.raises(ElmoTasksError, match="1 example to split; expected at least 2"):
        train.train(config_file, tmp_path / "run", overrides=["validation_share=0.5"], datasets=given)


def test_a_run_has_the_hashes_of_its_examples_that_earlier_versions_wrote(short_run: Path) -> None:
    config = load_config(short_run / "config.json", ExperimentConfig)
    written = json.loads((short_run / "data.json").read_text())
    for name, source in (("training", config.train_data_path), ("test", config.test_data_path)):
        reader = config.dataset_reader.build()
        columns = sorted(reader.task.features)
        lines = [json.dumps({column: each[column] for column in columns}) for each in reader.read(source)]
        assert written[f"{name} data"] == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_a_data_set_can_be_several_files(
    config_file: Path, short_run: Path, settings: dict[str, Any], tmp_path: Path
) -> None:
    whole = Path(settings["train_data_path"]).read_text(encoding="utf-8").strip().split("\n\n")
    names = ("a.txt", "b1.txt", "b2.txt")
    for name, sentences in zip(names, (whole[:10], whole[10:12], whole[12:]), strict=True):
        (tmp_path / name).write_text("\n\n".join(sentences) + "\n", encoding="utf-8")
    listed = [str(tmp_path / "a.txt"), str(tmp_path / "b*.txt"), str(tmp_path / "b2.txt")]  # the last one again
    overrides = [f"train_data_path={json.dumps(listed)}", "trainer.num_epochs=1"]
    config = load_config(config_file, ExperimentConfig, overrides)
    data = Data.read(config)
    single = Data.read(load_config(config_file, ExperimentConfig)).training
    assert list(data.training["tokens"]) == list(single["tokens"])
    for row, name in ((0, names[0]), (-1, names[2])):
        assert data.reader.location(config.train_data_path, data.training[row]).startswith(f"{tmp_path / name}:")
    results = train.train(config_file, tmp_path / "run", overrides=overrides)
    assert results["test"] == json.loads((short_run / "metrics.json").read_text())["test"]
    memory = {"train_data_path": listed, "validation_data_path": [listed[0]], "test_data_path": None}
    train.train(config_file, tmp_path / "given", overrides=["trainer.num_epochs=1"], datasets=memory)
    written = json.loads((tmp_path / "given" / "config.json").read_text())
    assert (written["train_data_path"], written["validation_data_path"]) == (listed, listed[0])
