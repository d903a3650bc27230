"""AllenNLP's `crf_tagger`, among others its recognizers of named entities.

# K tags
"""

from __future__ import annotations

import torch
from torch import Tensor

from elmo_tasks.migration.feed_forward import read_layers
from elmo_tasks.migration.heads.head import Head
from elmo_tasks.migration.migration_error import MigrationError
from elmo_tasks.migration.params import Params
from elmo_tasks.migration.tags import projection, scheme_of, tagged_sentences
from elmo_tasks.migration.vocabulary import PADDING, UNKNOWN, AllenNlpVocabulary
from elmo_tasks.migration.weights import Weights
from elmo_tasks.text.tag_schemes import TagScheme, allowed_transitions, is_tag


def convert(params: Params, weights: Weights, vocabulary: AllenNlpVocabulary, columns: Tensor) -> Head:
    """The same model as our `crf_tagger`; see `elmo_tasks.migration.heads.head`."""
    model = params.part("model")
    model.ignore("calculate_span_f1", "verbose_metrics", "include_start_end_transitions", "top_k")
    model.ignore("label_weights", "weight_strategy")
    labels = vocabulary.labels(model.get("label_namespace", "labels"))
    scheme = scheme_of(model, "label_encoding") or scheme_of(model, "constraint_type")
    if model.get("constrain_crf_decoding", None) is False:
        scheme = None
    kept, notes = _kept_labels(labels, scheme)
    dropout = model.number("dropout", None) or 0.0

    head = Head(type="crf_tagger", tag_scheme=scheme, dropout=dropout)
    head.add_encoder("encoder", model.part("encoder"), weights.part("encoder."), columns)
    if dropout and "hidden_sizes" in head.config["encoder"]:  # AllenNLP's is also on the encoder's input
        head.config["encoder"]["dropout"] = dropout
    if "feedforward" in model:
        layers = read_layers(model.part("feedforward"), weights.part("_feedforward."))
        head.add_layers("feedforward", layers, model.path("feedforward"))
    rows = torch.tensor(kept)
    head.tensors |= {
        name: tensor[rows]
        for name, tensor in projection(weights.part("tag_projection_layer._module."), len(labels)).items()
    }
    head.tensors |= _crf(weights.part("crf."), labels, rows, scheme)
    config, more = tagged_sentences(params.part("dataset_reader"), scheme)
    named = tuple(labels[row] for row in kept)
    weights.take_optional("crf.label_weights")  # only training reads them
    return head.reads(config, (*notes, *more), tags=named)


def _kept_labels(labels: tuple[str, ...], scheme: TagScheme | None) -> tuple[list[int], list[str]]:
    """The rows of the labels that can be predicted, and what is to be said about the others."""
    if scheme is None:
        return list(range(len(labels))), []
    special = [label for label in labels if label in (PADDING, UNKNOWN)]
    kept = [row for row, label in enumerate(labels) if label not in special]
    if wrong := [labels[row] for row in kept if not is_tag(labels[row], scheme)]:
        raise MigrationError(f"the label {wrong[0]!r} is not a tag of {scheme}, the model's label_encoding")
    left_out = f"{' and '.join(special)}: labels that are never predicted are left out"
    return kept, [left_out] if special else []


def _crf(weights: Weights, labels: tuple[str, ...], rows: Tensor, scheme: TagScheme | None) -> dict[str, Tensor]:
    """The scores of transitions. Without those to the first tag and from the last one, they are zero."""
    size = len(labels)
    between = weights.take("transitions", size, size)
    start, end = (weights.take_optional(f"{name}_transitions") for name in ("start", "end"))
    mask = weights.take_optional("_constraint_mask")
    if mask is not None:
        _check_constraints(mask, labels, rows, scheme)
    return {
        "crf.transitions": between[rows][:, rows],
        "crf.start_transitions": between.new_zeros(len(rows)) if start is None else start[rows],
        "crf.end_transitions": between.new_zeros(len(rows)) if end is None else end[rows],
    }


def _check_constraints(mask: Tensor, labels: tuple[str, ...], rows: Tensor, scheme: TagScheme | None) -> None:
    """Compares AllenNLP's constraints, (K + 2, K + 2) with the start and the end last, with ours.

    Raises:
        MigrationError: they differ, or a label that is left out is allowed.
    """
    size, allowed = len(labels), mask == 1
    same = mask.shape == (size + 2, size + 2) and bool((allowed | (mask == 0)).all())
    if same and scheme is None:
        same = bool(allowed[: size + 1, :size].all())
    elif same:
        tags = [labels[row] for row in rows.tolist()]
        assert scheme is not None
        ours = map(torch.from_numpy, allowed_transitions(tags, scheme))
        theirs = allowed[size, rows], allowed[rows][:, rows], allowed[rows, size + 1]
        left_out = sorted(set(range(size)) - set(rows.tolist()))
        reached = allowed[[*rows.tolist(), size]][:, left_out]
        same = all(map(torch.equal, ours, theirs)) and not reached.any()
    if not same:
        expected = f"those of {scheme}" if scheme else "none"
        raise MigrationError(f"weights.th: crf._constraint_mask has other constraints; expected {expected}")
