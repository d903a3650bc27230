"""A corpus as windows over parallel streams of tokens, for both directions of a language model.

A sentence of n tokens w1 ... wn has n + 1 slots. At its j-th slot the forward direction has read <S> w1 ... wj and
predicts w(j+1), in the end </S>; the backward direction reads </S> wn ... w1 and predicts in the same way, in the end
<S>. So both directions go through the same sentences at the same time, as in bilm-tf, each sentence from its own end.

# T steps of a window, B rows of a batch, U distinct tokens of a window, W of all its slots, D documents, S sentences
"""

from __future__ import annotations

import copy
import dataclasses
import gc
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE, PADDING_ID, tokens_to_ids
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.pretraining.corpus import CorpusPart
from elmo_tasks.extras.pretraining.softmax import OutputVocabulary
from elmo_tasks.text.tokens import TensorRecord, batches_of_like_lengths

NO_TARGET = -1

_TOKENS_AT_ONCE = 1 << 20


@dataclasses.dataclass(frozen=True)
class WordsByLength(TensorRecord):
    """Distinct words, the longest first. A device that computes need not be waited for to know their lengths."""

    character_ids: Tensor  # (U, C) int64, as from `tokens_to_ids`
    lengths: np.ndarray  # (U,) character positions that are not padding

    @classmethod
    def of(cls, words: Sequence[str], max_characters: int) -> tuple[WordsByLength, np.ndarray]:
        """The words in their new order, and (U,) the new place of each."""
        character_ids = tokens_to_ids(words, max_characters)
        lengths, order = (character_ids != PADDING_ID).sum(dim=1).sort(descending=True, stable=True)
        return cls(character_ids[order], lengths.numpy()), order.argsort().numpy()


@dataclasses.dataclass(frozen=True)
class Window(TensorRecord):
    """What both directions read and predict in some steps of a batch of streams."""

    words: WordsByLength  # the distinct tokens
    inputs: Tensor  # of the forward and the backward direction: (2, T, B) int64, the places of `words`
    targets: Tensor  # (2, T, B) int64, words of the output vocabulary, NO_TARGET where there is none
    resets: Tensor | None = None  # (T, B) bool, True where both directions start from zeros


class SlotReader:
    """Reads the slots of a part of a corpus.

    Arguments:
        types: the distinct tokens, by the part's numbers.
        vocabulary: the words that are predicted.
        max_characters: the width C of a token.
    """

    def __init__(
        self, part: CorpusPart, types: Sequence[str], vocabulary: OutputVocabulary, max_characters: int
    ) -> None:
        self.part = part
        self._max_characters = max_characters
        self._types = [*types, BEGIN_SENTENCE, END_SENTENCE]
        self._begin, self._end = len(types), len(types) + 1
        self._words = np.array(vocabulary.numbers(self._types), dtype=np.int64)
        self.starts = np.asarray(part.sentences) + np.arange(len(part.sentences))  # (S+1,) of sentences, in slots

    @property
    def num_slots(self) -> int:
        return int(self.starts[-1])

    def beginning(self, num_tokens: int) -> SlotReader:
        """A reader of only the first sentences, with at most this many tokens; at least one sentence."""
        sentences = np.asarray(self.part.sentences)
        count = max(1, int(np.searchsorted(sentences, num_tokens, side="right")) - 1)
        reader = copy.copy(self)
        tokens = self.part.tokens[: sentences[count]]
        reader.part = CorpusPart(tokens, sentences[: count + 1], np.array([0, count]))
        reader.starts = self.starts[: count + 1]
        return reader

    def count_targets(self, num_words: int) -> np.ndarray:
        """How often the forward direction predicts each of V words: (V,) int64."""
        counts = np.zeros(num_words, dtype=np.int64)
        for start in range(0, len(self.part.tokens), _TOKENS_AT_ONCE):
            words = self._words[self.part.tokens[start : start + _TOKENS_AT_ONCE]]
            counts += np.bincount(words, minlength=num_words)
        counts[self._words[self._end]] += len(self.starts) - 1
        return counts

    def read_pieces(self, starts: np.ndarray, ends: np.ndarray) -> Window:
        """A window of pieces of the text, each a column of it: slots from the starts (B,) up to the ends (B,)."""
        slots = starts + np.arange((ends - starts).max())[:, None]  # (T, B)
        return self.read(np.where(slots < ends, slots, -1))

    def read(self, slots: np.ndarray, resets: np.ndarray | None = None) -> Window:
        """The window of slots.

        Arguments:
            slots: (T, B) int64; those below 0 are padding.
            resets: (S,) bool, the sentences that are read from a state of zeros.
        """
        padding = slots < 0
        slots = np.maximum(slots, 0)
        sentences = np.searchsorted(self.starts, slots, side="right") - 1
        positions = slots - self.starts[sentences]
        starts = np.asarray(self.part.sentences)[sentences]
        lengths = np.asarray(self.part.sentences)[sentences + 1] - starts
        tokens = self.part.tokens

        def at(positions: np.ndarray) -> np.ndarray:
            return tokens[np.clip(positions, 0, len(tokens) - 1)].astype(np.int64)

        first, final = positions == 0, positions == lengths
        forward_inputs = np.where(first, self._begin, at(starts + positions - 1))
        backward_inputs = np.where(first, self._end, at(starts + lengths - positions))
        forward_targets = np.where(final, self._end, at(starts + positions))
        backward_targets = np.where(final, self._begin, at(starts + lengths - 1 - positions))
        distinct, rows = np.unique(np.stack([forward_inputs, backward_inputs]), return_inverse=True)
        words, places = WordsByLength.of([self._types[number] for number in distinct.tolist()], self._max_characters)
        targets = np.where(padding, NO_TARGET, self._words[np.stack([forward_targets, backward_targets])])
        return Window(
            words,
            torch.from_numpy(places[rows].reshape(2, *slots.shape)),
            torch.from_numpy(targets),
            None if resets is None else torch.from_numpy(first & resets[sentences]),
        )


class TokenStreams:
    """Parallel streams through a part of a corpus, its documents in a new order in each epoch.

    The documents in their order are one long stream, and each row of a batch reads a separate piece of it. The rest at
    the end, less than a window, is not read in that epoch.

    Arguments:
        batch_size: rows B of a batch, of all processes together.
        steps: T, tokens of a row in a window.
        seed: for the documents' order and the resets.
        reset_share: the share of the sentences before which a row's state is set to zero.
        process: (index, count): which of the processes this one is; each reads its share of the rows.

    Raises:
        ElmoTasksError: the part has less than one window.
    """

    def __init__(
        self,
        reader: SlotReader,
        batch_size: int,
        steps: int,
        seed: int,
        reset_share: float = 0.0,
        process: tuple[int, int] = (0, 1),
    ) -> None:
        self.reader = reader
        self.batch_size, self.slots_per_window = batch_size, batch_size * steps
        self.windows_per_epoch = reader.num_slots // self.slots_per_window
        self._steps, self._seed, self._reset_share = steps, seed, reset_share
        index, count = process
        self._rows = np.arange(index * batch_size // count, (index + 1) * batch_size // count)
        if self.windows_per_epoch == 0:
            raise ElmoTasksError(
                f"the training text has {reader.num_slots} tokens, sentence ends included; "
                f"expected at least batch_size x unroll_steps = {batch_size} x {steps}"
            )

    def windows(self, epoch: int, first: int = 0, num_workers: int = 0) -> Iterator[Window]:
        """The windows of an epoch from the `first` on; processes, if there are any, prepare them in advance."""
        if num_workers:
            gc.collect()  # else a process may free what is garbage here, and end where that is on a GPU
        documents = self.reader.starts[np.asarray(self.reader.part.documents)]  # (D+1,) in slots
        order = np.random.default_rng((self._seed, epoch)).permutation(len(documents) - 1)
        ends = np.cumsum(np.diff(documents)[order])
        shifts = documents[1:][order] - ends
        drawn = np.random.default_rng((self._seed, epoch, 1)).random(len(self.reader.starts) - 1, dtype=np.float32)
        resets = drawn < self._reset_share
        row_starts = self._rows * self.windows_per_epoch * self._steps
        positions = row_starts + np.arange(self._steps)[:, None]
        loader = DataLoader(
            _Epoch(self.reader, positions, ends, shifts, resets),
            batch_size=None,
            sampler=range(first, self.windows_per_epoch),
            num_workers=num_workers,
            pin_memory=num_workers > 0 and torch.cuda.is_available(),
            generator=torch.Generator(),  # it would draw from the generator of the training
        )
        return iter(loader)


@dataclasses.dataclass(frozen=True)
class _Epoch(Dataset[Window]):
    """The windows of an epoch by their number."""

    reader: SlotReader
    first: np.ndarray  # (T, B) positions of the first window in the stream of the ordered documents
    ends: np.ndarray  # (D,) of the documents in that stream
    shifts: np.ndarray  # (D,) from a position in the stream to the slot
    resets: np.ndarray  # (S,) bool

    def __getitem__(self, window: int) -> Window:
        positions = self.first + window * len(self.first)
        documents = np.searchsorted(self.ends, positions, side="right")
        return self.reader.read(positions + self.shifts[documents], self.resets)


def sentence_windows(reader: SlotReader, max_slots: int) -> Iterator[Window]:
    """Whole sentences as the rows of windows, those of similar length together, each read from a state of zeros.

    Arguments:
        max_slots: most slots of a window, padding included; a longer sentence is a separate window.
    """
    lengths = np.diff(reader.starts).tolist()
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for rows in batches_of_like_lengths(lengths, order, max_padded=max_slots):
        yield reader.read_pieces(reader.starts[rows], reader.starts[1:][rows])
