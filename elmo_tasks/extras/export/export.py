"""Writes a biLM or a tagger for machines and browsers without torch."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, cast

import onnx
import torch

from elmo_tasks import __version__
from elmo_tasks.config import Overrides
from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.export.graphs import OPSET, Graph, sentence_graph, word_graph
from elmo_tasks.extras.raw_text import tokenizer_of_bilm
from elmo_tasks.files.atomic import atomic_folder, atomic_write
from elmo_tasks.files.installed_models import About
from elmo_tasks.files.json_files import json_text
from elmo_tasks.modules.character_cnn import CharacterCnn
from elmo_tasks.modules.encoders import StackedEncoder
from elmo_tasks.runs.load import Run, load_run
from elmo_tasks.tasks.tagging import TAGS, Tagging
from elmo_tasks.text.tokenization import RULES
from elmo_tasks.text.tokenizer_config import build_tokenizer
from elmo_tasks.text.tokenizers import Tokenizer, TreebankTokenizer, WhitespaceTokenizer

FORMAT = 1  # of model.json; raised when a runtime would misread a new one
FILES = ("model.json", "words.onnx", "sentences.onnx")


def export(name: str, folder: str | Path, *, int8: bool = False, overrides: Overrides = ()) -> dict[str, Any]:
    """Exports a run with a tagger, or a biLM, to a folder: `model.json`, `words.onnx` and `sentences.onnx`.

    Arguments:
        name: of the run, see `open_run`, or the folder of a biLM with its weights and no vocabulary.json, or `default`.
        folder: files of the same names in it are replaced; each is either complete or as it was before.
        int8: weights in 8 bits instead of 16.
        overrides: of the run's config.

    Returns:
        the contents of model.json without its lists.

    Raises:
        ElmoTasksError: the run is not a tagger, or has parts that cannot be exported.
    """
    path = Path(name)
    is_bilm = name == DEFAULT_BILM or (any(path.glob("*weights.hdf5")) and not (path / "vocabulary.json").exists())
    run = None if is_bilm else load_run(name, overrides=overrides)
    bilm = _bilm_of(run) if run else BiLM.load(name)
    about = {
        "format": FORMAT,
        "elmo_tasks": __version__,
        "opset": OPSET,
        "onnx": onnx.__version__,
        "weights": "int8" if int8 else "float16",
        **(_about_bilm(bilm) if bilm else {}),
        **(_about_tagger(run) if run else {}),
        "tokenizer": _rules(build_tokenizer(run.config.dataset_reader.tokenizer) if run else tokenizer_of_bilm(name)),
    }
    graph, other = Graph(int8), Graph(int8)
    with torch.no_grad():
        models = word_graph(graph, bilm, run and run.model.embedder), sentence_graph(other, bilm, run and run.model)
    about["rounded_weights"] = graph.rounded + other.rounded
    contents = [model.SerializeToString() for model in models]
    about["id"] = hashlib.sha256(b"".join(contents)).hexdigest()[:16]
    with atomic_folder(folder, merge=Path(folder).exists()) as temporary:
        for file, content in zip(FILES, (json_text(about).encode(), *contents), strict=True):
            with atomic_write(temporary / file) as stream:
                stream.write(content)
    return {key: value for key, value in about.items() if not isinstance(value, (list, tuple, dict))}


def _bilm_of(run: Run) -> BiLM | None:
    """The biLM of a run; raises `ElmoTasksError` if the run has a part that the graphs do not have."""
    config, model, elmo = cast(Any, run.config.model), cast(Any, run.model), run.config.elmo()
    if config.type not in ("crf_tagger", "simple_tagger"):
        kinds = "only taggers (crf_tagger, simple_tagger) and biLMs can be exported"
        raise ElmoTasksError(f"{run.path}: a {config.type}; {kinds}")
    embedder, layers = model.embedder, getattr(model, "feedforward", None)
    characters = embedder.characters
    is_plain = isinstance(characters, CharacterCnn) and characters.padding != "right"
    problems = {
        "a transformer": embedder.transformer is not None,
        f"the encoder {config.encoder.type}": not isinstance(model.encoder, StackedEncoder),
        "characters that are bytes or padded to the right": characters is not None
        and (run.vocabulary.byte_characters or not is_plain),
        "a biLM that carries its state": elmo is not None and elmo.stateful,
        "layer normalization over a batch": elmo is not None and elmo.layer_normalization == "batch",
        "maxout layers": layers is not None and layers.activation == "maxout",
    }
    if found := [problem for problem, is_there in problems.items() if is_there]:
        raise ElmoTasksError(f"{run.path}: cannot be exported with {', '.join(found)}")
    if elmo is None:
        return None
    files = elmo.files()
    return embedder.elmo.bilm or BiLM.load(files.options, files.weights)


def _about_bilm(bilm: BiLM) -> dict[str, Any]:
    options = bilm.options
    if options.lexicon:
        raise ElmoTasksError("a biLM of ELMoForManyLangs, which looks words up, cannot be exported")
    cnn = options.char_cnn
    sizes = {"num_layers": options.num_layers, "features": options.output_size}
    return {
        "characters": cnn.max_characters_per_token,
        "widest_filter": max(width for width, _ in cnn.filters),
        **sizes,
    }


def _about_tagger(run: Run) -> dict[str, Any]:
    vocabulary, embedder, task = run.vocabulary, run.model.embedder, cast(Tagging, run.model.task)
    known = About.of(run.folder.path) if run.folder else About()
    return {
        "tags": vocabulary.labels[TAGS],
        "spans": task.tag_scheme is not None,
        "temperature": run.model.temperature,
        "words": vocabulary.words if embedder.words else None,
        "lowercase_words": vocabulary.lowercase_words,
        "letters": vocabulary.characters if embedder.characters else None,
        "trained_on": known.data,
        "licence": known.licence,
    }


def _rules(tokenizer: Tokenizer) -> dict[str, Any] | None:
    """The rules that split raw text; None for white space."""
    if not isinstance(tokenizer, (TreebankTokenizer, WhitespaceTokenizer)):
        raise ElmoTasksError(
            f"{type(tokenizer).__name__} cannot be exported; expected the tokenizer treebank or whitespace"
        )
    return RULES if isinstance(tokenizer, TreebankTokenizer) else None
