"""From an annotation tool to a model and back."""

import json
from pathlib import Path
from typing import Any

import pytest

import elmo_tasks
from elmo_tasks import cli
from tests.data_readers.annotation_exports import EXPORTS, TEXTS, label_studio, places, read_docbin


def test_predictions_for_annotation_tools(short_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, run = tmp_path / "texts.jsonl", str(short_run)
    texts = ["Angela Merkel visited Berlin. It rained.", "Nothing.", "Siemens 😀 closed a plant in Oslo."]
    source.write_text("".join(json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(texts)))
    assert cli.main(["predict", run, str(source)]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    spans: list[list[Any]] = [[] for _ in texts]
    certainty = [1.0] * len(texts)
    for result in results:
        spans[result["id"]] += [[each["start_char"], each["end_char"], each["label"]] for each in result["spans"]]
        certainty[result["id"]] = min(certainty[result["id"]], *result["probabilities"])

    command = ["predict", run, str(source), "--output-format"]
    assert cli.main([*command, "doccano"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [{"id": number, "text": texts[number], "label": spans[number]} for number in range(len(texts))]
    assert cli.main([*command, "doccano", "--least-certain", "2"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in rows] == sorted(range(len(texts)), key=lambda number: certainty[number])[:2]

    target = tmp_path / "out.json"
    assert cli.main([*command, "label-studio", "--output", str(target)]) == 0
    predictions = [task["predictions"][0] for task in json.loads(target.read_text())]
    assert [each["score"] for each in predictions] == certainty
    assert {each["model_version"] for each in predictions} == {run}
    assert cli.main([*command, "spacy", "--output", str(target), "--force"]) == 0
    assert json.loads(target.read_text()) == [[text, {"entities": own}] for text, own in zip(texts, spans, strict=True)]
    docbin = tmp_path / "out.spacy"
    assert cli.main([*command, "spacy", "--output", str(docbin)]) == 0
    documents = read_docbin(docbin)
    assert [[[each.start_char, each.end_char, each.label_] for each in doc.ents] for doc in documents] == spans

    folder = tmp_path / "brat"
    for output in (["--output", str(folder)], ["--output", f"{folder}/", "--force"]):
        assert cli.main([*command, "brat", *output]) == 0
    assert [(folder / f"0000{number}.txt").read_text() for number in (1, 2, 3)] == texts
    capsys.readouterr()
    new = "--output-format brat: expected a new folder as --output, or --force to write into one"
    one = "--output-format doccano: expected one input, got 2"
    least = "--least-certain is for annotation tools; expected --output-format doccano, label-studio, brat, spacy"
    for wrong, problem in (
        ([*command, "brat", "--output", str(folder)], new),
        ([*command, "brat"], new),
        (["predict", run, str(source), str(source), "--output-format", "doccano"], one),
        (["predict", run, str(source), "--least-certain", "2"], least),
        ([*command, "doccano", "--explain"], "--output-format doccano: expected no --explain"),
        ([*command, "spacy", "--format", "text"], "--output-format spacy: expected no --format"),
        (
            [*command, "label-studio", "--output", "a.csv"],
            "a.csv: cannot be written as .csv; expected a name that ends in .json",
        ),
    ):
        assert cli.main(wrong) == 2
        assert capsys.readouterr().err == f"error: {problem}\n"


def test_a_model_that_learns_from_an_export_and_annotates_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, run = label_studio(tmp_path), tmp_path / "run"
    config = {
        "dataset_reader": {"type": "spans", "tokenizer": "unicode"},
        "train_data_path": str(source),
        "validation_data_path": str(source),
        "model": {"type": "crf_tagger", "embedder": {"words": {"size": 16}}, "encoder": {"type": "pass_through"}},
        "data_loader": {"batch_size": 2},
        "trainer": {
            "num_epochs": 30,
            "trackers": [],
            "validation_metric": "+f1",
            "optimizer": {"type": "adam", "lr": 0.1},
        },
    }
    elmo_tasks.train(config, run)
    assert elmo_tasks.evaluate(run, source)["f1"] == 100
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert cli.main(["data", str(tmp_path / "config.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parts"]["training"]["labels"]["ORG"] == 1
    for export in EXPORTS:
        assert elmo_tasks.evaluate(run, export(tmp_path))["f1"] == 100, export
    assert cli.main(["predict", str(run), str(source), "--format", "reader"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5
    assert cli.main(["predict", str(run), str(source), "--output-format", "doccano"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = [[list(each[:3]) for each in places(text, spans)] for text, spans in TEXTS]
    assert [row["label"] for row in rows] == expected
