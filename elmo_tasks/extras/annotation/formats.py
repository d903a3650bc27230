"""The formats of `predict --output-format` that annotation tools import. Heavy imports are inside the functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmo_tasks.commands.console import binary_output
from elmo_tasks.commands.predict import OutputFormat, PredictRequest
from elmo_tasks.errors import OnError
from elmo_tasks.files.paths import JSON, JSON_LINES

if TYPE_CHECKING:
    from elmo_tasks.data_readers.reader import DatasetReader
    from elmo_tasks.predictors import Predictor


def write_for_tool(
    request: PredictRequest, predictor: Predictor, reader: DatasetReader, on_error: OnError | None
) -> None:
    """Predicts the texts of a tool's export or the lines of a text, and writes them as a tool imports them."""
    from elmo_tasks.extras.annotation.pre_annotations import brat_files, docbin, json_content, pre_annotate
    from elmo_tasks.extras.annotation.spans import SpansConfig, SpansReader
    from elmo_tasks.files.atomic import atomic_folder

    tool = request.output_format
    reader = reader if isinstance(reader, SpansReader) else SpansConfig().build()
    texts = pre_annotate(tool, predictor, reader, request.inputs[0], on_error)
    if fewest := request.arguments.least_certain:
        texts = sorted(texts, key=lambda found: min(found.chances))[:fewest]
    if tool == "brat":
        assert request.output
        with atomic_folder(request.output, merge=True) as folder:
            for name, content in brat_files(texts).items():
                (folder / name).write_bytes(content)
        return
    with binary_output(request.output) as stream:
        model = " ".join(request.run_paths)
        stream.write(docbin(texts) if tool == "spacy" else json_content(tool, texts, reader, model))


_ABOUT = (
    "for annotation tools, the texts of a tool's export or of plain text with predictions to correct (brat: --output "
    "is a folder)"
)
DOCCANO = OutputFormat(_ABOUT, JSON_LINES, write_for_tool)
LABEL_STUDIO = OutputFormat(_ABOUT, JSON, write_for_tool)
BRAT = OutputFormat(_ABOUT, (), write_for_tool)
SPACY = OutputFormat(_ABOUT, (".spacy",), write_for_tool)
