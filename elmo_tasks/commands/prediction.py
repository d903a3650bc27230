"""Where the inputs of `elmo-tasks predict` come from, and where its results go."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from elmo_tasks.console import binary_output
from elmo_tasks.errors import DataError
from elmo_tasks.json_files import json_text

if TYPE_CHECKING:
    from elmo_tasks.predictors import Predictor
    from elmo_tasks.predictors.inputs import InputFormat, LiveLines
    from elmo_tasks.tasks import Task

logger = logging.getLogger(__name__)

_STANDARD_INPUT = "-"

Show = Callable[[dict[str, Any]], object]


def predict_stream(predictor: Predictor, arguments: argparse.Namespace) -> None:
    """Predicts the inputs as they come, and shows each result as soon as it is there.

    A person who types the inputs is prompted. A faulty input then gets a message, and the next one can be typed.
    """
    from elmo_tasks.predictors.inputs import LiveLines, read_inputs, source_name

    input_format: InputFormat = "auto" if arguments.format == "allennlp" else arguments.format
    prints = not (arguments.output or arguments.html)
    typed = arguments.input == _STANDARD_INPUT and sys.stdin is not None and sys.stdin.isatty()
    source: str | LiveLines = arguments.input
    if arguments.input == _STANDARD_INPUT:
        source = LiveLines.of_standard_input(_prompt if typed else lambda: None)
        predictor.warm_up()
        if not typed and source.waiting():
            logger.info("ready; waiting for lines on standard input")
    waiting = {"waiting": source.waiting} if isinstance(source, LiveLines) else {}
    if typed:
        print("Ready. Type lines of text or JSON objects; the first one decides which. Ctrl-D ends.", file=sys.stderr)
    with _results(arguments, predictor) as show:
        while True:
            inputs = _counted(read_inputs(source, input_format), source, visible=not (prints or typed))
            try:
                for result in predictor.predict(inputs, source=source_name(source), **waiting):
                    show(result)
                return
            except DataError as error:
                if not typed:
                    raise
                print(f"error: {error}", file=sys.stderr)


def _prompt() -> None:
    print("> ", end="", file=sys.stderr, flush=True)


def _counted(inputs: Iterable[Any], source: str | LiveLines, *, visible: bool) -> Iterator[Any]:
    """The inputs, with a progress bar for those that have been read."""
    from elmo_tasks.files import read_lines
    from elmo_tasks.progress import progress_bar

    with progress_bar(visible=visible) as bar:
        total = None
        if isinstance(source, str) and not bar.disable:
            with contextlib.suppress(DataError):  # it is raised again after the results of the lines before it
                total = sum(1 for _ in read_lines(source))
        task = bar.add_task("inputs", total=total, note="")
        for fields in inputs:
            yield fields
            bar.advance(task)


@contextlib.contextmanager
def _results(arguments: argparse.Namespace, predictor: Predictor) -> Iterator[Show]:
    """Yields a function that shows a result in each of the ways that the arguments ask for."""
    with contextlib.ExitStack() as stack:
        shows: list[Show] = []
        if arguments.html:
            shows.append(stack.enter_context(_page(arguments.html, arguments.run_path, predictor.task)))
        if arguments.output:
            shows.append(stack.enter_context(_json_lines(arguments.output)))
        if not shows:
            plain = arguments.json or arguments.format == "allennlp" or not sys.stdout.isatty()
            shows.append(stack.enter_context(_json_lines(None)) if plain else _terminal(predictor.task))

        def show(result: dict[str, Any]) -> None:
            for each in shows:
                each(result)

        yield show


@contextlib.contextmanager
def _json_lines(path: str | None) -> Iterator[Show]:
    with binary_output(path) as stream:

        def show(result: dict[str, Any]) -> None:
            stream.write(f"{json_text(result)}\n".encode())
            stream.flush()  # a program at the other end of a pipe may wait for it

        yield show


@contextlib.contextmanager
def _page(path: str, title: str, task: Task) -> Iterator[Show]:
    from elmo_tasks.rendering import describe
    from elmo_tasks.rendering.html import END, Sections, page_start

    sections = Sections()
    with binary_output(path) as stream:
        stream.write(page_start(title).encode())
        yield lambda result: stream.write(sections.section(describe(task, result)).encode())
        stream.write(END.encode())


def _terminal(task: Task) -> Show:
    from elmo_tasks.rendering import describe
    from elmo_tasks.rendering.terminal import Terminal

    terminal = Terminal()
    return lambda result: terminal.show(describe(task, result))
