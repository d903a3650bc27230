"""Classes of other packages under which people's old scripts know ELMo."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM
from elmo_tasks.errors import ElmoTasksError, check_argument, check_count

logger = logging.getLogger(__name__)


def checked_device(cuda_device: Any) -> torch.device:
    """The device that AllenNLP's `cuda_device` means; without any GPU the CPU, with a warning.

    Raises:
        ElmoTasksError: there are GPUs, but not this one.
    """
    if isinstance(cuda_device, int):
        cuda_device = f"cuda:{cuda_device}" if cuda_device >= 0 else "cpu"
    device, count = torch.device(cuda_device or "cpu"), torch.cuda.device_count()
    if device.type == "cuda" and not count:
        logger.warning("cuda_device is %s, but torch finds no GPU; the CPU is used", device)
        return torch.device("cpu")
    if (device.index or 0) >= max(1, count):
        raise ElmoTasksError(f"cuda_device is {device}; expected one of {count} GPU(s)")
    return device


class ElmoEmbedder:
    """AllenNLP's `allennlp.commands.elmo.ElmoEmbedder`: the layers of tokenized sentences as arrays.

    Source: AllenNLP 0.9.0. As there, the biLM carries its state from batch to batch, so that the vectors of a sentence
    depend on the sentences before it. `elmo_tasks.embed` gives vectors that do not.

    It differs in that addresses other than those of published biLMs need their hashes: see docs/rescue.md. Without
    arguments, it is the biLM in the package, not the original one.

    Arguments:
        options_file: the biLM's options.json, or its folder, or another name of a biLM; see `BiLM.load`.
        weight_file: its weights as HDF5; None if `options_file` is the biLM.
        cuda_device: the number of a GPU, -1 for the CPU, which is also used, with a warning, if there is no GPU.

    Raises:
        WeightsError: a file is missing or damaged, or the two do not fit together.
        ElmoTasksError: there are GPUs, but none with this number.
    """

    def __init__(
        self,
        options_file: str | Path | None = None,
        weight_file: str | Path | None = None,
        cuda_device: int = -1,
    ) -> None:
        if options_file is None:
            logger.warning("ElmoEmbedder: no files are named; the biLM in the package is used, not AllenNLP's")
        check_count("cuda_device", cuda_device, -1)
        device = checked_device(cuda_device)
        self.cuda_device = -1 if device.type == "cpu" else cuda_device
        self.elmo_bilm = BiLM.load(options_file or DEFAULT_BILM, weight_file, stateful=True).to(device)

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """The layers of a batch, (B, L+1, T, D), and its mask, (B, T); zeros in the padding."""
        with torch.no_grad():
            output = self.elmo_bilm.layers(batch)
        return output.layers, output.mask

    def embed_sentence(self, sentence: Sequence[str]) -> NDArray[np.float32]:
        """The layers of a sentence, (L+1, T, D)."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """The layers of each sentence of a batch, (L+1, T, D)."""
        layers, _ = self.batch_to_embeddings(batch)
        return [each[:, : len(tokens)].cpu().numpy() for each, tokens in zip(layers, batch, strict=True)]

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], batch_size: int = 64
    ) -> Iterator[NDArray[np.float32]]:
        """The layers of sentences, (L+1, T, D), which are read `batch_size` at a time while the results are used."""
        check_argument("sentences", sentences, Iterable, "a list of tokens for each sentence")
        rest = iter(sentences)
        while batch := list(itertools.islice(rest, batch_size)):
            yield from self.embed_batch(batch)
