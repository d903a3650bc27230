"""Predictions for annotation tools, which import them to be corrected by hand."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from elmo_tasks.commands import options
from elmo_tasks.commands.console import binary_output
from elmo_tasks.commands.prediction import Skipped
from elmo_tasks.errors import ElmoTasksError, counted
from elmo_tasks.files.overwriting import check_output

logger = logging.getLogger(__name__)

TOOLS = ("doccano", "label-studio", "brat", "spacy")


def predict_for_tool(arguments: argparse.Namespace) -> None:
    """Predicts the texts of a tool's export or the lines of a text, and writes them as a tool imports them.

    Raises:
        ElmoTasksError: the model does not find what the tool has, or the output cannot be written.
    """
    from elmo_tasks.data_readers.spans import SpansConfig, SpansReader
    from elmo_tasks.files.atomic import atomic_folder
    from elmo_tasks.predictors.pre_annotations import brat_files, check_task, docbin, json_content, pre_annotate
    from elmo_tasks.runs.load import load_run, run_predictor

    tool, path, skipped = arguments.output_format, arguments.output, Skipped()
    if len(arguments.input) > 1:
        raise ElmoTasksError(f"--output-format {tool}: expected one input, got {len(arguments.input)}")
    if tool != "brat":
        check_output(path, force=arguments.force, stream=True)
    elif path is None or (Path(path).exists() and not arguments.force):
        raise ElmoTasksError("--output-format brat: expected a new folder as --output, or --force to write into one")
    run = load_run(
        arguments.run_paths, overrides=[*options.tokenizer_overrides(arguments), *options.run_overrides(arguments)]
    )
    check_task(tool, run.model.task)
    reader = run.reader if isinstance(run.reader, SpansReader) else SpansConfig().build()
    on_error = skipped if arguments.on_error == "skip" else None
    texts = pre_annotate(run_predictor(run), reader, arguments.input[0], on_error)
    if arguments.least_certain:
        texts = sorted(texts, key=lambda found: found.certainty)[: arguments.least_certain]
    if tool == "brat":
        with atomic_folder(path, merge=True) as folder:
            for name, content in brat_files(texts).items():
                (folder / name).write_bytes(content.encode())
    else:
        is_binary, model = tool == "spacy" and str(path).endswith(".spacy"), " ".join(arguments.run_paths)
        with binary_output(path) as stream:
            stream.write(docbin(texts, path) if is_binary else json_content(tool, texts, reader, model).encode())
    skipped.report()
    logger.info("%s: %s", path or "standard output", counted(len(texts), "text"))
