"""Comparisons of files of predictions and of runs, and every way in which they can be refused."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import cli, experiment
from elmo_tasks.analysis.comparison import compare
from elmo_tasks.analysis.systems import find_systems, is_system, read_predictions
from elmo_tasks.errors import DataError, ElmoTasksError, RunError
from elmo_tasks.tasks import Tagging

SENTENCE = ["Mira", "left", "Oslo", "."]
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {  # example, right and wrong prediction
    "Tagging": (
        {"tokens": SENTENCE, "tags": ["B-PER", "O", "B-LOC", "O"]},
        {"tags": ["B-PER", "O", "B-LOC", "O"]},
        {"tags": ["B-LOC", "O", "B-LOC", "O"]},
    ),
    "parts of speech": (
        {"tokens": SENTENCE, "tags": ["NNP", "VBD", "NNP", "-LRB-"]},
        {"tags": ["NNP", "VBD", "NNP", "-LRB-"]},
        {"tags": ["NNP", "NNP", "NNP", "-LRB-"]},
    ),
    "Classification": ({"tokens": SENTENCE, "label": "good"}, {"label": "good"}, {"label": "bad"}),
    "TextPairs": (
        {"premise": SENTENCE, "hypothesis": SENTENCE[:2], "label": "entailment"},
        {"label": "entailment"},
        {"label": "neutral"},
    ),
    "Reading": (
        {
            "id": "1", "question": "Who left?", "question_tokens": ["Who", "left", "?"], "passage": "Mira left Oslo.",
            "token_starts": [0, 5, 10, 14], "token_ends": [4, 9, 14, 15], "answers": ["Mira"], "answer_spans": [[0, 0]],
        },
        {"answer": "Mira", "best": []},
        {"answer": "Oslo", "best": []},
    ),
    "SemanticRoles": (
        {"tokens": SENTENCE, "predicate": 1, "tags": ["B-ARG0", "B-V", "B-ARG1", "O"], "sentence": 0},
        {"tags": ["B-ARG0", "B-V", "B-ARG1", "O"]},
        {"tags": ["B-ARG1", "B-V", "B-ARG1", "O"]},
    ),
    "Coreference": (
        {"sentences": [SENTENCE, ["She", "left", "it", "."]], "clusters": [[[0, 0], [4, 4]], [[2, 2], [6, 6]]]},
        {"clusters": [[[0, 0], [4, 4]], [[2, 2], [6, 6]]]},
        {"clusters": [[[0, 0], [4, 4], [2, 2]]]},
    ),
}  # fmt: skip


def write(path: Path, pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Path:
    lines = (json.dumps({"example": example, "prediction": prediction}) for example, prediction in pairs)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def write_case(folder: Path, name: str, right: Sequence[bool]) -> Path:
    """A file of predictions, of which some are right."""
    example, good, bad = CASES[name]
    numbered = [{**example, "sentence": row} if name == "SemanticRoles" else example for row in range(len(right))]
    pairs = [(each, good if is_right else bad) for each, is_right in zip(numbered, right, strict=True)]
    return write(folder / f"{len(list(folder.iterdir()))}.jsonl", pairs)


@pytest.mark.parametrize("name", CASES)
def test_every_task_is_known_by_its_columns(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write_case(tmp_path, name, right) for right in ([True] * 6 + [False] * 2, [True] * 2 + [False] * 6)]
    comparison = compare(files, resamples=500, num_examples=1)
    assert type(comparison.task).__name__ == ("Tagging" if name == "parts of speech" else name)
    assert (comparison.num_examples, comparison.num_units) == (8, 8)
    first, second = comparison.systems
    assert first.score > second.score
    assert first.interval.low <= first.score <= first.interval.high
    (difference,) = comparison.differences
    assert difference.difference == pytest.approx(second.score - first.score)
    assert (difference.better, difference.worse, difference.equal) == (0, 4, 4)
    assert 0.02 < difference.p_values["randomization"] < 0.3  # 2 of 16 swaps, if every sentence counts as much
    (changed,) = difference.changed
    assert changed.gain < 0
    assert list(changed.predictions) == ["0.jsonl", "1.jsonl"]
    assert cli.main(["compare", *map(str, files), "--resamples", "100", "--examples", "1"]) == 0
    shown = capsys.readouterr().out
    assert {"0.jsonl", "1.jsonl", "gold:", "randomization"} <= {*shown.replace("(", " ").replace(")", " ").split()}


def test_the_scores_are_those_of_the_metric(tmp_path: Path) -> None:
    file = write_case(tmp_path, "Tagging", [True, False, False])
    read = read_predictions(file)
    metric = read.task.build_metric()
    metric.update(read.predictions, read.examples)
    for name in ("f1", "precision", "recall", "accuracy"):
        assert compare([file], metric=name, resamples=10).systems[0].score == pytest.approx(metric.compute()[name])


def test_the_predicates_of_a_sentence_are_one_unit(tmp_path: Path) -> None:
    example, right, wrong = CASES["SemanticRoles"]
    numbered = [{**example, "sentence": row // 3} for row in range(9)]
    files = [
        write(tmp_path / "a.jsonl", [(each, right) for each in numbered]),
        write(tmp_path / "b.jsonl", [(each, wrong if row == 4 else right) for row, each in enumerate(numbered)]),
    ]
    comparison = compare(files, resamples=100, num_examples=5)
    assert (comparison.num_examples, comparison.num_units) == (9, 3)
    (difference,) = comparison.differences
    assert (difference.better, difference.worse, difference.equal) == (0, 1, 2)
    assert [len(each.examples) for each in difference.changed] == [1]  # only the predicate that differs


def test_schemes_of_tags_may_differ(tmp_path: Path) -> None:
    tokens = ["Mira", "Dolvane", "left"]
    files = [
        write(tmp_path / "a.jsonl", [({"tokens": tokens, "tags": tags}, {"tags": tags})])
        for tags in (["B-PER", "I-PER", "O"], ["B-PER", "L-PER", "O"])
    ]
    assert [each.score for each in compare(files, resamples=10).systems] == [100, 100]
    read = read_predictions(files[0])
    assert isinstance(read.task, Tagging)
    assert read.task.tag_scheme is not None


def test_several_systems_are_corrected(tmp_path: Path) -> None:
    files = [write_case(tmp_path, "Classification", [True] * right + [False] * (20 - right)) for right in (18, 8, 6)]
    comparison = compare(files, resamples=1000)
    p_values = [each.p_values["randomization"] for each in comparison.differences]
    assert [each.corrected["randomization"] for each in comparison.differences] == pytest.approx(
        [max(p_values[0], 2 * p_values[1]), 2 * p_values[1]]
    )
    assert compare(files[:2], resamples=10).differences[0].corrected == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": ["Mira", "left", "Rome", "."]}, r"b.jsonl: example 1 has other tokens; wanted the same examples"),
        ({"tags": ["O", "O", "B-LOC", "O"]}, r"b.jsonl: example 1 has other tags; wanted the same examples"),
        (None, r"b.jsonl: 1 examples, not 2; wanted the same examples in the same order as for .*a.jsonl"),
    ],
)
def test_other_examples_are_refused(change: dict[str, Any] | None, message: str, tmp_path: Path) -> None:
    example, right, _ = CASES["Tagging"]
    one = write(tmp_path / "a.jsonl", [(example, right)] * 2)
    rest = [] if change is None else [({**example, **change}, right)]
    other = write(tmp_path / "b.jsonl", [(example, right), *rest])
    with pytest.raises(ElmoTasksError, match=message):
        compare([one, other], resamples=10)


def test_other_tasks_are_refused(tmp_path: Path) -> None:
    files = [write_case(tmp_path, name, [True]) for name in ("Tagging", "Classification")]
    with pytest.raises(ElmoTasksError, match=r"the task is Classification, that of .* is Tagging; wanted one task"):
        compare(files, resamples=10)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{}", r"a.jsonl:1: no example with its prediction; wanted a JSON object"),
        ('{"example": 1, "prediction": {}}', r"a.jsonl:1: no example with its prediction"),
        ("[", r"a.jsonl:1: .*wanted a JSON object with 'example' and 'prediction'"),
        ("", r"a.jsonl:1: "),
        ('{"example": {"word": 1}, "prediction": {}}', r"a.jsonl: its examples have the columns word, .* no task"),
        ('{"example": {"tokens": "a", "label": "b"}, "prediction": {}}', r"example 0: 'tokens' is 'a'; wanted a list"),
        ('{"example": {"tokens": ["a"], "label": "b"}, "prediction": {}}', r"example 0: there is no 'label' in"),
        (
            '{"example": {"tokens": ["a"], "tags": ["O"]}, "prediction": {"tags": ["O", "O"]}}',
            r"example 0: the prediction does not fit the example \(ValueError",
        ),
        (
            '{"example": {"tokens": ["a"], "tags": ["O"]}, "prediction": {"tags": [1]}}',
            r"example 0: the prediction does not fit the example \(TypeError",
        ),
    ],
)  # fmt: skip
def test_files_that_are_wrong_are_named(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(line + "\n")
    with pytest.raises(DataError, match=message):
        compare([tmp_path / "a.jsonl"], resamples=10)


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(DataError, match="no examples"):
        compare([tmp_path / "a.jsonl"])


def test_a_metric_that_the_task_does_not_have_is_refused(tmp_path: Path) -> None:
    file = write_case(tmp_path, "Tagging", [True])
    with pytest.raises(
        ElmoTasksError, match="'bleu' is not a score of Tagging; wanted f1, precision, recall, accuracy"
    ):
        compare([file], metric="bleu")


@pytest.fixture(scope="module")
def seeds(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two runs."""
    folder = tmp_path_factory.mktemp("compare") / "tagger"
    experiment.train_seeds(settings, folder, [1, 2], overrides=["trainer.num_epochs=1"])
    return folder


def test_runs_of_several_seeds(
    seeds: Path, sample_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = [json.loads((seeds / f"seed_{seed}" / "metrics.json").read_text())["test"]["f1"] for seed in (1, 2)]
    data = str(sample_folder / "ner_conll2003" / "eng.testb")
    experiment.evaluate(seeds / "seed_1", data, predictions=(file := tmp_path / "one.jsonl"))
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


def test_what_is_a_system(seeds: Path, sample_folder: Path, tmp_path: Path) -> None:
    file = write_case(tmp_path, "Tagging", [True])
    archive = tmp_path / "run.tar.gz"
    archive.touch()
    assert all(is_system(path) for path in (seeds, seeds / "seed_1", file, archive))
    data = sample_folder / "ner_conll2003" / "eng.testb"
    assert not any(is_system(path) for path in (data, sample_folder, tmp_path / "none", "hub:conll2003"))
    assert [each.name for each in find_systems([seeds, file])] == ["tagger", file.name]
    assert [each.name for each in find_systems([seeds, seeds / "../tagger"])] == [str(seeds), str(seeds / "../tagger")]


def test_data_and_systems_are_told_apart(seeds: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(write_case(tmp_path, "Tagging", [True]))
    assert cli.main(["compare", file, str(tmp_path / "none.jsonl")]) == 2
    assert (
        "none.jsonl: not a run or a file of predictions; files of predictions need no data" in capsys.readouterr().err
    )
    assert cli.main(["compare", str(seeds), str(tmp_path / "none.txt")]) == 2
    assert "none.txt" in capsys.readouterr().err


def test_a_run_without_test_data_needs_data(seeds: Path, tmp_path: Path) -> None:
    config = json.loads((seeds / "seed_1" / "config.json").read_text())
    for path in (seeds / "seed_1").iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({**config, "test_data_path": None}))
    with pytest.raises(RunError, match="its config has no test_data_path; name the data"):
        compare([tmp_path])
