"""A frozen biLM's layers, as fast as the machine allows.

The reference is `BiLM.layers`; `recurrence.py` says how many times faster this is.

# B sentences, T tokens of the longest, N steps of a group in one direction, with borders, L LSTM layers,
# P features of one direction, D = 2P features of a layer
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TypeVar, get_args

import torch
from torch import Tensor
from torch.nn import functional

from elmo_tasks.elmo.bilm import BiLM, LayerOutput, check_padding
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.elmo.characters import (
    BEGIN_SENTENCE,
    END_SENTENCE,
    NUM_CHARACTERS,
    PADDING_ID,
    check_sentences,
    ids_to_bytes,
)
from elmo_tasks.elmo.fast.products import Precision
from elmo_tasks.elmo.fast.recurrence import FastStack, blocks_of_steps, compiled
from elmo_tasks.elmo.fast.threads import run_together
from elmo_tasks.elmo.fast.words import Word, WordEncoder, WordVectors
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.text.tokens import batches_of_like_lengths, mask_of_lengths

_MOST_SENTENCES = 512  # of a group: bounds the memory of one step, and more rows make no product faster

_CPU = torch.device("cpu")
_ItemT = TypeVar("_ItemT")

_loaded: weakref.WeakValueDictionary[tuple[str, Precision, str], FastBiLM] = weakref.WeakValueDictionary()
_lock = threading.Lock()
_kept: ContextVar[dict[tuple[FastBiLM, tuple[tuple[str, ...], ...]], LayerOutput] | None] = ContextVar(
    "_kept", default=None
)


@contextlib.contextmanager
def layers_kept() -> Iterator[None]:
    """Within this block, a biLM computes the layers of the same sentences once, however many models ask for them."""
    kept = _kept.get()
    token = _kept.set({} if kept is None else kept)
    try:
        yield
    finally:
        _kept.reset(token)


class FastBiLM:
    """The layers of a frozen biLM, several times as fast as `BiLM.layers`.

    Distinct words go through the character convolutions once, and their vectors are kept for later calls. Sentences
    are sorted and packed, so that nothing is computed for padding. Both directions are computed at once.

    Arguments:
        bilm: a stateless biLM, whose weights are copied as they are now, in the form that this machine multiplies
            fastest.
        precision: float32 gives the numbers of `BiLM` up to the order of summation. bfloat16 and int8 round the factors
            of all products, and bfloat16 the sums of the gates too. Filters' sums have half precision in both.
            Everything else stays float32.
        token_budget: the number of tokens computed at once. More need more memory; the results stay the same.
        cached_words: the number of words whose vectors are kept, P * 4 bytes each.
        consume: takes the weights out of the biLM once they are copied, which needs less memory.

    Raises:
        ValueError: the biLM carries state, its weights are trained or not in float32, or a number is not positive.
        ConfigError: the precision is int8 on another device than the CPU.
    """

    def __init__(
        self,
        bilm: BiLM,
        precision: Precision = "float32",
        token_budget: int = 8192,
        cached_words: int = 50_000,
        *,
        consume: bool = False,
    ) -> None:
        if not can_be_fast(bilm):
            raise ValueError(
                "expected a biLM that is stateless, frozen (requires_grad_(False)) and in float32 (float())"
            )
        if min(token_budget, cached_words) < 1:
            raise ValueError(f"got {token_budget} tokens at once and {cached_words} kept words; expected at least 1")
        self.options = bilm.options
        self.precision = precision
        self.num_layers = bilm.options.num_layers
        self.output_size = bilm.options.output_size
        self.device = bilm.token_encoder.embedding.weight.device
        self._token_budget = token_budget
        with torch.inference_mode(False), torch.no_grad(), torch.autocast(self.device.type, enabled=False):
            encoder: Callable[[Sequence[Word]], Tensor]
            if bilm.options.lexicon is None:
                encoder = WordEncoder(bilm.token_encoder, bilm.options.char_cnn, precision)
            else:
                encoder = copy.deepcopy(bilm.token_encoder).of_tokens  # of lists, in float32
            self._words = WordVectors(encoder, cached_words)
            borders = encoder([BEGIN_SENTENCE, END_SENTENCE]).split(1)  # each (1, P)
            directions = list(bilm.directions)
            if consume:
                del bilm.token_encoder, bilm.directions
            stacks = [FastStack(directions.pop(0), border, precision) for border in borders]
            # A step's operations are so short that the directions would wait for each other's Python code.
            self._stacks = [compiled(stack) if self.device.type == "cpu" else stack for stack in stacks]
        self._repeated: tuple[list[tuple[str, ...]], LayerOutput] | None = None  # the last call's, if some occur twice

    def __repr__(self) -> str:
        sizes = f"{self.num_layers} layers of {self.output_size}"
        return f"FastBiLM({sizes}, precision={self.precision!r}, device={str(self.device)!r})"

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        """The layers of tokenized sentences of any length and in any order; see `BiLM.layers`.

        A sentence that occurs several times, such as once for each of its predicates, is computed once, also when the
        next call has the same sentences again.
        """
        if (kept := _kept.get()) is None:
            return self._layers_of_repeated(sentences)
        key = self, tuple(map(tuple, sentences))
        if key not in kept:
            kept[key] = self._layers_of_repeated(sentences)
        return kept[key]

    def _layers_of_repeated(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        check_sentences(sentences)
        rows: dict[tuple[str, ...], int] = {}
        numbers = [rows.setdefault(tuple(tokens), len(rows)) for tokens in sentences]
        distinct, known = list(rows), self._repeated
        if known is None and len(rows) == len(sentences):
            return self._layers(distinct)
        output = known[1] if known and known[0] == distinct else self._layers(distinct)
        self._repeated = (distinct, output) if len(rows) < len(sentences) else None
        return LayerOutput(output.layers[numbers], output.mask[numbers])

    def layers_of_ids(self, character_ids: Tensor) -> LayerOutput:
        """The layers of sentences given as character ids that `reads` accepts; see `BiLM.layers_of_ids`.

        Arguments:
            character_ids: (B, T, C) int64, with padding after the last token only.

        Raises:
            ValueError: padding comes before a real token.
        """
        mask = (character_ids > 0).any(dim=-1)  # (B, T)
        check_padding(mask)
        words = iter(ids_to_bytes(character_ids[mask]))
        output = self._layers([list(itertools.islice(words, length)) for length in mask.sum(dim=1).tolist()])
        missing = mask.shape[1] - output.mask.shape[1]  # columns of padding only
        return LayerOutput(functional.pad(output.layers, [0, 0, 0, missing]), mask)

    def reads(self, character_ids: Tensor) -> bool:
        """Whether these are ids of tokens as `batch_to_ids` makes them for this biLM."""
        width = self.options.char_cnn.max_characters_per_token
        if self.options.lexicon or character_ids.shape[-1] != width or not character_ids.numel():
            return False
        known = character_ids.min() >= 0 and character_ids.max() < NUM_CHARACTERS
        written = character_ids != PADDING_ID
        return bool(known and (written[..., :-1] >= written[..., 1:]).all())  # nothing after a padding character

    def forget_words(self) -> None:
        """Forgets what is kept of earlier calls, on which the last digits of the next call's layers depend."""
        self._words.clear()
        self._repeated = None

    def _layers(self, sentences: Sequence[Sequence[Word]]) -> LayerOutput:
        """See `layers`; words can also be given by their character ids."""
        # Torch's inference mode does not apply to other threads, and what is kept between calls must work without it.
        with torch.inference_mode(False), torch.no_grad(), torch.autocast(self.device.type, enabled=False):
            counts = [len(tokens) for tokens in sentences]
            lengths, longest = torch.tensor(counts, dtype=torch.int64), max(counts, default=0)
            shape = (len(sentences), self.num_layers, longest, self.output_size)
            layers = torch.zeros(shape, device=self.device)  # (B, L+1, T, D)
            halves = layers.view(-1, 2, self.output_size // 2).unbind(1)  # (all token vectors, P) of each direction
            for group in plan_groups(counts, self._token_budget):
                texts = [sentences[number] for number in group]
                starts = [number * self.num_layers * longest for number in group]  # of their token layers in `halves`
                places = [range(start, start + len(text)) for start, text in zip(starts, texts, strict=True)]
                blocks = blocks_of_steps([len(text) for text in texts])
                inputs = self._words.look_up(in_both_directions(texts)).chunk(2)  # (N, P) each
                targets = torch.tensor(in_both_directions(places), device=self.device).chunk(2)
                tasks = [
                    functools.partial(stack, *tensors, blocks, longest)
                    for stack, *tensors in zip(self._stacks, inputs, targets, halves, strict=True)
                ]
                run_together(tasks, self.device)
            return LayerOutput(layers, mask_of_lengths(lengths, longest).to(self.device))


def in_both_directions(rows: Sequence[Sequence[_ItemT]]) -> list[_ItemT]:
    """The items of rows, packed for the forward direction, and then for the backward one, which reads from the end.

    Arguments:
        rows: the longest first.
    """
    return [
        item
        for order in (1, -1)
        for column in itertools.zip_longest(*(row[::order] for row in rows))
        for item in column
        if item is not None
    ]


def plan_groups(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Groups of sentences of like length that are computed together, each with about as many tokens as the others.

    Empty sentences are left out. A sentence that is longer than the budget is a group by itself.

    Arguments:
        lengths: each sentence's tokens.
        token_budget: the most tokens of a group.

    Returns:
        numbers of sentences, the longest first.
    """
    order = sorted((number for number, length in enumerate(lengths) if length > 0), key=lambda each: -lengths[each])
    total = sum(lengths)
    expected = total / max(1, -(-total // token_budget))  # so that the last group is not much smaller than the others
    limits = {"max_rows": _MOST_SENTENCES, "max_tokens": token_budget, "enough_tokens": expected}
    return list(batches_of_like_lengths(lengths, order, **limits))


def can_be_fast(bilm: BiLM) -> bool:
    """Whether `FastBiLM` takes a biLM: it is stateless, frozen and in float32."""
    weights = bilm.parameters()
    return not bilm.stateful and all(each.dtype == torch.float32 and not each.requires_grad for each in weights)


def load_frozen(files: BiLMFiles, precision: Precision = "float32", device: torch.device = _CPU) -> FastBiLM:
    """A frozen, stateless biLM on a device. As long as it is in use, the same files give the same object.

    Equal files in different folders are the same biLM. Several threads may use the object.

    Raises:
        WeightsError: a file is missing or damaged, or the two do not fit together.
        ElmoTasksError: the precision is unknown.
    """
    if precision not in get_args(Precision):
        raise ElmoTasksError(f"precision: got {precision!r}; expected float32, bfloat16 or int8")
    device = torch.empty(0, device=device).device  # "cuda" may be "cuda:0"
    key = (files.fingerprint(), precision, str(device))
    with _lock:
        bilm = _loaded.get(key)
        if bilm is None:
            _loaded[key] = bilm = FastBiLM(BiLM.load(files.options, files.weights).to(device), precision, consume=True)
        return bilm


def forget_words() -> None:
    """Makes all frozen biLMs that are in use compute as after they were loaded; see `FastBiLM.forget_words`."""
    for bilm in list(_loaded.values()):
        bilm.forget_words()
