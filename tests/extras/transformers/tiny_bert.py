"""A tiny transformer with random weights, and what the library computes with it."""

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.extras.transformers.transformer import FrozenTransformer, Pooling
from elmo_tasks.extras.transformers.transformer_files import TransformerFiles

PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "ma", "##ry", "##n", "##e", "went", "to", "boe", "##ing", ".", "the")
TEXTS = [["Mary", "went", "to", "Boeing", "."], ["Boeing"], [], ["the", "Maryne", "xyz", "went"]]
POSITIONS = 12  # ten pieces between [CLS] and [SEP]


def save_bert(folder: Path, seed: int = 0, **settings: Any) -> Path:
    """A tiny BERT with random weights, and a tokenizer of word pieces."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in _files(seed, **settings).items():
        (folder / name).write_bytes(content)
    torch.manual_seed(seed)
    return folder


@functools.cache
def _files(seed: int, **settings: Any) -> dict[str, bytes]:
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(PIECES), initializer_range=0.5, **{**sizes, "max_position_embeddings": POSITIONS, **settings}
    )
    tokenizer = Tokenizer(models.WordPiece({piece: row for row, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_truncation(4)  # as many published tokenizers have it
    with tempfile.TemporaryDirectory() as folder:
        transformers.BertModel(config).save_pretrained(folder)
        tokenizer.save(f"{folder}/tokenizer.json")
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def frozen(folder: Path, pooling: Pooling = "mean", layers: tuple[int, ...] = (0, 1, 2)) -> FrozenTransformer:
    return FrozenTransformer(*TransformerFiles(folder).load(), layers, pooling)


@functools.cache
def library_model(folder: Path) -> Any:
    """The library's own model of a folder that does not change."""
    import transformers

    return transformers.BertModel.from_pretrained(folder).eval()


@torch.no_grad()
def library_states(folder: Path, pieces: Sequence[str], types: Sequence[int] | None = None) -> Tensor:
    """All layers of word pieces, and those around them, as the library computes them: (L+1, pieces, D)."""
    ids = torch.tensor([[PIECES.index(piece) for piece in pieces]])
    types_of = None if types is None else torch.tensor([types])
    return torch.cat(library_model(folder)(ids, token_type_ids=types_of, output_hidden_states=True).hidden_states)


def states(folder: Path, pieces: Sequence[str]) -> Tensor:
    """All layers of word pieces between [CLS] and [SEP]: (L+1, pieces, D)."""
    return library_states(folder, ["[CLS]", *pieces, "[SEP]"])[:, 1:-1]
