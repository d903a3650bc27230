"""What `elmo-tasks data` finds in data with planted trouble, and what `train` says of it."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import cli
from elmo_tasks.errors import DataError
from elmo_tasks.extras.advice.data_analysis import KINDS
from elmo_tasks.runs.train import train

Row = tuple[str, str]

# 40 texts of a training, 30 of each other part: nothing is wrong with them.
TRAINING: list[Row] = [(f"word number {row} is here", ("good", "bad")[row % 2]) for row in range(40)]
VALIDATION: list[Row] = [(f"here is {row} word", ("good", "bad")[row % 2]) for row in range(30)]
TEST: list[Row] = [(f"is word {row} here", ("good", "bad")[row % 2]) for row in range(30)]
VALUES: dict[str, Any] = {
    "dataset_reader": {"type": "jsonl", "task": "classification"},
    "train_data_path": "train.jsonl",
    "validation_data_path": "dev.jsonl",
    "model": {"type": "text_classifier", "embedder": {"words": {"size": 2}}},
    "data_loader": {"batch_size": 4},
    "trainer": {"num_epochs": 1, "validation_metric": "+accuracy", "trackers": []},
}
LSTM = {"type": "stacked_bilstm", "hidden_sizes": [2]}
NUMBERS = [f"word{number}" for number in range(400)]


def config(folder: Path, parts: dict[str, Sequence[Row | str]], **changes: Any) -> Path:
    """Writes a config and its data as JSON lines; a row that is a string is the line itself."""
    for name, rows in parts.items():
        lines = [
            row if isinstance(row, str) else json.dumps(dict(zip(("text", "label"), row, strict=True))) for row in rows
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "vectors.txt").write_text("".join(f"{word} 0.1 0.2\n" for word in ("word", "number", "is", "here")))
    files = {"train": "train", "validation": "dev", "test": "test"}
    paths = {f"{part}_data_path": str(folder / f"{name}.jsonl") for part, name in files.items()}
    values = {**VALUES, **paths, "data_loader": {"batch_size": 4, "min_batches": 200}, **changes}
    (path := folder / "config.json").write_text(json.dumps(values), encoding="utf-8")
    return path


def report(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert cli.main(["data", str(path), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


WORDS = "model.embedder.words"
NO_SPANS = [f'{{"tokens": ["word", "{number}"], "tags": ["O", "O"]}}' for number in range(80)]
SPANS = {"type": "jsonl", "task": "tagging", "tag_scheme": "IOB2"}
TAGGER = {"type": "simple_tagger", "embedder": {"words": {"size": 2}}, "encoder": LSTM}
SETS = [
    json.dumps({"text": f"It is {row}", "labels": ["good", "bad"][: row % 4 and row % 2 + 1]}) for row in range(100)
]
RARE: list[Row] = [(f"odd {number}", "ugly") for number in range(5)]
ALIKE = ("Good", "e\u0301", "\xe9\u200b", "1.0", "01")
PLANTED: dict[str, tuple[dict[str, Sequence[Row | str]], list[str], str]] = {
    "broken": ({"train": [*TRAINING, '{"text": "no label"}']}, [], "1 part does not follow the format, the first: "),
    "suspicious": ({"train": [("text", "label"), *TRAINING]}, [], "train.jsonl:1: what looks like the names of"),
    "no_spans": (
        {"train": NO_SPANS[:40], "dev": NO_SPANS[40:], "test": NO_SPANS[40:]},
        [f"dataset_reader={json.dumps(SPANS)}", f"model={json.dumps(TAGGER)}"],
        "all tags of the training data are 'O', so there is nothing to learn; is it the right file",
    ),
    "other_language": (
        {"train": [(f"blorvu {row} tekar onsa", "good") for row in range(40)]},
        ['model.embedder.elmo={"bilm": "default"}'],
        "does not look like what the biLM default_bilm has read: 100 % of its words in lower case are not",
    ),
    "unseen_labels": (
        {"dev": [*VALIDATION, ("odd", "ugly")]}, [],
        "labels of the validation data that the training data lacks, so no model learns them: 'ugly' of the labels (1",
    ),
    "same_texts": (
        {"test": [*TEST, *TRAINING * 25]}, [], "1,000 of 1,030 test examples have the same texts as a training example"
    ),
    "few_steps": (
        {}, ["data_loader.min_batches=1", "trainer.num_epochs=2", "trainer.num_gradient_accumulation_steps=5"],
        "only 4 optimizer steps in all, for 40 training examples",
    ),
    "few_vectors": ({}, [f"{WORDS}.vectors=vectors.txt"], "has only 4 of the 44 words of the training data; is it"),
    "several_labels": ({"train": [*TRAINING, (TRAINING[0][0], "bad")]}, [],
        "train.jsonl:41; correct the labels, or remove them"),
    "similar_labels": (
        {"train": [*TRAINING, *((f"{each} {n}", each) for n in range(9) for each in ALIKE)]}, [],
        "zeros: 'good' and 'Good', 'e\u0301' and '\xe9\\u200b', '1.0' and '01'",
    ),
    "no_labels": (
        {"train": SETS[:40], "dev": SETS[40:70], "test": SETS[70:]},
        ["dataset_reader.task=multi_label", "model.task=multi_label", "trainer.validation_metric=+micro_f1"],
        "10 training examples have no label, so the model learns that none fits",
    ),
    "one_label": ({"train": [*TRAINING, *((f"x {n}", "good") for n in range(160))]}, [],
        "always giving the label 'good' has accuracy 90.0 on the training data; data_loader.sampling=balanced draws"),
    "few_examples": ({"dev": VALIDATION[:20]}, [], "20 validation examples: each is 5 points of an accuracy"),
    "rare_labels": ({"train": [*TRAINING, *RARE[:4]]}, [], "fewer than 5 times: 'ugly' (4); a model hardly"),
    "long": ({"train": [*TRAINING, (" ".join(NUMBERS[:51]), "good")]}, [], "train.jsonl:41: an example of 51 tokens, "),
}  # fmt: skip
# What is just good enough not to be one of these.
ENOUGH: dict[str, dict[str, Sequence[Row | str]]] = {
    "same_texts": {"test": [TRAINING[0], *((f"another {number}", "good") for number in range(100))]},
    "one_label": {"train": [*TRAINING, *((f"x {n}", "good") for n in range(158))]},
    "rare_labels": {"train": [*TRAINING, *RARE]},
    "long": {"train": [*TRAINING, (" ".join(NUMBERS[:50]), "good")]},
}


def test_every_kind_of_trouble_is_planted() -> None:
    assert set(PLANTED) == set(KINDS)


def test_of_good_data_there_is_nothing_to_warn_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config(tmp_path, {"train": TRAINING, "dev": VALIDATION, "test": TEST})
    found = report(path, capsys)
    assert found["warnings"] == []
    training, test = found["parts"]["training"], found["parts"]["test"]
    counts = ("examples", "texts", "tokens", "distinct_tokens")
    assert [training[key] for key in counts] == [40, 40, 200, 44]
    assert (training["mean_length"], training["length_of_95_percent"], training["longest_length"]) == (5, 5, 5)
    assert training["labels"] == {"good": 20, "bad": 20}
    assert training["longest"][f"{tmp_path / 'train.jsonl'}:1"] == 5
    assert (test["percent_of_tokens_not_in_training"], test["percent_of_tokens_without_vector"]) == (0, None)
    assert (test["examples_with_training_texts"], test["skipped"]) == (0, [])
    assert cli.main(["data", str(path), "--output", str(tmp_path / "report.json")]) == 0
    printed = capsys.readouterr().out
    assert "Nothing was found that will hurt." in printed
    assert "20 (50.0 %)" in printed
    assert json.loads((tmp_path / "report.json").read_text()) == found
    assert cli.main(["data", str(path), "--output", "/dev/null"]) == 0  # which exists, and is not a file


def test_labels_of_tokens_are_counted_and_each_reader_skips_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = ['{"tokens": ["Orla", "Rune", "left"], "tags": ["B-PER", "I-PER", "O"]}', *NO_SPANS[:9]]
    path = config(tmp_path, {"train": train, "dev": ['{"tokens": ["It"]}', *NO_SPANS[9:40]], "test": NO_SPANS[40:]})
    changes = {"dataset_reader": SPANS, "validation_dataset_reader": SPANS, "model": TAGGER}
    options = [word for key, value in changes.items() for word in ("--set", f"{key}={json.dumps(value)}")]
    found = report(path, capsys, *options)
    parts = found["parts"]
    assert parts["training"]["labels"] == {"O": 19, "PER": 2}
    assert parts["validation"]["labels"] == {"O": 62}
    assert (parts["training"]["skipped"], len(parts["validation"]["skipped"])) == ([], 1)
    assert found["warnings"][0]["kind"] == "broken"


def test_of_examples_in_one_place_the_longest_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [["Orla left the town .", {"entities": [[0, 4, "PER"]]}], ["It rained .", {"entities": []}]]
    for order in (texts, texts[::-1]):
        (tmp_path / "texts.json").write_text(json.dumps(order))
        data = dict.fromkeys(
            ("train_data_path", "validation_data_path", "test_data_path"), str(tmp_path / "texts.json")
        )
        path = config(tmp_path, {}, dataset_reader={"type": "spans"}, model=TAGGER, **data)
        part = report(path, capsys, "--set", "trainer.validation_metric=-loss")["parts"]["training"]
        assert part["longest"] == {str(tmp_path / "texts.json"): 5}


def test_sets_of_labels_are_counted_label_by_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        '{"text": "Orla left", "labels": ["a", "b"]}',
        '{"text": "It rained", "labels": ["b"]}',
        '{"text": "No", "labels": []}',
    ]
    model = {"type": "text_classifier", "task": "multi_label", "embedder": {"words": {"size": 2}}}
    changes = {"dataset_reader": {"type": "jsonl", "task": "multi_label"}, "model": model}
    path = config(tmp_path, dict.fromkeys(("train", "dev", "test"), rows), **changes)
    found = report(path, capsys, "--set", "trainer.validation_metric=-loss")
    assert found["parts"]["training"]["labels"] == {"b": 2, "a": 1}


def test_scores_are_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So that 1.200, read as 1.2, is seen."""
    rows = [json.dumps({"text": f"It was {score}", "score": score}) for score in (2.5, 1.2, 8)]
    model = {"type": "text_classifier", "task": "regression", "embedder": {"words": {"size": 2}}}
    changes = {"dataset_reader": {"type": "jsonl", "task": "regression"}, "model": model}
    path = config(tmp_path, dict.fromkeys(("train", "dev", "test"), rows), **changes)
    part = report(path, capsys, "--set", "trainer.validation_metric=-loss")["parts"]["training"]
    assert (part["lowest_score"], part["mean_score"], part["highest_score"]) == (1.2, pytest.approx(3.9), 8)


def test_each_predicate_of_a_sentence_has_roles_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tags = ["B-V", "B-ARG1"], ["B-ARG0", "B-V"]
    rows = [json.dumps({"tokens": ["Go", "left"], "predicate": at, "tags": each}) for at, each in enumerate(tags)]
    model = {"type": "srl", "embedder": {"words": {"size": 2}}, "encoder": LSTM}
    changes = {"dataset_reader": {"type": "jsonl", "task": "semantic_roles"}, "model": model}
    path = config(tmp_path, dict.fromkeys(("train", "dev", "test"), rows), **changes)
    warnings = report(path, capsys, "--set", "trainer.validation_metric=+f1")["warnings"]
    assert [each["kind"] for each in warnings if each["kind"] in ("several_labels", "broken")] == []


def test_tables_and_warnings_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers of the file were counted by hand."""
    monkeypatch.chdir(tmp_path)
    train = [*TRAINING, *((f"thing{number}", f"kind {number}") for number in range(30)), ("word " * 1200, "good")]
    held_out: dict[str, list[Any]] = {"dev": [*VALIDATION, ("unseen words only here", "odd")]}
    held_out["test"] = [*TEST[:2], '{"text": "no label"}', TRAINING[0]]
    config(Path(), {"train": train, **held_out})
    assert cli.main(["data", "config.json", "--set", f"{WORDS}.vectors=vectors.txt"]) == 0
    printed = capsys.readouterr().out.splitlines()
    kinds = [line for line in printed if line.startswith("│ kind ")]
    assert [line.split("│")[1].strip() for line in kinds] == [f"kind {number}" for number in range(28)]
    expected = Path(__file__).with_name("data_printed.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in printed if line not in kinds[1:]] == expected


@pytest.mark.parametrize("kind", PLANTED)
def test_planted_trouble_is_found(
    kind: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    parts, changes, text = PLANTED[kind]
    path = config(tmp_path, {"train": TRAINING, "dev": VALIDATION, "test": TEST, **parts})
    found = report(path, capsys, *(word for change in changes for word in ("--set", change)))["warnings"]
    assert [text in each["text"] for each in found if each["kind"] == kind] == [True]
    assert all("\n" not in each["text"] for each in found)
    assert all(each.levelno < logging.WARNING for each in caplog.records)  # the report says it


@pytest.mark.parametrize("kind", ENOUGH)
def test_what_is_just_good_enough_is_not_warned_of(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, {"train": TRAINING, "dev": VALIDATION, "test": TEST, **ENOUGH[kind]})
    assert kind not in [each["kind"] for each in report(path, capsys)["warnings"]]


def test_training_data_with_one_label_is_an_error(tmp_path: Path) -> None:
    path = config(tmp_path, {"train": [(text, "good") for text, _ in TRAINING], "dev": VALIDATION, "test": TEST})
    with pytest.raises(DataError) as caught:
        train(path, tmp_path / "run")
    assert str(caught.value) == (
        f"{tmp_path / 'train.jsonl'}: all 40 training examples have the label 'good'; expected at least two labels: is "
        "it the right column, and the whole file?"
    )


def test_train_says_the_three_most_important(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    held_out: dict[str, list[Any]] = {"dev": [*TRAINING[:1], ("odd", "ugly")], "test": [*TRAINING[:1], *TEST]}
    path = config(tmp_path, {"train": TRAINING, **held_out}, data_loader={"batch_size": 40})
    train(path, tmp_path / "run")
    said = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert said[0].startswith("labels of the validation data that the training data lacks, so no model learns them")
    assert said[1].startswith("1 of 2 validation examples have the same texts as a training example")
    assert said[2].startswith("1 of 31 test examples have the same texts as a training example")
    assert not any("optimizer step" in text for text in said[:3])


def test_train_says_that_labels_look_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those of a table are typed by hand."""
    train(config(tmp_path, {"train": TRAINING, "dev": [*VALIDATION, ("odd", "Good")], "test": TEST}), tmp_path / "run")
    assert "differ only in case, spaces or zeros: 'good' and 'Good'; write each of them in one way" in caplog.text


def test_what_is_wrong_with_a_config_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = config(tmp_path, {"train": TRAINING, "dev": VALIDATION})
    for words, problem in (
        ([], "test.jsonl: no such file"),
        (["--set", "trainer.num_epoch=1"], "trainer.num_epoch: unknown key. Did you mean"),
        (["--output", str(path)], f"{path}: the file exists; --force replaces it"),
        (["--output", "report.html"], "report.html: cannot be written as .html"),
    ):
        assert cli.main(["data", str(path), *words]) == 2
        (error,) = (line for line in capsys.readouterr().err.splitlines() if " INFO " not in line)
        assert problem in error


STILL = {"optimizer": {"type": "sgd", "lr": 1e-9}, "validation_metric": "+accuracy", "trackers": []}
"""A trainer that changes nothing."""


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.levelno == logging.WARNING]


def test_a_short_run_says_before_and_after_what_to_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"tokens": [f"word{row}", "."], "label": "bad" if row % 3 else "good"} for row in range(12)]
    others = [{**row, "tokens": [*row["tokens"], "!"]} for row in rows]
    given = {"train_data_path": rows, "validation_data_path": others}
    train({**VALUES, "trainer": {"num_epochs": 2, **STILL}}, tmp_path / "run", datasets=given)
    before, after = warnings(caplog)
    remedy = (
        "raise trainer.num_epochs (now 2) or lower data_loader.batch_size (now 4); "
        "the config small/classification is made for small data"
    )
    assert before.startswith("only 6 optimizer steps in all, for 12 training examples, and a model needs")
    assert before.endswith(remedy)
    assert after.startswith("validation accuracy ")
    assert "always giving the most frequent label has 66.67: the model has learned nothing" in after
    assert after.endswith(remedy)


def test_a_tagger_that_finds_no_span(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    span = {"tokens": ["Bank", "of", "Oslo", "Ltd", "paid"], "tags": ["B-ORG", "I-ORG", "I-ORG", "L-ORG", "O"]}
    config: dict[str, Any] = {
        **VALUES,
        "dataset_reader": {**SPANS, "tag_scheme": "BIOUL"},
        "model": {**TAGGER, "type": "crf_tagger"},
        "trainer": {"num_epochs": 1, **STILL, "validation_metric": "+f1"},
    }
    given = {
        "train_data_path": [span] * 4,
        "validation_data_path": [{**span, "tokens": ["Mill", "of", "Bergen", "Ltd", "sold"]}],
    }
    train(config, tmp_path / "run", datasets=given)
    before, after = warnings(caplog)
    assert "small/tagging" in before
    assert after.startswith("validation f1 0.00 in the best epoch: the model has learned nothing useful; raise")
    config["model"] |= {"type": "simple_tagger", "tag_scheme": None}  # scores tag by tag what its reader scores by span
    config["trainer"]["validation_metric"] = "+accuracy"
    train(config, tmp_path / "tags", datasets=given)
    assert warnings(caplog)[-1].startswith("validation accuracy ")
