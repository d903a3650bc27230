"""Configs of AllenNLP's become configs of ours, with the same mapping as archives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.cli import USER_ERROR, main
from elmo_tasks.config import load_config, to_json
from elmo_tasks.extras.allennlp.importing import import_config
from elmo_tasks.extras.samples import write_sample_data
from elmo_tasks.modules.devices import shapes_only
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary
from tests.extras.allennlp.archives import GONE, NER, with_changes
from tests.extras.allennlp.heads import HIDDEN, LSTM, MAKERS, SIZE, make

WORDS = {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": SIZE}}}
TRAINER = {"num_epochs": 3, "validation_metric": "+accuracy", "optimizer": {"type": "adam", "lr": 0.01}}
METRICS = {"bidaf": "+em", "coref": "+coref_f1", "srl": "+f1-measure-overall"}


def imported(config: dict[str, Any], folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What a config becomes, as values, and what is said about it."""
    (folder / "old.jsonnet").write_text(json.dumps(config))
    lines = import_config(folder / "old.jsonnet", folder / "new.jsonnet", force=True)
    text = (folder / "new.jsonnet").read_text()
    comments = [line.removeprefix("// ") for line in text.splitlines() if line.startswith("//")]
    assert comments[1:] == lines
    load_config(folder / "new.jsonnet", ExperimentConfig)
    return json.loads("\n".join(line for line in text.splitlines() if not line.startswith("//"))), lines


def of_head(kind: str, **variant: Any) -> dict[str, Any]:
    config = make(kind, **variant).config
    trainer = {**TRAINER, "validation_metric": METRICS.get(kind, "+accuracy")}
    model = {**config["model"], "text_field_embedder": WORDS}
    return {**config, "model": model, "train_data_path": "a", "validation_data_path": "b", "trainer": trainer}


@pytest.mark.parametrize("kind", MAKERS)
def test_each_head(kind: str, tmp_path: Path) -> None:
    """The sizes of its layers fit together here, too."""
    values, _ = imported({**of_head(kind), "data_loader": {"batch_size": 7}}, tmp_path)
    assert (values["train_data_path"], values["validation_data_path"]) == ("a", "b")
    assert values["data_loader"] == {"batch_size": 7}
    assert values["trainer"]["optimizer"] == {"type": "adam", "lr": 0.01}
    config = load_config(values, ExperimentConfig)
    labels: dict[str, tuple[str, ...]] = dict.fromkeys(("tags", "labels", "genres"), ("B-V", "O", "I-V"))
    with shapes_only():
        model = config.build_model(Vocabulary(SPECIAL, 2, SPECIAL, labels), pretrained=False)
    sizes = {size for each in model.parameters() for size in each.shape}
    assert kind == "decomposable_attention" or 4 * HIDDEN in sizes  # of an LSTM


VECTOR = {"type": "bag_of_embeddings", "embedding_dim": SIZE, "averaged": True}
FILTERS = {"type": "cnn", "embedding_dim": SIZE, "num_filters": 3, "ngram_filter_sizes": [2, 3], "output_dim": 5}


@pytest.mark.parametrize(
    ("model", "encoder", "pooling"),
    [
        ({"seq2vec_encoder": VECTOR}, None, "mean"),
        ({"seq2vec_encoder": VECTOR, "seq2seq_encoder": {**LSTM, "input_size": SIZE}}, "stacked_bilstm", "mean"),
        ({"seq2vec_encoder": {**LSTM, "input_size": SIZE}}, "stacked_bilstm", "last"),
        ({"seq2vec_encoder": FILTERS}, "cnn", "max"),
    ],
)
def test_classifiers(model: dict[str, Any], encoder: str | None, pooling: str, tmp_path: Path) -> None:
    config = with_changes(
        of_head("bcn"), {"model": {"type": "basic_classifier", "text_field_embedder": WORDS, **model}}
    )
    values, lines = imported({**config, "dataset_reader": {"type": "sst_tokens"}}, tmp_path)
    assert (values["model"].get("encoder") or {}).get("type") == encoder
    assert values["model"]["pooling"] == pooling
    filters = ["model.seq2vec_encoder.output_dim: not available; the next layer reads all filters"]
    assert lines == (filters if encoder == "cnn" else [])


@pytest.mark.parametrize("has_bias", [None, True, False])
def test_layers_with_highways(has_bias: bool | None, tmp_path: Path) -> None:
    encoder = {"type": "alternating_lstm", "input_size": SIZE + 4, "hidden_size": 3, "num_layers": 2}
    encoder |= {} if has_bias is None else {"use_input_projection_bias": has_bias}
    values, _ = imported(with_changes(of_head("srl"), {"model.encoder": encoder}), tmp_path)
    expected = {"type": "alternating_lstm", "hidden_size": 3, "num_layers": 2, "dropout": 0.0}
    assert values["model"]["encoder"] == expected | ({} if has_bias is False else {"highway_bias": True})
    encoder["type"] = "stacked_bidirectional_lstm"
    values, _ = imported(with_changes(of_head("srl"), {"model.encoder": encoder}), tmp_path)
    assert values["model"]["encoder"] == {**expected, "type": "stacked_highway_bilstm"}


def test_a_tagger_with_words_characters_and_elmo(tmp_path: Path) -> None:
    elmo = "model.text_field_embedder.token_embedders.elmo"
    values, lines = imported(
        with_changes(NER, {f"{elmo}.{key}": GONE for key in ("options_file", "requires_grad")}), tmp_path
    )
    embedder = values["model"]["embedder"]
    assert embedder["words"] == {"size": 6, "trainable": True, "vectors": "glove.gz"}
    assert (embedder["characters"]["filters"], embedder["characters"]["padding"]) == (7, "right")  # as 0.9 has it
    assert (embedder["elmo"]["dropout"], embedder["elmo"]["requires_grad"]) == (0.2, False)
    assert embedder["elmo"]["weights"].partition("#")[0].endswith("_2x4096_512_2048cnn_2xhighway_weights.hdf5")
    assert values["trainer"] == {
        "num_epochs": 75,
        "validation_metric": "+f1",
        "patience": 25,
        "grad_norm": 5.0,
        "optimizer": {"type": "adam", "lr": 0.002},
        "regularizers": [{"parameters": "mix.*weights", "l2": 0.1}],
    }
    assert values["data_loader"] == {"batch_size": 64}
    assert "trainer.cuda_device: AllenNLP's key; here: trainer.device" in lines


def test_what_a_training_needs_and_what_is_left_out(tmp_path: Path) -> None:
    address = "https://some.org/data"
    tokens = {"type": "embedding", "embedding_dim": 9, "projection_dim": SIZE, "pretrained_file": f"{address}/v.txt.gz"}
    old = with_changes(
        of_head("esim"),
        {
            "train_data_path": f"{address}/train.jsonl",
            "test_data_path": f"{address}/test.jsonl",
            "model.text_field_embedder.token_embedders.tokens": tokens,
            "model.initializer": {"regexes": []},
            "model.regularizer": {"regexes": [["weight", {"type": "l2", "alpha": 1}]]},
            "trainer.learning_rate_scheduler": {"type": "reduce_on_plateau", "mode": "max"},
            "trainer.optimizer": {"type": "dense_sparse_adam", "lr": 0.02, "unknown": 1},
            "data_loader": {"batch_sampler": {"type": "bucket", "batch_size": 9}},
        },
    )
    values, lines = imported(old, tmp_path)
    assert (values["train_data_path"], values["test_data_path"]) == ("train.jsonl", "test.jsonl")
    assert values["model"]["embedder"]["words"] == {"size": 9, "trainable": True, "vectors": "v.txt.gz"}
    assert values["trainer"]["learning_rate_scheduler"] == {"type": "reduce_on_plateau", "factor": 0.1, "patience": 10}
    assert values["trainer"]["optimizer"] == {"type": "adam", "lr": 0.02}
    assert values["data_loader"] == {"batch_size": 9}
    said = "\n".join(lines)
    for line in (
        f"train_data_path: download {address}/train.jsonl into",
        f"test_data_path: download {address}/test.jsonl into",
        f"vectors: download {address}/v.txt.gz into",
        "projection_dim: not available",
        "model.initializer: ",
        "model.regularizer: 'weight' is not carried over",
        "trainer.optimizer.unknown: ",
    ):
        assert line in said
    old["trainer"]["learning_rate_scheduler"] = {"type": "noam"}
    old["model"]["regularizer"] = [["scalar_parameters", {"type": "l2"}]]
    values, lines = imported(old, tmp_path)
    assert values["trainer"]["regularizers"] == [{"parameters": "mix.*weights", "l2": 0.01}]
    assert "learning_rate_scheduler" not in values["trainer"]
    assert any(line.startswith("trainer.learning_rate_scheduler.type: there is no 'noam' here") for line in lines)


def test_the_maxout_layers_of_a_classifier(tmp_path: Path) -> None:
    """No dropout is on the scores of the labels."""
    values, lines = imported(of_head("bcn", maxout=True), tmp_path)
    assert values["model"]["output"] == {"hidden_sizes": [4], "activation": "maxout", "dropout": 0.2, "pieces": 2}
    assert "model.output_layer: the last layer is linear, and all others have the highest dropout" in lines


def test_each_reader_and_variables_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = tmp_path / "old.jsonnet", tmp_path / "new.jsonnet"
    readers = [{"type": "sst_tokens", "granularity": "2-class", "use_subtrees": subtrees} for subtrees in (True, False)]
    config = {**of_head("bcn"), "dataset_reader": readers[0], "validation_dataset_reader": readers[1]}
    config = with_changes(config, {"train_data_path": GONE, "validation_data_path": GONE})
    paths = "{train_data_path: std.extVar('OLD_TRAIN'), validation_data_path: std.extVar('OLD_DEV') + '/dev.txt'}"
    old.write_text(f"// By hand\n{json.dumps(config)} + {paths}")
    assert main(["import-allennlp", str(old), str(new)]) == 0
    monkeypatch.setenv("OLD_TRAIN", "train.txt")
    found = load_config(new, ExperimentConfig, variables={"OLD_DEV": "here"})
    assert (found.train_data_path, found.validation_data_path) == ("train.txt", "here/dev.txt")
    values = to_json(found)
    assert [values[key]["subtrees"] for key in ("dataset_reader", "validation_dataset_reader")] == [True, False]
    assert main(["import-allennlp", str(old), str(new)]) == USER_ERROR  # it is not replaced


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model.type": "bimpm"}, "old.jsonnet: model.type is bimpm; only basic_classifier or"),
        (
            {
                "model": {"type": "srl_bert", "bert_model": "b"},
                "dataset_reader": {"type": "srl", "bert_model_name": "b"},
            },
            "old.jsonnet: AllenNLP trains the transformer b, too, and here transformers are frozen",
        ),
        ({"model.encoder.num_layers": 1.5}, "old.jsonnet: its values do not fit together"),
        ({"trainer.patience": -1}, "trainer.patience: "),
    ],
)
def test_others_get_one_line(
    changes: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.jsonnet").write_text(json.dumps(with_changes(NER, changes)))
    assert main(["import-allennlp", str(tmp_path / "old.jsonnet"), str(tmp_path / "new.jsonnet")]) == USER_ERROR
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (tmp_path / "new.jsonnet").exists()


def test_the_new_name_is_that_of_a_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old.jsonnet").write_text(json.dumps(NER))
    assert main(["import-allennlp", str(tmp_path / "old.jsonnet"), str(tmp_path / "run")]) == USER_ERROR
    assert "expected the name of a config to write, which ends in .jsonnet" in capsys.readouterr().err


def test_a_training(tmp_path: Path) -> None:
    write_sample_data(tmp_path, "ner", (12, 6, 6))
    data = tmp_path / "ner_conll2003"
    changes = {
        "train_data_path": str(data / "eng.train"),
        "validation_data_path": str(data / "eng.testa"),
        "model.text_field_embedder.token_embedders.tokens.pretrained_file": None,
        "model.text_field_embedder.token_embedders.elmo": GONE,
        "dataset_reader.token_indexers.elmo": GONE,
        "model.regularizer": None,
        "trainer.num_epochs": 1,
    }
    (tmp_path / "old.jsonnet").write_text(json.dumps(with_changes(NER, changes)))
    assert main(["import-allennlp", str(tmp_path / "old.jsonnet"), str(tmp_path / "new.jsonnet")]) == 0
    assert main(["train", str(tmp_path / "new.jsonnet"), "-s", str(tmp_path / "run")]) == 0
    assert main(["predict", str(tmp_path / "run"), str(data / "eng.testb"), "--format", "reader", "--json"]) == 0
