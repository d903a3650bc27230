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
UNIMPORTANT = dict.fromkeys(("calculate_span_f1", "verbose_metrics", "include_start_end_transitions", "top_k"), 1)
ATTENTION, ATTEND, TOKENIZER = "matrix_attention", "attend_feedforward", "reader.tokenizer"
ATTENDING = {f"{ATTEND}.activations": ["tanh", {"type": "tanh"}], f"{ATTEND}.dropout": [0.1, 0.3]}
SCORERS = {"mention_feedforward.dropout": [0.1, 0.3], "antecedent_feedforward.dropout": 0.2, "lexical_dropout": GONE}


def paths(changes: dict[str, Any]) -> dict[str, Any]:
    """Changes of the model or, after `reader`, of the reader, by their key paths in the whole config."""
    return {f"dataset_{key}" if key.startswith("reader") else f"model.{key}": each for key, each in changes.items()}


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
            {"dropout": GONE, "reader.type": "quora_paraphrase"},
            {"dropout": 0.5, "encoder.dropout": 0.5, "composition.dropout": 0.5},
            {"type": "snli"},
            ["there is no reader 'quora_paraphrase' here; data are read as by 'snli'"],
        ),
        (
            "srl",
            {"reader.domain_identifier": "nw", "srl_eval_path": "x"},
            {"dropout": 0.2, "decoded_scores": "probabilities", "predicate_size": 4},
            {"type": "srl_conll2012"},
            [],
        ),
        ("srl", {"embedding_dropout": GONE}, {"dropout": 0.0}, {"type": "srl_conll2012"}, []),
        (
            "bidaf",
            {"reader.type": "squad1"},
            {"num_highway_layers": 2, "dropout": 0.2, "max_answer_length": None, "window": None},
            {"type": "squad"},
            [],
        ),
        (
            "decomposable_attention",
            {**ATTENDING, "compare_feedforward.hidden_dims": 4},
            {
                "attend": {"hidden_sizes": [5, 4], "activation": "tanh", "dropout": 0.3},
                "compare": {"hidden_sizes": [4], "activation": "relu", "dropout": 0.0},
            },
            {"type": "snli"},
            [],
        ),
        ("bidaf", {"dropout": 0.1, "mask_lstms": True}, {"dropout": 0.1}, {"type": "squad"}, []),
        ("bidaf", {"mask_lstms": False}, {}, {"type": "squad"}, ["mask_lstms is false in AllenNLP"]),
        (
            "bcn",
            {"reader.type": "csv"},
            {"embedding_dropout": 0.3, "integrator_dropout": 0.2, "output.dropout": 0.0},
            JSONL,
            ["there is no reader 'csv' here; data are read as by 'jsonl'"],
        ),
        ("bcn", {"reader": {"type": "sst_tokens", "granularity": "3-class"}}, {}, JSONL, []),
        (
            "bcn",
            {"reader": {"type": "csv", "max_sequence_length": 9, "tokenizer": "just_spaces"}},
            {},
            JSONL | {"tokenizer": "whitespace"},
            ["dataset_reader.max_sequence_length is 9: longer texts are not cut here", "there is no reader 'csv'"],
        ),
        (
            "esim",
            {TOKENIZER: {"type": "word", "word_splitter": {"type": "just_spaces"}}},
            {},
            {"type": "snli", "tokenizer": "whitespace"},
            [],
        ),
        (
            "coref",
            {**SCORERS, "reader.type": "preco"},
            {"dropout": 0.3, "lexical_dropout": 0.2},
            {"type": "coref_conll2012"},
            ["there is no reader 'preco' here; data are read as by 'coref_conll2012'"],
        ),
        (
            "coref",
            {},
            {
                **{"as_allennlp": True, "lexical_dropout": 0.3, "feature_size": 2, "max_span_width": 3, "dropout": 0.0},
                **{"spans_per_word": 0.9, "max_antecedents": 4, "max_training_sentences": None},
                **{"coarse_to_fine": False, "inference_order": 1, "hidden_sizes": [5, 4], "pair_hidden_sizes": [6]},
            },
            {"type": "coref_conll2012"},
            [],
        ),
    ],
)
def test_settings(
    kind: str, changes: dict[str, Any], settings: dict[str, Any], reader: dict[str, Any], notes: list[str]
) -> None:
    head, _, _ = make(kind, paths(changes)).convert()
    check(head, settings, reader, *notes)
    labels = {"srl": {"tags": ROLES}, "bidaf": {}, "coref": {"genres": ()}}
    assert head.labels == labels.get(kind, {"labels": LABELS})


@pytest.mark.parametrize(
    ("reader", "theirs", "ours"),
    [
        ({"granularity": "5-class", "use_subtrees": True}, "3 0 2", ("positive", "very negative", "neutral")),
        ({"granularity": "2-class"}, "1 0 1", ("positive", "negative", "positive")),
    ],
)
def test_labels_of_the_sentiment_treebank_have_our_names(
    reader: dict[str, Any], theirs: str, ours: tuple[str, ...]
) -> None:
    labels = tuple(theirs.split())
    head, _, _ = make("bcn", {"dataset_reader": {"type": "sst_tokens", **reader}}, labels=labels).convert()
    assert head.labels == {"labels": ours}
    config = {"type": "sst", "granularity": int(reader["granularity"][0]), "subtrees": "use_subtrees" in reader}
    check(head, {}, config, f"the labels {', '.join(labels)} are {', '.join(ours)} here, except in AllenNLP's keys")


@pytest.mark.parametrize(
    ("kind", "changes", "labels", "scheme"),
    [
        ("crf_tagger", {"label_encoding": "BIO"}, SPANS, "IOB2"),
        ("crf_tagger", {"constraint_type": "BIO"}, SPANS, "IOB2"),
        ("crf_tagger", {"label_encoding": "BIO", "constrain_crf_decoding": True}, SPANS, "IOB2"),
        ("crf_tagger", {"label_encoding": "BIO", "constrain_crf_decoding": False}, SPANS, None),
        ("crf_tagger", {"label_weights": None}, SPANS, None),
        ("crf_tagger", {"label_encoding": "IOB1"}, SPANS, "IOB1"),
        ("crf_tagger", {"label_encoding": "BMES"}, ("O", "B-X", "M-X", "E-X", "S-X"), "BMES"),
        ("simple_tagger", {"reader.tag_label": "pos"}, SPANS, None),
        ("simple_tagger", {"label_encoding": "BIO", "reader.tag_label": "chunk"}, SPANS, "IOB2"),
        ("simple_tagger", {"reader.coding_scheme": "BIO", "reader.tag_label": "ner"}, SPANS, "IOB2"),
        ("simple_tagger", {"label_encoding": "BIO", "reader.coding_scheme": "BIOUL"}, SPANS, "IOB2"),
        ("simple_tagger", {"label_encoding": "BIO"}, ("DET", "NOUN", "O"), None),  # no tags of spans
    ],
)
def test_the_scheme_and_the_columns_of_a_tagger(
    kind: str, changes: dict[str, Any], labels: tuple[str, ...], scheme: str | None
) -> None:
    names = UNIMPORTANT if kind == "crf_tagger" else ("calculate_span_f1", "verbose_metrics")
    head, _, _ = make(kind, paths(changes | dict.fromkeys(names, True)), labels=labels).convert()
    columns = {"pos": {"columns": [0, 1]}, "chunk": {"columns": [0, 2]}}.get(changes.get("reader.tag_label", ""), {})
    check(head, {"tag_scheme": scheme}, {"type": "conll2003", "tag_scheme": scheme, **columns})
    assert "dropout" not in head.config["encoder"]
    assert head.config.get("dropout", 0.0) == 0.0
    assert head.labels == {"tags": labels}


def test_layers_dropout_and_transitions_of_a_crf_tagger() -> None:
    changes = {"dropout": 0.3, "label_encoding": "BIO", "label_weights": {"O": 2}, "weight_strategy": "lannoy"}
    archive = make("crf_tagger", paths(changes | {"reader.type": "other"}), layer=5)
    for name in ("start_transitions", "end_transitions", "label_weights"):
        archive.add(f"crf.{name}", 3)
    head, _, _ = archive.convert()
    layers = {"hidden_sizes": [5], "activation": "relu", "dropout": 0.1}
    settings = {"dropout": 0.3, "encoder.dropout": 0.3, "feedforward": layers}
    note = "there is no reader 'other' here; data are read as columns"
    check(head, settings, {"type": "conll2003", "tag_scheme": "IOB2"}, note)
    assert "label_weights" not in head.config
    for name in ("crf.transitions", "crf.start_transitions", "crf.end_transitions"):
        assert torch.equal(head.tensors[name], archive.tensors[name])
    assert torch.equal(head.tensors["projection.weight"], archive.tensors["tag_projection_layer._module.weight"])


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


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        ("esim", "similarity_function.type", "bilinear", "type is bilinear; only dot_product can"),
        ("esim", "projection_feedforward.activations", "elu", "model.projection_feedforward: elu; expected relu"),
        ("esim", "output_logit.activations", "relu", "model.output_logit: the last activation is relu; expected"),
        ("decomposable_attention", f"{ATTEND}.hidden_dims", [4], f"{ATTEND}.hidden_dims has 1 values for 2 layers"),
        ("decomposable_attention", f"{ATTEND}.activations", ["relu"] * 3, "activations has 3 values for 2 layers"),
        ("decomposable_attention", f"{ATTEND}.activations", ["relu", "tanh"], f"{ATTEND}: relu, tanh; expected relu, "),
        ("decomposable_attention", f"{ATTEND}.input_dim", 7, "0.weight' is 5 x 6; by its config it should be 5 x 7"),
        ("decomposable_attention", f"{ATTEND}.hidden_dims", [5, 3], "is 4 x 5; by its config it should be 3 x 5"),
        ("bcn", "output_layer.pool_sizes", [2, 2, 2], "pool_sizes has 3 values for 2 layers"),
        ("simple_tagger", "label_encoding", "BILOU", "model.label_encoding is BILOU; only BIO or IOB1 or"),
        ("decomposable_attention", f"{ATTENTION}.scale_output", True, "scale_output is True; only False can"),
        ("decomposable_attention", f"{TOKENIZER}.end_tokens", ["a", "b"], "expected at most 1 tokens, at the end"),
        ("decomposable_attention", TOKENIZER, {"start_tokens": ["a"]}, "expected at most 1 tokens, at the end"),
        ("bcn", TOKENIZER, {"end_tokens": ["a"]}, "expected at most 0 tokens, at the end"),
        ("bcn", TOKENIZER, "character", "tokenizer.type is character; only spacy or just_spaces or"),
        ("bcn", TOKENIZER, {"word_stemmer": "porter"}, "word_stemmer.type is porter; only None or pass_through can"),
        ("bcn", "reader.segment_sentences", True, "segment_sentences is True; only False can"),
        ("bidaf", f"{ATTENTION}.type", "bilinear", "type is bilinear; only linear can"),
        ("bidaf", f"{ATTENTION}.combination", "x,y", "combination is x,y; only x,y,x*y can"),
        ("bidaf", f"{ATTENTION}.combination", None, "combination is None; only"),
        ("bidaf", f"{ATTENTION}.activation", "tanh", "activation is tanh; only linear or None can"),
        ("bidaf", f"{ATTENTION}.tensor_2_dim", BOTH + 1, f"tensor_2_dim is {BOTH + 1}; only {BOTH} can"),
        ("bidaf", f"{ATTENTION}.tensor_1_dim", BOTH - 1, f"{ATTENTION}.tensor_2_dim is"),
        ("coref", "antecedent_feedforward.activations", "tanh", "have an activation other than relu"),
        ("srl", "reader.type", "srl_bert", "dataset_reader.type is srl_bert; only srl can be imported"),
    ],
)
def test_what_heads_cannot_have(kind: str, key: str, value: Any, message: str) -> None:
    with pytest.raises(MigrationError) as error:
        make(kind, paths({key: value})).convert()
    assert message in str(error.value)


def test_labels_of_semantic_roles_are_tags() -> None:
    with pytest.raises(ElmoTasksError, match=r"'U-V' is not a tag of IOB2"):
        make("srl", labels=(*ROLES[:-1], "U-V")).convert()
