"""From a stream of inputs to a stream of results, through a trained model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.models.model import TaskModel
from elmo_tasks.text.batches import batches_of_like_lengths
from elmo_tasks.text.vocabulary import Vocabulary

Fields = Mapping[str, Any]

DEFAULT_BATCH_TOKENS = 2048

_BATCHES_AHEAD = 16  # inputs for this many batches are sorted by length, so that batches have little padding
_DIGITS = 6  # of probabilities in results


class Predictor(ABC):
    """Predicts with a trained model; one subclass for each task.

    An input is a dict, such as a line of JSON; the predictor makes examples of it, and one result of each example. Keys
    that the predictor does not read, such as an `id`, are carried over to the results. A key that the result has too,
    such as a gold `label`, is carried over as `input_label`.

    Arguments:
        model: is set to evaluation, and computes on its own device.
        vocabulary: the one that the model was trained with.
        batch_tokens: the most tokens of a batch: the number of its examples times the length of the longest, as the
            task counts it. A longer example is a separate batch.

    Class attributes:
        read_keys: the keys of an input that are read, and so not carried over.
    """

    read_keys: frozenset[str]

    def __init__(
        self,
        model: TaskModel[Any, Any],
        vocabulary: Vocabulary,
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> None:
        if batch_tokens < 1:
            raise ElmoTasksError(f"batches of {batch_tokens} tokens; wanted at least 1")
        self.model = model.eval()
        self.task = model.task
        self.vocabulary = vocabulary
        self.batch_tokens = batch_tokens

    @abstractmethod
    def examples(self, fields: Fields) -> Iterable[dict[str, Any]]:
        """The examples to predict for one input: what the task collates, and what `result` needs in addition.

        Raises:
            ElmoTasksError: the input is incomplete or wrong; the message does not have to say which input.
        """

    @abstractmethod
    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        """The result of one example, as values for JSON."""

    def predict(self, inputs: Iterable[Fields | None], *, source: str = "inputs") -> Iterator[dict[str, Any]]:
        """Yields the results in the order of the inputs, while these are still being read.

        Arguments:
            inputs: may be endless; only a bounded part is in memory at any time. None is skipped, but counted.
            source: the name of the inputs in messages.

        Raises:
            DataError: an input is not usable; the message names its number, from 1. The results of the inputs before it
                are yielded first.
        """
        for window in self._windows(inputs, source):
            predictions = self.predictions([example for _, example in window])
            for (fields, example), prediction in zip(window, predictions, strict=True):
                result = self.result(example, prediction)
                yield self._carried(fields, result) | result

    def _windows(self, inputs: Iterable[Fields | None], source: str) -> Iterator[list[tuple[Fields, dict[str, Any]]]]:
        """Yields inputs with their examples, as many as are predicted together; before an error all that precede it."""
        window: list[tuple[Fields, dict[str, Any]]] = []
        tokens = 0
        try:
            for number, fields in enumerate(inputs, start=1):
                if fields is None:
                    continue
                try:
                    examples = list(self.examples(fields))
                except ElmoTasksError as error:
                    raise DataError(source, str(error), number) from None
                for example in examples:
                    window.append((fields, example))
                    tokens += self.task.length(example)
                    if tokens >= _BATCHES_AHEAD * self.batch_tokens:
                        yield window
                        window, tokens = [], 0
        except ElmoTasksError:
            yield window
            raise
        yield window

    def _carried(self, fields: Fields, result: Fields) -> dict[str, Any]:
        """The items of an input that go with its result, under names that the result does not have."""
        carried: dict[str, Any] = {}
        for key, value in fields.items():
            if key in self.read_keys:
                continue
            name = key
            while name in result or (name != key and name in fields):
                name = f"input_{name}"
            carried[name] = value
        return carried

    def predictions(self, examples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The model's prediction of each example, in their order, with rounded numbers.

        A predictor overrides this if the model reads something other than the examples, such as parts of them.
        """
        predictions: dict[int, dict[str, Any]] = {}
        lengths = [self.task.length(example) for example in examples]
        for rows in batches_of_like_lengths(lengths, max_padded=self.batch_tokens):
            predictions.update(zip(rows, self._predict_batch([examples[row] for row in rows]), strict=True))
        return [_rounded(predictions[row]) for row in range(len(examples))]

    @torch.inference_mode()
    def _predict_batch(self, examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        batch = self._collate(examples)
        return self.model.decode(self.model(batch), batch)

    def _collate(self, examples: list[dict[str, Any]]) -> Any:
        """A batch of the model's task, on the device of the model."""
        return self.task.collate(examples, self.vocabulary).to(next(self.model.parameters()).device)


def _rounded(value: Any) -> Any:
    """A value of JSON with all its floating-point numbers rounded, also in lists and objects."""
    if isinstance(value, float):
        return round(value, _DIGITS)
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value
