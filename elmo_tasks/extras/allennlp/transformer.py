"""The transformer in the weights of an AllenNLP model.

An archive has the weights, as they were fine-tuned, but neither the config nor the tokenizer. Both come from a folder,
or from the model on the hub that the archive's config names. The import writes a complete transformer into the run.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from elmo_tasks.errors import ElmoTasksError, MigrationError, WeightsError, one_line
from elmo_tasks.extras.allennlp.archive import Params, Weights
from elmo_tasks.extras.transformers.transformer_files import CONFIG, TOKENIZER, WEIGHTS, TransformerFiles
from elmo_tasks.files.downloads import HUB, hub_folder
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.files.paths import local_path
from elmo_tasks.files.tensor_files import write_tensors

if TYPE_CHECKING:
    from elmo_tasks.extras.allennlp.embedder import ConvertedEmbedder

_VOCABULARY, _SETTINGS = "vocab.txt", "tokenizer_config.json"  # of tokenizers that have no tokenizer.json
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
_REMEDY = f"name a folder with {CONFIG} and {TOKENIZER} (or {_VOCABULARY}), or {HUB}NAME, with --transformer"
# What makes no difference to a trained model.
_IGNORED = (
    "type", "train_parameters", "eval_mode", "override_weights_file", "override_weights_strip_prefix", "load_weights",
    "reinit_modules", "gradient_checkpointing", "tokenizer_kwargs",
)  # fmt: skip


def write_transformer(given: str | None, folder: Path, named: Any, weights: Weights) -> TransformerFiles:
    """Writes the transformer of an archive as a folder, and checks that it can be loaded.

    Arguments:
        given: where its config and its tokenizer are: a folder or `hub:NAME`; None for the model that the archive
            names.
        folder: is made.
        named: the model in the archive's config, a name on the hub. A folder that it names is not read, since the
            archive may be a stranger's.
        weights: the tensors of the transformer; all of them are taken.

    Raises:
        MigrationError: the config or the tokenizer is missing, or does not fit the weights.
    """
    found = _found(given, named)
    words = "embeddings.word_embeddings.weight"
    tensors = {words: weights.take(words, None, None)}
    tensors |= {name: weights.take(name) for name in weights.names()}
    tensors.pop("embeddings.position_ids", None)  # 0, 1, 2, ...
    try:
        values = read_json(found / CONFIG, dict[str, Any], "the config of a transformer", error=WeightsError)
        values["model_type"] = values.get("model_type", "bert")  # which BERT's did not say at first
        folder.mkdir()
        write_json(folder / CONFIG, {**values, "vocab_size": len(tensors[words])})
        _write_tokenizer(found, folder / TOKENIZER)
        write_tensors(folder / WEIGHTS, tensors)
        files = TransformerFiles(folder)
        files.load()
    except WeightsError as error:
        problem = str(error).replace(f"{folder}/", "")
        raise MigrationError(f"its transformer, with the files of {found}: {problem}") from None
    return files


def _found(given: str | None, named: Any) -> Path:
    """The folder with the config and the tokenizer."""
    if given is None and not (isinstance(named, str) and _NAME.fullmatch(named)):
        raise MigrationError(f"its transformer is {str(named)[:80]!r}, not a name on the hub; {_REMEDY}")
    source, names = given or f"{HUB}{named}", (CONFIG, TOKENIZER, _VOCABULARY, _SETTINGS)
    try:
        folder = hub_folder(source, names, _REMEDY) if source.startswith(HUB) else local_path(source)
    except ElmoTasksError as error:
        raise MigrationError(f"its transformer's config and tokenizer: {error}; {_REMEDY}") from None
    for either in ((CONFIG,), (TOKENIZER, _VOCABULARY)):
        if not any((folder / name).is_file() for name in either):
            raise MigrationError(f"its transformer: {folder} has no {' or '.join(either)}; {_REMEDY}")
    return folder


def _write_tokenizer(found: Path, target: Path) -> None:
    """Copies a tokenizer, or makes BERT's from its list of word pieces."""
    if (found / TOKENIZER).is_file():
        shutil.copyfile(found / TOKENIZER, target)
        return
    from tokenizers.implementations import BertWordPieceTokenizer

    settings: Mapping[str, Any] = {}
    if (found / _SETTINGS).is_file():
        settings = read_json(found / _SETTINGS, dict[str, Any], "a tokenizer's settings", error=WeightsError)
    lowercase = settings.get("do_lower_case", True) is not False
    try:
        BertWordPieceTokenizer(str(found / _VOCABULARY), lowercase=lowercase).save(str(target))
    except Exception as error:  # the library's, of any class
        raise WeightsError(f"{_VOCABULARY}: not BERT's word pieces ({one_line(error)})") from None


def convert_transformer(result: ConvertedEmbedder, params: Params, weights: Weights, indexer: Params) -> int:
    """Adds AllenNLP's `pretrained_transformer_mismatched`, or `pretrained_transformer` for heads that read word pieces.

    Returns the number of features.
    """
    if params.get("type") != "pretrained_transformer":
        weights = weights.part("_matched_embedder.")
    elif result.params.part("model").get("type") != "basic_classifier":
        raise MigrationError(f"config.json: {params.path('type')}: only basic_classifier has word pieces as its tokens")
    params.expect("sub_module", None)
    params.ignore(*_IGNORED)
    tokenizer = indexer.part("tokenizer_kwargs")
    tokenizer.ignore("use_fast", "max_length")
    window = params.number("max_length", None)
    indexer.expect("max_length", window, None)  # None where the reader makes the indexer
    config = {
        "pooling": {"avg": "mean", "first": "first"}[params.get("sub_token_mode", "avg")],
        "window": window,
        "prefix_space": bool(tokenizer.get("add_prefix_space", False)),
    }
    mix, gamma = torch.zeros(1), torch.ones(1)
    if not params.get("last_layer_only", True):  # a mix of all layers without the embeddings
        part = weights.part("_scalar_mix.")
        config["layers"] = list(range(1, len(part.names())))
        mix = torch.cat([part.take(f"scalar_parameters.{layer - 1}", 1) for layer in config["layers"]])
        gamma = part.take("gamma", 1)
    return add_transformer(result, params.get("model_name"), weights.part("transformer_model."), config, mix, gamma)


def add_transformer(
    result: ConvertedEmbedder, named: Any, weights: Weights, config: Mapping[str, Any], mix: Tensor, gamma: Tensor
) -> int:
    """Writes a transformer's folder, and adds its config and its tensors to an embedder.

    Arguments:
        named, weights: see `write_transformer`.
        config: settings of `embedder.transformer`, without its location; by default, only the last layer is read.
        mix, gamma: the weights of its layers, before the softmax, and their factor, (1,).

    Returns:
        the number of features.
    """
    result.transformer = result.write_transformer(named, weights)
    result.config["transformer"] = {"layers": [-1], "dropout": 0.0, **config}
    result.tensors |= {"transformer.mixes.input.weights": mix, "transformer.mixes.input.gamma": gamma.squeeze(0)}
    return int(result.transformer.read_config().hidden_size)
