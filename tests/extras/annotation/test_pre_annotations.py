"""Predictions as annotation tools import them: spans, labels of whole texts, certainties; and back to a model."""

import json
from pathlib import Path
from typing import Any

import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.data_readers import Parsing
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.annotation.pre_annotations import brat_files, json_content, pre_annotate
from elmo_tasks.extras.annotation.spans import SpansConfig, SpansReader
from elmo_tasks.extras.raw_text.tokenizers import UnicodeTokenizer
from elmo_tasks.predictors.classifier import ClassifierPredictor
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.tasks import Classification, MultiLabel, Tagging
from elmo_tasks.text.tag_schemes import Span
from tests.extras.annotation.annotation_exports import EXPORTS, TEXTS, brat, document, label_studio, lines, places
from tests.predictors.stub_models import CapitalTagger, StubModel, vocabulary


class Names(CapitalTagger):
    def spans(self, example: dict[str, Any]) -> list[Span]:
        return [span._replace(label="full name") for span in super().spans(example)]


class Rated(StubModel):
    task = Classification()

    def prediction(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"label": "good", "probabilities": {"good": 0.75, "bad": 0.25}}


class Topics(StubModel):
    task = MultiLabel()

    def prediction(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"labels": ["good"], "probabilities": {"good": 0.9, "short": 0.4, "bad": 0.05}}


class PartsOfSpeech(CapitalTagger):
    task = Tagging()


TAGGER = TaggerPredictor(Names(), vocabulary("O"), tokenizer=UnicodeTokenizer())


def label_studio_tasks(reader: SpansReader, path: Path) -> list[dict[str, Any]]:
    """The tasks with the predictions of the tagger."""
    content = json_content("label-studio", pre_annotate("label-studio", TAGGER, reader, str(path)), reader, "m")
    tasks: list[dict[str, Any]] = json.loads(content)
    return tasks


def test_a_prediction_of_label_studio_is_in_its_units(tmp_path: Path) -> None:
    path = label_studio(tmp_path, "utf-16-le", 2)
    reader = SpansConfig.model_validate({"offsets": "utf-16", "columns": {"label": "names"}}).build()
    tasks = label_studio_tasks(reader, path)
    assert [each["data"] for each in tasks] == [each["data"] for each in json.loads(path.read_text(encoding="utf-8"))]
    (prediction,) = tasks[1]["predictions"]
    # The stub's probability of a tag is 1 / (1 + the length of its token); the longest one is an emoji of a family.
    assert (prediction["model_version"], prediction["score"]) == ("m", 0.2)
    assert prediction["result"] == [
        {"id": "0", "from_name": "names", "to_name": "text", "type": "labels", "score": 0.2,
         "value": {"start": 21, "end": 30, "text": "Tavo\nLund", "labels": ["full name"]}},
    ]  # fmt: skip


def test_the_score_of_a_text_is_that_of_its_least_certain_tag(tmp_path: Path) -> None:
    sentences = ["Tavo saw Constantinople.", "He left."]
    texts = ["\n\n".join(each) for each in (sentences, sentences[::-1])]
    tasks = label_studio_tasks(SpansConfig().build(), lines(tmp_path / "a.jsonl", [{"text": text} for text in texts]))
    assert [task["predictions"][0]["score"] for task in tasks] == pytest.approx([1 / 15] * 2, abs=1e-6)


def test_tasks_of_label_studio_stay_and_their_names_are_used(tmp_path: Path) -> None:
    def given(*names: str) -> list[dict[str, Any]]:
        results = [
            {"from_name": name, "to_name": "page", "type": "labels", "value": {"start": 0, "end": 4, "labels": ["X"]}}
            for name in names
        ]
        annotations = [{"id": 10**19, "result": results, "completed_by": 3}]
        old = {"model_version": "old", "result": []}
        more = {"id": 10**18, "meta": {"x": 0.10}, "predictions": [old], "inner_id": 1}
        return [{"data": {"body": "Mira left.", "n": "007"}, "annotations": annotations, **more}] * 2

    for names, chosen in ((("ner",), None), (("ner", "pos"), "pos"), (("ner",), "new")):
        columns = {"text": "body", **({"label": chosen} if chosen else {})}
        reader = SpansConfig.model_validate({"columns": columns}).build()
        path = document(tmp_path / "a.json", given(*names))
        for task, before in zip(label_studio_tasks(reader, path), given(*names), strict=True):
            (old, new) = task["predictions"]
            assert {**task, "predictions": [old]} == before
            (result,) = new["result"]
            expected = "text" if chosen == "new" else "page"
            assert (result["from_name"], result["to_name"]) == (chosen or "ner", expected)
    reader = SpansConfig.model_validate({"columns": {"text": "body"}}).build()
    document(path, given("ner", "pos"))
    with pytest.raises(ElmoTasksError, match=r"controls 'ner' and 'pos'; set dataset_reader\.columns\.label to one"):
        pre_annotate("label-studio", TAGGER, reader, str(path))
    document(path, [{"data": {"body": "<p>Mira</p>"}, "annotations": [{"result": [{"type": "hypertextlabels", "value": {
        "start": "/p[1]", "globalOffsets": {"start": 0, "end": 4}, "hypertextlabels": ["X"]}}]}]}])  # fmt: skip
    with pytest.raises(ElmoTasksError, match=r"record 1: regions of pages \(HTML\) cannot be written for Label Studio"):
        pre_annotate("label-studio", TAGGER, reader, str(path))


@pytest.mark.parametrize("answer", ["accept", "reject", "ignore", "Paris"])
def test_decisions_of_prodigy_are_not_of_new_predictions(answer: str, tmp_path: Path) -> None:
    decision = {"answer": answer, "_view_id": "ner_manual", "_annotator_id": "a", "_session_id": "a", "_timestamp": 1}
    given = {"text": "Tavo left.", "_input_hash": -1, "meta": {"x": 1}}
    path, reader = lines(tmp_path / "a.jsonl", [{**given, "spans": [], **decision}]), SpansConfig().build()
    content = json_content("doccano", pre_annotate("doccano", TAGGER, reader, str(path)), reader, "m")
    kept = decision if answer == "Paris" else {}
    assert json.loads(content) == {**given, "label": [[0, 4, "full name"]], **kept}


def test_brat_has_the_probabilities_as_notes(tmp_path: Path) -> None:
    path = brat(tmp_path)
    files = brat_files(pre_annotate("brat", TAGGER, SpansConfig().build(), str(path)))
    assert sorted(files) == sorted(each.name for each in path.iterdir())
    assert files["doc1.ann"] == b"T1\tfull_name 17 21;22 26\tTavo Lund\n#1\tAnnotatorNotes T1\t0.2\n"
    texts = lines(tmp_path / "a.jsonl", [{"text": "No.", "file": name} for name in ("../up", "up", "")])
    files = brat_files(pre_annotate("brat", TAGGER, SpansConfig().build(), str(texts)))
    assert list(files) == ["up.txt", "up.ann", "00002.txt", "00002.ann", "00003.txt", "00003.ann"]


@pytest.mark.parametrize(
    ("file", "own"),
    [(r"C:\texts\a.html", "a.html"), ("a:1?", "a_1_"), ("x. .", "x"), ("nul", "_nul"), ("COM1.x", "_COM1.x")],
)
def test_brat_has_names_that_every_system_allows(file: str, own: str, tmp_path: Path) -> None:
    texts = lines(tmp_path / "a.jsonl", [{"text": "No.", "file": file}])
    files = brat_files(pre_annotate("brat", TAGGER, SpansConfig().build(), str(texts)))
    assert list(files) == [f"{own}.txt", f"{own}.ann"]


@pytest.mark.parametrize(("model", "certainty"), [(Rated(), 0.75), (Topics(), 0.6)])
def test_labels_of_lines_of_text(model: StubModel, certainty: float, tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("Warm soup.\n\nCold rain.\n")
    reader = SpansConfig.model_validate({"task": "classification"}).build()
    for tool in ("doccano", "label-studio"):
        found = pre_annotate(tool, ClassifierPredictor(model, vocabulary("O")), reader, str(path))
        assert [min(each.chances) for each in found] == [certainty, certainty]
        content = json_content(tool, found, reader, "m").replace(b"predictions", b"annotations")
        written = tmp_path / f"{tool}.json"
        written.write_bytes(content)
        assert [(text.text, text.labels) for text in reader.texts(written, Parsing())] == [
            ("Warm soup.", ["good"]), ("Cold rain.", ["good"])]  # fmt: skip


@pytest.mark.parametrize(("tool", "model"), [("brat", Rated()), ("doccano", PartsOfSpeech())])
def test_tools_have_a_place_for_spans_or_labels(tool: str, model: StubModel, tmp_path: Path) -> None:
    expected = f"expected one that finds spans{', or the labels of texts' if tool == 'doccano' else ''}"
    with pytest.raises(ElmoTasksError) as caught:
        pre_annotate(tool, TaggerPredictor(model, vocabulary("O")), SpansConfig().build(), "a.txt")
    assert str(caught.value) == f"--output-format {tool}: the model learned from {model.task.summary}; {expected}"


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
        for tool, name in FILES.items() if export is label_studio else [("doccano", FILES["doccano"])]:
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
