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


def tf_hub_outputs(
    sentences: Sequence[str | Sequence[str]],
    bilm: BiLM | str | Path = DEFAULT_BILM,
    weights: Tensor | None = None,
    gamma: Tensor | float = 1.0,
) -> dict[str, Tensor]:
    """The outputs of `https://tfhub.dev/google/elmo/3`, by its keys; zeros in the padding.

    `word_emb` (B, T, D/2) are the vectors of the token layer, `lstm_outputs1`, `lstm_outputs2`, ... (B, T, D) those of
    each LSTM layer, `elmo` (B, T, D) the mix of all layers, and `default` (B, D) its mean over the tokens.

    Arguments:
        sentences: each a list of tokens, or a text that is split at white space.
        bilm: a biLM, or what `BiLM.load` takes.
        weights: (L+1,), of the mix before the softmax, as `aggregation/weights`; equal by default.
        gamma: the factor of the mix, as `aggregation/scaling`.
    """
    network = bilm if isinstance(bilm, BiLM) else BiLM.load(bilm)
    output = network.layers([each.split() if isinstance(each, str) else each for each in sentences])
    tokens, *outputs = output.layers.unbind(1)
    shares = (torch.zeros(network.num_layers) if weights is None else weights).softmax(0).to(tokens)
    elmo = gamma * torch.einsum("l,bltd->btd", shares, output.layers)
    result = {"word_emb": tokens[..., : network.output_size // 2], "elmo": elmo}
    result |= {f"lstm_outputs{number}": each for number, each in enumerate(outputs, 1)}
    return {**result, "default": elmo.sum(1) / output.mask.sum(1, keepdim=True).clamp(min=1)}


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
