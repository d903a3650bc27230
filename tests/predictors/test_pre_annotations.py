"""Predictions as annotation tools import them: what is read again is what was predicted."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers import SpansConfig
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.predictors.classifier import ClassifierPredictor
from elmo_tasks.predictors.pre_annotations import brat_files, check_task, docbin, json_content, pre_annotate
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.tasks import Classification, MultiLabel, Tagging, Task, TextPairs
from elmo_tasks.text.tag_schemes import Span, spans_of_tags
from elmo_tasks.text.tokenizers import UnicodeTokenizer
from tests.data_readers.annotation_exports import (
    EXPORTS,
    TEXTS,
    brat,
    doccano_relations,
    document,
    label_studio,
    lines,
    places,
    read_docbin,
)
from tests.predictors.stub_models import SpanModel, StubModel, vocabulary

CONFIG = SpansConfig(tokenizer="unicode")
GOLD = [(text, [each[:3] for each in places(text, spans)]) for text, spans in TEXTS]
"""The texts with their spans in characters."""


class Remembered(SpanModel):
    """Finds the spans that a reader has found."""

    task = Tagging("IOB2")

    def __init__(self, examples: Iterable[Any]) -> None:
        super().__init__()
        self._tags = {tuple(each["tokens"]): each["tags"] for each in examples}

    def spans(self, example: dict[str, Any]) -> list[Span]:
        return spans_of_tags(self._tags[tuple(example["tokens"])])


def predictor(path: Path) -> TaggerPredictor:
    examples = CONFIG.build().read(path).to_list()
    return TaggerPredictor(Remembered(examples), vocabulary("O", "B-PER"), tokenizer=UnicodeTokenizer())


def content(tool: str, path: Path, config: SpansConfig = CONFIG) -> Any:
    """What is written for the file of a tool, as JSON."""
    reader = config.build()
    text = json_content(tool, pre_annotate(predictor(path), reader, str(path)), reader, "runs/names")
    return [json.loads(line) for line in text.splitlines()] if tool == "doccano" else json.loads(text)


def as_annotations(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Label Studio's tasks after somebody has accepted the predictions."""
    return [{**task, "annotations": task["predictions"], "predictions": []} for task in tasks]


@pytest.mark.parametrize("export", EXPORTS, ids=lambda export: export.__name__)
def test_predictions_go_back_into_every_tool(export: Callable[[Path], Path], tmp_path: Path) -> None:
    path = export(tmp_path)
    found = pre_annotate(predictor(path), CONFIG.build(), str(path))
    (tmp_path / "back.spacy").write_bytes(docbin(found, "back.spacy"))
    (tmp_path / "back").mkdir()
    for name, text in brat_files(found).items():
        (tmp_path / "back" / name).write_bytes(text.encode())
    again = [
        lines(tmp_path / "back.jsonl", content("doccano", path)),
        document(tmp_path / "back_tasks.json", as_annotations(content("label-studio", path))),
        document(tmp_path / "back_pairs.json", content("spacy", path)),
        tmp_path / "back.spacy",
        tmp_path / "back",
    ]
    for file in again:
        texts = list(CONFIG.build().texts(file))[: len(GOLD)]
        assert [(each.text, [span[:3] for span in each.spans]) for each in texts] == GOLD, file
    cut = [[(span.text, span.label_) for span in doc.ents] for doc in read_docbin(tmp_path / "back.spacy")[: len(GOLD)]]
    assert cut == [spans for _, spans in TEXTS]


def test_the_own_fields_of_doccano_stay(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [{"id": 7, "text": "Mira left.", "label": [[0, 4, "PER"]], "Comments": ["x"]}])
    assert content("doccano", path) == [{"id": 7, "text": "Mira left.", "Comments": ["x"], "label": [[0, 4, "PER"]]}]
    (task,) = content("label-studio", path)
    assert task["data"] == {"id": 7, "text": "Mira left."}
    row = content("doccano", doccano_relations(tmp_path))[1]
    assert row == {
        "id": 7,
        "data": TEXTS[1][0],
        "entities": [{"id": 0, "start_offset": 17, "end_offset": 26, "label": "PER"}],
        "relations": [],
    }


def test_a_task_of_label_studio_gets_a_prediction_in_its_units(tmp_path: Path) -> None:
    path = label_studio(tmp_path, "utf-16-le", 2)
    config = SpansConfig(tokenizer="unicode", offsets="utf-16")
    given = json.loads(path.read_text(encoding="utf-8"))
    examples = config.build().read(path)
    tagger = TaggerPredictor(Remembered(examples), vocabulary("O", "B-PER"), tokenizer=UnicodeTokenizer())
    reader = config.build()
    tasks = json.loads(json_content("label-studio", pre_annotate(tagger, reader, str(path)), reader, "runs/names"))
    assert [{**task, "predictions": []} for task in tasks] == given
    (prediction,) = tasks[1]["predictions"]
    # The stub's probability of a tag is 1 / (1 + the length of its token).
    assert (prediction["model_version"], prediction["score"]) == ("runs/names", 0.2)
    (result,) = prediction["result"]
    assert result == {
        "id": "0",
        "from_name": "names",
        "to_name": "text",
        "type": "labels",
        "value": {"start": 21, "end": 30, "text": "Tavo\nLund", "labels": ["PER"]},
        "score": 0.2,
    }


def test_brat_has_the_probabilities_as_notes(tmp_path: Path) -> None:
    path = brat(tmp_path)
    files = brat_files(pre_annotate(predictor(path), CONFIG.build(), str(path)))
    assert sorted(files) == sorted(each.name for each in path.iterdir())
    assert files["doc1.txt"] == TEXTS[1][0]
    assert files["doc1.ann"] == "T1\tPER 17 21;22 26\tTavo Lund\n#1\tAnnotatorNotes T1\t0.2\n"


def test_lines_of_plain_text_and_labels_of_texts(tmp_path: Path) -> None:
    class Classifier(StubModel):
        task = Classification()

        def prediction(self, example: dict[str, Any]) -> dict[str, Any]:
            return {"label": "good", "probabilities": {"good": 0.75, "bad": 0.25}}

    path = tmp_path / "texts.txt"
    path.write_text("Warm soup.\n\nCold rain.\n")
    reader = SpansConfig().build()
    found = pre_annotate(ClassifierPredictor(Classifier(), vocabulary("O")), reader, str(path))
    assert [each.certainty for each in found] == [0.75, 0.75]
    written = {tool: json_content(tool, found, reader, "m") for tool in ("doccano", "label-studio", "spacy")}
    assert json.loads(written["doccano"].splitlines()[1]) == {"text": "Cold rain.", "label": ["good"]}
    (result,) = json.loads(written["label-studio"])[0]["predictions"][0]["result"]
    assert (result["type"], result["value"], result["score"]) == ("choices", {"choices": ["good"]}, 0.75)
    assert json.loads(written["spacy"])[0] == ["Warm soup.", {"cats": {"good": 0.75}}]
    path.write_bytes(written["label-studio"].replace("predictions", "annotations").encode())
    labels = SpansConfig.model_validate({"type": "spans", "task": "classification"}).build().read(path)["label"]
    assert list(labels) == ["good", "good"]


@pytest.mark.parametrize(
    ("tool", "task", "expected"),
    [
        ("brat", Classification(), "spans"),
        ("doccano", Tagging(), "spans, or the labels of texts"),
        ("spacy", TextPairs(), "spans, or the labels of texts"),
    ],
)
def test_tools_have_a_place_for_spans_or_labels(tool: str, task: Task, expected: str) -> None:
    with pytest.raises(ElmoTasksError) as caught:
        check_task(tool, task)
    problem = f"the model learned from {task.summary}; expected one that finds {expected}"
    assert str(caught.value) == f"--output-format {tool}: {problem}"
    check_task(tool, Tagging("IOB1"))


def test_the_certainty_of_a_set_is_that_of_its_least_clear_label(tmp_path: Path) -> None:
    class Topics(StubModel):
        task = MultiLabel()

        def prediction(self, example: dict[str, Any]) -> dict[str, Any]:
            return {"labels": ["good"], "probabilities": {"good": 0.9, "short": 0.4, "bad": 0.05}}

    path = tmp_path / "texts.txt"
    path.write_text("Warm soup.\n")
    (found,) = pre_annotate(ClassifierPredictor(Topics(), vocabulary("O")), SpansConfig().build(), str(path))
    assert (found.labels, found.certainty) == ({"good": 0.9}, 0.6)
