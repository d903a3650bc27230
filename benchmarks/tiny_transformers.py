"""Transformers with random weights and small vocabularies, as folders like those on the hub."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import torch

WORDS = [
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "was",
    "for",
    "on",
    "said",
    "that",
    "with",
    "as",
    "by",
    "at",
    "from",
    "it",
    "is",
    "were",
    "be",
    "has",
    "his",
    "its",
    "new",
    "not",
    "had",
    "an",
    "but",
    "which",
    "give",
    "gave",
    "given",
    "mill",
    "tarn",
    "lake",
    "river",
    "person",
    "old",
    "green",
    "house",
    "walk",
    "walked",
    "ing",
    "ed",
    "er",
    "est",
    "play",
    "playing",
    "player",
]
CAPITALS = ["The", "Berlin", "Orla", "Tavo", "Mill", "Lake"]
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}


def make_bert(folder: Path, *, cased: bool, **sizes: Any) -> Path:
    """A BERT; the folder's name should say whether it is cased, as AllenNLP looks there."""
    import transformers

    folder.mkdir(parents=True)
    letters = string.ascii_letters if cased else string.ascii_lowercase
    whole = [*letters, *string.digits, *".,-'?!", *WORDS, *(CAPITALS if cased else map(str.lower, CAPITALS))]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *whole]
    pieces += [f"##{each}" for each in [*letters, *string.digits, *"-'", "ing", "ed", "er", "est", "ey"]]
    pieces = list(dict.fromkeys(pieces))
    (folder / "vocab.txt").write_text("\n".join([*pieces, ""]))
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": not cased}))
    torch.manual_seed(1)
    config = transformers.BertConfig(vocab_size=len(pieces), initializer_range=0.2, **(sizes or SIZES))
    transformers.BertModel(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join([*pieces, ""]))
    return folder


def make_roberta(folder: Path) -> Path:
    """A RoBERTa with byte pairs of the same words."""
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    folder.mkdir(parents=True)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator([" ".join(WORDS)] * 10, vocab_size=400, special_tokens=special)
    trained.save_model(str(folder))
    torch.manual_seed(1)
    config = transformers.RobertaConfig(
        vocab_size=trained.get_vocab_size(), max_position_embeddings=514, type_vocab_size=1, initializer_range=0.2,
        pad_token_id=1, bos_token_id=0, eos_token_id=2, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64,
    )  # fmt: skip
    transformers.RobertaModel(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    return folder


def make_transformer(folder: Path, name: str) -> Path:
    """A small transformer in place of a published one, by its name."""
    if "roberta" in name:
        return make_roberta(folder / "tiny-roberta")
    kind = "uncased" if "uncased" in name else "cased"
    return make_bert(folder / f"tiny-bert-{kind}", cased=kind == "cased")
