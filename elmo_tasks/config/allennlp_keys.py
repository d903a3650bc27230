"""AllenNLP's keys of configs and what they are called here: a table for the site's page, and answers from it."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

PAGE = "docs/from_allennlp.md"
# Keys that only configs of AllenNLP's have.
_MARKS = (
    "iterator", "validation_iterator", "data_loader.batch_sampler", "dataset_reader.token_indexers",
    "model.text_field_embedder", "trainer.cuda_device",
)  # fmt: skip
_EMBEDDERS = "model.text_field_embedder."
_NOT = "not "  # needed, or available


class Row(NamedTuple):
    """A row of the table.

    Attributes:
        old, new: its cells, in Markdown.
        keys: patterns of the key paths that it is about; `*` also stands for dots.
        values: if only some values of the keys differ, these with ours.
        within: if only parts of some types are meant, these types.
    """

    old: str
    new: str
    keys: tuple[str, ...]
    values: Mapping[str, str] = MappingProxyType({})
    within: tuple[str, ...] = ()

    def text(self, value: Any) -> str | None:
        """What is said of a key with this value; None if it is the same here."""
        if self.values:
            new = self.values.get(value) if isinstance(value, str) else None
            return None if new is None else f"AllenNLP's {value!r} is {new!r} here"
        new = self.new.replace("`", "")
        return f"AllenNLP's key, {new}" if new.startswith(_NOT) else f"AllenNLP's key; here: {new}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _renamed(old: str, names: Mapping[str, str], *keys: str) -> Row:
    """A row for values that have other names here."""
    return Row(f"{old}: {_names([*names])}", _names([*names.values()]), keys, names)


_READERS = {"srl": "srl_conll2012", "sst_tokens": "sst", "coref": "coref_conll2012"}
_ENCODERS = {"lstm": "stacked_bilstm", "gru": "stacked_bigru", "stacked_bidirectional_lstm": "stacked_highway_bilstm"}
_METRICS = {"+f1-measure-overall": "+f1", "+coref_f1": "+conll_f1", "+em": "+exact_match"}

# The first row whose keys match is the one that answers.
ROWS = (
    _renamed("`dataset_reader.type`", _READERS, "*dataset_reader.type"),
    Row(
        "`dataset_reader.coding_scheme`",
        "`dataset_reader.tag_scheme` and `model.tag_scheme`; `BIO` is `IOB2`",
        ("*dataset_reader.coding_scheme", "*dataset_reader.convert_to_coding_scheme"),
    ),
    Row(
        "`token_indexers.tokens.lowercase_tokens`",
        "`vocabulary.lowercase_words`",
        ("*token_indexers.*lowercase_tokens",),
    ),
    Row(
        "`dataset_reader.token_indexers`",
        "not needed: the embedder says what is read",
        ("*.token_indexers", "*.token_indexers.*"),
    ),
    Row(
        "`dataset_reader.tag_label`, `feature_labels`, `label_namespace`",
        "not needed: `dataset_reader.columns` says which column holds the labels",
        ("*dataset_reader.tag_label", "*.feature_labels", "*.label_namespace"),
    ),
    Row("`dataset_reader.use_subtrees` of `sst_tokens`", "`dataset_reader.subtrees`", ("*reader.use_subtrees",)),
    Row("`dataset_reader.max_span_width` of `coref`", "`model.max_span_width`", ("*reader.max_span_width",)),
    Row(
        "`…token_characters` with `encoder.type`: `lstm`",
        "`model.embedder.characters` with `type`: `lstm`",
        (f"{_EMBEDDERS}*token_characters.encoder.hidden_size",),
    ),
    Row(
        "`…token_characters` with `encoder.type`: `cnn`",
        "`model.embedder.characters`: `num_filters` is `filters`, `ngram_filter_sizes` is `width`",
        (f"{_EMBEDDERS}*token_characters", f"{_EMBEDDERS}*token_characters.*"),
    ),
    Row("`…elmo.do_layer_norm`", "`model.embedder.elmo.layer_normalization`", (f"{_EMBEDDERS}*.do_layer_norm",)),
    Row(
        "`…elmo.options_file`, `…elmo.weight_file`",
        "`model.embedder.elmo.options`, `model.embedder.elmo.weights`, or the folder of both as `bilm`",
        (f"{_EMBEDDERS}*elmo", f"{_EMBEDDERS}*elmo.*"),
    ),
    Row(
        "`model.text_field_embedder.token_embedders.tokens`",
        "`model.embedder.words`: `embedding_dim` is `size`, `pretrained_file` is `vectors`",
        (f"{_EMBEDDERS}*tokens", f"{_EMBEDDERS}*tokens.*"),
    ),
    Row("`model.text_field_embedder`", "`model.embedder`", (_EMBEDDERS.rstrip("."), f"{_EMBEDDERS}*")),
    Row(
        "`use_input_elmo`, `use_integrator_output_elmo` of `bcn`",
        "`model.embedder.elmo.mixes`",
        ("model.use_input_elmo", "model.use_integrator_output_elmo"),
    ),
    Row(
        "`model.encoder.input_size` and all other input sizes",
        "not needed: sizes follow from the parts",
        ("model.*.input_size", "model.*.input_dim", "model.*.tensor_?_dim"),
    ),
    Row(
        "`similarity_function`, `matrix_attention`",
        "not needed: `dot_product` for pairs, `linear` with `x,y,x*y` for `bidaf`",
        ("model.similarity_function", "model.matrix_attention", "model.*_function.*", "model.matrix_attention.*"),
    ),
    _renamed("`encoder.type`", _ENCODERS, "model.*.type"),
    Row(
        "`encoder.hidden_size`, `encoder.num_layers` of `lstm` and `gru`",
        "`hidden_sizes`, a number for each layer",
        ("model.*.hidden_size", "model.*.num_layers"),
        within=("lstm", "gru"),
    ),
    Row("`hidden_dims`, `num_layers` of feed-forward layers", "`hidden_sizes`", ("model.*.hidden_dims",)),
    Row("`recurrent_dropout_probability`", "`dropout` of the encoder", ("model.*.recurrent_dropout_probability",)),
    Row("`use_highway` of an encoder", "not needed: the type of the encoder says it", ("model.*.use_highway",)),
    Row("`projection_feedforward` of `esim`", "`model.projection`", ("model.projection_feedforward",)),
    Row("`inference_encoder` of `esim`", "`model.composition`", ("model.inference_encoder",)),
    Row(
        "`output_feedforward` with `output_logit` of `esim`",
        "`model.output`; the last layer is not part of it",
        ("model.output_feedforward", "model.output_logit"),
    ),
    Row("`attend_feedforward` of `decomposable_attention`", "`model.attend`", ("model.attend_feedforward",)),
    Row("`compare_feedforward` of `decomposable_attention`", "`model.compare`", ("model.compare_feedforward",)),
    Row(
        "`aggregate_feedforward` of `decomposable_attention`",
        "`model.output`; the last layer is not part of it",
        ("model.aggregate_feedforward",),
    ),
    Row("`phrase_layer` of `bidaf`", "`model.encoder`", ("model.phrase_layer",)),
    Row("`modeling_layer` of `bidaf`", "`model.modeling_encoder`", ("model.modeling_layer",)),
    Row("`span_end_encoder` of `bidaf`", "`model.end_encoder`", ("model.span_end_encoder",)),
    Row("`pre_encode_feedforward` of `bcn`", "`model.pre_encoder`", ("model.pre_encode_feedforward",)),
    Row(
        "`output_layer` of `bcn`",
        "`model.output`; `output_dims` are `hidden_sizes`, `pool_sizes` is `pieces`",
        ("model.output_layer",),
    ),
    Row("`context_layer` of `coref`", "`model.encoder`", ("model.context_layer",)),
    Row("`mention_feedforward` of `coref`", "`model.hidden_sizes`", ("model.mention_feedforward",)),
    Row("`antecedent_feedforward` of `coref`", "`model.pair_hidden_sizes`", ("model.antecedent_feedforward",)),
    Row("`binary_feature_dim` of `srl`", "`model.predicate_size`", ("model.binary_feature_dim",)),
    Row("`embedding_dropout` of `srl`", "`model.dropout`", ("model.embedding_dropout",), within=("srl",)),
    Row("`label_smoothing` of `srl`", "not available: labels are not smoothed", ("model.label_smoothing",)),
    Row(
        "`model.label_encoding`, `model.constrain_crf_decoding`",
        "`model.tag_scheme`; null is without constraints",
        ("model.label_encoding", "model.constrain_crf_decoding"),
    ),
    Row(
        "`model.weight_strategy` of `crf_tagger`",
        "not needed: `model.label_weights` is that of `emission`; it matters only for further training",
        ("model.weight_strategy",),
    ),
    Row(
        "`model.calculate_span_f1`, `verbose_metrics`, `ignore_span_metric`, `srl_eval_path`",
        "not needed: the task says what is measured",
        ("model.calculate_span_f1", "model.verbose_metrics", "model.ignore_span_metric", "model.srl_eval_path"),
    ),
    Row(
        "`model.include_start_end_transitions`",
        "not needed: the tag scheme says where a sequence can begin and end",
        ("model.include_start_end_transitions",),
    ),
    Row("`model.initializer`", "not needed: each layer begins as its source says", ("*.initializer",)),
    Row("`model.regularizer`", "`trainer.regularizers`", ("model.regularizer",)),
    Row(
        "`iterator.batch_size`, `data_loader.batch_sampler.batch_size`",
        "`data_loader.batch_size`, or `batch_tokens`",
        ("*iterator.batch_size", "*.batch_sampler.batch_size"),
    ),
    Row(
        "`iterator`, `data_loader.batch_sampler`",
        "not needed: `data_loader` makes batches of examples of like lengths",
        ("*iterator", "*iterator.*", "*.batch_sampler", "*.batch_sampler.*"),
    ),
    Row("`numpy_seed`, `pytorch_seed`", "`random_seed`", ("numpy_seed", "pytorch_seed")),
    Row("`trainer.num_epochs`, `patience`, `grad_norm`, `grad_clipping`, `optimizer`", "the same", ()),
    _renamed("`trainer.validation_metric`", _METRICS, "trainer.validation_metric"),
    Row("`trainer.cuda_device`", "`trainer.device`", ("trainer.cuda_device",)),
    Row(
        "`trainer.num_serialized_models_to_keep`, `checkpointer`, `summary_interval`, `histogram_interval`",
        "not needed: the best epoch and the last state are kept, and curves are written",
        ("trainer.num_serialized_models_to_keep", "trainer.checkpointer", "trainer.*_interval"),
    ),
    Row(
        "`trainer.moving_average`, `trainer.learning_rate_scheduler`",
        "the same keys with other types; not carried over",
        (),
    ),
)


def answer(path: Sequence[str | int], value: Any, holder: Any = None) -> str | None:
    """What AllenNLP's key or value at a path is here; None if the table does not know it, or it is the same.

    Arguments:
        holder: the object that the key is in.
    """
    name, kind = ".".join(map(str, path)), holder.get("type") if isinstance(holder, Mapping) else None
    found = (
        row
        for row in ROWS
        if (not row.within or kind in row.within) and any(fnmatch.fnmatchcase(name, key) for key in row.keys)
    )
    row = next(found, None)
    return row.text(value) if row else None


def is_allennlp(values: Mapping[str, Any]) -> bool:
    """Whether the values are those of a config of AllenNLP's."""
    return any(_has(values, mark.split(".")) for mark in _MARKS)


def _has(values: Any, path: Sequence[str]) -> bool:
    return not path or (isinstance(values, Mapping) and path[0] in values and _has(values[path[0]], path[1:]))


def answers(
    values: Any, path: tuple[str | int, ...] = (), above: str | None = None
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The paths of all keys that differ here, with what they are here. Of a part that has one answer, it comes once.

    Arguments:
        above: the answer for the part that the values are.
    """
    pairs = values.items() if isinstance(values, Mapping) else enumerate(values) if isinstance(values, list) else ()
    for key, value in pairs:
        found = answer((*path, key), value, values)
        if found and found != above:
            yield (*path, key), found
        yield from answers(value, (*path, key), found)
