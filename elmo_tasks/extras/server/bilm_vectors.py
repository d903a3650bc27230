"""What the server computes with a biLM: vectors, similarities of two tokens, nearest tokens, surprisals.

# L+1 layers, T tokens, D features
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elmo_tasks.elmo import FastBiLM
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM, BiLMFiles
from elmo_tasks.elmo.fast import Precision, load_frozen
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.pretraining.language_model import LanguageModel
from elmo_tasks.extras.probes.neighbors import TokenVectors
from elmo_tasks.extras.raw_text import raw_lines, tokenizer_of_bilm
from elmo_tasks.extras.samples import SENTENCES
from elmo_tasks.extras.server.served_runs import ServedRun, to_bytes
from elmo_tasks.extras.vectors.embed import embed_sentences
from elmo_tasks.predictors.fields import one_of, tokens_field, words_field
from elmo_tasks.predictors.predictor import release_memory_after

_DIGITS = 6  # of numbers in answers
_WORK_OF_A_SCORE = 10  # how much longer it takes to score a token than to make its vectors: 9.2 times was measured


@dataclasses.dataclass(frozen=True)
class BiLMRequest:
    """Sentences that the biLM reads for a request, and what is made of them."""

    sentences: list[list[str]]
    finish: Callable[[list[Tensor]], dict[str, Any]]  # of vectors (L+1, T, D), none for scores
    work: int = 1  # of a token

    @property
    def tokens(self) -> int:
        return sum(map(len, self.sentences))

    @property
    def cost(self) -> int:
        return self.work * self.tokens


class ServedBiLM:
    """A biLM, which the models of the runs may use too. It is loaded by `warm_up`, or for the first request.

    Neighbours are looked for in the sentences of the package.
    """

    def __init__(self, files: BiLMFiles, precision: Precision = "float32", device: torch.device | None = None) -> None:
        self.num_layers = BiLMOptions.load(files.options).num_layers
        self._folder = files.options.parent
        self._device = device or torch.device("cpu")
        self._load = functools.partial(load_frozen, files, precision, self._device)
        self._tokenizer = tokenizer_of_bilm(self._folder)
        sentences = (tuple(each) for _, line in raw_lines(SENTENCES) for each in self._tokenizer.strings(line))
        self._sentences = list(dict.fromkeys(filter(None, sentences)))

    @functools.cached_property
    def _bilm(self) -> FastBiLM:
        return self._load()

    @functools.cached_property
    def _language_model(self) -> LanguageModel:
        return LanguageModel.load(self._folder).to(self._device)

    @functools.cached_property
    def _pool(self) -> TokenVectors:
        return TokenVectors.of(self._bilm, self._sentences)

    def warm_up(self) -> None:
        """Loads the biLM and computes the vectors among which neighbours are looked for."""
        _ = self._pool

    def tokens(self, fields: Mapping[str, Any]) -> list[str]:
        """The tokens of a sentence, given as `tokens` or as `text`; raises `ElmoTasksError` if there are none."""
        if one_of(fields, "text", "tokens") == "tokens":
            return tokens_field(fields, "tokens")
        return words_field(fields, "text", self._tokenizer)

    def embed(self, fields: Mapping[str, Any], layers: Sequence[int] | None, pooling: str) -> BiLMRequest:
        """The vectors of a sentence: `{"tokens": [...], "layers": [...]}`.

        Each of the layers is a list with a vector for each token or, if they are pooled, one vector.
        """
        tokens = self.tokens(fields)
        chosen = list(range(self.num_layers)) if layers is None else [self._layer(layer) for layer in layers]
        if len(set(chosen)) < len(chosen):
            raise ElmoTasksError("'layers' names a layer twice; expected each layer once")

        def finish(vectors: list[Tensor]) -> dict[str, Any]:
            kept = vectors[0][chosen]  # (K, T, D)
            if pooling != "none":
                kept = kept.mean(dim=1) if pooling == "mean" else kept.amax(dim=1)  # (K, D)
            return {"tokens": tokens, "layers": _rounded(kept)}

        return BiLMRequest([tokens], finish)

    def compare(self, sides: Sequence[tuple[Mapping[str, Any], int]]) -> BiLMRequest:
        """The similarity of two tokens in their sentences: `{"layers": [{"layer": 0, "cosine": 0.9}, ...]}`."""
        sentences = [self.tokens(fields) for fields, _ in sides]
        indices = [_index(index, tokens) for (_, index), tokens in zip(sides, sentences, strict=True)]

        def finish(vectors: list[Tensor]) -> dict[str, Any]:
            first, second = (each[:, index] for each, index in zip(vectors, indices, strict=True))  # (L+1, D)
            cosines = _rounded(functional.cosine_similarity(first, second, dim=-1))
            return {"layers": [{"layer": layer, "cosine": cosine} for layer, cosine in enumerate(cosines)]}

        return BiLMRequest(sentences, finish)

    def neighbors(self, fields: Mapping[str, Any], index: int, layer: int, count: int) -> BiLMRequest:
        """The tokens of the pool that are nearest to a token: `{"neighbors": [{"tokens", "index", "cosine"}, ...]}`."""
        tokens = self.tokens(fields)
        _index(index, tokens)
        self._layer(layer)

        def finish(vectors: list[Tensor]) -> dict[str, Any]:
            own = sum(1 for each in self._pool.tokens if each.sentence == tuple(tokens))  # its own sentence is left out
            found = self._pool.nearest(vectors[0][:, index], count + own)[layer]
            others = [each for each in found if each.token.sentence != tuple(tokens)][:count]
            places = [{"tokens": list(each.token.sentence), "index": each.token.index} for each in others]
            cosines = [round(each.similarity, _DIGITS) for each in others]
            return {"neighbors": [{**place, "cosine": cosine} for place, cosine in zip(places, cosines, strict=True)]}

        return BiLMRequest([tokens], finish)

    def score(self, fields: Mapping[str, Any], substitutes: int) -> BiLMRequest:
        """How surprising each token is, as a line of `elmo-tasks score --json`.

        Raises:
            ElmoTasksError: the biLM has no softmax.
        """
        if not LanguageModel.is_in_folder(self._folder):
            raise ElmoTasksError("this biLM has no softmax, so it cannot predict words")
        sentences = [self.tokens(fields)]

        def finish(_: list[Tensor]) -> dict[str, Any]:
            return self._language_model.score(sentences, substitutes)[0].record()

        return BiLMRequest(sentences, finish, _WORK_OF_A_SCORE)

    def answer_scores(self, requests: list[BiLMRequest]) -> list[bytes]:
        """What requests for scores get, as JSON. The language model is loaded for the first one."""
        answers = [to_bytes(each.finish([])) for each in requests]
        release_memory_after(sum(request.cost for request in requests))
        return answers

    def answer(self, requests: list[BiLMRequest]) -> list[bytes]:
        """What requests get that are computed together, as JSON."""
        vectors = iter(embed_sentences([tokens for request in requests for tokens in request.sentences], self._bilm))
        answers = [to_bytes(each.finish([next(vectors).cpu() for _ in each.sentences])) for each in requests]
        release_memory_after(sum(request.tokens for request in requests))
        return answers

    def _layer(self, layer: int) -> int:
        if not 0 <= layer < self.num_layers:
            raise ElmoTasksError(f"there is no layer {layer}; the biLM has layers 0 to {self.num_layers - 1}")
        return layer


def bilms_of_runs(runs: Mapping[str, ServedRun]) -> dict[str, ServedBiLM]:
    """The biLMs by the names of the runs that use them, each once; under `""` the first, or the one in the package."""
    bilms: dict[tuple[str, str, str], ServedBiLM] = {}
    named: dict[str, ServedBiLM] = {}
    for name, run in runs.items():
        if run.elmo:
            key = (run.elmo.files().fingerprint(), run.elmo.precision, str(run.device))
            if key not in bilms:
                bilms[key] = ServedBiLM(run.elmo.files(), run.elmo.precision, run.device)
            named[name] = bilms[key]
    return {"": next(iter(named.values()), None) or ServedBiLM(BiLMFiles.in_folder(DEFAULT_BILM)), **named}


def _index(index: int, tokens: Sequence[str]) -> int:
    if not 0 <= index < len(tokens):
        raise ElmoTasksError(f"'index' is {index!r}; expected the index of a token, from 0 to {len(tokens) - 1}")
    return index


def _rounded(values: Tensor) -> Any:
    """Lists of numbers with few digits: each digit is a byte of the answer."""
    return np.round(values.numpy().astype(np.float64), _DIGITS).tolist()
