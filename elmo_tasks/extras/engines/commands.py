"""The options of commands that read many files and write a folder of Parquet files, and what they do then."""

from __future__ import annotations

import argparse
import logging
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.commands import options
from elmo_tasks.errors import ElmoTasksError, counted
from elmo_tasks.files.paths import check_folder, check_kind, ends_in_slash, matching_paths

if TYPE_CHECKING:
    from elmo_tasks.commands.predict import PredictRequest
    from elmo_tasks.extras.engines.table_functions import TableFunction

logger = logging.getLogger(__name__)

_PART_TOKENS = 1_000_000


def add_parts(parser: argparse.ArgumentParser) -> None:
    """The options for an output folder."""
    group = parser.add_argument_group(
        "output folders", "With --output DIR/, several files, folders and patterns become Parquet files in a folder."
    )
    group.add_argument(
        "--shard",
        type=share,
        metavar="I/N",
        help="make only every Nth part, starting with the Ith: with 1/4 to 4/4, four processes or machines share the "
        "work",
    )
    about = "only list missing parts, and those of other files; the exit code is 1 if there are any"
    options.add_flag(group, "--check", about)
    options.add_flag(group, "--remove-others", "remove parts of files that have changed, are gone or are not named")
    group.add_argument(
        "--part-tokens",
        type=options.positive,
        metavar="N",
        help=f"the approximate number of tokens in a part (default: {_PART_TOKENS})",
    )


def share(text: str) -> tuple[int, int]:
    """A part of a whole such as `3/200`."""
    number, total = map(options.whole_number, text.partition("/")[::2])
    if number is None or total is None or not 1 <= number <= total <= options.MOST:
        raise argparse.ArgumentTypeError(f"{text!r}; expected I/N, such as 3/200, with I from 1 to N")
    return number, total


def writes_parts(arguments: argparse.Namespace, *, in_one_table: bool = False) -> bool:
    """Whether the output is a folder of parts; raises `ElmoTasksError` if other options say so, but not the output.

    With `in_one_table`, a folder and several files do not say so.
    """
    output = arguments.output
    if output and (ends_in_slash(output) or Path(output).is_dir()):
        return True
    folder = next((name for name in arguments.input if Path(name).is_dir()), None)
    is_several = len(arguments.input) > 1 or any(
        name != "-" and len(matching_paths(name)) > 1 for name in arguments.input
    )
    given = {
        f"{folder} is a folder": not in_one_table and folder,
        "several files": not in_one_table and is_several,
        "--shard": arguments.shard,
        "--check": arguments.check,
        "--remove-others": arguments.remove_others,
        "--part-tokens": arguments.part_tokens,
        "--on-error record": arguments.on_error == "record",
        "--number-type": getattr(arguments, "number_type", None),  # of embed
    }
    if found := [name for name, value in given.items() if value]:
        raise ElmoTasksError(f"{found[0]}: expected an output folder, with a slash at its end: --output DIR/")
    return False


def make_parts(arguments: argparse.Namespace, function: TableFunction, *, tokenized: bool) -> None:
    """Makes the parts of a command's input that are missing, or with `--check` says which ones are."""
    import torch

    from elmo_tasks.extras.engines.parts import PartsFolder, find_units
    from elmo_tasks.progress import counted_items

    if "-" in arguments.input:
        raise ElmoTasksError("-: standard input cannot be cut into parts; expected files")
    check_kind(arguments.output, remedy="choose another folder")
    check_folder(arguments.output)
    part_tokens = arguments.part_tokens or _PART_TOKENS
    settings: dict[str, Any] = {
        "results": type(function).__name__,
        **function.settings(),
        "part_tokens": part_tokens,
        "torch": torch.__version__,
    }
    folder = PartsFolder(arguments.output, settings)
    found = find_units(arguments.input, tokens=part_tokens, tokenized=tokenized, output=arguments.output)
    units = list(counted_items(found, "parts found in the text"))
    number, total = arguments.shard or (1, 1)
    folder.check_settings()
    every, units = units, units[number - 1 :: total]
    if arguments.check:
        folder.check_complete(units)
    folder.check_others(every, remove=arguments.remove_others)
    if arguments.check:
        print(f"{folder.path}: all {counted(len(units), 'part')} are there")
        return
    there = sum(map(folder.is_done, units))
    errors = folder.process(units, function)
    logger.info("%s: %s made, %d were there", folder.path, counted(len(units) - there, "part"), there)
    if errors:
        rows = counted(errors, "line has no results", "lines have no results")
        logger.warning("%s: %s; the column `error` says why", folder.path, rows)


def predict_folder(request: PredictRequest) -> None:
    """Predicts many files, and writes a folder of Parquet files."""
    from elmo_tasks.extras.engines.table_functions import Predict
    from elmo_tasks.predictors import DEFAULT_BATCH_TOKENS

    arguments = request.arguments
    given = {"--html": request.html, "--resolve": request.resolve, "--on-error skip": request.on_error == "skip"}
    # The ending of a name, or the first line, says what a file has.
    given |= {f"--format {request.format}": request.format != "auto"}
    if other := [name for name, value in given.items() if value]:
        raise ElmoTasksError(f"{other[0]}: not for an output folder")
    predict = Predict(
        run=request.run_paths,
        predicates=arguments.predicates,
        explain=request.explain,
        device=arguments.device,
        batch_tokens=arguments.batch_tokens or DEFAULT_BATCH_TOKENS,
        overrides=[*options.tokenizer_overrides(arguments), *arguments.set],
        on_error=request.on_error,  # type: ignore[arg-type]  # it is not "skip"
    )
    make_parts(arguments, predict, tokenized=arguments.tokenized)


# What the command `predict` calls for an output folder.
PARQUET = types.SimpleNamespace(add_options=add_parts, is_asked_for=writes_parts, predict=predict_folder)
