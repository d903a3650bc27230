"""The command that downloads published biLMs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from elmo_tasks.commands import options
from elmo_tasks.errors import ElmoTasksError, did_you_mean

if TYPE_CHECKING:
    from elmo_tasks.elmo.bilm_files import BiLMFiles


def add_fetch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="a published biLM, hub:ORG/NAME, the address of a zip archive, or the addresses of an options.json and of "
        "weights, in this order",
    )
    options.add_flag(parser, "--list", "list the names of published biLMs with their addresses")


def run_fetch(arguments: argparse.Namespace) -> None:
    from elmo_tasks.elmo.options import BiLMOptions
    from elmo_tasks.extras.weights.published import PUBLISHED

    if arguments.list:
        for name, addresses in PUBLISHED.items():
            print(name, *addresses, sep="\n  ")
        return
    files, chosen = _fetched(PUBLISHED.get(" ".join(arguments.names), tuple(arguments.names)))
    BiLMOptions.load(files.options)  # raises an error if it is something else
    print(*files.paths.values(), sep="\n")
    print(f"in a config:  elmo: {{ {', '.join(f'{key}: {value!r}' for key, value in chosen.items())} }}")
    print("in a command:", *(f"--set model.embedder.elmo.{key}='{value}'" for key, value in chosen.items()))


def _fetched(names: tuple[str, ...]) -> tuple[BiLMFiles, dict[str, str]]:
    """The files of a biLM, and what the keys of a config are for it."""
    from elmo_tasks.elmo.bilm_files import BiLMFiles
    from elmo_tasks.extras.weights.published import PUBLISHED
    from elmo_tasks.files.downloads import HUB, fetched, is_address, pinned

    if len(names) == 1 and names[0].startswith(HUB):
        return BiLMFiles.in_folder(names[0]), {"bilm": pinned(names[0])}
    if not names or len(names) > 2 or not all(map(is_address, names)):
        hint = did_you_mean(names[0], list(PUBLISHED)) if names else ""
        raise ElmoTasksError(
            f"{' '.join(names) or 'no name'}: expected one of {', '.join(PUBLISHED)}, {HUB}ORG/NAME, or one or two "
            f"addresses that begin with https://.{hint}"
        )
    hashed = [fetched(name)[1] for name in names]
    if len(hashed) == 1:
        return BiLMFiles.in_folder(hashed[0]), {"bilm": hashed[0]}
    return BiLMFiles.chosen(None, *hashed), dict(zip(("options", "weights"), hashed, strict=True))
