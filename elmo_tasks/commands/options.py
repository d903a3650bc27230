"""The arguments that several commands share, and the functions that parse their values: numbers have bounds."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.commands.console import print_json
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.files.paths import JSON, check_ending, check_output

if TYPE_CHECKING:
    import torch

_RUN = "the folder or the archive of a run, the name of an installed model (`elmo-tasks models`), or hub:ORG/NAME"


MOST = 2**31 - 1  # of whole numbers; those that libraries in C take are not larger
_MOST_SEED = 2**32 - 1
_MOST_SEEDS = 10_000  # in a list


@dataclasses.dataclass(frozen=True)
class Number:
    """What parses an option's value as a whole number within bounds.

    Arguments:
        low, high: the bounds, which are included.
        name: what the number is, for errors.
    """

    low: int
    high: int = MOST
    name: str = "a whole number"

    def __call__(self, text: str) -> int:
        if (number := whole_number(text)) is None or not self.low <= number <= self.high:
            upper = f"of at least {self.low}" if self.high == MOST else f"from {self.low} to {self.high}"
            most = f" and at most {MOST}" if self.high == MOST and number is not None and number > MOST else ""
            raise argparse.ArgumentTypeError(f"{text!r} is not {self.name} {upper}{most}")
        return number


positive, not_negative = Number(1), Number(0)
random_seed = Number(0, _MOST_SEED)


def whole_number(text: str) -> int | None:
    """The whole number that a text is in decimal digits, None if it is not one."""
    digits = text.strip().removeprefix("-")
    return int(text) if digits.isdecimal() and digits.isascii() and len(digits) < 20 else None


def seeds(text: str) -> tuple[int, ...]:
    """Seeds such as `1-3` or `1,2,5`."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        start, stop = whole_number(first), whole_number(last if dash else first)
        if start is None or stop is None or not 0 <= start <= stop <= _MOST_SEED:
            expected = f"expected one such as 1-3 or 1,2,5, of numbers from 0 to {_MOST_SEED}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of seeds; {expected}")
        if len(numbers) + stop - start >= _MOST_SEEDS:
            raise argparse.ArgumentTypeError(f"{text!r} has too many seeds; expected at most {_MOST_SEEDS}")
        numbers += range(start, stop + 1)
    if len(set(numbers)) < len(numbers):
        raise argparse.ArgumentTypeError(f"{text!r} has a seed twice; expected each once")
    return tuple(numbers)


def add_flag(parser: argparse._ActionsContainer, name: str, help: str) -> None:
    parser.add_argument(name, action="store_true", help=help)


def add_number(parser: argparse._ActionsContainer, name: str, default: int, help: str, kind: Number = positive) -> None:
    """An option with a whole number, positive unless it is of another `kind`; the help ends with its default."""
    help = f"{help} (default: {default})"
    parser.add_argument(name, type=kind, default=default, metavar="N", help=help)


def add_choice(parser: argparse._ActionsContainer, name: str, choices: Sequence[str], help: str) -> None:
    """An option with one of some values, by default the first; the help ends with the default."""
    parser.add_argument(name, choices=choices, default=choices[0], help=f"{help} (default: {choices[0]})")


def add_repeated(parser: argparse._ActionsContainer, name: str, help: str, **settings: Any) -> None:
    """An option that can be given several times, with a list of all values."""
    parser.add_argument(name, action="append", default=[], help=help, **settings)


def add_seeds(parser: argparse._ActionsContainer, help: str) -> None:
    parser.add_argument("--seeds", type=seeds, default=(), metavar="SEEDS", help=help)


def add_result(parser: argparse.ArgumentParser, output: str, printed: str) -> None:
    """The options of commands with one result, see `check_result` and `show_result`."""
    parser.add_argument("--output", metavar="FILE", help=f"{output} to this file, as JSON")
    add_force(parser)
    add_flag(parser, "--json", f"print {printed}")


def check_result(arguments: argparse.Namespace) -> None:
    """Raises an `ElmoTasksError` if the file of a result cannot be written, before anything is computed."""
    check_ending(arguments.output, JSON)
    check_output(arguments.output, force=arguments.force, stream=True)


def show_result(arguments: argparse.Namespace, result: Any, show: Callable[[], object]) -> None:
    """Writes a result to its file, if one is named, and prints it, as JSON or by `show`."""
    from elmo_tasks.files.json_files import write_json

    if arguments.output:
        write_json(arguments.output, result)
    if arguments.json:
        print_json(result)
    else:
        show()


def add_include_package(parser: argparse.ArgumentParser) -> None:
    add_repeated(parser, "--include-package", "import a package that defines your own parts", metavar="NAME")


def add_config_path(parser: argparse.ArgumentParser, help: str, nargs: str | None = None) -> None:
    parser.add_argument("config", metavar="CONFIG", nargs=nargs, help=help)


def add_config_and_folder(parser: argparse.ArgumentParser, described: str, written: str) -> None:
    add_config_path(
        parser, f"the Jsonnet or JSON file that describes {described}, or the name of a config in the package"
    )
    parser.add_argument(
        "-s",
        "--run-folder",
        metavar="DIR",
        help=f"the folder to write {written} to (default: runs/<name of the config>)",
    )


def add_config_arguments(parser: argparse.ArgumentParser, described: str = "config", example: str = "") -> None:
    """The options of every command that reads a Jsonnet file.

    Arguments:
        described: what the file describes.
        example: a change that shows the difference to a config.
    """
    shown = f", such as {example}" if example else ""
    add_set(parser, f"{described}{shown}")
    about = "set an external variable of the Jsonnet file; can be repeated"
    add_repeated(parser, "--ext-var", about, type=_pair, metavar="N=V")
    add_include_package(parser)


def add_set(parser: argparse.ArgumentParser, described: str) -> None:
    help = f"change a key of the {described}; the value is Jsonnet, or a plain string; can be repeated"
    add_repeated(parser, "--set", help, type=override, metavar="A.B=C")


def add_from(parser: argparse.ArgumentParser, metavar: str, help: str) -> None:
    parser.add_argument("--from", dest="start_from", metavar=metavar, help=help)


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    earlier = parser.add_mutually_exclusive_group()
    add_flag(
        earlier,
        "--resume",
        "continue the run in this folder where it stopped; data files may have moved, and `train` also accepts other "
        "values of trainer.num_epochs and trainer.patience",
    )
    add_flag(earlier, "--force", "replace the earlier run in this folder")


def add_inputs(parser: argparse.ArgumentParser, kind: str) -> None:
    """What is read: one file of this kind, or many for an output folder."""
    parser.add_argument(
        "input",
        metavar="INPUT",
        nargs="+",
        help=f"{kind}, compressed or not, or - for standard input; with --output DIR/ also several files (text, JSON "
        "lines), folders and patterns such as 'text/*.gz'",
    )


def add_tokenizer_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """How text is split: the same options for every command that reads raw text."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="how raw text is split into sentences and tokens: treebank (English), unicode (any language), or a JSON "
        f'object such as \'{{"type": "regex", "pattern": "..."}}\' (default: {default})',
    )
    add_flag(form, "--tokenized", "the text is already tokenized: one sentence per line, with spaces between tokens")


def chosen_tokenizer(arguments: argparse.Namespace) -> str | None:
    """The tokenizer that the options name, None for the default."""
    return "whitespace" if arguments.tokenized else arguments.tokenizer


def add_force(parser: argparse._ActionsContainer) -> None:
    add_flag(parser, "--force", "replace existing files")


def add_run_path(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_path", metavar="RUN", help=_RUN)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    help = f"{_RUN}; several form an ensemble"
    parser.add_argument("run_paths", metavar="RUN", nargs="+", help=help)
    parser.add_argument(
        "--batch-tokens",
        type=positive,
        metavar="N",
        help="the maximum number of tokens in a batch: the number of examples times the length of the longest one; "
        "for a pair of sentences, both count (default: set by the run or the command)",
    )
    add_device(parser)
    add_set(parser, "run's config")
    add_include_package(parser)


def runs_and_data(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """The first path and those after it that are runs, and the others, at least one."""
    from elmo_tasks.runs.archive import is_run

    number = 1
    while number < len(paths) - 1 and is_run(paths[number]):
        number += 1
    return list(paths[:number]), list(paths[number:])


def add_device(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """The same option for every command that runs a model; by default, runs have the setting of their config."""
    shown = default or "the setting in the run's config"
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default=default,
        help=f"auto uses a GPU if there is one, cuda requires one (default: {shown})",
    )


def chosen_device(arguments: argparse.Namespace) -> torch.device:
    """The device of `--device`; raises an `ElmoTasksError` if it is a GPU, and there is none."""
    from elmo_tasks.modules.devices import torch_device

    return torch_device(arguments.device, "--device")


def add_unknown_labels(parser: argparse.ArgumentParser) -> None:
    add_choice(
        parser,
        "--unknown-labels",
        ("error", "count"),
        "what to do with gold labels that the run does not know: error refuses the data; count scores them as errors "
        "of the run, as the official scorers do, with a warning, and leaves them out of the loss",
    )


def device_overrides(arguments: argparse.Namespace) -> list[str]:
    if not arguments.device:
        return []
    chosen_device(arguments)
    return [f"trainer.device={arguments.device}"]


def tokenizer_overrides(arguments: argparse.Namespace) -> list[str]:
    from elmo_tasks.text.tokenizer_config import parse_tokenizer

    name = chosen_tokenizer(arguments)
    if name is None:
        return []
    parse_tokenizer(name)  # raises an error that names the option
    return [f"dataset_reader.tokenizer={name if name.lstrip().startswith('{') else json.dumps({'type': name})}"]


def run_overrides(arguments: argparse.Namespace) -> list[str]:
    return [*device_overrides(arguments), *arguments.set]


def default_run_folder(config: str) -> Path:
    """The default folder of a config's run: `runs/` and the name of the config, or its path below `configs`.

    Only the name of a file that is not below a folder `configs` is used.
    """
    from elmo_tasks.config.packaged import packaged_configs

    if config in packaged_configs() and not Path(config).is_file():
        return Path("runs", config)
    path = Path(config).with_suffix("")
    folders = path.parts[:-1]
    below = folders[::-1].index("configs") if "configs" in folders else 0
    return Path("runs", *folders[len(folders) - below :], path.name)


def refuse_torchrun(command: str) -> None:
    """Raises an ElmoTasksError if several processes run a command that does not share its work."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise ElmoTasksError(f"{command} runs in one process; start it without torchrun (evaluate shares its work)")


def override(text: str) -> str:
    if "=" not in text:
        raise argparse.ArgumentTypeError(
            f"{text!r} has no value; write --set {text}=VALUE, with '=' and without spaces"
        )
    return text


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} does not have the form NAME=VALUE")
    return name, os.path.expanduser(value)
