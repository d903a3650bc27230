"""From a stream of inputs to a stream of results, through a trained model."""

from __future__ import annotations

import contextlib
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import torch

from elmo_tasks import hooks
from elmo_tasks.errors import ArgumentError, DataError, ElmoTasksError, OnError, check_count, check_several, one_line_of
from elmo_tasks.files.limits import ADVICE, limit
from elmo_tasks.models.model import TaskModel
from elmo_tasks.modules.devices import release_memory
from elmo_tasks.predictors.fields import task_keys
from elmo_tasks.text.prose import warn_of_blank
from elmo_tasks.text.tokenizers import TREEBANK, Tokenizer
from elmo_tasks.text.tokens import batches_of_like_lengths
from elmo_tasks.text.vocabulary import Vocabulary

logger = logging.getLogger(__name__)

Fields = Mapping[str, Any]
Input = str | Fields

DEFAULT_BATCH_TOKENS = 2048
_PredictorT = TypeVar("_PredictorT", bound="Predictor")

_BATCHES_AHEAD = 16  # inputs for this many batches are sorted by length, so that batches have little padding
_TOKENS_BETWEEN = 1 << 17  # of all predictors; giving memory back more often would take two percent of the time
RESULT_KEYS = frozenset({
    "answer", "attention", "best", "cluster_probabilities", "clusters", "frames", "hypothesis_attention", "label",
    "labels", "mentions", "offsets", "premise_attention", "probabilities", "saliency", "score", "sentences", "spans",
    "tags",
})  # fmt: skip
"""What results of some task have. Pictures and tables read these keys where a result has them."""


class Origin(NamedTuple):
    """Where a predictor comes from.

    Attributes:
        about: the run, for the predictor's repr; empty without a run.
        own_columns: other names of an input's keys, as the data of the run have them: `{"review": "text"}`.
        load: how another process loads the predictor; None if it cannot.
        label_names: what another project calls the model's labels: `{"negative": "0"}`.
        least_probability: a label that is less probable is None in results: none of these.
    """

    about: str = ""
    own_columns: Mapping[str, str] = MappingProxyType({})
    load: Callable[[], Predictor] | None = None
    label_names: Mapping[str, str] = MappingProxyType({})
    least_probability: float = 0.0


_NO_RUN = Origin()


class ExampleError(ElmoTasksError):
    """An example of several that are predicted together cannot be predicted.

    Attributes:
        row: its index among them.
    """

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row = row


class Predictor(ABC):
    """Predicts with a trained model; one subclass for each task.

    An input is a dict, such as a line of JSON; the predictor makes examples of it, and one result of each example. Keys
    that the predictor does not read, such as an `id`, are carried over to the results. A key that the result has too,
    such as a gold `label`, is carried over as `input_label`. So is one that only results of other tasks have, such as
    `spans`.

    Arguments:
        model: is set to evaluation, and computes on its own device.
        vocabulary: the one that the model was trained with.
        batch_tokens: the most tokens of a batch: the number of its examples times the length of the longest, as the
            task counts it. A longer example is a separate batch.
        tokenizer: splits raw text; the one that split the training data.
        origin: the run that has the model.

    Class attributes:
        keys: whose keys results have, such as `AllenNLP's`; empty for our own.
        read_keys: the keys of an input that are read, and so not carried over.
        sample: an input that works. An object is shown to those who give plain text.
        most_tokens: bound of an example's length, times `limits`' factor, where the time is quadratic.
        result_types: the types of a result's keys in Arrow tables; keys that are not here are kept as JSON. Those of
            the predictors of this package are in the code that makes such tables.
        digits: of probabilities and other numbers in results, None for all.
        most_explained: bound of the tokens that the model reads to explain an example, times `limits`' factor.
    """

    origin = _NO_RUN
    keys = ""
    read_keys: frozenset[str]
    sample: Input = "Orla sold the mill. Nobody had asked her to."
    most_tokens: int | None = None
    result_types: Mapping[str, Any] = MappingProxyType({})
    digits: int | None = 6
    most_explained = 2_000_000  # a few minutes

    def __init__(
        self,
        model: TaskModel[Any, Any],
        vocabulary: Vocabulary,
        *,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
        tokenizer: Tokenizer = TREEBANK,
        origin: Origin = _NO_RUN,
    ) -> None:
        check_count("batch_tokens", batch_tokens, 1)
        self.model = model.eval()
        self.task = model.task
        self.vocabulary = vocabulary
        self.batch_tokens = batch_tokens
        self.tokenizer = tokenizer
        self.origin = origin

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.origin.about or f'task={type(self.task).__name__}'})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self.origin.load is None:
            raise TypeError(f"{self!r} was not loaded from a run and cannot be pickled; load its run in each process")
        return self.origin.load, ()

    def with_model(self: _PredictorT, model: TaskModel[Any, Any]) -> _PredictorT:
        """The same predictor with another model of its task and vocabulary."""
        other: _PredictorT = object.__new__(type(self))
        other.__dict__.update(vars(self), model=model.eval())
        return other

    @abstractmethod
    def examples(self, fields: Fields) -> Iterable[dict[str, Any]]:
        """The examples to predict for one input: what the task collates, and what `result` needs in addition.

        Raises:
            ElmoTasksError: the input is incomplete or wrong; the message does not have to say which input.
        """

    def inputs_of(self, examples: Iterable[Fields]) -> Iterator[dict[str, Any]]:
        """The inputs that examples of a data set are, each with the `line` where it begins.

        They have the texts as written and the other columns, where the reader gives them as the `input` and the
        `others` of an example.
        """
        for example in examples:
            given = example.get("input") or self.input_of(example)
            yield {**example.get("others", {}), **given, "line": example.get("line")}

    def input_of(self, example: Fields) -> dict[str, Any]:
        """The input that an example of a data set is; by default its `tokens`."""
        return {"tokens": example["tokens"]}

    @abstractmethod
    def result(self, example: Fields, prediction: Fields) -> dict[str, Any]:
        """The result of one example, as values for JSON."""

    def __call__(
        self, inputs: Input | Iterable[Input], *, on_error: OnError | None = None, explain: bool = False
    ) -> list[dict[str, Any]]:
        """The results for a text, a dict, or several of them, all in one list; see `predict`, and also `each`."""
        several = [inputs] if isinstance(inputs, (str, Mapping)) else inputs
        if isinstance(several, bytes) or not isinstance(several, Iterable):
            raise ArgumentError(f"inputs is {one_line_of(inputs)}; expected a string, a dict or a list of them")
        return list(self.predict(map(_not_skipped, several), on_error=on_error, explain=explain))

    def each(self, inputs: Collection[Input], *, explain: bool = False) -> list[list[dict[str, Any]]]:
        """For each of several inputs the list of its results, in the order of the inputs; see `predict`.

        The list of a blank text is empty. That of an input that is not usable is `[{"error": "..."}]`.
        """
        check_several("inputs", inputs, "a list of strings or dicts")
        found: list[list[dict[str, Any]]] = [[] for _ in inputs]
        refused: dict[int, dict[str, Any]] = {}

        def refuse(error: DataError) -> None:
            refused[error.line or 0] = {"error": error.problem}

        given = map(_not_skipped, inputs)
        for number, result in self._results(given, "", lambda: False, refuse, explain):
            found[number - 1].append(result)
        return [[refused[number]] if number in refused else each for number, each in enumerate(found, start=1)]

    def warm_up(self) -> None:
        """Predicts the sample, so that all that is loaded at the first use is there before the first input comes."""
        with contextlib.suppress(DataError):  # a predictor of users may want other inputs, and then is slow once
            self(self.sample)

    def predict(
        self,
        inputs: Iterable[Input | None],
        *,
        source: str = "inputs",
        waiting: Callable[[], bool] = lambda: False,
        on_error: OnError | None = None,
        explain: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Yields the results in the order of the inputs, while these are still being read.

        Arguments:
            inputs: dicts, or strings: `"..."` is `{"text": "..."}`. They may be endless; only a bounded part is in
                memory at any time. None is skipped, but counted. A blank text has no sentence and so no result; a
                warning says so.
            source: the name of the inputs in messages.
            waiting: whether the next input has not come yet; then the results of those before it are yielded first.
            on_error: called with the error of an input that is not usable, which is skipped then; by default the error
                is raised.
            explain: adds the tokens that each result depends on, as `saliency`; see the method `explain`.

        Raises:
            DataError: an input is not usable; the message names its number, from 1. The results of the inputs before it
                are yielded first.
            ArgumentError: `inputs` is a single input, or not iterable.
        """
        if isinstance(inputs, (str, bytes, Mapping)) or not isinstance(inputs, Iterable):
            expected = "a list of strings or dicts; for a single one, call the predictor itself"
            raise ArgumentError(f"inputs is {one_line_of(inputs)}; expected {expected}")
        results = self._results(inputs, source, waiting, on_error, explain)
        return (result for _, result in results)

    def _results(
        self,
        inputs: Iterable[Input | None],
        source: str,
        waiting: Callable[[], bool],
        on_error: OnError | None,
        explain: bool,
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields each result with the number of its input, from 1. Without a source, blank texts are not warned of."""
        if not isinstance(explain, bool):
            raise ArgumentError(f"explain is {one_line_of(explain)}; expected True or False")
        if on_error is not None and not callable(on_error):
            raise ArgumentError(f"on_error is {one_line_of(on_error)}; expected a function, which gets the error")
        for window in self._windows(inputs, source, waiting, on_error):
            refused: DataError | None = None
            while True:
                try:
                    examples = [example for *_, example in window]
                    predictions = self.predictions(examples)
                    added = self.explain(examples, predictions) if explain else [{} for _ in examples]
                    break
                except ExampleError as error:
                    number = window[error.row][0]
                    problem = DataError(source, str(error), number)
                    if on_error:
                        on_error(problem)
                        window = [each for each in window if each[0] != number]
                    else:
                        refused = problem
                        window = [each for each in window if each[0] < number]
            for (number, fields, example), prediction, explained in zip(window, predictions, added, strict=True):
                yield number, self.complete_result(fields, example, prediction) | explained
            if refused:
                raise refused
            release_memory_after(sum(self.task.length(example) for *_, example in window))

    def _windows(
        self, inputs: Iterable[Input | None], source: str, waiting: Callable[[], bool], on_error: OnError | None
    ) -> Iterator[list[tuple[int, Fields, dict[str, Any]]]]:
        """Yields the number, fields and example of as many as are predicted together; before an error, the rest."""
        window: list[tuple[int, Fields, dict[str, Any]]] = []
        blank: list[int] = []
        tokens = 0
        try:
            for number, given in enumerate(inputs, start=1):
                fields = {"text": given} if isinstance(given, str) else given
                try:
                    if fields is not None and not isinstance(fields, Mapping):
                        raise ElmoTasksError(f"{one_line_of(given)}; expected a string or a dict")
                    examples = [] if fields is None else self.checked_examples(fields)
                except ElmoTasksError as error:
                    problem = DataError(source, str(error), number)
                    if on_error is None:
                        raise problem from None
                    on_error(problem)
                    continue
                if fields is not None and not examples:
                    blank.append(number)
                for example in examples:
                    window.append((number, fields or {}, example))
                    tokens += self.task.length(example)
                    if tokens >= _BATCHES_AHEAD * self.batch_tokens:
                        yield window
                        window, tokens = [], 0
                if window and waiting():
                    yield window
                    window, tokens = [], 0
        except ElmoTasksError:
            yield window
            raise
        yield window
        if blank and source:
            warn_of_blank(source, blank)

    def checked_examples(self, fields: Fields) -> list[dict[str, Any]]:
        """The `examples` of one input, none of them too long.

        Raises:
            ElmoTasksError: the input is not usable; the message does not say which input.
        """
        try:
            examples = list(self.examples(task_keys(fields, self.origin.own_columns)))
        except ElmoTasksError as error:
            wants_fields = set(fields) == {"text"} and not isinstance(self.sample, str)
            hint = f"; expected JSON objects, such as {json.dumps(self.sample)}" if wants_fields else ""
            problem = "plain text" if hint and "text" not in self.read_keys else str(error)
            raise ElmoTasksError(f"{problem}{hint}") from None
        for length in map(self.task.length, examples):
            if self.most_tokens and length > (most := limit(self.most_tokens)):
                problem = f"{length:,} tokens, for which the time is quadratic; expected at most {most:,}; {ADVICE}"
                raise ElmoTasksError(problem)
        return examples

    def cost(self, example: Fields) -> int:
        """How many tokens the model reads for an example, as far as the example says it."""
        return self.task.length(example)

    def with_known_costs(self, examples: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        """The examples with all that decides their `cost`; by default they have it."""
        return examples

    def complete_result(self, fields: Fields, example: Fields, prediction: Fields) -> dict[str, Any]:
        """The `result` of an example, after the items of its input that are carried over, under names of their own."""
        result = self.result(example, prediction)
        least = self.origin.least_probability
        if least and "label" in result and result["probabilities"][result["label"]] < least:
            result = {**result, "label": None}
        taken = result.keys() | RESULT_KEYS
        carried = {}
        for key, value in task_keys(fields, self.origin.own_columns).items():
            if key not in self.read_keys:
                name = key
                while name in taken or (name != key and name in fields):
                    name = f"input_{name}"
                carried[name] = value
        return carried | result

    def predictions(self, examples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The model's prediction of each example, in their order, with rounded numbers.

        A predictor overrides this if the model reads something other than the examples, such as parts of them.
        """
        return self.in_batches(examples, self._predict_batch)

    def explain(self, examples: Sequence[dict[str, Any]], predictions: Sequence[Fields]) -> list[dict[str, Any]]:
        """The tokens that the predictions depend on, `{"saliency": [...]}` for each example.

        There is an item for each thing that the prediction says, with what it is `of`, its `score` and its texts as
        lists of `[token, share]`.

        Raises:
            ExampleError: the model would read too many tokens for an example.
            ElmoTasksError: explanations are not installed.
        """
        explained: list[dict[str, Any]] = hooks.required("explanation", "saliency", "explain")(
            self, examples, predictions
        )
        return explained

    def in_batches(
        self, examples: Sequence[dict[str, Any]], compute: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
    ) -> list[dict[str, Any]]:
        """What a function of a batch's examples gives for each example, in their order, with rounded numbers."""
        predictions: dict[int, dict[str, Any]] = {}
        lengths = [self.task.length(example) for example in examples]
        for rows in batches_of_like_lengths(lengths, max_padded=self._most_padded(lengths)):
            predictions.update(zip(rows, compute([examples[row] for row in rows]), strict=True))
        return [rounded(predictions[row], self.digits) for row in range(len(examples))]

    def _most_padded(self, lengths: Sequence[int]) -> int:
        """The most tokens of a batch of examples of these lengths."""
        return self.batch_tokens

    @torch.inference_mode()
    def _predict_batch(self, examples: list[dict[str, Any]]) -> list[dict[str, Any]]:
        batch = self.collate(examples)
        output = self.model(batch)
        return self.model.decode(output, batch)

    def collate(self, examples: list[dict[str, Any]]) -> Any:
        """A batch of the model's task, on the device of the model."""
        return self.task.collate(examples, self.vocabulary).to(next(self.model.parameters()).device)


def _not_skipped(given: Input | None) -> Input:
    """An input of a list, where None is an error; in a file, it stands for a blank line."""
    return {"text": None} if given is None else given


def chances(result: Fields) -> list[float]:
    """The probabilities that the parts of a result are right: its label, each label of a set, or each tag.

    Raises:
        ElmoTasksError: it has no probabilities.
    """
    found = result.get("probabilities")
    if not found:
        raise ElmoTasksError(f"expected results with probabilities of labels or tags, got {', '.join(result)}")
    if not isinstance(found, dict):
        return list(found)
    return [max(each, 1 - each) for each in found.values()] if "labels" in result else [max(found.values())]


def rounded(value: Any, digits: int | None = Predictor.digits) -> Any:
    """A value of JSON with all its floating-point numbers rounded, also in lists and objects."""
    if isinstance(value, float):
        return value if digits is None else round(value, digits)
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    return value


_tokens_since_release = 0


def release_memory_after(tokens: int) -> None:
    """Counts predicted tokens, and at times lets glibc give back the free parts of its heaps.

    Large tensors come and go among small objects that stay, such as cached words. The gaps between these do not fit the
    next tensors, and the heaps grow for hours. Other C libraries give memory back by themselves.
    """
    global _tokens_since_release
    _tokens_since_release += tokens
    if _tokens_since_release >= _TOKENS_BETWEEN:
        _tokens_since_release = 0
        release_memory()
