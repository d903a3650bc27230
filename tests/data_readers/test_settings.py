"""The settings of readers: the task that they mean, which are refused, and those of the documentation."""

import json
import re
from pathlib import Path

import _jsonnet
import pydantic
import pytest

from elmo_tasks.config import describe, load_config
from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.errors import ConfigError
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.tasks import Classification, Reading
from tests.data_readers.readers import (
    CONLLU,
    LINES,
    NER,
    STARS,
    TABLE,
    TEXTS,
    Settings,
    build,
    write,
)


def test_settings_are_described_and_named_where_another_reader_does_not_fit() -> None:
    assert 'task: "classification"' in describe(build(STARS).config)
    assert build(TABLE).config.can_read(Classification())
    assert not build(TABLE).config.can_read(Reading())  # only with JSON or the hub


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (TEXTS | {"task": "taging"}, "task: expected one of .*, got \"taging\". Did you mean 'tagging'?"),
        (TABLE | {"columns": {}}, "without a header row they have numbers; expected those of tokens, tags"),
        (TABLE | {"columns": {"text": 0}}, "'text' is not a column of this task; expected: tokens, tags"),
        (LINES | {"task": "coreference", "columns": {"text": "a"}},
         "'text' is not a column of this task; expected: sentences, clusters; possible: speakers, genre, document"),
        (TEXTS | {"tag_scheme": "IOB2"}, "tag_scheme is for the task 'tagging'"),
        (TABLE | {"no_label": ["-"]}, "no_label is for the tasks 'classification' and 'text_pairs'"),
        (TABLE | {"no_label": []}, "no_label is for the tasks 'classification' and 'text_pairs'"),
        (TEXTS | {"no_answer": True}, "no_answer is for the task 'reading'"),
        (TEXTS | {"tokenizer": "unicod"}, "tokenizer: expected one of .* Did you mean 'unicode'?"),
        (NER | {"columns": [1, 1]}, "words and tags cannot both be in column 1"),
        ({"type": "predicates", "source": CONLLU}, "unknown type"),
    ],
)  # fmt: skip
def test_settings(settings: Settings, expected: str, tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", json.dumps({"dataset_reader": settings}))
    with pytest.raises(ConfigError, match=expected):
        load_config(path, ExperimentConfig)
    with pytest.raises(pydantic.ValidationError):
        DatasetReaderConfig.model_validate_json(json.dumps(settings))


REPOSITORY = Path(__file__).parents[2]
GUIDE = (REPOSITORY / "docs" / "own_data.md").read_text(encoding="utf-8")
FORMATS = (REPOSITORY / "docs" / "reference" / "data.md").read_text(encoding="utf-8")
READERS = re.findall(r"```jsonnet\n(\{ type.*?)```", FORMATS, re.DOTALL)
FILES = re.findall(r"`([a-z]+\.[a-z]+)`:\n\n```\w*\n(.*?)```.*?```jsonnet\n(.*?)```", FORMATS, re.DOTALL)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_is_a_config(reader: str) -> None:
    DatasetReaderConfig.model_validate_json(_jsonnet.evaluate_snippet("guide", reader))


def test_the_files_are_read(tmp_path: Path) -> None:
    found = {}
    for name, text, reader in FILES:
        (tmp_path / name).write_text(text, encoding="utf-8")
        config = DatasetReaderConfig.model_validate_json(_jsonnet.evaluate_snippet("guide", reader))
        found[name] = config.build().read(tmp_path / name).to_list()
    assert [example["label"] for example in found["reviews.csv"]] == ["5", "1"]
    assert [example["tags"] for example in found["names.tsv"]] == [["U-PER", "O"], ["U-LOC"]]
    assert [example["label"] for example in found["pairs.jsonl"]] == ["true", "false"]
    assert found["pairs.jsonl"][0]["premise"] == found["pairs.jsonl"][1]["premise"] == ["Is", "it", "open", "?"]
    assert len(found) == 3


def test_the_config_is_accepted(tmp_path: Path) -> None:
    (text,) = re.findall(r"```jsonnet\n((?:local|\(import).*?)```", GUIDE, re.DOTALL)
    path = tmp_path / "reviews.jsonnet"
    path.write_text(text, encoding="utf-8")
    config = load_config(path, ExperimentConfig)
    assert config.dataset_reader == config.evaluation_reader()
    assert json.loads(config.dataset_reader.model_dump_json())["columns"] == {"text": "review", "label": "stars"}


def test_the_regular_expression_is_one() -> None:
    (choice,) = re.findall(r"- `(\{ type: 'regex'.*?\})`", FORMATS)
    reader = f"{{ type: 'jsonl', task: 'classification', tokenizer: {choice} }}"
    config = DatasetReaderConfig.model_validate_json(_jsonnet.evaluate_snippet("guide", reader))
    tokens = [token.text for token in config.build().tokenizer.words("Käse, 3 Mal")]
    assert tokens == ["Käse", ",", "3", "Mal"]
