"""From an annotation tool to a model and back."""

import json
from pathlib import Path
from typing import Any

import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.data_readers import Parsing
from elmo_tasks.extras.annotation.spans import SpansConfig
from tests.extras.annotation.annotation_exports import EXPORTS, TEXTS, document, label_studio, places

FILES = {"doccano": "a.jsonl", "label-studio": "a.json", "brat": "brat", "spacy": "a.spacy"}
"""What predictions are written to."""


def test_options_of_annotation_tools(short_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, run, folder = tmp_path / "texts.jsonl", str(short_run), str(tmp_path / "brat")
    texts = ["Angela Merkel visited Berlin. It rained.", "Nothing.", "Siemens 😀 closed a plant in Oslo."]
    source.write_text("".join(json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(texts)))
    assert cli.main(["predict", run, str(source)]) == 0
    certainty = [1.0] * len(texts)
    for result in map(json.loads, capsys.readouterr().out.splitlines()):
        certainty[result["id"]] = min(certainty[result["id"]], *result["probabilities"])
    command = ["predict", run, str(source), "--output-format"]
    assert cli.main([*command, "doccano", "--least-certain", "2"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["id"] for row in rows] == sorted(range(len(texts)), key=lambda number: certainty[number])[:2]
    for output in (["--output", folder], ["--output", f"{folder}/", "--force"]):
        assert cli.main([*command, "brat", *output]) == 0
    capsys.readouterr()
    no, plain = "expected no", tmp_path / "plain"
    plain.touch()
    new = "--output-format brat: expected a new folder as --output, or --force to write into one"
    least = "--least-certain: expected an annotation tool's --output-format, JSON lines or a table"
    several = "--output-format spacy: reads one file or folder; got several files"
    ending = "a.csv: cannot be written as .csv; expected a name that ends in .json"
    for wrong, problem in (
        ([*command, "brat", "--output", folder], new),
        ([*command, "brat"], new),
        ([*command, "brat", "--output", "a.csv"], "a.csv: cannot be written as .csv; expected the name of a folder"),
        ([*command, "brat", "--output", str(plain), "--force"], f"{plain}: not a folder; expected one to write to"),
        (["predict", run, str(source), "--least-certain", "2", "--output", f"{folder}/"], least),
        ([*command, "spacy", "--explain"], f"--explain adds to results, not to data; {no} --output-format spacy"),
        ([*command, "spacy", "--format", "text"], f"--output-format spacy: {no} --format"),
        ([*command, "label-studio", "--output", "a.csv"], ending),
        ([*command[:-1], str(source), command[-1], "spacy"], several),
    ):
        assert cli.main(wrong) == 2
        assert capsys.readouterr().err == f"error: {problem}\n"


def test_from_a_tool_to_a_model_and_back(tmp_path: Path) -> None:
    source, run = label_studio(tmp_path), tmp_path / "run"
    config: dict[str, Any] = {
        "dataset_reader": {"type": "spans", "tokenizer": "unicode"},
        "train_data_path": str(source),
        "validation_data_path": str(source),
        "model": {"type": "crf_tagger", "embedder": {"words": {"size": 16}}, "encoder": {"type": "pass_through"}},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 30, "validation_metric": "+f1", "optimizer": {"type": "adam", "lr": 0.1}},
    }
    elmo_tasks.train(config, run)
    gold = [(text, [tuple(each) for each in places(text, spans)]) for text, spans in TEXTS]
    for number, export in enumerate(EXPORTS):
        given = export(tmp_path)
        assert elmo_tasks.evaluate(run, given)["f1"] == 100, export
        texts = [text for text in SpansConfig().build().texts(given, Parsing(needs_labels=False)) if not text.missing]
        expected = [(text.text, [span[:3] for span in text.spans]) for text in texts]
        assert expected == gold or export.__name__ in ("gliner", "webanno")  # whose texts are tokens
        for tool, name in FILES.items():
            written = tmp_path / f"{number} {name}"
            command = ["predict", str(run), str(given), "--output-format", tool, "--output", str(written)]
            assert cli.main(command) == 0
            if tool == "label-studio":
                tasks = json.loads(written.read_text(encoding="utf-8"))
                document(written, [{**each, "annotations": each["predictions"]} for each in tasks])
            found = [
                (text.text, [span[:3] for span in text.spans])
                for text in SpansConfig().build().texts(written, Parsing(needs_labels=False))
            ]
            assert found[: len(expected)] == expected, (export, tool)
