"""Comparisons of files of predictions and of runs, and every way in which they can be refused."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_tasks import cli
from elmo_tasks.errors import DataError, ElmoTasksError, RunError
from elmo_tasks.extras.compare.comparison import compare, compare_predictions
from elmo_tasks.extras.compare.systems import System, find_systems, is_system, read_predictions, stored_predictions
from elmo_tasks.extras.repeats import repeats
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.tasks import Tagging
from tests.prediction_files import CASES, write

WriteCase = Callable[[str, Sequence[bool]], Path]

NAMES = ("Tagging", "parts of speech", "Classification", "TextPairs", "Reading", "SemanticRoles", "Coreference")


@pytest.mark.parametrize("name", NAMES)
def test_every_task_is_known_by_its_columns(
    write_case: WriteCase, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [write_case(name, right) for right in ([True] * 6 + [False] * 2, [True] * 2 + [False] * 6)]
    comparison = compare(files, resamples=500)
    assert type(comparison.task).__name__ == ("Tagging" if name == "parts of speech" else name)
    assert (comparison.num_examples, comparison.num_units) == (8, 8)
    first, second = comparison.systems
    assert first.score > second.score
    assert first.interval.low <= first.score <= first.interval.high
    (difference,) = comparison.differences
    assert difference.difference == pytest.approx(second.score - first.score)
    assert (difference.better, difference.worse, difference.equal) == (0, 4, 4)
    assert 0.02 < difference.p_values["randomization"] < 0.3  # 2 of 16 swaps, if every sentence counts as much
    assert cli.main(["compare", *map(str, files), "--resamples", "100"]) == 0
    shown = capsys.readouterr().out
    assert {"0.jsonl", "1.jsonl", "randomization"} <= {*shown.replace("(", " ").replace(")", " ").split()}


def test_the_scores_are_those_of_the_metric(write_case: WriteCase, tmp_path: Path) -> None:
    file = write_case("Tagging", [True, False, False])
    read = read_predictions(file)
    metric = read.task.build_metric()
    metric.update(read.predictions, read.examples)
    for name in ("f1", "precision", "recall", "accuracy"):
        assert compare([file], metric=name, resamples=10).systems[0].score == pytest.approx(metric.compute()[name])


def test_a_lower_error_is_better(tmp_path: Path) -> None:
    gold = [1.0, 2.0, 4.0]
    files = [
        write(tmp_path / name, [({"tokens": ["a"], "score": score}, {"score": score + off}) for score in gold])
        for name, off in (("far.jsonl", 2.0), ("near.jsonl", 1.0))
    ]
    comparison = compare(files, metric="mse", resamples=10)
    assert [each.score for each in comparison.systems] == pytest.approx([4, 1])
    (difference,) = comparison.differences
    assert (difference.better, difference.worse, difference.equal) == (3, 0, 0)


def test_nothing_is_better_where_nothing_is_right(write_case: WriteCase) -> None:
    (difference,) = compare([write_case("Classification", [False] * 3) for _ in range(2)], resamples=10).differences
    assert (difference.better, difference.worse, difference.equal) == (0, 0, 3)


def test_the_resamples_are_the_same_from_everywhere(write_case: WriteCase, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_case("Classification", [True, False])
    comparison = compare([file])
    assert (comparison.resamples, comparison.seed) == (10_000, 13370)
    assert compare_predictions([(System("0.jsonl", [file]), [read_predictions(file)])]) == comparison
    assert cli.main(["compare", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == comparison.to_json()


@pytest.mark.parametrize(("is_right", "low", "high"), [(True, 100 * 0.025 ** (1 / 98), 100), (False, 0, None)])
def test_an_accuracy_without_exception_has_the_exact_interval(
    is_right: bool, low: float, high: float | None, write_case: WriteCase
) -> None:
    """Clopper and Pearson (1934): with all of n right, the lower end p has p ** n = 0.025."""
    (system,) = compare([write_case("Classification", [is_right] * 98)], resamples=10).systems
    expected = (low, 100 - 100 * 0.025 ** (1 / 98) if high is None else high)
    assert (system.interval.low, system.interval.high) == pytest.approx(expected)
    (tags,) = compare([write_case("parts of speech", [is_right] * 98)], resamples=10).systems
    assert tags.interval.low == tags.interval.high  # tags of a sentence are not separate


@pytest.mark.parametrize("metric", ["mse", "pearson"])
def test_numbers_of_any_unit_are_compared_alike(tmp_path: Path, metric: str) -> None:
    generator = np.random.default_rng(5)
    gold, near, far = generator.integers(0, 9, 30), generator.normal(0, 0.4, 30), generator.normal(0.2, 0.7, 30)
    found = []

    def pairs(numbers: Any, errors: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        given = zip(numbers.tolist(), errors.tolist(), strict=True)
        return [({"tokens": ["a"], "score": number}, {"score": number + error}) for number, error in given]

    for offset, unit in ((0.0, 1.0), (2.0**30, 1.0), (0.0, 2.0**-26), (0.0, 2.0**26)):
        numbers = offset + unit * gold
        files = [
            write(tmp_path / name, pairs(numbers, unit * np.round(errors, 3)))
            for name, errors in (("far.jsonl", far), ("near.jsonl", near))
        ]
        comparison = compare(files, metric=metric, resamples=300)
        (difference,) = comparison.differences
        size = unit**2 if metric == "mse" else 1.0
        scores = [each.score / size for each in comparison.systems]
        found.append([*scores, *difference.p_values.values(), difference.better, difference.worse, difference.equal])
    assert found[1] == pytest.approx(found[0], rel=1e-4)
    assert found[2] == found[3] == pytest.approx(found[0], rel=1e-9)
    assert found[0][-3] + found[0][-2] == 30


def test_the_predicates_of_a_sentence_are_one_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example, right, wrong = CASES["SemanticRoles"]
    numbered = [{**example, "sentence": row // 3} for row in range(9)]
    files = [
        write(tmp_path / "a.jsonl", [(each, right) for each in numbered]),
        write(tmp_path / "b.jsonl", [(each, wrong if row == 4 else right) for row, each in enumerate(numbered)]),
    ]
    comparison = compare(files, resamples=100)
    assert (comparison.num_examples, comparison.num_units) == (9, 3)
    (difference,) = comparison.differences
    assert (difference.better, difference.worse, difference.equal) == (0, 1, 2)
    assert cli.main(["compare", *map(str, files), "--resamples", "10"]) == 0
    assert "9 examples, drawn as 3 units" in " ".join(capsys.readouterr().out.split())


def test_sentences_without_numbers_are_known_by_their_words(tmp_path: Path) -> None:
    example, right, wrong = CASES["SemanticRoles"]
    unnumbered = {name: value for name, value in example.items() if name not in ("document", "sentence")}
    other = {**unnumbered, "tokens": [*example["tokens"][:-1], "!"]}
    file = write(tmp_path / "a.jsonl", [(unnumbered, right), (unnumbered, wrong), (other, right)])
    comparison = compare([file], resamples=10)
    assert (comparison.num_examples, comparison.num_units) == (3, 2)


def test_schemes_of_tags_may_differ(tmp_path: Path) -> None:
    tokens = ["Mary", "Collins", "left"]
    files = [
        write(tmp_path / "a.jsonl", [({"tokens": tokens, "tags": tags}, {"tags": tags})])
        for tags in (["B-PER", "I-PER", "O"], ["B-PER", "L-PER", "O"])
    ]
    assert [each.score for each in compare(files, resamples=10).systems] == [100, 100]
    read = read_predictions(files[0])
    assert isinstance(read.task, Tagging)
    assert read.task.tag_scheme is not None


def test_several_systems_are_corrected(write_case: WriteCase, tmp_path: Path) -> None:
    files = [write_case("Classification", [True] * right + [False] * (20 - right)) for right in (18, 8, 6)]
    comparison = compare(files, resamples=1000)
    p_values = [each.p_values["randomization"] for each in comparison.differences]
    assert [each.corrected["randomization"] for each in comparison.differences] == pytest.approx(
        [max(p_values[0], 2 * p_values[1]), 2 * p_values[1]]
    )
    assert compare(files[:2], resamples=10).differences[0].corrected == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": ["Mary", "left", "Rome", "."]}, r"b.jsonl: example 1 has other tokens; expected the same examples"),
        ({"tags": ["O", "O", "B-LOC", "O"]}, r"b.jsonl: example 1 has other tags; expected the same examples"),
        (None, r"b.jsonl: 1 examples, not 2; expected the same examples in the same order as for .*a.jsonl"),
    ],
)
def test_other_examples_are_refused(change: dict[str, Any] | None, message: str, tmp_path: Path) -> None:
    example, right, _ = CASES["Tagging"]
    one = write(tmp_path / "a.jsonl", [(example, right)] * 2)
    rest = [] if change is None else [({**example, **change}, right)]
    other = write(tmp_path / "b.jsonl", [(example, right), *rest])
    with pytest.raises(ElmoTasksError, match=message):
        compare([one, other], resamples=10)


def test_other_tasks_and_metrics_are_refused(write_case: WriteCase) -> None:
    files = [write_case(name, [True]) for name in ("Tagging", "Classification")]
    with pytest.raises(
        ElmoTasksError, match=r"the task is Classification, that of .* is Tagging; expected the same task"
    ):
        compare(files, resamples=10)
    problem = "'bleu' is not a score of Tagging; expected f1, precision, recall, accuracy"
    with pytest.raises(ElmoTasksError, match=problem):
        compare(files[:1], metric="bleu")


def tagged(gold: str, predicted: list[Any]) -> str:
    """The prediction for a sentence of one token."""
    return json.dumps({"example": {"tokens": ["a"], "tags": [gold]}, "prediction": {"tags": predicted}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", r"a.jsonl:1: no example with its prediction; expected a JSON object"),
        ('{"example": 1, "prediction": {}}', r"a.jsonl:1: no example with its prediction"),
        ("[", r"a.jsonl:1: .*expected a JSON object with 'example' and 'prediction'"),
        ("\n", r"a.jsonl:1: "),
        ("", "no examples"),
        ('{"example": {"word": 1}, "prediction": {}}', r"a.jsonl: its examples have the columns word, .* no task"),
        ('{"example": {"tokens": "a", "label": "b"}, "prediction": {}}', r"example 0: 'tokens' is 'a'; expected a"),
        ('{"example": {"tokens": ["a"], "label": "b"}, "prediction": {}}', r"example 0: there is no 'label' in"),
        (tagged("O", ["O", "O"]), r"a.jsonl, predictions: example 0: 2 tags for 1 tokens"),
        (tagged("O", [1]), r"a.jsonl, predictions: example 0: 'tags' is \[1\]; expected a list of strings"),
        (tagged("B-X", ["X"]), r"a.jsonl: example 0: its prediction cannot be scored \('X' is not a span tag"),
    ],
)
def test_files_that_are_wrong_are_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(DataError, match=message):
        compare([tmp_path / "a.jsonl"], resamples=10)


def test_answers_outside_of_their_passage_are_refused(tmp_path: Path) -> None:
    (example, right, _), twice = CASES["Reading"], {"answers": ["Mary", "."]}
    path = write(tmp_path / "a.jsonl", [({**example, **twice, "answer_spans": [[0, 3], [3, 3]]}, right)])
    assert compare([path], resamples=1)
    path = write(tmp_path / "a.jsonl", [({**example, **twice, "answer_spans": [[0, 0], [4, 4]]}, right)])
    with pytest.raises(DataError, match=r"example 0: the answer span \[4, 4\]; expected \[first, last token\]"):
        compare([path])


@pytest.fixture(scope="module")
def seeds(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two runs."""
    folder = tmp_path_factory.mktemp("compare") / "tagger"
    short: dict[str, Any] = {"trainer.num_epochs": 1, "trainer.regularizers": [], "model.embedder.elmo": None}
    repeats.train_seeds(settings, folder, [1, 2], overrides=short)
    return folder


def test_runs_of_several_seeds(
    seeds: Path, sample_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = [json.loads((seeds / f"seed_{seed}" / "metrics.json").read_text())["test"]["f1"] for seed in (1, 2)]
    data = str(sample_folder / "ner_conll2003" / "eng.testb")
    evaluate(seeds / "seed_1", data, predictions=(file := tmp_path / "one.jsonl"))
    comparison = compare([seeds, seeds, file], resamples=100)  # on the test data of the config
    assert [each.name for each in comparison.systems] == [str(seeds), str(seeds), str(file)]
    assert [each.scores for each in comparison.systems] == [
        pytest.approx(each) for each in (metrics, metrics, metrics[:1])
    ]
    same, single = comparison.differences
    assert (same.difference, same.p_values["randomization"], same.equal) == (0, 1, comparison.num_units)
    assert same.seeds is not None
    assert (same.seeds.mean, same.seeds.paired, same.seeds.p_value) == (0, True, None)
    assert single.seeds is None
    assert single.difference == pytest.approx((metrics[0] - metrics[1]) / 2)

    assert cli.main(["compare", str(seeds), str(seeds / "seed_1"), data, "--resamples", "50", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["seeds"] for each in found["systems"]] == [[1, 2], []]
    assert found["task"] == "Tagging"


def test_config_metrics_and_predictions_are_a_system(
    seeds: Path, sample_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is handed in: a run without its model. It has the score of the run, and its data are those of the run."""
    run, data = seeds / "seed_1", str(sample_folder / "ner_conll2003" / "eng.testb")
    handed_in = tmp_path / "ann"
    handed_in.mkdir()
    for name in ("config.json", "metrics.json"):
        shutil.copy(run / name, handed_in)
    evaluate(run, data, predictions=handed_in / "predictions.jsonl")
    comparison = compare([run, handed_in], resamples=100)
    assert [each.score for each in comparison.systems] == [comparison.systems[0].score] * 2
    assert comparison.differences[0].equal == comparison.num_units
    assert cli.main(["errors", str(handed_in), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]["f1"] == pytest.approx(comparison.systems[0].score)
    for command in ("compare", "errors"):
        assert cli.main([command, str(handed_in), data]) == 2
        assert "redictions" in (message := capsys.readouterr().err)
        assert data in message
    shutil.copy(run / "model.safetensors", handed_in)
    assert stored_predictions(handed_in) is None  # a run is evaluated again


def test_what_a_system_has_learned_from_is_left_out(
    short_run: Path, sample_folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    learned, other = (sample_folder / "ner_conll2003" / f"eng.{name}" for name in ("train", "testb"))
    sentences = learned.read_text(encoding="utf-8").split("\n\n")[1:5]
    (mixed := tmp_path / "mixed.txt").write_text("\n\n".join([*sentences, other.read_text(encoding="utf-8")]))
    assert compare([short_run], str(mixed), resamples=10) == compare([short_run], str(other), resamples=10)
    assert "4 examples that a system has learned from are left out for all" in caplog.messages


@pytest.mark.parametrize("other_seeds", [(1, 2), (3, 4)])
def test_the_difference_over_seeds_is_that_of_the_means(
    other_seeds: tuple[int, int], write_case: WriteCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    systems = [
        System(name, [write_case("Classification", [True] * right + [False] * (8 - right)) for right in numbers], seeds)
        for name, numbers, seeds in (("one", (3, 4), (1, 2)), ("other", (5, 8), other_seeds))
    ]
    monkeypatch.setattr("elmo_tasks.extras.compare.comparison.find_systems", lambda paths: systems)
    (found,) = compare(["one", "other"], resamples=10).differences
    assert found.seeds is not None
    assert found.difference == pytest.approx(100 * (5 + 8 - 3 - 4) / 16)
    assert found.seeds.mean == pytest.approx(found.difference)
    assert found.seeds.interval.low < found.difference < found.seeds.interval.high
    assert found.seeds.paired == (other_seeds == (1, 2))


def test_what_is_a_system(write_case: WriteCase, tmp_path: Path) -> None:
    file, seeds = write_case("Tagging", [True]), tmp_path / "tagger"
    (seeds / "seed_1").mkdir(parents=True)
    (seeds / "seed_1" / "config.json").touch()
    archives = [tmp_path / "run.tar.gz", tmp_path / "run.tgz"]
    for archive in archives:
        archive.touch()
    assert all(is_system(path) for path in (seeds, seeds / "seed_1", file, *archives))
    (data := tmp_path / "data").mkdir()
    (data / "eng.testb").write_text("Mira I-PER\n")
    assert not any(is_system(path) for path in (data / "eng.testb", data, tmp_path / "none", "hub:conll2003"))
    assert [each.name for each in find_systems([seeds, file])] == ["tagger", file.name]
    assert [each.name for each in find_systems([seeds, seeds / "../tagger"])] == [str(seeds), str(seeds / "../tagger")]


def test_the_runs_of_a_folder_are_in_the_order_of_their_seeds(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("seed_10", "seed_2", "seed_3", "seed_x", "other_1"):
        (tmp_path / name).mkdir()
        if name != "seed_3":  # which has not begun
            (tmp_path / name / "config.json").touch()
    found = [System(tmp_path.name, [tmp_path / "seed_2", tmp_path / "seed_10"], [2, 10])]
    assert find_systems([tmp_path]) == found
    (tmp_path / "seed_2" / "metrics.json").touch()
    assert find_systems([tmp_path]) == [System(tmp_path.name, [tmp_path / "seed_2"], [2])]
    left_out = f"{tmp_path / 'seed_10'}: left out, since the training has not finished; --resume continues it"
    assert caplog.messages == [left_out]
    (tmp_path / "config.json").touch()
    assert find_systems([tmp_path]) == [System(tmp_path.name, [tmp_path])]


def test_data_and_systems_are_told_apart(
    write_case: WriteCase, seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(write_case("Tagging", [True]))
    assert cli.main(["compare", file, str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl: not a run or a file of predictions; predictions need no data" in capsys.readouterr().err
    assert cli.main(["compare", str(seeds), str(tmp_path / "none.txt")]) == 2
    assert "none.txt" in capsys.readouterr().err


def test_a_run_without_test_data_needs_data(seeds: Path, tmp_path: Path) -> None:
    config = json.loads((seeds / "seed_1" / "config.json").read_text())
    for path in (seeds / "seed_1").iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({**config, "test_data_path": None}))
    with pytest.raises(RunError, match=r"its config has no test_data_path; as the last argument, name .* on$"):
        compare([tmp_path])
    with pytest.raises(ElmoTasksError, match=r"trainer\.nothing: unknown key"):
        compare([tmp_path], overrides=["trainer.nothing=1"])
    with pytest.raises(ElmoTasksError, match="no systems; expected at least one run or file of predictions"):
        compare([])
