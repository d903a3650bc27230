"""Small heads with random weights, and what the equations of several heads share, one text at a time."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_tasks.models import ModelConfig
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary

WORDS = ("tarn", "vale", "moro", "orla", "END")


def make_head(settings: dict[str, Any], labels: Mapping[str, tuple[str, ...]]) -> tuple[Any, Vocabulary]:
    """The head of a config in evaluation, and its vocabulary of `WORDS` and labels."""
    torch.manual_seed(4)
    config = ModelConfig.model_validate({"embedder": {"words": {"size": 6}}, **settings})
    words = (*SPECIAL, *WORDS)
    vocabulary = Vocabulary(words=words, num_trained_words=len(words), characters=SPECIAL, labels=dict(labels))
    return config.build(vocabulary, config.embedder.build(vocabulary)).eval(), vocabulary


def texts_of_lengths(*lengths: int) -> list[list[str]]:
    return [[WORDS[(row + token) % 4] for token in range(length)] for row, length in enumerate(lengths)]


def linear(values: NDArray[np.float64], layer: Any) -> NDArray[np.float64]:
    return values @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()


def encode(encoder: torch.nn.Module, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """One text through the encoder, (T, D) -> (T, H)."""
    inputs = torch.from_numpy(vectors).float().unsqueeze(0)
    return encoder(inputs, torch.ones(inputs.shape[:2], dtype=torch.bool))[0].detach().double().numpy()


def attention(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """The softmax over the dot products of each token with those of the second text, (T1, T2)."""
    rows = [np.exp([token @ other for other in second]) for token in first]
    return np.stack([row / row.sum() for row in rows])
