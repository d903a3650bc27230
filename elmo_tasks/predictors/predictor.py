"""From inputs as users have them to results as they want them, through a trained model, streaming.

# B batch, T tokens of the longest sentence
"""

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

# So many batches' worth of input is read ahead and sorted by length, so that batches hold little padding.
_BATCHES_AHEAD = 16


class Predictor(ABC):
    """Predicts with a trained model; one subclass for each task.

    An input is a dict, such as a line of JSON gives; a task's predictor makes one or more examples of it, and one
    result of each example. Keys that the predictor does not read (an `id`, say) are carried over to the results; one
    that the result has itself (a gold `label`, say) is carried over as `input_label`.

    Arguments:
        model: is set to evaluation; predictions are computed on the device where it lies.
        vocabulary: the one that the model was trained with.
        batch_tokens: most tokens in a batch: its examples times the longest one's length, as the task counts it; of a
            pair, both texts. A longer example has a batch of its own.
    """

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

    def with_predicates(self, tagger: Predictor) -> Predictor:
        """The same predictor with a tagger that finds the predicates in its inputs.

        Raises:
            ElmoTasksError: this one has no use for predicates, or the tagger does not find them.
        """
        raise ElmoTasksError(
            f"predicates are for a labeller of semantic roles; the run's model is a {type(self.model).__name__}"
        )

    @abstractmethod
    def examples(self, fields: Fields) -> Iterable[dict[str, Any]]:
        """The examples to predict for one input: what the task collates, and what `result` needs in addition.

        Raises:
            ElmoTasksError: the input lacks something or has it in a wrong form; the message needs no place.
        """

    @abstractmethod
    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        """What is told of one example, as JSON can hold it."""

    @property
    @abstractmethod
    def read_keys(self) -> frozenset[str]:
        """The keys of an input that are read, and so not carried over."""

    def predict(self, inputs: Iterable[Fields | None], *, source: str = "inputs") -> Iterator[dict[str, Any]]:
        """Yields the results in the order of the inputs, while these are still being read.

        Arguments:
            inputs: may be endless; a bounded part of it is in memory at any time. None is passed over, but counted.
            source: what messages call the inputs.

        Raises:
            DataError: an input is not usable; source and the input's number, from 1, are named. The results of the
                inputs before it are yielded first.
        """
        for window in self._windows(inputs, source):
            predictions = self.predictions([example for _, example in window])
            for (fields, example), prediction in zip(window, predictions, strict=True):
                result = self.result(example, prediction)
                yield self._carried(fields, result) | result

    def _windows(self, inputs: Iterable[Fields | None], source: str) -> Iterator[list[tuple[Fields, dict[str, Any]]]]:
        """Yields what is predicted together: examples beside their inputs; before an error all that came before it."""
        window: list[tuple[Fields, dict[str, Any]]] = []
        tokens = 0
        try:
            for number, fields in enumerate(inputs, start=1):
                if fields is None:
                    continue
                for example in self._examples(fields, source, number):
                    window.append((fields, example))
                    tokens += self.task.length(example)
                    if tokens >= _BATCHES_AHEAD * self.batch_tokens:
                        yield window
                        window, tokens = [], 0
        except ElmoTasksError:
            yield window
            raise
        yield window

    def _examples(self, fields: Fields, source: str, number: int) -> list[dict[str, Any]]:
        try:
            return list(self.examples(fields))
        except ElmoTasksError as error:
            raise DataError(source, str(error), number) from None

    def _carried(self, fields: Fields, result: Fields) -> dict[str, Any]:
        """What of an input goes with its result, under names that the result does not have."""
        carried: dict[str, Any] = {}
        for key, value in fields.items():
            if key not in self.read_keys:
                name = key
                while name in result or (name != key and name in fields):
                    name = f"input_{name}"
                carried[name] = value
        return carried

    def predictions(self, examples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """What the model says of each example, in their order; it reads them in batches of like lengths.

        A head that reads something else than the examples, such as several parts of each, does so here.
        """
        predictions: dict[int, dict[str, Any]] = {}
        lengths = [self.task.length(example) for example in examples]
        for rows in batches_of_like_lengths(lengths, max_padded=self.batch_tokens):
            predictions.update(zip(rows, self._predict_batch([examples[row] for row in rows]), strict=True))
        return [predictions[row] for row in range(len(examples))]

    def _predict_batch(self, examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        device = next(self.model.parameters()).device
        batch = self.task.collate(examples, self.vocabulary).to(device)
        with torch.inference_mode():
            return self.model.decode(self.model(batch), batch)
