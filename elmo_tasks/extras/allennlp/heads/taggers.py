"""AllenNLP's `crf_tagger`, among others its recognizers of named entities, `simple_tagger`, `srl` and `srl_bert`."""

from __future__ import annotations

import torch
from torch import Tensor

from elmo_tasks.errors import MigrationError
from elmo_tasks.extras.allennlp.archive import Params, Weights
from elmo_tasks.extras.allennlp.heads.head import Head
from elmo_tasks.modules.crf import TransitionConstraints
from elmo_tasks.text.tag_schemes import TagScheme, is_tag

_SCHEMES: dict[str, TagScheme] = {"BIO": "IOB2", "IOB1": "IOB1", "BIOUL": "BIOUL", "BMES": "BMES"}
_COLUMNS = {"pos": (0, 1), "chunk": (0, 2)}  # of CoNLL-2003; entities are in the last
_PROJECTION = "tag_projection_layer._module."  # its outputs are the tags' scores


def convert_crf_tagger(head: Head) -> None:
    """The same model as our `crf_tagger`."""
    model, labels = head.model, head.own_labels()
    model.ignore("calculate_span_f1", "verbose_metrics", "include_start_end_transitions", "top_k")
    model.ignore("label_weights", "weight_strategy")
    scheme = _scheme_of(model, "label_encoding") or _scheme_of(model, "constraint_type")
    if model.get("constrain_crf_decoding", None) is False:
        scheme = None
    dropout = head.config["dropout"] = model.number("dropout", None) or 0.0
    head.add_encoder("encoder", "encoder", head.columns, "encoder.")
    if dropout and "hidden_sizes" in head.config["encoder"]:  # AllenNLP's is also on the encoder's input
        head.config["encoder"]["dropout"] = dropout
    if "feedforward" in model:
        head.add_layers("feedforward", head.layers("feedforward"), "feedforward")
    head.add_linear("projection", _PROJECTION, len(labels), None)
    head.tensors |= _transitions(head.weights.part("crf."), labels, scheme)
    _read_tagged_sentences(head, scheme)


def _transitions(weights: Weights, labels: tuple[str, ...], scheme: TagScheme | None) -> dict[str, Tensor]:
    """The scores of transitions. Without those to the first tag and from the last one, they are zero."""
    size = len(labels)
    between = weights.take("transitions", size, size)
    start, end = (weights.take_optional(f"{name}_transitions") for name in ("start", "end"))
    weights.take_optional("label_weights")  # only training reads them
    if wrong := [label for label in labels if scheme and not is_tag(label, scheme)]:
        raise MigrationError(f"the label {wrong[0]!r} is not a tag of {scheme}, the model's label_encoding")
    if (mask := weights.take_optional("_constraint_mask")) is not None:  # the start and the end are last
        constraints = TransitionConstraints.of_scheme(labels, scheme) if scheme else TransitionConstraints.none(size)
        ours = constraints.start, constraints.between, constraints.end
        theirs = mask[-2:-1, :-2].squeeze(0), mask[:-2, :-2], mask[:-2, -1]
        if not all(map(torch.equal, (each.to(mask.dtype) for each in ours), theirs)):
            expected = f"those of {scheme}" if scheme else "none"
            raise MigrationError(f"weights.th: crf._constraint_mask has other constraints; expected {expected}")
    return {
        "crf.transitions": between,
        "crf.start_transitions": between.new_zeros(size) if start is None else start,
        "crf.end_transitions": between.new_zeros(size) if end is None else end,
    }


def convert_simple_tagger(head: Head) -> None:
    """The same model as our `simple_tagger`."""
    model, labels = head.model, head.own_labels()
    model.ignore("calculate_span_f1", "verbose_metrics")
    scheme = _scheme_of(model, "label_encoding") or _scheme_of(head.reader, "coding_scheme")
    if scheme and not all(is_tag(label, scheme) for label in labels):
        scheme = None  # it only says how predictions are scored
    head.add_encoder("encoder", "encoder", head.columns, "encoder.")
    head.add_linear("projection", _PROJECTION, len(labels), None)
    _read_tagged_sentences(head, scheme)


def convert_srl(head: Head) -> None:
    """The same model as our `srl`."""
    size = head.model.number("binary_feature_dim")
    dropout = head.model.number("embedding_dropout", 0.0)
    head.config |= {"predicate_size": size, "dropout": dropout, "decoded_scores": "probabilities"}
    columns = head.columns
    inputs = torch.cat([columns, len(columns) + torch.arange(size)])  # the flag's features come last on both sides
    head.add_encoder("encoder", "encoder", inputs, "encoder.")
    head.tensors["predicate.weight"] = head.weights.take("binary_feature_embedding.weight", 2, size)
    head.add_linear("projection", _PROJECTION, len(_read_roles(head)), None)


def convert_srl_bert(head: Head) -> None:
    """The same model as our `srl_bert`."""
    head.reader.ignore("token_indexers")
    head.config["lowercase"] = "uncased" in str(head.reader.get("bert_model_name"))
    head.add_linear("projection", "tag_projection_layer.", len(_read_roles(head)), len(head.columns))


def _read_roles(head: Head) -> tuple[str, ...]:
    """The reader of semantic roles, and its tags, which are returned."""
    head.model.ignore("label_smoothing", "ignore_span_metric", "srl_eval_path")
    head.reader.expect("type", "srl")
    head.reader.ignore("domain_identifier")
    head.dataset_reader = {"type": "srl_conll2012"}
    head.labels = {"tags": head.vocabulary.labels()}
    return head.labels["tags"]


def _scheme_of(params: Params, key: str) -> TagScheme | None:
    """The tag scheme that a key names in AllenNLP's words; None if it is missing or null."""
    params.expect(key, *_SCHEMES, None)
    return _SCHEMES.get(params.get(key, None))


def _read_tagged_sentences(head: Head, scheme: TagScheme | None) -> None:
    """The reader of tagged sentences, and their tags."""
    head.config["tag_scheme"] = scheme
    head.labels = {"tags": head.own_labels()}
    head.dataset_reader = {"type": "conll2003", "tag_scheme": scheme}
    name = head.reader.get("type", None)
    if name == "ontonotes_ner":
        head.reader.ignore("domain_identifier", "coding_scheme", "label_namespace")
        head.dataset_reader["type"] = "ner_conll2012"
    elif name == "conll2003":
        head.reader.ignore("coding_scheme", "feature_labels", "label_namespace", "convert_to_coding_scheme")
        tag_label = head.reader.get("tag_label", "ner")
        if tag_label in _COLUMNS:
            head.dataset_reader["columns"] = list(_COLUMNS[tag_label])
    else:
        note = "data are read as columns, the last being the tag (conll2003)"
        head.notes.append(f"there is no reader {str(name)[:80]!r} here; {note}")
