"""Answers to questions about a passage.

# B batch, T tokens of the longest passage, W windows of a batch, S tokens of the longest of them
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from elmo_tasks.models.reading import ReadingModel, ReadingOutput
from elmo_tasks.predictors.fields import one_of, text_field
from elmo_tasks.predictors.predictor import Fields, Predictor
from elmo_tasks.tasks.reading import Reading, unanswered
from elmo_tasks.text.tokens import batches_of_like_lengths, mask_of_lengths, overlapping_windows


class ReadingPredictor(Predictor):
    """Answers questions.

    An input is `{"passage": "...", "question": "..."}`; instead of `passage` the key may be `context`. Its result has

    - `question` and `passage`;
    - `answer`, its `probability`, and its position in the passage: `start_char` and `end_char`, in characters, the end
      exclusive, and `start` and `end`, its first and last token;
    - `best`, the five most probable answers (fewer in a very short passage) in the same form;
    - with the model's `no_answer`, the `no_answer_probability` and the `no_answer_score`. Where there is no answer,
      `answer` is the empty string, its `probability` is that of no answer, and its position is None.

    A passage may have any length. A passage of more tokens than the model's `window` (see `ReadingConfig.window`) is
    read in windows of that size, each half of it after the one before. The scores of a token are those of the window
    where it is nearest to the middle: on either side it has a quarter of a window of context, or the rest of the
    passage. The search for the best spans and the softmax over their scores cover the whole passage: scores of windows
    are compared before any softmax, as Clark and Gardner (2018) compare those of a document's paragraphs. The memory
    for the model is bounded by `batch_tokens`, whatever the length of the passage. A passage has no answer if no window
    has one: the lowest of their scores is the passage's. Without a `window`, a passage is read as a whole.

    Raises (from `predict`):
        DataError: the question or the passage is missing, blank or not a string.
    """

    model: ReadingModel
    task: Reading
    read_keys = frozenset({"passage", "context", "question"})
    sample = {"passage": "The mill opened in 1912.", "question": "When did the mill open?"}  # noqa: RUF012

    def examples(self, fields: Fields) -> Iterator[dict[str, Any]]:
        passage = text_field(fields, one_of(fields, "passage", "context"))
        yield unanswered(text_field(fields, "question"), passage, self.tokenizer)

    def input_of(self, example: Fields) -> dict[str, Any]:
        return {name: example[name] for name in ("id", "question", "passage")}

    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        return {**{key: example[key] for key in ("question", "passage")}, **prediction["best"][0], **prediction}

    @torch.inference_mode()
    def _predict_batch(self, examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        lengths = [len(example["token_starts"]) for example in examples]
        size = self.model.window
        if size is None or max(lengths) <= size:
            return super()._predict_batch(examples)
        windows = [(row, *part) for row, length in enumerate(lengths) for part in overlapping_windows(length, size)]
        # In a window's example only the positions of tokens differ from the whole passage's.
        parts = [
            {**examples[row], **{key: examples[row][key][read] for key in ("token_starts", "token_ends")}}
            for row, read, _ in windows
        ]
        logits = torch.zeros(2, len(examples), max(lengths))  # (2, B, T), of starts and of ends
        no_answer = torch.full((len(examples),), torch.inf) if self.task.no_answer else None  # (B,)
        for numbers in batches_of_like_lengths(list(map(self.task.length, parts)), max_padded=self.batch_tokens):
            output = self.model(self.collate([parts[number] for number in numbers]))
            scores = torch.stack([output.start_logits, output.end_logits]).to(logits.device)  # (2, W, S)
            for position, number in enumerate(numbers):
                row, read, used = windows[number]
                logits[:, row, used] = scores[:, position, used.start - read.start : used.stop - read.start]
                if no_answer is not None and output.no_answer_logits is not None:
                    no_answer[row] = min(no_answer[row], output.no_answer_logits[position].to(no_answer))
        mask = mask_of_lengths(lengths, max(lengths))  # (B, T)
        output = ReadingOutput(start_logits=logits[0], end_logits=logits[1], mask=mask, no_answer_logits=no_answer)
        return self.model.decode(output, self.task.collate(examples, self.vocabulary))
