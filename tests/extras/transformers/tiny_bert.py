"""A tiny transformer with random weights, and what the library computes with it."""

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
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(PIECES), initializer_range=0.5, **{**sizes, "max_position_embeddings": POSITIONS, **settings}
    )
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordPiece({piece: row for row, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_truncation(4)  # as many published tokenizers have it
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def frozen(folder: Path, pooling: Pooling = "mean", layers: tuple[int, ...] = (0, 1, 2)) -> FrozenTransformer:
    return FrozenTransformer(*TransformerFiles(folder).load(), layers, pooling)


@torch.no_grad()
def states(folder: Path, pieces: list[str]) -> Tensor:
    """All layers of word pieces between [CLS] and [SEP], as the library computes them: (L+1, pieces, D)."""
    import transformers

    model = transformers.BertModel.from_pretrained(folder).eval()
    ids = [PIECES.index(piece) for piece in ["[CLS]", *pieces, "[SEP]"]]
    return torch.cat(model(torch.tensor([ids]), output_hidden_states=True).hidden_states)[:, 1:-1]
