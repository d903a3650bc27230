"""The command that applies a run: where its inputs come from, and where its results go."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import logging
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from elmo_tasks import hooks
from elmo_tasks.commands import options
from elmo_tasks.commands.console import binary_output, json_lines
from elmo_tasks.errors import DataError, ElmoTasksError, OnError, did_you_mean
from elmo_tasks.files.paths import HTML, JSON_LINES, check_ending, check_folder, check_output, ends_in_slash
from elmo_tasks.files.signals import Results, uninterrupted

if TYPE_CHECKING:
    from elmo_tasks.data_readers.reader import DatasetReader
    from elmo_tasks.predictors import Predictor
    from elmo_tasks.predictors.inputs import LiveLines

logger = logging.getLogger(__name__)

_STANDARD_INPUT = "-"
RANK = "rank_of_doubt"
"""The key of a table's results that are the least certain ones: 1 for the least certain."""

_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods", ".parquet")  # text is never in one: the run's reader reads them
_TEXT_TABLES = (".csv", ".tsv")
_SHOWN_ERRORS = 5

Show = Callable[[dict[str, Any]], object]


class InputFormat(NamedTuple):
    """A format of `--format`.

    Arguments:
        about: for `--help`.
        lines: how lines are read, see `read_inputs`; None for data that the run's reader reads.
        predictor: makes a predictor one that takes inputs, and gives results, in other keys; None for our own.
        keys: whose keys these are, such as `AllenNLP's`.
    """

    about: str
    lines: Literal["auto", "text", "jsonl"] | None = "auto"
    predictor: Callable[[Predictor], Predictor] | None = None
    keys: str = ""


class OutputFormat(NamedTuple):
    """A format of `--output-format`.

    Arguments:
        about: for `--help`.
        endings: those of its files; none for a folder.
        write: predicts the texts of an annotation tool and writes them, `(request, predictor, reader, on_error)`.
    """

    about: str
    endings: tuple[str, ...]
    write: Callable[[PredictRequest, Predictor, DatasetReader, OnError | None], None]


_ONE_BY_ONE = {
    "jsonl": "one JSON object per result",
    "reader": "with --format reader, columns of tokens (CoNLL) with one more, the predictions",
}
"""The output formats whose results are written as they come, with what `--help` says. They are not registered."""


for _name, _format in {
    "auto": InputFormat(
        "text or jsonl, by the first line that is not blank; a table if the run learned from one; refuses other data"
    ),
    "text": InputFormat("one paragraph per line", "text"),
    "jsonl": InputFormat("one JSON object per line", "jsonl"),
    "reader": InputFormat("data in the format of the run's reader, with or without gold labels", None),
}.items():
    hooks.register("input_format", _name, _format)


@dataclasses.dataclass(frozen=True)
class PredictRequest:
    """What `elmo-tasks predict` is asked for.

    Attributes:
        overrides: of the run's config.
        arguments: all that the command line says, also options of extras.
        others: as for the command.
    """

    run_paths: list[str]
    inputs: list[str]
    format: str
    output_format: str
    output: str | None
    html: str | None
    on_error: Literal["fail", "skip", "record"]
    explain: bool
    resolve: bool
    json: bool
    force: bool
    overrides: list[str]
    arguments: argparse.Namespace

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> PredictRequest:
        """Raises an `ElmoTasksError` for options that do not go together.

        A format that is not known ends the process, as other wrong options do. It is checked here because a package of
        `--include-package` may have added it.
        """
        _check_name(arguments, "format", hooks.names("input_format"))
        _check_name(arguments, "output_format", _output_formats())
        paths, words = options.runs_and_data([*arguments.run_paths, *arguments.input])
        changes = [*arguments.set, *(["calibrated=false"] if arguments.uncalibrated else [])]
        changes += [f"wanted_precision={arguments.precision}"] if arguments.precision else []
        given = argparse.Namespace(**{**vars(arguments), "run_paths": paths, "input": words, "set": changes})
        return cls(
            run_paths=paths,
            inputs=words,
            overrides=[*options.tokenizer_overrides(given), *options.run_overrides(given)],
            arguments=given,
            **{name: getattr(arguments, name) for name in _SAME_NAMES},
        )

    def __post_init__(self) -> None:
        foreign_keys = hooks.find("input_format", self.format).keys
        if self.output_format == "reader" and self.format != "reader":
            raise ElmoTasksError(
                "--output-format reader adds predictions to the data; expected --format reader as well"
            )
        if foreign_keys and (self.html or is_table(self.output)):
            raise ElmoTasksError(
                f"--html and tables cannot show {foreign_keys} keys; expected no --format {self.format}"
            )
        if self.explain and self.output_format != "jsonl":
            raise ElmoTasksError(
                f"--explain adds to results, not to data; expected no --output-format {self.output_format}"
            )
        if self.resolve and (foreign_keys or self.format == "reader"):
            raise ElmoTasksError(f"--resolve is for text; expected no --format {self.format}")
        if self.arguments.least_certain and (self.output_format == "reader" or ends_in_slash(self.output)):
            raise ElmoTasksError(
                "--least-certain: expected an annotation tool's --output-format, JSON lines or a table"
            )
        if not self.tool:
            return
        given = {"html": self.html, "resolve": self.resolve, "format": self.format != "auto"}
        if others := [name for name, is_given in given.items() if is_given]:
            raise ElmoTasksError(f"--output-format {self.output_format}: expected no --{others[0]}")
        if self.inputs[0].lower().endswith(_SPREADSHEETS):
            advice = "without this option, the run's reader reads it"
            raise ElmoTasksError(f"--output-format {self.output_format}: {self.inputs[0]} is a table; {advice}")
        is_new = self.output and (self.force or not Path(self.output).exists())
        if not self.tool.endings and not is_new:
            raise ElmoTasksError(
                f"--output-format {self.output_format}: expected a new folder as --output, or --force to write into one"
            )

    @property
    def tool(self) -> OutputFormat | None:
        """The format of an annotation tool, if the results are for one."""
        if self.output_format in _ONE_BY_ONE:
            return None
        chosen: OutputFormat = hooks.find("output_format", self.output_format)
        return chosen


_SAME_NAMES = ("format", "output_format", "output", "html", "on_error", "explain", "resolve", "json", "force")


def _output_formats() -> list[str]:
    return [*_ONE_BY_ONE, *hooks.names("output_format")]


def _check_name(arguments: argparse.Namespace, option: str, known: list[str]) -> None:
    """Ends the process with a message, as the parser does, if the value of an option is not a known name."""
    if (name := getattr(arguments, option)) not in known:
        problem = f"invalid choice: {name!r} (choose from {', '.join(known)}){did_you_mean(name, known)}"
        arguments.parser.error(f"argument --{option.replace('_', '-')}: {problem}")


class _OpenChoices(list[str]):
    """The known values of an option. Others are taken, too: a package that is included after parsing may add them."""

    def __contains__(self, name: object) -> bool:
        return True


def is_table(path: str | Path | None) -> bool:
    """Whether a file that is written is a table, by its name."""
    return str(path).lower().endswith(tuple(hooks.names("result_file")))


def add_predict(parser: argparse.ArgumentParser) -> None:
    options.add_run_arguments(parser)
    options.add_inputs(parser, "the input file")
    about_inputs = {name: hooks.find("input_format", name).about for name in hooks.names("input_format")}
    about = "; ".join(f"{name}: {text}" for name, text in about_inputs.items())
    options.add_choice(parser, "--format", _OpenChoices(about_inputs), about)
    by_about = {text: [name] for name, text in _ONE_BY_ONE.items()}
    for name in hooks.names("output_format"):
        by_about.setdefault(hooks.find("output_format", name).about, []).append(name)
    about = "; ".join(f"{', '.join(names)}: {text}" for text, names in by_about.items())
    options.add_choice(parser, "--output-format", _OpenChoices(_output_formats()), about)
    about = "only the N texts that the model is least certain of, the least certain first; in a table, all rows stay, "
    about += f"and these have their place in a column `{RANK}`"
    parser.add_argument("--least-certain", type=options.positive, metavar="N", help=about)
    options.add_choice(
        parser,
        "--on-error",
        ("fail", "skip", "record"),
        "what to do with an unusable input. fail: stop with an error; output files keep the results so far. skip: "
        "continue, and list the skipped inputs at the end. record: in a folder, write the error to its column",
    )
    about = "also show how much each token counts for each result, by integrated gradients"
    options.add_flag(parser, "--explain", about)
    options.add_flag(
        parser,
        "--resolve",
        "for coreference: print the text with each mention replaced by the first name of its chain; JSON results have "
        "it as `resolved`",
    )
    about = "for calibrated runs of tasks with one label: give a label only where it is probable enough for this share "
    about += "of right labels, such as 0.9"
    parser.add_argument("--precision", type=float, metavar="P", help=about)
    options.add_flag(parser, "--uncalibrated", "give the model's own probabilities, also of a run that is calibrated")
    options.add_tokenizer_arguments(parser, "the tokenizer of the run's config")
    *others, last = hooks.names("result_file") or ("", "")
    tables = f", or a table if it ends in {', '.join(others)} or {last}" if last else ""
    about = f"write the results to this file, instead of printing them: JSON lines{tables}"
    about += "; or, with a slash at the end, to a folder of Parquet files"
    parser.add_argument("--output", metavar="FILE|DIR/", help=about)
    parser.add_argument("--html", metavar="FILE", help="write the results to this HTML page, instead of printing them")
    options.add_force(parser)
    options.add_flag(parser, "--json", "print JSON lines on a terminal too, instead of coloured text")
    about = "for semantic roles: the run of a tagger that finds the predicates (default: that of an installed model)"
    parser.add_argument("--predicates", metavar="RUN", help=about)
    if folder := hooks.find("result_folder", "parquet"):
        folder.add_options(parser)


def run_predict(arguments: argparse.Namespace) -> None:
    from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS
    from elmo_tasks.predictors.inputs import find_files
    from elmo_tasks.runs.load import load_predictor, load_run, run_predictor

    request = PredictRequest.of(arguments)
    options.refuse_torchrun("predict")
    tool = request.tool
    if not tool and _writes_folder(request):
        return
    several = len(request.inputs) > 1 or (Path(request.inputs[0]).is_dir() and not tool)
    input_format = _input_format(request)
    if several and input_format.lines is None:
        if tool:
            raise ElmoTasksError(
                f"--output-format {request.output_format}: reads one file or folder; got several files"
            )
        raise ElmoTasksError("--format reader reads one file into a table; got a folder or several files")
    files = find_files(request.inputs) if several else {}
    _check_outputs(request)

    batch_tokens = request.arguments.batch_tokens or DEFAULT_BATCH_TOKENS
    loading: dict[str, Any] = {"batch_tokens": batch_tokens, "predicates": None}
    if tagger := request.arguments.predicates:
        on_device: dict[str, Any] = {"overrides": options.device_overrides(arguments), "batch_tokens": batch_tokens}
        loading["predicates"] = load_predictor(tagger, **on_device)
    reader: DatasetReader | None = None
    if input_format.lines is None:
        run = load_run(request.run_paths, overrides=request.overrides)
        reader, predictor = run.reader, run_predictor(run, **loading)
    else:
        predictor = load_predictor(request.run_paths, overrides=request.overrides, **loading)
    if input_format.predictor:
        predictor = input_format.predictor(predictor)

    skipped = _Skipped()
    on_error = skipped if request.on_error == "skip" else None
    results = Results((request.output, request.html), "--on-error skip leaves out inputs that are not usable")
    if tool and reader:
        tool.write(request, predictor, reader, on_error)
        skipped.report()
        return
    _predict_stream(request, input_format, predictor, reader, files, results, on_error)
    skipped.report()
    results.report("result")


def _input_format(request: PredictRequest) -> InputFormat:
    """The chosen format. The run's reader reads what goes to annotation tools, spreadsheets, and its tables of text."""
    name, path = request.format, request.inputs[0].lower()
    is_data = name == "auto" and path.endswith(_SPREADSHEETS)
    if name == "auto" and path.endswith(_TEXT_TABLES):
        from elmo_tasks.runs.experiment_data import RunReaders

        readers = RunReaders.of(request.run_paths[0])
        reader = readers.validation_dataset_reader or readers.dataset_reader
        is_data = reader is not None and reader.reads_tables
    name = "reader" if request.tool or is_data else name
    chosen: InputFormat = hooks.find("input_format", name)
    return chosen


def _writes_folder(request: PredictRequest) -> bool:
    """Writes the results as Parquet files, if a folder is asked for."""
    if (folder := hooks.find("result_folder", "parquet")) is None:
        if ends_in_slash(request.output):
            hooks.required("result_folder", "parquet", "--output DIR/")
        return False
    if not folder.is_asked_for(request.arguments, in_one_table=is_table(request.output)):
        return False
    folder.predict(request)
    return True


def _check_outputs(request: PredictRequest) -> None:
    """Raises an `ElmoTasksError` if a file cannot be written, before anything is computed."""
    is_folder = request.tool is not None and not request.tool.endings
    if request.tool:
        check_ending(request.output, request.tool.endings)
    elif request.output_format == "jsonl":
        tables = hooks.names("result_file")
        advice = f"Tables end in {', '.join(tables)}, and folders in /" if tables else ""
        check_ending(request.output, (*JSON_LINES, *tables), advice)
    check_ending(request.html, HTML)
    if is_folder and request.output:
        check_folder(request.output)
    for output in (request.html,) if is_folder else (request.output, request.html):
        check_output(output, force=request.force, stream=True)


def _predict_stream(
    request: PredictRequest,
    input_format: InputFormat,
    predictor: Predictor,
    reader: DatasetReader | None,
    files: Mapping[str, Path],
    results: Results,
    on_error: OnError | None,
) -> None:
    """Predicts the inputs as they come, and shows each result as soon as it is there.

    A person who types the inputs is prompted. A faulty input then gets a message, and the next one can be typed.

    Arguments:
        reader: reads the inputs, where they are data.
        files: the inputs, where they are several files.

    Raises:
        DataError: an input is not usable, and there are no results or they are printed.
    """
    from elmo_tasks.files.text import read_lines
    from elmo_tasks.predictors.inputs import LiveLines, input_name, inputs_of_files, read_inputs, reader_inputs
    from elmo_tasks.progress import counted_items

    path = request.inputs[0]
    typed = not reader and path == _STANDARD_INPUT and sys.stdin is not None and sys.stdin.isatty()
    gc.freeze()  # what is loaded stays; garbage collection then reads only what the inputs bring
    settings: dict[str, Any] = {"on_error": on_error, "explain": request.explain}
    with contextlib.ExitStack() as stack:
        source: str | LiveLines = path
        if not (reader or files):
            source = _source(path, stack, _prompt if typed else lambda: None)
        if isinstance(source, LiveLines):
            settings["waiting"] = source.waiting
            predictor.warm_up()
            if typed:
                ready = "Ready. Type lines of text or JSON objects; the first one decides which. Ctrl-D ends."
                print(ready, file=sys.stderr)
            elif source.waiting():
                logger.info("ready; waiting for lines on %s", source.name)
        show = stack.enter_context(_results(request, input_format, predictor, results, reader))
        has_bar = not typed and (bool(results.files) or not (isinstance(source, LiveLines) or sys.stdout.isatty()))
        total = None
        if has_bar and isinstance(source, str) and Path(source).is_file():
            with contextlib.suppress(DataError):  # it is raised again after the results of the lines before it
                total = sum(1 for _ in read_lines(source))
        while True:
            if reader:
                given = reader_inputs(reader, predictor, path, on_error)
            elif files:
                given = inputs_of_files(files, input_format.lines or "auto", on_error)
            else:
                given = read_inputs(source, input_format.lines or "auto", on_error)
            counted = counted_items(given, "inputs", total=total, visible=has_bar)
            inputs = stack.enter_context(contextlib.closing(counted))
            try:
                results.show(predictor.predict(inputs, source=input_name(source), **settings), show, typed=typed)
                break
            except DataError as error:
                if not typed:
                    raise
                print(f"error: {error}", file=sys.stderr)
        with uninterrupted():  # a second Ctrl-C must not throw away what the first one has kept
            stack.close()


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
    from elmo_tasks.files.text import standard_input
    from elmo_tasks.predictors.inputs import LiveLines

    if path == _STANDARD_INPUT:
        return LiveLines(standard_input().fileno(), prompt=prompt)
    if is_stream(path) and not path.endswith(COMPRESSIONS):
        return LiveLines(stack.enter_context(open(path, "rb")).fileno(), path)
    return path


def _prompt() -> None:
    print("> ", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _results(
    request: PredictRequest,
    input_format: InputFormat,
    predictor: Predictor,
    results: Results,
    reader: DatasetReader | None,
) -> Iterator[Show]:
    """Yields a function that shows a result in each of the ways that are asked for.

    Arguments:
        results: those that have been shown; a file says at its end if there are more.
    """
    from elmo_tasks.predictors.predictor import chances
    from elmo_tasks.rendering import describe
    from elmo_tasks.tasks import PairRegression, Regression

    if request.arguments.least_certain and isinstance(predictor.task, Regression | PairRegression):
        raise ElmoTasksError("--least-certain: this model gives numbers, which have no probabilities")
    with contextlib.ExitStack() as stack:
        shows: list[Show] = []
        change: Callable[[dict[str, Any]], dict[str, Any]] = dict
        if request.resolve:
            change = hooks.required("result_change", "resolve", "--resolve")(predictor)
        if request.html:
            open_page = hooks.required("page", "html", "--html")
            page = open_page(request.html, " ".join(request.run_paths), lambda: results.note)
            add_section = stack.enter_context(page)
            shows.append(lambda result: add_section(describe(predictor.task, result)))
        if request.output_format == "reader":
            assert reader
            shows.append(stack.enter_context(_same_format(request.output, reader, request.inputs[0], results)))
        elif is_table(request.output):
            ending = Path(str(request.output)).suffix.lower()
            open_table = hooks.find("result_file", ending)
            shows.append(stack.enter_context(open_table(request.output, reader, request.inputs[0])))
        elif request.output:
            shows.append(stack.enter_context(json_lines(request.output)))
        if request.resolve and not shows and not request.json:
            shows.append(lambda result: print(result["resolved"], flush=True))
        if not shows:
            plain = request.json or input_format.keys or not sys.stdout.isatty()
            if plain:
                shows.append(stack.enter_context(json_lines(None)))
            else:
                from elmo_tasks.rendering.terminal import Terminal

                terminal = Terminal()
                shows.append(lambda result: terminal.show(describe(predictor.task, result)))

        if not (count := request.arguments.least_certain):
            yield lambda result: [show(change(result)) for show in shows]
            return
        found = list[dict[str, Any]]()
        yield lambda result: found.append(change(result))
        least = sorted(range(len(found)), key=lambda row: min(chances(found[row]), default=1))[:count]
        ranks = {row: {RANK: rank} for rank, row in enumerate(least, start=1)}
        for row in range(len(found)) if is_table(request.output) else least:
            for show in shows:
                show({**found[row], **(ranks.get(row, {RANK: None}) if is_table(request.output) else {})})


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
