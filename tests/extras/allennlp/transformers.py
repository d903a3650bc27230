"""Archives of AllenNLP's models that hold a tiny fine-tuned transformer with random weights."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from tests.extras.allennlp import heads
from tests.extras.allennlp.archives import write_archive
from tests.extras.transformers.tiny_bert import PIECES, save_bert

SIZE = 8
NAME = "bert-base-cased"  # what archives call their transformer
TAGS = ("O", "B-PER", "I-PER", "L-PER", "U-PER")
MISMATCHED = {"type": "pretrained_transformer_mismatched", "model_name": NAME}
TAGGER: dict[str, Any] = {
    "dataset_reader": {"type": "ontonotes_ner", "coding_scheme": "BIOUL", "token_indexers": {"tokens": MISMATCHED}},
    "train_data_path": "train",
    "model": {
        "type": "crf_tagger",
        "label_encoding": "BIOUL",
        "include_start_end_transitions": False,
        "text_field_embedder": {"token_embedders": {"tokens": {**MISMATCHED, "train_parameters": False}}},
        "encoder": {"type": "pass_through", "input_dim": SIZE},
    },
}


def fine_tuned(folder: Path, prefix: str, **settings: Any) -> dict[str, Tensor]:
    """The tensors of a BERT that is saved in a folder, under AllenNLP's names."""
    state = safetensors.torch.load_file(save_bert(folder, **settings) / "model.safetensors")
    positions = {"embeddings.position_ids": torch.arange(12).unsqueeze(0)}  # as older versions have it
    return {f"{prefix}{name}": tensor for name, tensor in {**state, **positions}.items()}


def published(folder: Path, target: Path, *, vocabulary: bool = False) -> Path:
    """What the hub has of a transformer before it is fine-tuned: its config and its tokenizer, or its word pieces."""
    target.mkdir()
    shutil.copy(folder / "config.json", target)
    if vocabulary:
        (target / "vocab.txt").write_text("\n".join([*PIECES, ""]))
    else:
        shutil.copy(folder / "tokenizer.json", target)
    return target


def linear(name: str, inputs: int, outputs: int) -> dict[str, Tensor]:
    return {f"{name}.weight": torch.randn(outputs, inputs), f"{name}.bias": torch.randn(outputs)}


def tagger(
    path: Path, config: Mapping[str, Any] = TAGGER, more: Mapping[str, Tensor] | None = None, **settings: Any
) -> tuple[Path, dict[str, Tensor]]:
    """An archive of a tagger in a folder, and its tensors; the transformer's files are in `path / "bert"`."""
    embedder = "text_field_embedder.token_embedder_tokens._matched_embedder."
    tensors = {
        **fine_tuned(path / "bert", f"{embedder}transformer_model.", **settings),
        **linear("tag_projection_layer._module", SIZE, len(TAGS)),
        "crf.transitions": torch.randn(len(TAGS), len(TAGS)),
        **{f"{embedder}{name}": tensor for name, tensor in (more or {}).items()},
    }
    return write_archive(path / "model.tar.gz", config, tensors, {"labels": TAGS}), tensors


def written(path: Path, config: Mapping[str, Any], tensors: Mapping[str, Tensor], labels: Sequence[str]) -> Path:
    return write_archive(path / "model.tar.gz", config, tensors, {"labels": labels})


ROLES = ("O", "B-V", "B-ARG0", "I-ARG0")
SRL: dict[str, Any] = {
    "dataset_reader": {"type": "srl", "bert_model_name": "bert-base-uncased"},
    "train_data_path": "train",
    "data_loader": {"batch_size": 2},
    "model": {"type": "srl_bert", "embedding_dropout": 0.1, "bert_model": "bert-base-uncased"},
}


def roles(path: Path, config: Mapping[str, Any] = SRL, labels: Sequence[str] = ROLES) -> tuple[Path, dict[str, Tensor]]:
    """An archive of a model of semantic roles; the transformer's files are in `path / "bert"`."""
    torch.manual_seed(5)
    tensors = {**fine_tuned(path / "bert", "bert_model."), **linear("tag_projection_layer", SIZE, len(ROLES))}
    return written(path, config, tensors, labels), tensors


MATCHED = {"type": "pretrained_transformer", "model_name": NAME}
CLASSIFIER: dict[str, Any] = {
    "dataset_reader": {
        "type": "snli",
        "tokenizer": {**MATCHED, "add_special_tokens": False},
        "token_indexers": {"tokens": MATCHED},
    },
    "train_data_path": "https://example.org/train.jsonl",
    "model": {
        "type": "basic_classifier",
        "text_field_embedder": {"token_embedders": {"tokens": MATCHED}},
        "seq2vec_encoder": {"type": "bert_pooler", "pretrained_model": NAME, "dropout": 0.1},
        "dropout": 0.1,
        "namespace": "tags",
    },
}
LABELS = ("entailment", "contradiction", "neutral")


def classifier(path: Path, config: Mapping[str, Any] = CLASSIFIER) -> tuple[Path, dict[str, Tensor]]:
    """An archive of a classifier that reads the first piece's vector; the transformer is in `path / "bert"`."""
    prefix = "_text_field_embedder.token_embedder_tokens.transformer_model."
    tensors = {
        **fine_tuned(path / "bert", prefix),
        **linear("_seq2vec_encoder.pooler.dense", SIZE, SIZE),
        **linear("_classification_layer", SIZE, len(LABELS)),
    }
    return written(path, config, tensors, LABELS), tensors


def spanbert(path: Path) -> Path:
    """An archive of a resolver, from coarse to fine and of order 2; the transformer's files are in `path / "bert"`."""
    embedder = {"token_embedders": {"tokens": MISMATCHED}}
    changes = {
        "dataset_reader.token_indexers": {"tokens": MISMATCHED},
        "model.text_field_embedder": embedder,
        "model.context_layer": {"type": "pass_through", "input_dim": heads.SIZE},
        "train_data_path": "train",
    }
    made = heads.make("coref", changes, coarse=True, order=2)
    prefix = "_text_field_embedder.token_embedder_tokens._matched_embedder.transformer_model."
    tensors = {name: tensor for name, tensor in made.tensors.items() if not name.startswith("_context_layer")}
    tensors |= fine_tuned(path / "bert", prefix, hidden_size=heads.SIZE)
    return write_archive(path / "model.tar.gz", made.config, tensors, {})
