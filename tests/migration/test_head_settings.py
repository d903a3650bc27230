"""The settings of heads, what is said about them, and what they cannot have; their numbers are in `test_heads`."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from elmo_tasks.migration.heads import (
    bcn,
    bidaf,
    coref,
    crf_tagger,
    decomposable_attention,
    esim,
    semantic_role_labeler,
    simple_tagger,
)
from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.text.tag_schemes import allowed_transitions
from tests.migration.test_heads import (
    HIDDEN,
    SIZE,
    TAGS,
    Archive,
    feed_forward,
    make_bcn,
    make_coref,
    make_decomposable_attention,
    make_esim,
    make_srl,
)

BOTH = 2 * HIDDEN
SPANS = ("O", "B-X", "I-X")
CONLL = {"type": "conll2003"}


def make_tagger(
    kind: str, num_tags: int, reader: dict[str, Any] = CONLL, *, layer: int = 0, **settings: Any
) -> Archive:
    archive = Archive({"type": kind, **settings}, **reader)
    archive.config["model"]["encoder"] = archive.lstm("encoder", SIZE)
    if layer:
        archive.config["model"]["feedforward"] = feed_forward(BOTH, layer, dropout=0.1)
        archive.layers("_feedforward", BOTH, layer)
    archive.linear("tag_projection_layer._module", layer or BOTH, num_tags)
    if kind == "crf_tagger":
        archive.add("crf.transitions", num_tags, num_tags)
    return archive


@pytest.mark.parametrize(
    ("settings", "scheme"),
    [
        ({"label_encoding": "BIO"}, "IOB2"),
        ({"constraint_type": "BIO"}, "IOB2"),
        ({"label_encoding": "BIO", "constrain_crf_decoding": True}, "IOB2"),
        ({"label_encoding": "BIO", "constrain_crf_decoding": False}, None),
        ({}, None),
    ],
)
def test_the_scheme_of_a_crf_tagger(settings: dict[str, Any], scheme: str | None) -> None:
    ignored = dict.fromkeys(("calculate_span_f1", "verbose_metrics", "include_start_end_transitions", "top_k"), 1)
    head, _, _ = make_tagger("crf_tagger", 3, **settings, **ignored, label_weights=None).convert(crf_tagger, SPANS)
    assert (head.config["tag_scheme"], head.config["dropout"]) == (scheme, 0.0)
    assert "dropout" not in head.config["encoder"]
    assert head.dataset_reader == {"type": "conll2003", "tag_scheme": scheme}
    assert (head.labels, head.notes) == ({"tags": SPANS}, ())


def test_layers_dropout_and_transitions_of_a_crf_tagger() -> None:
    labels = ("@@UNKNOWN@@", *SPANS)
    archive = make_tagger("crf_tagger", 4, {"type": "other"}, layer=5, dropout=0.3, label_encoding="BIO")
    for name in ("start", "end"):
        archive.add(f"crf.{name}_transitions", 4)
    head, _, _ = archive.convert(crf_tagger, labels)
    assert (head.config["dropout"], head.config["encoder"]["dropout"]) == (0.3, 0.3)
    assert head.config["feedforward"] == {"hidden_sizes": [5], "activation": "relu", "dropout": 0.1}
    for name in ("crf.start_transitions", "crf.end_transitions", "tag_projection_layer._module.weight"):
        ours = name.replace("tag_projection_layer._module", "projection")
        assert torch.equal(head.tensors[ours], archive.tensors[name][1:])
    assert torch.equal(head.tensors["crf.transitions"], archive.tensors["crf.transitions"][1:, 1:])
    unknown, reader = head.notes
    assert unknown == "@@UNKNOWN@@: labels that are never predicted are left out"
    assert reader.startswith("there is no reader 'other' here")


def test_a_crf_tagger_without_a_scheme_allows_all_transitions() -> None:
    archive = make_tagger("crf_tagger", 2)
    archive.tensors["crf._constraint_mask"] = mask = torch.ones(4, 4)
    mask[:, 2:] = 0  # whatever is said about what leads to the start
    head, _, _ = archive.convert(crf_tagger, ("N", "V"))
    assert not head.tensors["crf.start_transitions"].any()
    for row, column in ((0, 1), (2, 0)):
        archive.tensors["crf._constraint_mask"] = mask.clone()
        archive.tensors["crf._constraint_mask"][row, column] = 0
        with pytest.raises(MigrationError, match="has other constraints; by the config wanted none"):
            archive.convert(crf_tagger, ("N", "V"))


@pytest.mark.parametrize(("row", "column"), [(0, 1), (0, 2), (3, 2), (2, 4)])
def test_each_constraint_of_a_crf_tagger_is_compared(row: int, column: int) -> None:
    archive = make_tagger("crf_tagger", 3, label_encoding="BIO")
    start, between, end = map(torch.from_numpy, allowed_transitions(list(SPANS), "IOB2"))
    mask = torch.zeros(5, 5)
    mask[:3, :3], mask[3, :3], mask[:3, 4] = between.float(), start.float(), end.float()
    archive.tensors["crf._constraint_mask"] = mask
    archive.convert(crf_tagger, SPANS)
    for wrong in (1 - mask[row, column], 0.5):
        archive.tensors["crf._constraint_mask"] = mask.clone()
        archive.tensors["crf._constraint_mask"][row, column] = wrong
        with pytest.raises(MigrationError, match="has other constraints; by the config wanted those of IOB2"):
            archive.convert(crf_tagger, SPANS)
    archive.tensors["crf._constraint_mask"] = mask[:4, :4]
    with pytest.raises(MigrationError, match="has other constraints"):
        archive.convert(crf_tagger, SPANS)


def test_a_crf_tagger_keeps_the_weights_of_its_labels_for_further_training() -> None:
    """The formula of AllenNLP's `ConditionalRandomFieldWeightEmission`, where logits are multiplied by the weights."""
    archive = make_tagger("crf_tagger", 3, label_weights={"B-X": 3, "I-X": 0.5})
    archive.tensors["crf.label_weights"] = weights = torch.tensor([1, 3, 0.5])
    head, model, vocabulary = archive.convert(crf_tagger, SPANS)
    assert (head.config["label_weights"], head.notes) == ({"B-X": 3, "I-X": 0.5}, ())
    batch = model.task.collate([{"tokens": ["tarn", "vale"], "tags": ["B-X", "I-X"]}], vocabulary)
    output = model(batch)
    scores = {
        tags: sum(output.logits[0, place, tag] * weights[tag] for place, tag in enumerate(tags))
        + archive.tensors["crf.transitions"][tags]
        for tags in itertools.product(range(3), repeat=2)
    }
    expected = torch.logsumexp(torch.stack([*scores.values()]), 0) - scores[1, 2]
    assert model.loss(output, batch).item() == pytest.approx(expected.item(), abs=1e-5)


def test_other_weights_of_labels_only_concern_further_training() -> None:
    archive = make_tagger("crf_tagger", 3, label_weights={"O": 2}, weight_strategy="lannoy")
    archive.add("crf.label_weights", 3)
    head, _, _ = archive.convert(crf_tagger, SPANS)
    assert "label_weights" not in head.config
    assert head.notes == (
        "label_weights are left out: only training reads them, and their strategy 'lannoy' is not here",
    )


@pytest.mark.parametrize(
    ("settings", "reader", "labels", "scheme"),
    [
        ({}, {}, SPANS, None),
        ({"label_encoding": "BIO"}, {}, SPANS, "IOB2"),
        ({}, {"coding_scheme": "BIO"}, SPANS, "IOB2"),
        ({"label_encoding": "BIO"}, {"coding_scheme": "BIOUL"}, SPANS, "IOB2"),
        ({"label_encoding": "BIO"}, {}, ("DET", "NOUN", "O"), None),  # no tags of spans
    ],
)
def test_the_scheme_of_a_simple_tagger(
    settings: dict[str, Any], reader: dict[str, Any], labels: tuple[str, ...], scheme: str | None
) -> None:
    archive = make_tagger("simple_tagger", 3, CONLL | reader, calculate_span_f1=True, verbose_metrics=True, **settings)
    head, _, _ = archive.convert(simple_tagger, labels)
    assert head.config["tag_scheme"] == head.dataset_reader["tag_scheme"] == scheme
    assert (head.labels, head.notes) == ({"tags": labels}, ())


def test_settings_of_semantic_roles() -> None:
    archive = make_srl()
    del archive.config["model"]["embedding_dropout"]
    archive.config["model"]["srl_eval_path"] = "x"
    archive.config["dataset_reader"]["domain_identifier"] = "nw"
    head, _, _ = archive.convert(semantic_role_labeler, TAGS)
    assert head.config["dropout"] == 0.0
    assert head.config["predicate_size"] == 4
    (note,) = head.notes
    assert note.startswith("a sentence's tags are those with the highest sum of probabilities")
    archive.config["dataset_reader"]["type"] = "srl_bert"
    with pytest.raises(MigrationError, match=r"dataset_reader\.type is srl_bert; only srl can be imported"):
        archive.convert(semantic_role_labeler, TAGS)


def test_settings_of_esim() -> None:
    archive = make_esim(matrix_attention={"type": "x"})
    del archive.config["model"]["dropout"]
    archive.config["model"].pop("matrix_attention")
    head, _, _ = archive.convert(esim)
    assert head.config["dropout"] == head.config["encoder"]["dropout"] == head.config["composition"]["dropout"] == 0.5


@pytest.mark.parametrize(
    ("attention", "tokenizer", "message"),
    [
        ({"scale_output": True}, {}, "scale_output is True; only False can"),
        ({}, {"start_tokens": ["a"]}, "wanted at most one token, at the end"),
        ({}, {"start_tokens": ["a"], "end_tokens": ["b"]}, "wanted at most one token, at the end"),
    ],
)
def test_what_texts_in_pairs_cannot_have(attention: dict[str, Any], tokenizer: dict[str, Any], message: str) -> None:
    archive = make_decomposable_attention(8, 3, **tokenizer)
    archive.config["model"]["matrix_attention"] |= attention
    with pytest.raises(MigrationError, match=message):
        archive.convert(decomposable_attention)


def make_bidaf(**settings: Any) -> Archive:
    attention = {"type": "linear", "combination": "x,y,x*y", "tensor_1_dim": BOTH, "tensor_2_dim": BOTH}
    archive = Archive({"type": "bidaf", "num_highway_layers": 1, "matrix_attention": attention}, type="squad1")
    layers = {"_phrase_layer": SIZE, "_modeling_layer": 4 * BOTH, "_span_end_encoder": 7 * BOTH}
    archive.config["model"] |= {name[1:]: archive.lstm(name, size) for name, size in layers.items()} | settings
    archive.linear("_highway_layer._module._layers.0", SIZE, 2 * SIZE)
    archive.add("_matrix_attention._weight_vector", 3 * BOTH)
    archive.add("_matrix_attention._bias", 1)
    for name in ("start", "end"):
        archive.linear(f"_span_{name}_predictor._module", 5 * BOTH, 1)
    return archive


@pytest.mark.parametrize(("given", "dropout"), [({}, 0.2), ({"dropout": 0.1, "mask_lstms": True}, 0.1)])
def test_settings_of_bidaf(given: dict[str, Any], dropout: float) -> None:
    head, _, _ = make_bidaf(**given).convert(bidaf, ())
    config = {name: head.config[name] for name in ("num_highway_layers", "dropout", "max_answer_length", "window")}
    assert config == {"num_highway_layers": 1, "dropout": dropout, "max_answer_length": None, "window": None}
    assert (head.dataset_reader, head.notes) == ({"type": "squad"}, ())


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("type", "bilinear", "type is bilinear; only linear can"),
        ("combination", "x,y", r"combination is x,y; only x,y,x\*y can"),
        ("combination", None, "combination is None; only"),
        ("activation", "tanh", "activation is tanh; only linear or None can"),
        ("tensor_2_dim", BOTH + 1, f"tensor_2_dim is {BOTH + 1}; only {BOTH} can"),
        ("tensor_1_dim", BOTH - 1, "tensor_2_dim is"),
    ],
)
def test_another_attention_of_bidaf_is_refused(key: str, value: Any, message: str) -> None:
    archive = make_bidaf()
    archive.config["model"]["matrix_attention"][key] = value
    with pytest.raises(MigrationError, match=message):
        archive.convert(bidaf, ())


def test_two_classes_of_the_sentiment_treebank() -> None:
    archive = make_bcn(maxout=False, type="sst_tokens", granularity="2-class")
    head, _, _ = archive.convert(bcn, ("1", "0", "1"))
    assert head.labels == {"labels": ("positive", "negative", "positive")}
    assert head.dataset_reader == {"type": "sst", "granularity": 2, "subtrees": False}
    dropout, labels = head.notes
    assert dropout.startswith("integrator_dropout is on the integrator's output here")
    assert labels == "the labels 1, 0, 1 are positive, negative, positive here"
    assert head.config["output"]["dropout"] == 0.0


@pytest.mark.parametrize("reader", [{"type": "sst_tokens", "granularity": "3-class"}, {"type": "csv"}])
def test_a_classifier_of_other_data(reader: dict[str, Any]) -> None:
    head, _, _ = make_bcn(maxout=False, **reader).convert(bcn)
    assert head.dataset_reader == {"type": "jsonl", "task": "classification"}
    reader_notes = head.notes[1:]
    assert len(reader_notes) == (reader["type"] == "csv")
    assert all("no reader 'csv' here; data are read as by 'jsonl'" in note for note in reader_notes)


def test_settings_of_coref() -> None:
    archive = make_coref(version=2)
    model = archive.config["model"]
    model["mention_feedforward"]["dropout"], model["antecedent_feedforward"]["dropout"] = [0.1, 0.3], 0.2
    head, _, _ = archive.convert(coref)
    assert {key: value for key, value in head.config.items() if key != "encoder"} == {
        "type": "coref",
        "as_allennlp": True,
        "lexical_dropout": 0.3,
        "feature_size": 2,
        "max_span_width": 3,
        "spans_per_word": 0.9,
        "max_antecedents": 4,
        "max_training_sentences": None,
        "hidden_sizes": [5, 4],
        "pair_hidden_sizes": [6],
        "dropout": 0.3,
    }
    (note,) = head.notes
    assert note.startswith("dropout is also on the encoder's output")
    del model["lexical_dropout"]
    archive.config["dataset_reader"]["type"] = "preco"
    head, _, _ = archive.convert(coref)
    assert head.config["lexical_dropout"] == 0.2
    assert head.notes[1:] == ("there is no reader 'preco' here; data are read as by 'coref_conll2012'",)
    model["antecedent_feedforward"]["activations"] = "tanh"
    with pytest.raises(MigrationError, match="the scorers of coreference have an activation other than relu"):
        archive.convert(coref)
