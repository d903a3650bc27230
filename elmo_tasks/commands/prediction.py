"""Where the inputs of `elmo-tasks predict` come from, and where its results go."""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import logging
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from elmo_tasks.commands.console import binary_output, json_lines, page, table
from elmo_tasks.commands.stopping import Results, uninterrupted
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.files.paths import JSON, JSON_LINES, is_table

if TYPE_CHECKING:
    from elmo_tasks.data_readers.reader import DatasetReader
    from elmo_tasks.predictors import Predictor
    from elmo_tasks.predictors.inputs import LineFormat, LiveLines
    from elmo_tasks.tasks import Task

logger = logging.getLogger(__name__)

TOOLS = {"doccano": JSON_LINES, "label-studio": JSON, "brat": (), "spacy": (".spacy",)}
"""The tools of annotation that predictions are written for, with the endings of their files."""

_STANDARD_INPUT = "-"
_SHOWN_ERRORS = 5

_T = TypeVar("_T")

Show = Callable[[dict[str, Any]], object]


def predict_stream(predictor: Predictor, arguments: argparse.Namespace, reader: DatasetReader | None = None) -> None:
    """Predicts the inputs as they come, and shows each result as soon as it is there.

    A person who types the inputs is prompted. A faulty input then gets a message, and the next one can be typed.

    Arguments:
        reader: reads the inputs, where they are data.

    Raises:
        DataError: an input is not usable, and there are no results or they are printed.
        IncompleteError: an input is not usable, and files have the results of those before it.
    """
    from elmo_tasks.predictors.inputs import LiveLines, input_name, inputs_of_files, read_inputs, reader_inputs

    input_format: LineFormat = "auto" if arguments.format == "allennlp" else arguments.format
    results = Results((arguments.output, arguments.html))
    typed = not reader and arguments.input == _STANDARD_INPUT and sys.stdin is not None and sys.stdin.isatty()
    skipped = _Skipped()
    gc.freeze()  # what is loaded stays; garbage collection then reads only what the inputs bring
    on_error = skipped if arguments.on_error == "skip" else None
    options: dict[str, Any] = {"on_error": on_error, "explain": arguments.explain}
    with contextlib.ExitStack() as stack:
        source: str | LiveLines = arguments.input
        if not (reader or arguments.files):
            source = _source(arguments.input, stack, _prompt if typed else lambda: None)
        if isinstance(source, LiveLines):
            options["waiting"] = source.waiting
            predictor.warm_up()
            _say_ready(source, typed=typed)
        show = stack.enter_context(_results(arguments, predictor, results, reader))
        is_shown = not typed and (bool(results.files) or not (isinstance(source, LiveLines) or sys.stdout.isatty()))
        while True:
            if reader:
                given = reader_inputs(reader, predictor, arguments.input, on_error)
            elif arguments.files:
                given = inputs_of_files(arguments.files, input_format, on_error)
            else:
                given = read_inputs(source, input_format, on_error)
            inputs = stack.enter_context(contextlib.closing(_counted(given, source, visible=is_shown)))
            try:
                results.show(predictor.predict(inputs, source=input_name(source), **options), show, typed=typed)
                break
            except DataError as error:
                if not typed:
                    raise
                print(f"error: {error}", file=sys.stderr)
        with uninterrupted():  # a second Ctrl-C must not throw away what the first one has kept
            stack.close()
    skipped.report()
    results.report("result")


def predict_for_tool(predictor: Predictor, arguments: argparse.Namespace, reader: DatasetReader) -> None:
    """Predicts the texts of a tool's export or the lines of a text, and writes them as a tool imports them."""
    from elmo_tasks.extras.annotation.pre_annotations import brat_files, docbin, json_content, pre_annotate
    from elmo_tasks.extras.annotation.spans import SpansConfig, SpansReader
    from elmo_tasks.files.atomic import atomic_folder

    tool, path, skipped = arguments.output_format, arguments.output, _Skipped()
    reader = reader if isinstance(reader, SpansReader) else SpansConfig().build()
    on_error = skipped if arguments.on_error == "skip" else None
    texts = pre_annotate(tool, predictor, reader, arguments.input, on_error)
    if arguments.least_certain:
        texts = sorted(texts, key=lambda found: min(found.chances))[: arguments.least_certain]
    if tool == "brat":
        with atomic_folder(path, merge=True) as folder:
            for name, content in brat_files(texts).items():
                (folder / name).write_bytes(content)
    else:
        model = " ".join(arguments.run_paths)
        with binary_output(path) as stream:
            stream.write(docbin(texts) if tool == "spacy" else json_content(tool, texts, reader, model))
    skipped.report()


def _say_ready(source: LiveLines, *, typed: bool) -> None:
    """Says that lines can come: to a person who types them, or in the log if none has come yet."""
    if typed:
        print("Ready. Type lines of text or JSON objects; the first one decides which. Ctrl-D ends.", file=sys.stderr)
    elif source.waiting():
        logger.info("ready; waiting for lines on %s", source.name)


class _Skipped:
    """Keeps the first errors of inputs that are skipped, and counts the others."""

    def __init__(self) -> None:
        self._shown: list[str] = []
        self._count = 0

    def __call__(self, error: DataError) -> None:
        self._count += 1
        if self._count <= _SHOWN_ERRORS:
            self._shown.append(f"\n  {error}")

    def report(self) -> None:
        rest = self._count - len(self._shown)
        if self._count:
            more = f"\n  and {rest} more" if rest else ""
            logger.warning("skipped %d unusable input(s):%s%s", self._count, "".join(self._shown), more)


def _source(path: str, stack: contextlib.ExitStack, prompt: Callable[[], None]) -> str | LiveLines:
    """A file, or the lines of standard input, a pipe or a device as they come."""
    from elmo_tasks.files.paths import COMPRESSIONS, is_stream
    from elmo_tasks.predictors.inputs import LiveLines

    if path == _STANDARD_INPUT:
        return LiveLines.of_standard_input(prompt)
    if is_stream(path) and not path.endswith(COMPRESSIONS):
        return LiveLines(stack.enter_context(open(path, "rb")).fileno(), path)
    return path


def _prompt() -> None:
    print("> ", end="", file=sys.stderr, flush=True)


def _counted(inputs: Iterable[_T], source: str | LiveLines, *, visible: bool) -> Generator[_T]:
    """The inputs, with a progress bar for those that have been read."""
    from elmo_tasks.files.text import read_lines
    from elmo_tasks.progress import counted_items

    total = None
    if visible and isinstance(source, str) and Path(source).is_file():
        with contextlib.suppress(DataError):  # it is raised again after the results of the lines before it
            total = sum(1 for _ in read_lines(source))
    return counted_items(inputs, "inputs", total=total, visible=visible)


@contextlib.contextmanager
def _results(
    arguments: argparse.Namespace, predictor: Predictor, results: Results, reader: DatasetReader | None
) -> Iterator[Show]:
    """Yields a function that shows a result in each of the ways that the arguments ask for.

    Arguments:
        results: those that have been shown; a file says at its end if there are more.
    """
    from elmo_tasks.rendering import describe

    with contextlib.ExitStack() as stack:
        shows: list[Show] = []
        add_resolved = _resolution(predictor) if arguments.resolve else dict
        if arguments.html:
            add_section = stack.enter_context(page(arguments.html, " ".join(arguments.run_paths), results))
            shows.append(lambda result: add_section(describe(predictor.task, result)))
        if arguments.output_format == "reader":
            assert reader
            shows.append(stack.enter_context(_same_format(arguments.output, reader, arguments.input, results)))
        elif is_table(arguments.output):
            shows.append(_rows(stack.enter_context(table(arguments.output))))
        elif arguments.output:
            shows.append(stack.enter_context(json_lines(arguments.output)))
        if arguments.resolve and not shows and not arguments.json:
            shows.append(lambda result: print(result["resolved"], flush=True))
        if not shows:
            plain = arguments.json or arguments.format == "allennlp" or not sys.stdout.isatty()
            shows.append(stack.enter_context(json_lines(None)) if plain else _terminal(predictor.task))

        yield lambda result: [show(add_resolved(result)) for show in shows]


def _rows(add: Callable[[dict[str, Any]], object]) -> Show:
    """A function that adds the rows of a result to a table."""
    from elmo_tasks.extras.tables.table_rows import table_rows

    numbers = itertools.count(1)
    return lambda result: [add(row) for row in table_rows(result, next(numbers))]


def _resolution(predictor: Predictor) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A function that adds the resolved text to a result."""
    from elmo_tasks.extras.resolve.resolution import resolved_text
    from elmo_tasks.runs.load import tags_by_installed_model
    from elmo_tasks.tasks import Coreference

    if not isinstance(predictor.task, Coreference):
        raise ElmoTasksError(f"--resolve is for coreference; the model is a {type(predictor.model).__name__}")
    find_tags = tags_by_installed_model()
    return lambda result: {**result, "resolved": resolved_text(result, find_tags)}


@contextlib.contextmanager
def _same_format(path: str | None, reader: DatasetReader, source: str, results: Results) -> Iterator[Show]:
    """Keeps the predictions, and at the end writes the data with them; `_` for what was skipped.

    Arguments:
        results: if they end early, the data ends there, too.
    """
    predicted: deque[tuple[int, list[str]]] = deque()  # by the lines where examples begin
    values: deque[str] = deque()
    field = reader.task.predicted_field

    def prediction(number: int) -> str:
        if predicted and predicted[0][0] <= number:
            values.extend(predicted.popleft()[1])
        return values.popleft() if values else "_"

    lines = reader.with_predictions(Path(source), prediction)
    yield lambda result: predicted.append((result["line"], result[field]))
    with binary_output(path) as stream:
        for line in lines:
            stream.write(f"{line}\n".encode())
            if results.note and not (predicted or values):
                break


def _terminal(task: Task) -> Show:
    from elmo_tasks.rendering import describe
    from elmo_tasks.rendering.terminal import Terminal

    terminal = Terminal()
    return lambda result: terminal.show(describe(task, result))
