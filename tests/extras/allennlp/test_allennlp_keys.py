"""Configs of AllenNLP's: each key that differs is answered from the table that the site shows."""

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.config.jsonnet import evaluate
from elmo_tasks.config.packaged import packaged_configs
from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.errors import ConfigError
from elmo_tasks.extras.allennlp.allennlp_keys import ROWS, is_allennlp
from elmo_tasks.modules.encoders import EncoderConfig
from elmo_tasks.runs.experiment_config import ExperimentConfig
from tests.extras.allennlp.archives import NER
from tests.extras.allennlp.heads import MAKERS, make


def problems_of(config: dict[str, Any], folder: Path) -> list[str]:
    (folder / "x.jsonnet").write_text(json.dumps(config, indent=2))
    with pytest.raises(ConfigError) as caught:
        load_config(folder / "x.jsonnet", ExperimentConfig)
    return str(caught.value).splitlines()


def test_a_config_of_allennlp_s_is_answered_key_by_key(tmp_path: Path) -> None:
    first, *found = problems_of(NER, tmp_path)
    assert first == (
        f"{tmp_path}/x.jsonnet: an AllenNLP config; `elmo-tasks import-allennlp` turns its archive into a run; to "
        "train a new one, change these keys (docs/from_allennlp.md):"
    )
    said = dict(line.partition(": ")[2].split(": ", 1) for line in found)
    assert said["dataset_reader.coding_scheme"] == (
        "AllenNLP's key; here: dataset_reader.tag_scheme and model.tag_scheme; BIO is IOB2"
    )
    assert said["model.encoder.input_size"] == "AllenNLP's key, not needed: sizes follow from the parts"
    assert said["model.encoder.type"] == "AllenNLP's 'lstm' is 'stacked_bilstm' here"
    assert said["trainer.cuda_device"] == "AllenNLP's key; here: trainer.device"
    assert said["iterator.batch_size"] == "AllenNLP's key; here: data_loader.batch_size, or batch_tokens"
    assert said["model.text_field_embedder.token_embedders.elmo"].startswith(
        "AllenNLP's key; here: model.embedder.elmo"
    )
    # What is the same here is not named.
    same = {"dataset_reader.type", "train_data_path", "model.type", "model.dropout", "model.encoder.bidirectional"}
    assert not {*same, "trainer.num_epochs", "trainer.patience", "trainer.grad_norm"} & said.keys()
    lines = [int(line.split(":")[1]) for line in found if line.split(":")[1].isdecimal()]
    assert len(lines) > 15
    assert lines == sorted(lines)


@pytest.mark.parametrize("kind", MAKERS)
def test_each_key_of_each_head_has_an_answer(kind: str, tmp_path: Path) -> None:
    config = {**NER, **make(kind).config}
    config["model"] = {**config["model"], "text_field_embedder": NER["model"]["text_field_embedder"]}
    text = "\n".join(problems_of(config, tmp_path))
    assert "does not list either" not in text
    assert "Did you mean" not in text
    assert "missing key" not in text


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


@pytest.mark.parametrize("name", list(packaged_configs())[::4])
def test_our_configs_are_not_taken_for_those_of_allennlp(name: str) -> None:
    assert not is_allennlp(evaluate(name, undefined={}))
