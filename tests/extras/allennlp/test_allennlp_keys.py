"""Configs of AllenNLP's: each key that differs is answered from the table that the site shows."""

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.errors import ConfigError
from elmo_tasks.extras.allennlp.allennlp_keys import ROWS
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.runs.experiment_config import ExperimentConfig
from tests.extras.allennlp.archives import NER
from tests.extras.allennlp.heads import MAKERS, make


def problems_of(config: dict[str, Any], folder: Path) -> list[str]:
    (folder / "x.jsonnet").write_text(json.dumps(config, indent=2))
    with pytest.raises(ConfigError) as caught:
        load_config(folder / "x.jsonnet", ExperimentConfig)
    return str(caught.value).splitlines()


def test_keys_of_allennlp_s_are_answered(tmp_path: Path) -> None:
    found = problems_of(NER, tmp_path)
    said = dict(line.partition(": ")[2].split(": ", 1) for line in found)
    assert said["dataset_reader.coding_scheme"] == (
        "AllenNLP's key; here: dataset_reader.tag_scheme and model.tag_scheme; BIO is IOB2"
    )
    assert said["model.encoder.type"].startswith("AllenNLP's 'lstm' is 'stacked_bilstm' here. Known types: ")
    assert said["trainer.cuda_device"] == "AllenNLP's key; here: trainer.device"
    assert said["model.text_field_embedder"] == "AllenNLP's key; here: model.embedder"
    assert said["iterator"].startswith("AllenNLP's key, not needed: ")
    # What is the same here is not named.
    same = {"dataset_reader.type", "train_data_path", "model.type", "model.dropout", "model.encoder.bidirectional"}
    assert not {*same, "trainer.num_epochs", "trainer.patience", "trainer.grad_norm"} & said.keys()


@pytest.mark.parametrize("kind", MAKERS)
def test_each_unknown_key_of_each_head_has_an_answer(kind: str, tmp_path: Path) -> None:
    config = {**NER, **make(kind).config}
    config["model"] = {**config["model"], "text_field_embedder": NER["model"]["text_field_embedder"]}
    text = "\n".join(problems_of(config, tmp_path))
    assert "unknown key" not in text
    assert "Did you mean" not in text


def test_keys_that_nobody_has_get_the_known_ones(tmp_path: Path) -> None:
    """Also in a config that has keys of AllenNLP's."""
    text = "\n".join(problems_of({**NER, "trainer": {"x": 3, "epochs": 3}}, tmp_path))
    assert "trainer.epochs: unknown key. Did you mean 'num_epochs'?" in text
    assert "trainer.x: unknown key. Known keys: " in text


def test_the_names_that_the_table_gives_are_those_of_parts() -> None:
    names = {row.old.partition(":")[0]: {*row.values.values()} for row in ROWS if row.values}
    assert names["`dataset_reader.type`"] <= DatasetReaderConfig.choices().keys()
    assert names["`encoder.type`"] <= EncoderConfig.choices().keys()


def test_a_single_key_of_allennlp_s_is_answered_too() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config("small/tagging", ExperimentConfig, ["dataset_reader.coding_scheme=BIO", "model.encoder.type=lstm"])
    assert str(caught.value).splitlines() == [
        "--set dataset_reader.coding_scheme: AllenNLP's key; here: dataset_reader.tag_scheme and model.tag_scheme; "
        "BIO is IOB2",
        "--set model.encoder.type: AllenNLP's 'lstm' is 'stacked_bilstm' here. Known types: "
        + ", ".join(EncoderConfig.choices()),
    ]
