"""The command that exports a biLM or a tagger."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from elmo_tasks.commands import options
from elmo_tasks.errors import ElmoTasksError


def add_export(parser: argparse.ArgumentParser) -> None:
    about = "the run of a tagger, see `elmo-tasks predict`, or the folder of a biLM, or default"
    parser.add_argument("name", metavar="RUN|BILM", help=about)
    parser.add_argument("folder", metavar="DIR", help="the folder to write")
    options.add_choice(parser, "--weights", ("float16", "int8"), "how weights are stored; int8 takes half of the space")
    about = "also write a page that runs the model in a browser, for any web server; of taggers such as pos"
    options.add_flag(parser, "--page", about)
    about = "the archive of onnxruntime-web for --page (default: npm downloads it, once)"
    parser.add_argument("--runtime", metavar="FILE", help=about)
    options.add_force(parser)
    options.add_set(parser, "run's config")
    options.add_include_package(parser)


def run_export(arguments: argparse.Namespace) -> None:
    if importlib.util.find_spec("onnx") is None:
        raise ElmoTasksError("export needs a package that is not installed: pip install 'elmo-tasks[export]'")
    from elmo_tasks.extras.export.export import export
    from elmo_tasks.extras.export.page import export_page

    name, folder = arguments.name, Path(arguments.folder)
    if folder.exists() and not arguments.force and (not folder.is_dir() or any(folder.iterdir())):
        raise ElmoTasksError(
            f"{folder}: exists and is not an empty folder; --force replaces the files of an export in it"
        )
    settings = {"int8": arguments.weights == "int8", "overrides": arguments.set}
    if arguments.page:
        result = export_page(name, folder, runtime=arguments.runtime, **settings)
    else:
        result = export(name, folder, **settings)
    for key, value in result.items():
        print(f"{key}: {value}")
    for path in sorted(folder.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1000:,.0f} kB")
