"""Semantic roles and classes from fine-tuned transformers, compared with what the library computes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

transformers = pytest.importorskip("transformers")

from elmo_tasks.cli import main  # noqa: E402
from elmo_tasks.errors import MigrationError  # noqa: E402
from elmo_tasks.extras.allennlp.importing import import_allennlp  # noqa: E402
from elmo_tasks.extras.allennlp.predictor import Predictor  # noqa: E402
from elmo_tasks.runs.archive import archive  # noqa: E402
from elmo_tasks.runs.load import load_predictor  # noqa: E402
from tests.extras.allennlp.archives import GONE, with_changes, write_archive  # noqa: E402
from tests.extras.allennlp.test_transformer import logits  # noqa: E402
from tests.extras.allennlp.transformers import (  # noqa: E402
    CLASSIFIER,
    LABELS,
    ROLES,
    SRL,
    classifier,
    linear,
    roles,
    written,
)
from tests.extras.transformers.tiny_bert import PIECES, library_states  # noqa: E402

TOKENS = ["Mary", "went", "to", "Boeing", "."]
PAIR = {"premise": ["Mary", "went"], "hypothesis": ["to", "Boeing", "."]}


def test_roles_of_an_uncased_model(tmp_path: Path) -> None:
    made, tensors = roles(tmp_path)
    run = tmp_path / "run"
    import_allennlp(made, run, transformer=str(tmp_path / "bert"))
    pieces = ["[CLS]", "ma", "##ry", "went", "to", "boe", "##ing", ".", "[SEP]"]
    layer = [tensors[f"tag_projection_layer.{name}"] for name in ("weight", "bias")]
    expected = functional.linear(library_states(tmp_path / "bert", pieces, [0, 0, 0, 1, 0, 0, 0, 0, 0])[-1], *layer)
    found = logits(run, {"tokens": TOKENS, "predicate": 1})
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)

    two: list[dict[str, Any]] = [{"tokens": TOKENS, "predicates": [1, 3]}, {"tokens": ["Mary"], "predicates": []}]
    (first, empty) = load_predictor(run)(two)
    assert [frame["predicate_text"] for frame in first["frames"]] == ["went", "Boeing"]
    assert empty["frames"] == []
    (full, none) = Predictor.from_path(run).predict_batch_json(two)
    assert [verb["tags"] for verb in full["verbs"]] == [frame["tags"] for frame in first["frames"]]
    assert none == {"words": ["Mary"], "verbs": []}
    archive(run, tmp_path / "run.tar.gz")
    shutil.rmtree(run)
    shutil.rmtree(tmp_path / "bert")
    assert load_predictor(tmp_path / "run.tar.gz")(two) == [first, empty]


def test_a_description_also_of_an_inside_without_a_beginning() -> None:
    from elmo_tasks.extras.allennlp.allennlp_format import FORMATS
    from elmo_tasks.tasks import SemanticRoles

    found = FORMATS.find(SemanticRoles())
    assert found is not None
    frame = {"predicate": 1, "tags": ["I-ARG0", "B-V", "I-ARG0", "O", "O"]}
    (verb,) = found.result({"tokens": TOKENS}, {"frames": [frame]})["verbs"]
    assert verb["description"] == "[Mary] [V: went to] Boeing ."  # as AllenNLP's predictor writes it


def test_an_old_archive_names_its_transformer_in_a_config(tmp_path: Path) -> None:
    changes = {
        "model.bert_model": {"hidden_size": 8},
        "model.embedding_dropout": GONE,
        "dataset_reader.bert_model_name": "bert-base-cased",
    }
    made, _ = roles(tmp_path, with_changes({**SRL, "iterator": {"type": "basic"}}, changes))
    import_allennlp(made, tmp_path / "run", transformer=str(tmp_path / "bert"))
    assert logits(tmp_path / "run", {"tokens": ["MARY"], "predicate": 0}).shape == (3, len(ROLES))  # [UNK]
    embedder = json.loads((tmp_path / "run" / "config.json").read_text())["model"]["embedder"]
    assert embedder["transformer"].items() >= {"layers": [-1], "dropout": 0.0}.items()


@pytest.mark.parametrize("pooler", ["bert_pooler", "cls_pooler"])
def test_a_pair_is_read_as_one_sequence(tmp_path: Path, pooler: str, capsys: pytest.CaptureFixture[str]) -> None:
    made, tensors = classifier(tmp_path)
    if pooler == "cls_pooler":
        for name in [name for name in tensors if "pooler.dense" in name and name.startswith("_seq2vec")]:
            del tensors[name]
        changed = with_changes(CLASSIFIER, {"model.seq2vec_encoder": {"type": pooler, "embedding_dim": 8}})
        made = written(tmp_path, changed, tensors, LABELS)
    import_allennlp(made, tmp_path / "run", transformer=str(tmp_path / "bert"))
    pieces = ["[CLS]", "ma", "##ry", "went", "[SEP]", "to", "boe", "##ing", ".", "[SEP]"]
    vector = library_states(tmp_path / "bert", pieces, [0] * 5 + [1] * 5)[-1, 0]
    if pooler == "bert_pooler":
        dense = [tensors[f"_seq2vec_encoder.pooler.dense.{name}"] for name in ("weight", "bias")]
        vector = functional.linear(vector, *dense).tanh()
    expected = functional.linear(vector, *(tensors[f"_classification_layer.{name}"] for name in ("weight", "bias")))
    torch.testing.assert_close(logits(tmp_path / "run", PAIR), expected, atol=1e-5, rtol=1e-5)
    (tmp_path / "pair.jsonl").write_text(json.dumps({name: " ".join(words) for name, words in PAIR.items()}))
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "pair.jsonl"), "--explain"]) == 2
    assert "its predictions are not explained" in capsys.readouterr().err
    result = Predictor.from_path(tmp_path / "run").predict("Mary went", "to Boeing .")
    assert result["label_probs"] == pytest.approx(expected.softmax(0).tolist(), abs=1e-5)
    assert result["premise_tokens"] == ["Mary", "went"]
    assert result["token_ids"] == [PIECES.index(piece) for piece in pieces]


def test_a_transformer_also_reads_single_texts_as_they_are(tmp_path: Path) -> None:
    made, _ = classifier(tmp_path, with_changes(CLASSIFIER, {"dataset_reader.type": "text_classification_json"}))
    imported = import_allennlp(made, tmp_path / "run", transformer=str(tmp_path / "bert"))
    reader = json.loads((tmp_path / "run" / "config.json").read_text())["dataset_reader"]
    assert (reader["type"], reader["task"], reader["tokenizer"]) == ("jsonl", "classification", "whitespace")
    assert (imported.unread, imported.notes) == ((), ("there is no reader 'text_classification_json' here; data are "
                                                      "read as by 'jsonl'",))  # fmt: skip


TRANSFORMER = "model.text_field_embedder.token_embedders.tokens"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset_reader.combine_input_fields": False}, "combine_input_fields is False; only None or True can"),
        ({"dataset_reader.collapse_labels": True}, "collapse_labels is True; only False can"),
        ({"model.seq2vec_encoder.cls_is_last_token": True}, "cls_is_last_token is True; only False can"),
        ({f"{TRANSFORMER}.sub_module": "encoder"}, "sub_module is encoder; only None can"),
        ({"dataset_reader.token_indexers.tokens": {"max_length": 9}}, "max_length is 9; only None or None can"),
        ({"model.type": "simple_tagger"}, "tokens.type: only basic_classifier has word pieces as its tokens"),
    ],
)
def test_what_a_classifier_cannot_have(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    made, _ = classifier(tmp_path, with_changes(CLASSIFIER, changes))
    with pytest.raises(MigrationError, match=message):
        import_allennlp(made, tmp_path / "run", transformer=str(tmp_path / "bert"))


def test_a_bad_archive_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, tensors = roles(tmp_path)
    run, bert = tmp_path / "run", tmp_path / "bert"
    no_name = with_changes(SRL, {"dataset_reader.bert_model_name": GONE})
    others = [{name: each for name, each in tensors.items() if part not in name} for part in ("bert", "layer.1.")]
    cases: list[tuple[Any, Any, Any, str]] = [
        (SRL, tensors, ROLES[:-1], "'tag_projection_layer.weight' is 4 x 8; by its config it should be 3 x 8"),
        (SRL, others[0], ROLES, "has no tensor 'bert_model.embeddings.word_embeddings.weight'"),
        (SRL, others[1], ROLES, "config.json describes a model of"),
        (no_name, tensors, ROLES, "dataset_reader.bert_model_name is missing"),
        (None, None, None, "damaged, or not an archive of AllenNLP's"),
        (SRL, tensors, ROLES, "has no tokenizer.json or vocab.txt; name a folder"),
    ]
    for config, kept, labels, message in cases:
        if config is None:
            made.write_bytes(made.read_bytes()[:-200])
        else:
            made = written(tmp_path, config, kept, labels)
        if "tokenizer" in message:
            (bert / "tokenizer.json").unlink()
        capsys.readouterr()
        assert main(["import-allennlp", str(made), str(run), "--transformer", str(bert)]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert list(run.glob("*")) == []


WORDS = ("@@UNKNOWN@@", "the", "dog", "lives", "in", "seattle")
SIZE = 4


def check_classifier(
    path: Path, vec: dict[str, Any], tensors: dict[str, Any], pooled: Callable[[Tensor], Tensor], **model: Any
) -> dict[str, Any]:
    """Compares the scores of a classifier that reads word vectors, (T, D), and pools them to (P,); its new config."""
    config = {
        "dataset_reader": {"type": "text_classification_json", "token_indexers": {"tokens": {"type": "single_id"}}},
        "train_data_path": "train",
        "model": {
            "type": "basic_classifier",
            "text_field_embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": SIZE}}},
            "seq2vec_encoder": vec,
            **model,
        },
    }
    table = torch.randn(len(WORDS) + 1, SIZE)
    with torch.no_grad():
        vector = pooled(table[[2, 3, 1]])
    layer = linear("_classification_layer", len(vector), 2)
    given = {"_text_field_embedder.token_embedder_tokens.weight": table, **tensors, **layer}
    made = write_archive(path / "model.tar.gz", config, given, {"tokens": WORDS, "labels": ("no", "yes")})
    assert not import_allennlp(made, path / "run").unread
    found = logits(path / "run", {"tokens": ["the", "dog", "?"]})
    torch.testing.assert_close(found, functional.linear(vector, *layer.values()), atol=1e-5, rtol=1e-5)
    return json.loads((path / "run" / "config.json").read_text())["model"]


@pytest.mark.parametrize("averaged", [True, False])
def test_a_bag_of_embeddings(tmp_path: Path, averaged: bool) -> None:
    vec = {"type": "bag_of_embeddings", "averaged": averaged}
    model = check_classifier(tmp_path, vec, {}, lambda vectors: vectors.mean(0) if averaged else vectors.sum(0))
    assert (model["dropout"], model["encoder"], model["output"]) == (0.0, None, None)


def test_an_encoder_and_a_layer_before_the_scores(tmp_path: Path) -> None:
    lstm, layer = nn.LSTM(SIZE, 3, batch_first=True), linear("_feedforward._linear_layers.0", 3, 5)
    tensors = {f"_seq2seq_encoder._module.{name}": tensor for name, tensor in lstm.state_dict().items()} | layer
    vec = {"type": "bag_of_embeddings", "embedding_dim": 3, "averaged": True}
    settings = {
        "seq2seq_encoder": {"type": "lstm", "input_size": SIZE, "hidden_size": 3},
        "feedforward": {"input_dim": 3, "num_layers": 1, "hidden_dims": 5, "activations": "tanh", "dropout": 0.2},
        "dropout": 0.3,
    }

    def pooled(vectors: Tensor) -> Tensor:
        return functional.linear(lstm(vectors[None])[0][0].mean(0), *layer.values()).tanh()

    model = check_classifier(tmp_path, vec, tensors, pooled, **settings)
    assert (model["dropout"], model["output"]["dropout"]) == (0.3, 0.2)


def test_convolutions_with_a_projection(tmp_path: Path) -> None:
    layers = {f"_seq2vec_encoder.conv_layer_{row}": nn.Conv1d(SIZE, 3, width) for row, width in enumerate((1, 2))}
    given = {f"{name}.{key}": each for name, layer in layers.items() for key, each in layer.state_dict().items()}
    projection = linear("_seq2vec_encoder.projection_layer", 6, 5)
    vec = {"type": "cnn", "embedding_dim": SIZE, "num_filters": 3, "ngram_filter_sizes": [1, 2], "output_dim": 5}

    def pooled(vectors: Tensor) -> Tensor:
        filters = torch.cat([layer(vectors.T[None]).relu().amax(2)[0] for layer in layers.values()])
        return functional.linear(filters, *projection.values())

    check_classifier(tmp_path, vec, given | projection, pooled)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_last_states_of_an_lstm(tmp_path: Path, bidirectional: bool) -> None:
    lstm = nn.LSTM(SIZE, 3, 2, batch_first=True, bidirectional=bidirectional)
    given = {f"_seq2vec_encoder._module.{name}": tensor for name, tensor in lstm.state_dict().items()}
    vec = {"type": "lstm", "input_size": SIZE, "hidden_size": 3, "num_layers": 2, "bidirectional": bidirectional}
    check_classifier(tmp_path, vec, given, lambda vectors: lstm(vectors[None])[1][0][-1 - bidirectional :].flatten())
