"""Answers to questions about a passage.

# B batch, T tokens of the longest passage, W windows of all passages of a batch
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from elmo_tasks.models.reading import ReadingModel, ReadingOutput
from elmo_tasks.predictors.fields import one_of, text_field
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.predictors.results import rounded
from elmo_tasks.tasks.reading import Reading, unanswered
from elmo_tasks.text.batches import batches_of_like_lengths


@dataclasses.dataclass(frozen=True)
class _Window:
    """A part of a passage that is read by itself. Ends are exclusive; all but `row` count the passage's tokens."""

    row: int  # of the passage in its batch
    start: int
    end: int
    own_start: int  # from here to `own_end` the scores are the window's
    own_end: int


class ReadingPredictor(Predictor):
    """Answers questions.

    An input is `{"passage": "...", "question": "..."}`, with `context` in place of `passage` if wanted. Its result has

    - `question`;
    - `answer`, its `probability`, and where it is in the passage: `start_char` and `end_char`, in characters, the end
      exclusive, and `start` and `end`, its first and its last token;
    - `best`, the five most probable answers (fewer, where the passage has fewer spans) in the same form.

    A passage may be of any length. One of more tokens than the model's `window` (see `ReadingConfig.window`) is read in
    windows of that size, each half of it behind the one before. A token's scores are those of the window where it is
    nearest to the middle, so that it has at least a quarter of a window of context on either side, or all that there
    is. The search for the best spans, and the softmax that makes probabilities of their scores, run over the whole
    passage: scores of windows are compared before any softmax, as Clark and Gardner (2018) compare those of a
    document's paragraphs. What the model needs of memory is bounded by `batch_tokens`, whatever the passage's length.

    Raises (from `predict`):
        DataError: an input lacks a question or a passage, or they are not strings, or hold nothing but white space.
    """

    model: ReadingModel
    task: Reading
    read_keys = frozenset({"passage", "context", "question"})

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        passage = text_field(fields, one_of(fields, "passage", "context"))
        yield unanswered(text_field(fields, "question"), passage)

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        best = rounded(prediction["best"])
        return {"question": example["question"], **best[0], "best": best}

    def _predict_batch(self, examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        lengths = [len(example["token_starts"]) for example in examples]
        if max(lengths) <= self.model.window:
            return super()._predict_batch(examples)
        windows = [window for row, length in enumerate(lengths) for window in _windows(row, length, self.model.window)]
        start_logits, end_logits = torch.zeros(2, len(examples), max(lengths)).unbind()  # (B, T), (B, T)
        with torch.inference_mode():
            for batch in self._batches_of_windows(windows, examples):
                self._score(batch, examples, start_logits, end_logits)
        mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)  # (B, T)
        output = ReadingOutput(start_logits=start_logits, end_logits=end_logits, mask=mask)
        return self.model.decode(output, self.task.collate(examples, self.vocabulary))

    def _batches_of_windows(
        self, windows: Sequence[_Window], examples: Sequence[dict[str, Any]]
    ) -> Iterator[list[_Window]]:
        lengths = [max(window.end - window.start, len(examples[window.row]["question_tokens"])) for window in windows]
        for places in batches_of_like_lengths(lengths, max_padded=self.batch_tokens):
            yield [windows[place] for place in places]

    def _score(
        self,
        windows: Sequence[_Window],
        examples: Sequence[dict[str, Any]],
        start_logits: Tensor,
        end_logits: Tensor,
    ) -> None:
        """Reads a batch of windows, and writes the scores of the tokens that are theirs, (B, T) of all passages."""
        batch = self.task.collate([_example(window, examples[window.row]) for window in windows], self.vocabulary)
        output = self.model(batch.to(next(self.model.parameters()).device)).to(start_logits.device)
        for place, window in enumerate(windows):
            own = slice(window.own_start, window.own_end)
            read = slice(window.own_start - window.start, window.own_end - window.start)
            start_logits[window.row, own] = output.start_logits[place, read]
            end_logits[window.row, own] = output.end_logits[place, read]


def _windows(row: int, length: int, size: int) -> Iterator[_Window]:
    """The windows of a passage: of `size` tokens each, the last one at the passage's end; every token is one's own."""
    starts = list(range(0, max(1, length - size), max(1, size // 2)))
    if length > size:
        starts.append(length - size)
    borders = [0, *((before + size + after) // 2 for before, after in itertools.pairwise(starts)), length]
    for number, start in enumerate(starts):
        yield _Window(row, start, min(length, start + size), borders[number], borders[number + 1])


def _example(window: _Window, example: dict[str, Any]) -> dict[str, Any]:
    """The example whose passage is a window of another one's; only the places of its tokens say so."""
    part = slice(window.start, window.end)
    return {
        **example,
        "token_starts": example["token_starts"][part],
        "token_ends": example["token_ends"][part],
    }
