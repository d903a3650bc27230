"""What holds for every reader: the examples of a sample file, whatever its line ends and compression; its errors."""

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest

from elmo_tasks.config import to_json
from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.data_readers.reader import PLACE_FEATURES
from elmo_tasks.data_readers.rows import ROW_TASKS
from elmo_tasks.data_readers.sources import features_of
from tests.data_readers.readers import (
    HERE,
    NER,
    ROWS,
    SAMPLES,
    SNLI,
    SQUAD,
    Settings,
    build,
    problem,
    read,
    sample,
    sample_examples,
    write,
    write_hub,
)


def test_every_reader_and_every_task_of_rows_has_a_sample() -> None:
    own = {name for name, kind in DatasetReaderConfig.choices().items() if kind.__module__.startswith("elmo_tasks.")}
    assert own == {"hub", *(settings["type"] for settings in SAMPLES.values())}
    assert ROWS.keys() == ROW_TASKS.keys()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_examples_of_a_sample(name: str) -> None:
    reader = build(SAMPLES[name])
    dataset = reader.read(HERE / "samples" / name)
    assert dataset.to_list() == sample_examples(name)
    assert dataset.features == features_of({**reader.task.features, **PLACE_FEATURES})


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "CR LF": lambda content: content.replace(b"\n", b"\r\n"),
    "CR": lambda content: content.replace(b"\n", b"\r"),
    "byte order mark": lambda content: "\ufeff".encode() + content,
    "no end of the last line": lambda content: content.rstrip(b"\n"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_form_of_a_file_does_not_matter(name: str, tmp_path: Path) -> None:
    for form, change in FORMS.items():
        path = write(tmp_path / form / name, change(sample(name).encode()))
        assert read(path, SAMPLES[name]) == sample_examples(name), form
    path = write(tmp_path / f"packed.{name}.xz", lzma.compress(sample(name).encode()))
    assert read(path, SAMPLES[name]) == sample_examples(name)
    unpacked = write(tmp_path / name, sample(name))
    assert build(SAMPLES[name]).files(tmp_path / f"{name}.xz")[0] == unpacked
    assert read(tmp_path / f"{name}.xz", SAMPLES[name]) == sample_examples(name)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_not_a_file_of_this_format(name: str, tmp_path: Path) -> None:
    settings, path = SAMPLES[name], tmp_path / name
    assert problem(path, settings).startswith(": no such file")
    assert problem("/dev/null", settings).startswith(": is a pipe or a device, and this file is read twice; expected")
    for text in ("", "\n\n"):
        expected = "EOF while parsing a value at column 0; " if settings["type"] == "squad" else ": has no example"
        assert expected in problem(write(path, text), settings)
    write(path, sample(name).encode() + b"\n\n\xe9")
    lines = path.read_bytes().count(b"\n") + 1
    settings = settings | ({"encoding": "utf-8"} if settings["type"] == "delimited" else {})
    assert problem(path, settings).startswith(f":{lines}: byte 0xe9 at column 1 is not UTF-8")
    packed = write(tmp_path / "packed.xz", lzma.compress(sample(name).encode())[:-40])
    assert ": the compressed file is damaged or cut short" in problem(packed, settings)


@pytest.mark.parametrize(
    ("name", "numbered"),  # what is numbered through all files
    [("coref_conll2012.conll", None), ("srl_conll2012.conll", "sentence"), ("predicates.conll", "document")],
)
def test_a_folder_is_one_data_set_whose_content_counts(name: str, numbered: str | None, tmp_path: Path) -> None:
    settings, text = SAMPLES[name], sample(name)
    write(tmp_path / "b" / "2.v4_gold_conll", text)
    write(tmp_path / "a" / "1.v4_gold_conll", text.replace("Mary", "Nora"))
    first, second = (read(tmp_path / folder, settings) for folder in ("a", "b"))
    assert second == sample_examples(name)
    for example in second:
        example["file"] = 1
        if numbered:
            example[numbered] += first[-1][numbered] + 1
    assert read(tmp_path, settings) == [*first, *second]
    write(tmp_path / "b" / "2.v4_gold_conll", text.replace("Mary", "Vera"))
    assert "Vera" in str(read(tmp_path, settings)[len(first) :])


@pytest.mark.parametrize("name", SAMPLES)
def test_memory_gives_what_the_file_gave(name: str) -> None:
    reader = build(SAMPLES[name])
    from_file = reader.read(HERE / "samples" / name)
    columns = sorted(set(reader.task.features) - reader.task.optional)
    expected = from_file.select_columns(columns).to_list()
    for given in (from_file, from_file.to_list(), expected):
        found = reader.read(given)
        assert found.select_columns(columns).to_list() == expected
        assert found.features == from_file.features
        assert found["line"][:] == list(range(len(found)))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_config_is_its_json(name: str) -> None:
    config = build(SAMPLES[name]).config
    assert DatasetReaderConfig.model_validate_json(json.dumps(to_json(config))) == config


def ner_rows() -> list[dict[str, Any]]:
    examples = sample_examples("conll2003.txt")
    rows = [{"tokens": example["tokens"], "ner_tags": example["tags"]} for example in examples]
    return [*rows[:2], {"tokens": ["-DOCSTART-"], "ner_tags": ["O"]}, *rows[2:]]


def squad_rows() -> list[dict[str, Any]]:
    """The hub has the texts and the starts of answers as two lists."""
    articles = json.loads(sample("squad.json"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    rows = [{**question, "context": paragraph["context"]} for paragraph in paragraphs for question in paragraph["qas"]]
    keys = ("text", "answer_start")
    return [{**row, "answers": {key: [answer[key] for answer in row["answers"]] for key in keys}} for row in rows]


def snli_rows() -> list[dict[str, Any]]:
    names = {"gold_label": "label", "sentence1": "premise", "sentence2": "hypothesis"}
    pairs = [json.loads(line) for line in sample("snli.jsonl").splitlines()]
    return [{names[key]: value for key, value in pair.items()} for pair in pairs]


HUB: dict[str, tuple[Settings, Callable[[], list[dict[str, Any]]]]] = {
    "conll2003.txt": (NER, ner_rows),
    "squad.json": (SQUAD, squad_rows),
    "snli.jsonl": (SNLI, snli_rows),
}


@pytest.mark.parametrize("name", [*HUB, *(f"{task}.jsonl" for task in ROWS)])
def test_a_hub_data_set_gives_what_the_file_gives(name: str, tmp_path: Path) -> None:
    if name in HUB:
        settings, rows = HUB[name]
        source = write_hub(tmp_path / "hub", rows())
    else:
        settings = SAMPLES[name] | {"type": "hub"}
        given = [json.loads(line) for line in sample(name).splitlines() if line]
        source = write_hub(tmp_path / "hub", [row | ({"label": "true"} if "label" in row else {}) for row in given])
    numbers = {"line", "file"} if name in HUB else {"line", "file", "id", "document"}
    found, expected = (
        [{key: value for key, value in example.items() if key not in numbers} for example in examples]
        for examples in (read(source, settings), sample_examples(name))
    )
    assert found == expected
    assert read(source, settings)[0]["line"] in (None, 0)


@pytest.mark.parametrize("name", ["sst.txt", "conllu.conllu", "srl_conll2005.txt", "coref_conll2012.conll"])
def test_the_hub_is_not_asked_for_a_reader_of_files(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "load_dataset", None)
    reader = type(build(SAMPLES[name])).__name__
    assert problem("hub:owner/it", SAMPLES[name]) == f": {reader} only reads files; give the path of a file"
