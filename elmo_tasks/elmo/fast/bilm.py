"""A frozen biLM's layers, as fast as the machine allows.

# B sentences, T tokens of the longest or of each, N steps of a group in one direction, with borders, L LSTM layers,
# P features of one direction, D = 2P features of a layer
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from elmo_tasks.elmo.bilm import BiLM, LayerChunk, LayerOutput
from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE
from elmo_tasks.elmo.fast.graphs import GraphedLstm
from elmo_tasks.elmo.fast.planner import GroupPlan, plan_groups
from elmo_tasks.elmo.fast.products import Precision
from elmo_tasks.elmo.fast.recurrence import FastStack, LstmProducts
from elmo_tasks.elmo.fast.threads import run_together
from elmo_tasks.elmo.fast.words import WordEncoder, WordVectors
from elmo_tasks.elmo.lstm import LstmStack, LstmState

TOKEN_BUDGET = 8192
CACHED_WORDS = 50_000


_FunctionT = TypeVar("_FunctionT", bound=Callable[..., object])


def _frozen(function: _FunctionT) -> _FunctionT:
    """Runs a function without gradient and outside of torch's inference mode, even if the caller uses that.

    The mode does not apply to other threads, and what is kept between calls must work for callers with and without it.
    """
    return torch.inference_mode(False)(torch.no_grad()(function))


class FastBiLM:
    """Computes what `BiLM.layers` computes, several times as fast.

    Distinct words go through the character convolutions once, and vectors of words are kept for later calls; sentences
    are sorted and packed, so that nothing is computed for padding; both directions are computed at once.

    Arguments:
        bilm: a stateless biLM, whose weights are copied as they are now, in the form that this machine multiplies
            fastest. Dropout is never used.
        precision: float32 gives the numbers of `BiLM` up to the order of summation; bfloat16 and int8 round the factors
            of all products, while sums and everything else stay float32.
        token_budget: how many tokens are computed at once. Memory grows with it; results do not depend on it.
        cached_words: how many words' vectors are kept, P * 4 bytes each.

    Raises:
        ValueError: the biLM carries state, its weights are trained, or the precision is int8 on another device than the
            CPU.
    """

    def __init__(
        self,
        bilm: BiLM,
        precision: Precision = "float32",
        token_budget: int = TOKEN_BUDGET,
        cached_words: int = CACHED_WORDS,
    ) -> None:
        if bilm.stateful:
            raise ValueError("got a biLM that carries state from batch to batch; wanted a stateless one")
        if any(parameter.requires_grad for parameter in bilm.parameters()):
            raise ValueError("got a biLM whose weights are trained; wanted a frozen one, as they are copied once")
        self.options = bilm.options
        self.precision = precision
        self.num_layers = bilm.num_layers
        self.output_size = bilm.output_size
        self.device = bilm.token_encoder.embedding.weight.device
        self._token_budget = token_budget
        encoder = WordEncoder(bilm.token_encoder, bilm.options.char_cnn, precision)
        self._words = WordVectors(encoder, cached_words)
        self._directions = [self._build_stack(stack) for stack in bilm.directions]

    @classmethod
    def load(cls, options: str | Path, weights: str | Path, precision: Precision = "float32") -> FastBiLM:
        """Reads a biLM as `BiLM.load` does. Only the copied weights stay in memory."""
        return cls(BiLM.load(options, weights), precision)

    @_frozen
    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        """The layers of tokenized sentences of any length and in any order; see `BiLM.layers`."""
        lengths = torch.tensor([len(tokens) for tokens in sentences], dtype=torch.int64)
        longest = int(lengths.max()) if sentences else 0
        shape = (len(sentences), self.num_layers, longest, self.output_size)
        layers = torch.zeros(shape, device=self.device)  # (B, L+1, T, D)
        starts = torch.arange(len(sentences)) * self.num_layers * longest
        self._fill(layers.view(-1, self.output_size // 2), sentences, starts, torch.full_like(starts, longest))
        mask = torch.arange(longest)[None, :] < lengths[:, None]
        return LayerOutput(layers, mask.to(self.device))

    @_frozen
    def each(self, sentences: Iterable[Sequence[str]], window: int | None = None) -> Iterator[Tensor]:
        """Yields the layers of each sentence, in their order, in memory that does not grow with their number.

        Arguments:
            sentences: read as they are needed.
            window: this many tokens are read ahead and computed together; 2 token budgets by default.

        Returns:
            (L+1, T, D) for each sentence.
        """
        window = window or 2 * self._token_budget
        waiting: list[Sequence[str]] = []
        tokens = 0
        for sentence in sentences:
            waiting.append(sentence)
            tokens += len(sentence) + 1  # sentences without tokens take memory too
            if tokens >= window:
                yield from self._ragged(waiting)
                waiting, tokens = [], 0
        yield from self._ragged(waiting)

    @_frozen
    def layers_in_chunks(self, tokens: Sequence[str], chunk_length: int) -> Iterator[LayerChunk]:
        """The layers of one sentence of any length, in memory that `chunk_length` bounds; see `BiLM.layers_in_chunks`.

        Chunks of the two directions alternate. Each direction starts at its own end of the sentence.
        """
        length, half = len(tokens), self.output_size // 2
        read = ([BEGIN_SENTENCE, *tokens], [END_SENTENCE, *reversed(tokens)])
        states = [stack.initial_states(1) for stack in self._directions]
        for start in range(0, length + 1, chunk_length):
            inputs = [self._words.look_up(part[start : start + chunk_length]) for part in read]
            first, last = max(start - 1, 0), start - 1 + len(inputs[0])  # as tokens are read, without the border
            tasks = [
                functools.partial(self._run_chunk, *each) for each in zip(self._directions, inputs, states, strict=True)
            ]
            forward, backward = (
                layers[:, len(inputs[0]) - (last - first) :] for layers in run_together(tasks, self.device)
            )
            if first < last:
                yield LayerChunk(forward, slice(first, last), slice(0, half))
                yield LayerChunk(backward.flip(1), slice(length - last, length - first), slice(half, 2 * half))

    @staticmethod
    def _run_chunk(stack: FastStack, inputs: Tensor, states: list[LstmState]) -> Tensor:
        """(tokens, P) -> (L+1, tokens, P)"""
        return torch.stack([inputs, *stack(inputs, [1] * len(inputs), states)])

    def _build_stack(self, stack: LstmStack) -> FastStack:
        products = [LstmProducts(lstm, self.precision) for lstm in stack.layers]
        if self.device.type != "cuda":
            return FastStack(products, stack.skips)
        pool = torch.cuda.graph_pool_handle()  # shared by the layers of one direction, which run one after the other
        return FastStack([GraphedLstm(layer, self.device, pool) for layer in products], stack.skips)

    def _ragged(self, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
        """(L+1, T, D) for each sentence."""
        lengths = torch.tensor([len(tokens) for tokens in sentences], dtype=torch.int64)
        ends = lengths.cumsum(0) * self.num_layers
        total = int(lengths.sum()) * self.num_layers
        layers = torch.empty(total, self.output_size, device=self.device)
        starts = ends - lengths * self.num_layers
        self._fill(layers.view(-1, self.output_size // 2), sentences, starts, lengths)
        parts = layers.split((lengths * self.num_layers).tolist()) if sentences else ()
        return [part.view(self.num_layers, -1, self.output_size) for part in parts]

    def _fill(self, rows: Tensor, sentences: Sequence[Sequence[str]], starts: Tensor, strides: Tensor) -> None:
        """Computes all layers of sentences into a table of token vectors.

        Arguments:
            rows: (rows, P), two for each token vector, the forward half first.
            sentences: B lists of tokens.
            starts: (B,) the place of a sentence's first token vector.
            strides: (B,) by how many token vectors the next layer of the sentence is further on.
        """
        for group in plan_groups([len(tokens) for tokens in sentences], self._token_budget):
            tokens = [BEGIN_SENTENCE, END_SENTENCE]
            for number in group:
                tokens.extend(sentences[number])
            vectors = self._words.look_up(tokens)  # (2 + tokens of the group, P)
            plan = GroupPlan.of([len(sentences[number]) for number in group])
            chosen = torch.tensor(group)
            run = functools.partial(self._run_direction, rows, vectors, plan, starts[chosen], strides[chosen])
            run_together([functools.partial(run, backward) for backward in (False, True)], self.device)

    def _run_direction(
        self, rows: Tensor, vectors: Tensor, plan: GroupPlan, starts: Tensor, strides: Tensor, backward: bool
    ) -> None:
        """Computes one direction's half of all layers of a group; see `_fill` and `GroupPlan`."""
        inputs = vectors[plan.reads(backward).to(vectors.device)]  # (N, P)
        places = starts[plan.sentences] + plan.positions(backward)  # (tokens,)
        stack = self._directions[backward]
        for output in (inputs, *stack(inputs, plan.batch_sizes, stack.initial_states(plan.num_borders))):
            rows.index_copy_(0, (2 * places + backward).to(rows.device), output[plan.num_borders :])
            places += strides[plan.sentences]
