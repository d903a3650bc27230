"""The settings of heads, what is said about them, and what they cannot have; their numbers are in `test_heads`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from elmo_tasks.errors import ElmoTasksError, MigrationError
from elmo_tasks.extras.allennlp.heads.head import Head
from tests.extras.allennlp.archives import GONE
from tests.extras.allennlp.heads import BOTH, LABELS, ROLES, SPANS, make

JSONL = {"type": "jsonl", "task": "classification"}
CONLL = {"type": "conll2003"}
UNIMPORTANT = dict.fromkeys(("calculate_span_f1", "verbose_metrics", "include_start_end_transitions", "top_k"), 1)


def value_at(config: Any, path: str) -> Any:
    for key in path.split("."):
        config = config[key]
    return config


def check(head: Head, settings: dict[str, Any], reader: dict[str, Any], *notes: str) -> None:
    """Compares settings of a head by their key paths, its reader, and how its notes begin."""
    assert {path: value_at(head.config, path) for path in settings} == settings
    assert head.dataset_reader == reader
    assert [given[: len(note)] for given, note in zip(head.notes, notes, strict=True)] == list(notes)


@pytest.mark.parametrize(
    ("kind", "changes", "settings", "reader", "notes"),
    [
        (
            "esim",
            {},
            {"dropout": 0.4, "encoder.dropout": 0.4, "composition.dropout": 0.4, "output.dropout": 0.2},
            {"type": "snli"},
            [],
        ),
        (
            "esim",
            {"model.dropout": GONE, "dataset_reader.type": "quora_paraphrase"},
            {"dropout": 0.5, "encoder.dropout": 0.5, "composition.dropout": 0.5},
            {"type": "snli"},
            ["there is no reader 'quora_paraphrase' here; data are read as by 'snli'"],
        ),
        (
            "srl",
            {"dataset_reader.domain_identifier": "nw", "model.srl_eval_path": "x"},
            {"dropout": 0.2, "decoded_scores": "probabilities", "predicate_size": 4},
            {"type": "srl_conll2012"},
            [],
        ),
        ("srl", {"model.embedding_dropout": GONE}, {"dropout": 0.0}, {"type": "srl_conll2012"}, []),
        (
            "bidaf",
            {"dataset_reader.type": "squad1"},
            {"num_highway_layers": 2, "dropout": 0.2, "max_answer_length": None, "window": None},
            {"type": "squad"},
            [],
        ),
        (
            "decomposable_attention",
            {
                "model.attend_feedforward.activations": ["tanh", {"type": "tanh"}],
                "model.attend_feedforward.dropout": [0.1, 0.3],
                "model.compare_feedforward.hidden_dims": 4,
            },
            {
                "attend": {"hidden_sizes": [5, 4], "activation": "tanh", "dropout": 0.3},
                "compare": {"hidden_sizes": [4], "activation": "relu", "dropout": 0.0},
            },
            {"type": "snli"},
            [],
        ),
        ("bidaf", {"model.dropout": 0.1, "model.mask_lstms": True}, {"dropout": 0.1}, {"type": "squad"}, []),
        ("bidaf", {"model.mask_lstms": False}, {}, {"type": "squad"}, ["mask_lstms is false in AllenNLP"]),
        (
            "bcn",
            {"dataset_reader.type": "csv"},
            {"embedding_dropout": 0.3, "integrator_dropout": 0.2, "output.dropout": 0.0},
            JSONL,
            ["there is no reader 'csv' here; data are read as by 'jsonl'"],
        ),
        (
            "bcn",
            {"dataset_reader": {"type": "sst_tokens", "granularity": "3-class"}},
            {},
            JSONL,
            [],
        ),
        (
            "bcn",
            {"dataset_reader": {"type": "csv", "max_sequence_length": 9, "tokenizer": "just_spaces"}},
            {},
            JSONL | {"tokenizer": "whitespace"},
            ["dataset_reader.max_sequence_length is 9: longer texts are not cut here", "there is no reader 'csv'"],
        ),
        (
            "esim",
            {"dataset_reader.tokenizer": {"type": "word", "word_splitter": {"type": "just_spaces"}}},
            {},
            {"type": "snli", "tokenizer": "whitespace"},
            [],
        ),
        (
            "coref",
            {
                "model.mention_feedforward.dropout": [0.1, 0.3],
                "model.antecedent_feedforward.dropout": 0.2,
                "model.lexical_dropout": GONE,
                "dataset_reader.type": "preco",
            },
            {"dropout": 0.3, "lexical_dropout": 0.2},
            {"type": "coref_conll2012"},
            ["there is no reader 'preco' here; data are read as by 'coref_conll2012'"],
        ),
    ],
)
def test_settings(
    kind: str, changes: dict[str, Any], settings: dict[str, Any], reader: dict[str, Any], notes: list[str]
) -> None:
    head, _, _ = make(kind, changes).convert()
    check(head, settings, reader, *notes)
    labels = {"srl": {"tags": ROLES}, "bidaf": {}, "coref": {"genres": ()}}
    assert head.labels == labels.get(kind, {"labels": LABELS})


def test_all_settings_of_coref() -> None:
    head, _, _ = make("coref").convert()
    assert {key: value for key, value in head.config.items() if key != "encoder"} == {
        "type": "coref",
        "as_allennlp": True,
        "lexical_dropout": 0.3,
        "feature_size": 2,
        "max_span_width": 3,
        "spans_per_word": 0.9,
        "max_antecedents": 4,
        "coarse_to_fine": False,
        "inference_order": 1,
        "max_training_sentences": None,
        "hidden_sizes": [5, 4],
        "pair_hidden_sizes": [6],
        "dropout": 0.0,
    }
    check(head, {}, {"type": "coref_conll2012"})


@pytest.mark.parametrize(
    ("reader", "theirs", "ours"),
    [
        (
            {"granularity": "5-class", "use_subtrees": True},
            ("3", "0", "2"),
            ("positive", "very negative", "neutral"),
        ),
        ({"granularity": "2-class"}, ("1", "0", "1"), ("positive", "negative", "positive")),
    ],
)
def test_labels_of_the_sentiment_treebank_have_our_names(
    reader: dict[str, Any], theirs: tuple[str, ...], ours: tuple[str, ...]
) -> None:
    head, _, _ = make("bcn", {"dataset_reader": {"type": "sst_tokens", **reader}}, labels=theirs).convert()
    assert head.labels == {"labels": ours}
    config = {"type": "sst", "granularity": int(reader["granularity"][0]), "subtrees": "use_subtrees" in reader}
    check(head, {}, config, f"the labels {', '.join(theirs)} are {', '.join(ours)} here, except in AllenNLP's keys")


@pytest.mark.parametrize(
    ("kind", "changes", "labels", "scheme"),
    [
        ("crf_tagger", {"model.label_encoding": "BIO"}, SPANS, "IOB2"),
        ("crf_tagger", {"model.constraint_type": "BIO"}, SPANS, "IOB2"),
        ("crf_tagger", {"model.label_encoding": "BIO", "model.constrain_crf_decoding": True}, SPANS, "IOB2"),
        ("crf_tagger", {"model.label_encoding": "BIO", "model.constrain_crf_decoding": False}, SPANS, None),
        ("crf_tagger", {"model.label_weights": None}, SPANS, None),
        ("crf_tagger", {"model.label_encoding": "IOB1"}, SPANS, "IOB1"),
        ("crf_tagger", {"model.label_encoding": "BMES"}, ("O", "B-X", "M-X", "E-X", "S-X"), "BMES"),
        ("simple_tagger", {}, SPANS, None),
        ("simple_tagger", {"model.label_encoding": "BIO"}, SPANS, "IOB2"),
        ("simple_tagger", {"dataset_reader.coding_scheme": "BIO"}, SPANS, "IOB2"),
        ("simple_tagger", {"model.label_encoding": "BIO", "dataset_reader.coding_scheme": "BIOUL"}, SPANS, "IOB2"),
        ("simple_tagger", {"model.label_encoding": "BIO"}, ("DET", "NOUN", "O"), None),  # no tags of spans
    ],
)
def test_the_scheme_of_a_tagger(
    kind: str, changes: dict[str, Any], labels: tuple[str, ...], scheme: str | None
) -> None:
    names = UNIMPORTANT if kind == "crf_tagger" else ("calculate_span_f1", "verbose_metrics")
    head, _, _ = make(kind, {**changes, **{f"model.{name}": True for name in names}}, labels=labels).convert()
    check(head, {"tag_scheme": scheme}, {**CONLL, "tag_scheme": scheme})
    assert "dropout" not in head.config["encoder"]
    assert head.config.get("dropout", 0.0) == 0.0
    assert head.labels == {"tags": labels}


@pytest.mark.parametrize(
    ("tag_label", "columns"), [("ner", {}), ("pos", {"columns": [0, 1]}), ("chunk", {"columns": [0, 2]})]
)
def test_the_columns_of_conll_2003(tag_label: str, columns: dict[str, Any]) -> None:
    head, _, _ = make("simple_tagger", {"dataset_reader.tag_label": tag_label}).convert()
    check(head, {}, {**CONLL, "tag_scheme": None, **columns})


def test_layers_dropout_and_transitions_of_a_crf_tagger() -> None:
    changes = {"dataset_reader.type": "other", "model.dropout": 0.3, "model.label_encoding": "BIO"}
    archive = make("crf_tagger", changes, layer=5)
    for name in ("start", "end"):
        archive.add(f"crf.{name}_transitions", 3)
    head, _, _ = archive.convert()
    layers = {"hidden_sizes": [5], "activation": "relu", "dropout": 0.1}
    settings = {"dropout": 0.3, "encoder.dropout": 0.3, "feedforward": layers}
    note = "there is no reader 'other' here; data are read as columns"
    check(head, settings, {**CONLL, "tag_scheme": "IOB2"}, note)
    for name in ("crf.start_transitions", "crf.end_transitions", "tag_projection_layer._module.weight"):
        ours = name.replace("tag_projection_layer._module", "projection")
        assert torch.equal(head.tensors[ours], archive.tensors[name])
    assert torch.equal(head.tensors["crf.transitions"], archive.tensors["crf.transitions"])


# From each of O, B-X, I-X and the start (the rows) to each of the three and the end, which is the last column.
MASK_OF_BIO = torch.tensor(
    [[1, 1, 0, 0, 1], [1, 1, 1, 0, 1], [1, 1, 1, 0, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], dtype=torch.float32
)


@pytest.mark.parametrize(
    ("encoding", "mask", "entries", "expected"),
    [
        (None, torch.ones(5, 5), [(0, 1), (3, 0), (2, 4)], "none"),
        ("BIO", MASK_OF_BIO, [(0, 1), (0, 2), (3, 2), (2, 4)], "those of IOB2"),
    ],
)
def test_each_constraint_of_a_crf_tagger_is_compared(
    encoding: str | None, mask: torch.Tensor, entries: list[tuple[int, int]], expected: str
) -> None:
    archive = make("crf_tagger", {"model.label_encoding": encoding})
    archive.tensors["crf._constraint_mask"] = mask
    head, _, _ = archive.convert()
    assert not head.tensors["crf.start_transitions"].any()
    wrong = [mask[:4, :4]]
    for entry in entries:
        for value in (1 - mask[entry], torch.tensor(0.5)):
            wrong.append(mask.clone())
            wrong[-1][entry] = value
    for each in wrong:
        archive.tensors["crf._constraint_mask"] = each
        with pytest.raises(MigrationError, match=f"has other constraints; expected {expected}"):
            archive.convert()


def test_weights_of_labels_in_the_loss_are_left_out() -> None:
    archive = make("crf_tagger", {"model.label_weights": {"O": 2}, "model.weight_strategy": "lannoy"})
    archive.add("crf.label_weights", 3)
    head, _, _ = archive.convert()
    assert "label_weights" not in head.config


ATTENTION = "model.matrix_attention"
ATTEND = "model.attend_feedforward"
TOKENIZER = "dataset_reader.tokenizer"


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("esim", {"model.similarity_function.type": "bilinear"}, "type is bilinear; only dot_product can"),
        (
            "esim",
            {"model.projection_feedforward.activations": "elu"},
            "model.projection_feedforward: elu; expected relu",
        ),
        (
            "esim",
            {"model.output_logit.activations": "relu"},
            "model.output_logit: the last activation is relu; expected",
        ),
        ("decomposable_attention", {f"{ATTEND}.hidden_dims": [4]}, f"{ATTEND}.hidden_dims has 1 values for 2 layers"),
        ("decomposable_attention", {f"{ATTEND}.activations": ["relu"] * 3}, "activations has 3 values for 2 layers"),
        (
            "decomposable_attention",
            {f"{ATTEND}.activations": ["relu", "tanh"]},
            f"{ATTEND}: relu, tanh; expected relu, ",
        ),
        ("decomposable_attention", {f"{ATTEND}.input_dim": 7}, "0.weight' is 5 x 6; by its config it should be 5 x 7"),
        ("decomposable_attention", {f"{ATTEND}.hidden_dims": [5, 3]}, "is 4 x 5; by its config it should be 3 x 5"),
        ("bcn", {"model.output_layer.pool_sizes": [2, 2, 2]}, "pool_sizes has 3 values for 2 layers"),
        (
            "simple_tagger",
            {"model.label_encoding": "BILOU"},
            "model.label_encoding is BILOU; only BIO or IOB1 or",
        ),
        ("decomposable_attention", {f"{ATTENTION}.scale_output": True}, "scale_output is True; only False can"),
        ("decomposable_attention", {f"{TOKENIZER}.end_tokens": ["a", "b"]}, "expected at most 1 tokens, at the end"),
        ("decomposable_attention", {f"{TOKENIZER}.start_tokens": ["a"]}, "expected at most 1 tokens, at the end"),
        (
            "decomposable_attention",
            {TOKENIZER: {"start_tokens": ["a"], "end_tokens": ["b"]}},
            "expected at most 1 tokens, at the end",
        ),
        ("bcn", {TOKENIZER: {"end_tokens": ["a"]}}, "expected at most 0 tokens, at the end"),
        ("bcn", {TOKENIZER: "character"}, "tokenizer.type is character; only spacy or just_spaces or"),
        ("bcn", {TOKENIZER: {"word_stemmer": "porter"}}, "word_stemmer.type is porter; only None or pass_through can"),
        ("bcn", {"dataset_reader.segment_sentences": True}, "segment_sentences is True; only False can"),
        ("bidaf", {f"{ATTENTION}.type": "bilinear"}, "type is bilinear; only linear can"),
        ("bidaf", {f"{ATTENTION}.combination": "x,y"}, "combination is x,y; only x,y,x*y can"),
        ("bidaf", {f"{ATTENTION}.combination": None}, "combination is None; only"),
        ("bidaf", {f"{ATTENTION}.activation": "tanh"}, "activation is tanh; only linear or None can"),
        ("bidaf", {f"{ATTENTION}.tensor_2_dim": BOTH + 1}, f"tensor_2_dim is {BOTH + 1}; only {BOTH} can"),
        ("bidaf", {f"{ATTENTION}.tensor_1_dim": BOTH - 1}, f"{ATTENTION}.tensor_2_dim is"),
        ("coref", {"model.antecedent_feedforward.activations": "tanh"}, "have an activation other than relu"),
        ("srl", {"dataset_reader.type": "srl_bert"}, "dataset_reader.type is srl_bert; only srl can be imported"),
    ],
)
def test_what_heads_cannot_have(kind: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MigrationError) as error:
        make(kind, changes).convert()
    assert message in str(error.value)


def test_labels_of_semantic_roles_are_tags() -> None:
    with pytest.raises(ElmoTasksError, match=r"'U-V' is not a tag of IOB2"):
        make("srl", labels=(*ROLES[:-1], "U-V")).convert()
