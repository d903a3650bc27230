"""The examples of docs/own_data.md and docs/reference/data.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import _jsonnet
import pytest

from elmo_tasks.config import load_config
from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.runs.experiment_config import ExperimentConfig

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


def test_the_configs_are_accepted(tmp_path: Path) -> None:
    texts = re.findall(r"```jsonnet\n((?:local|\(import).*?)```", GUIDE, re.DOTALL)
    assert len(texts) == 2
    for text in texts:
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
