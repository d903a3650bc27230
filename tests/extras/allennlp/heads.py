"""Archives of every head in AllenNLP's layout, with random weights: `make` is the factory of the tests of heads."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmo_tasks.extras.allennlp.archive import AllenNlpVocabulary, Params, Weights
from elmo_tasks.extras.allennlp.heads import convert_head
from elmo_tasks.extras.allennlp.heads.head import Head
from elmo_tasks.models import ModelConfig, TaskModel
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary
from tests.extras.allennlp.archives import with_changes, write_archive

SIZE, HIDDEN = 6, 3  # of the embedder and of one direction of an encoder
BOTH = 2 * HIDDEN
LABELS = ("entailment", "neutral", "contradiction")
SPANS = ("O", "B-X", "I-X")
ROLES = ("O", "B-V", "B-A0", "I-A0", "B-AM-TMP")
LABELS_OF: dict[str, tuple[str, ...]] = {"bidaf": (), "crf_tagger": SPANS, "simple_tagger": SPANS, "srl": ROLES}
WORDS = ("tarn", "vale", "moro", "orla", "brusk", "it", "is", "?", "@@NULL@@")
LSTM = {"type": "lstm", "bidirectional": True, "num_layers": 1, "hidden_size": HIDDEN}


class Archive:
    """The config and the tensors of a model of AllenNLP's, and the vectors that its embedder gives."""

    def __init__(self, kind: str, labels: tuple[str, ...]) -> None:
        torch.manual_seed(3)
        self.model: dict[str, Any] = {"type": kind}
        self.config: dict[str, Any] = {"model": self.model, "dataset_reader": {}}
        self.labels = labels
        self.tensors: dict[str, Tensor] = {}
        self.table = torch.randn(len(SPECIAL) + len(WORDS), SIZE)
        self.table[0] = 0

    def add(self, name: str, *shape: int) -> None:
        self.tensors[name] = torch.randn(*shape) / 2

    def linear(self, name: str, inputs: int, outputs: int) -> None:
        self.add(f"{name}.weight", outputs, inputs)
        self.add(f"{name}.bias", outputs)

    def layers(self, key: str, *sizes: int, name: str = "", activations: Any = "relu", **settings: Any) -> None:
        """Feed-forward layers; `name` is that of their tensors, by default the key with an underscore."""
        inputs, *outputs = sizes
        own = {"input_dim": inputs, "num_layers": len(outputs), "hidden_dims": outputs, "activations": activations}
        self.model[key] = own | settings
        for number, pair in enumerate(itertools.pairwise(sizes)):
            self.linear(f"{name or f'_{key}'}._linear_layers.{number}", *pair)

    def lstm(self, key: str, inputs: int, name: str = "") -> None:
        """A bidirectional LSTM; `name` is as for `layers`."""
        self.model[key] = {**LSTM, "input_size": inputs}
        for parameter, tensor in nn.LSTM(inputs, HIDDEN, bidirectional=True).state_dict().items():
            self.tensors[f"{name or f'_{key}'}._module.{parameter}"] = tensor

    def convert(self) -> tuple[Head, TaskModel[Any, Any], Vocabulary]:
        """Our model, whose embedder has its features in another order; no tensor and no key of the model is left."""
        columns = torch.randperm(SIZE)
        params, weights = Params(self.config), Weights(dict(self.tensors))
        head = convert_head(params, weights, AllenNlpVocabulary({"labels": self.labels}), columns)
        assert weights.names() == []
        assert [key for key in params.unread() if key.startswith("model.") and "input_size" not in key] == []
        words = (*SPECIAL, *WORDS)
        ours = Vocabulary(words, len(words), SPECIAL, head.labels)
        values = {**head.config, "embedder": {"words": {"size": SIZE}}}
        config = ModelConfig.model_validate_json(json.dumps(values))
        model = config.build(ours, config.embedder.build(ours))
        words_table = {"trained": self.table[:, columns], "fixed": torch.zeros(0, SIZE)}
        model.load_state_dict({**head.tensors, **{f"embedder.words.{key}": each for key, each in words_table.items()}})
        return head, model.eval(), ours

    def embed(self, words: list[str]) -> Tensor:
        return self.table[[len(SPECIAL) + WORDS.index(word) for word in words]]

    def run_linear(self, name: str, inputs: Tensor) -> Tensor:
        return inputs @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def run_layers(self, name: str, inputs: Tensor, last: bool = False) -> Tensor:
        """Linear layers with rectifiers, except after the last one if it is that of the scores."""
        numbers = [int(key.split(".")[-2]) for key in self.tensors if key.startswith(name) and key.endswith("weight")]
        for number in sorted(numbers):
            inputs = self.run_linear(f"{name}._linear_layers.{number}", inputs)
            inputs = inputs if last and number == max(numbers) else inputs.relu()
        return inputs

    def run_lstm(self, name: str, inputs: Tensor) -> Tensor:
        module = nn.LSTM(inputs.shape[1], HIDDEN, bidirectional=True)
        start = f"{name}._module."
        module.load_state_dict({key[len(start) :]: each for key, each in self.tensors.items() if key.startswith(start)})
        return module(inputs)[0]


def make(
    kind: str, changes: Mapping[str, Any] | None = None, labels: tuple[str, ...] | None = None, **variant: Any
) -> Archive:
    """An archive of a model of AllenNLP's.

    Arguments:
        changes: values of the config by their key paths; see `with_changes`.
        variant: what the maker of this kind can do differently.
    """
    archive = Archive(kind, LABELS_OF.get(kind, LABELS) if labels is None else labels)
    MAKERS[kind](archive, **variant)
    archive.config = with_changes(archive.config, changes or {})
    return archive


def write(kind: str, path: Path, changes: Mapping[str, Any] | None = None, **variant: Any) -> Path:
    """Writes the archive of a model that reads word vectors of `WORDS`; arguments as for `make`."""
    made = make(kind, changes, **variant)
    embedder = {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": SIZE}}}
    config = {**made.config, "train_data_path": "train"}
    config["model"] = {**config["model"], "text_field_embedder": embedder}
    tensors = {**made.tensors, "text_field_embedder.token_embedder_tokens.weight": made.table}
    return write_archive(path, config, tensors, {"tokens": ["@@UNKNOWN@@", *WORDS], "labels": made.labels})


def _tagger(archive: Archive, layer: int = 0) -> None:
    archive.config["dataset_reader"] = {"type": "conll2003"}
    archive.lstm("encoder", SIZE, name="encoder")
    if layer:
        archive.layers("feedforward", BOTH, layer, dropout=0.1)
    size = len(archive.labels)
    archive.linear("tag_projection_layer._module", layer or BOTH, size)
    if archive.model["type"] == "crf_tagger":
        archive.add("crf.transitions", size, size)


def _srl(archive: Archive) -> None:
    archive.config["dataset_reader"] = {"type": "srl"}
    archive.model |= {"binary_feature_dim": 4, "embedding_dropout": 0.2, "label_smoothing": 0.1}
    archive.model["ignore_span_metric"] = True
    archive.lstm("encoder", SIZE + 4, name="encoder")
    archive.add("binary_feature_embedding.weight", 2, 4)
    archive.linear("tag_projection_layer._module", BOTH, len(archive.labels))


def _esim(archive: Archive) -> None:
    archive.config["dataset_reader"] = {"type": "snli"}
    archive.model |= {"similarity_function": {"type": "dot_product"}, "dropout": 0.4}
    archive.lstm("encoder", SIZE)
    archive.layers("projection_feedforward", 4 * BOTH, 5)
    archive.lstm("inference_encoder", 5)
    archive.layers("output_feedforward", 4 * BOTH, 4, dropout=0.2)
    archive.layers("output_logit", 4, 3, activations="linear")


def _decomposable_attention(archive: Archive, aggregate: tuple[int, ...] = (8, 3)) -> None:
    archive.config["dataset_reader"] = {"type": "snli", "tokenizer": {}}
    archive.model["matrix_attention"] = {"type": "dot_product"}
    archive.layers("attend_feedforward", SIZE, 5, 4, name="_attend_feedforward._module")
    archive.layers("compare_feedforward", 2 * SIZE, 4, name="_compare_feedforward._module")
    activations = ["relu"] * (len(aggregate) - 2) + ["linear"]
    archive.layers("aggregate_feedforward", *aggregate, activations=activations, dropout=0.1)


def _bidaf(archive: Archive, version: int = 2) -> None:
    archive.config["dataset_reader"] = {"type": "squad"}
    attention = {"type": "linear", "combination": "x,y,x*y", "tensor_1_dim": BOTH, "tensor_2_dim": BOTH}
    archive.model |= {"num_highway_layers": 2, "matrix_attention" if version else "similarity_function": attention}
    archive.lstm("phrase_layer", SIZE)
    archive.lstm("modeling_layer", 4 * BOTH)
    archive.lstm("span_end_encoder", 7 * BOTH)
    for number in range(2):
        archive.linear(f"_highway_layer._module._layers.{number}", SIZE, 2 * SIZE)
    inner = "" if version else "_similarity_function."
    archive.add(f"_matrix_attention.{inner}_weight_vector", 3 * BOTH)
    archive.add(f"_matrix_attention.{inner}_bias", 1)
    for name in ("start", "end"):
        archive.linear(f"_span_{name}_predictor._module", 5 * BOTH, 1)


def _bcn(archive: Archive, maxout: bool = False) -> None:
    inputs = 4 * BOTH
    archive.model |= {"embedding_dropout": 0.3, "integrator_dropout": 0.2}
    archive.layers("pre_encode_feedforward", SIZE, 5)
    archive.lstm("encoder", 5)
    archive.lstm("integrator", 3 * BOTH)
    archive.linear("_self_attentive_pooling_projection", BOTH, 1)
    if maxout:
        settings = {"output_dims": [4, 3], "pool_sizes": 2, "dropout": [0.2, 0]}
        archive.model["output_layer"] = {"input_dim": inputs, "num_layers": 2, **settings}
        archive.linear("_output_layer._linear_layers.0", inputs, 8)
        archive.linear("_output_layer._linear_layers.1", 4, 6)
    else:
        archive.layers("output_layer", inputs, 4, 3, activations=["relu", "linear"])


def _coref(archive: Archive, version: int = 2, widths: int = 3, coarse: bool = False, order: int = 1) -> None:
    features = 2
    span = 2 * BOTH + features + SIZE
    archive.config["dataset_reader"] = {"type": "coref", "max_span_width": 3}
    archive.model |= {"feature_size": features, "max_span_width": widths, "lexical_dropout": 0.3}
    archive.model |= {"spans_per_word": 0.9, "max_antecedents": 4}
    hidden, scorer = MENTION_LAYERS[version]
    archive.lstm("context_layer", SIZE)
    archive.layers("mention_feedforward", span, 5, 4, name=f"{hidden}._module")
    archive.linear(f"{scorer}._module", 4, 1)
    archive.layers("antecedent_feedforward", 3 * span + features, 6, name="_antecedent_feedforward._module")
    archive.linear("_antecedent_scorer._module", 6, 1)
    archive.linear("_attentive_span_extractor._global_attention._module", SIZE, 1)
    archive.add("_endpoint_span_extractor._span_width_embedding.weight", widths, features)
    archive.add("_distance_embedding.weight", 10, features)
    if coarse:
        archive.linear("_coarse2fine_scorer", span, span)
    if order > 1:
        archive.linear("_span_updating_gated_sum._gate", 2 * span, 1)
    archive.model |= {"coarse_to_fine": coarse, "inference_order": order}


# Of AllenNLP's versions: the hidden layers that score mentions, and the last one.
MENTION_LAYERS = {
    0: ("_mention_pruner._scorer.0", "_mention_pruner._scorer.1"),
    2: ("_mention_feedforward", "_mention_scorer"),
}
MAKERS: dict[str, Callable[..., None]] = {
    "bcn": _bcn,
    "bidaf": _bidaf,
    "coref": _coref,
    "crf_tagger": _tagger,
    "decomposable_attention": _decomposable_attention,
    "esim": _esim,
    "simple_tagger": _tagger,
    "srl": _srl,
}
