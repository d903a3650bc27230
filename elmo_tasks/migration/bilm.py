"""The biLM in the weights of an AllenNLP model."""

from __future__ import annotations

import re

from torch import Tensor

from elmo_tasks.elmo import BiLM, BiLMOptions
from elmo_tasks.elmo.allennlp_names import bilm_tensors
from elmo_tasks.elmo.options import (
    PUBLISHED_OPTIONS,
    CharacterCnnOptions,
    CharacterEmbeddingOptions,
    LstmOptions,
)
from elmo_tasks.elmo.shapes_only import shapes_only
from elmo_tasks.errors import MigrationError, one_line, some_of
from elmo_tasks.migration.contents import Weights


def convert_bilm(weights: Weights, options: BiLMOptions | None) -> BiLM:
    """The biLM of an `Elmo`, frozen. It takes no more memory than its tensors.

    Arguments:
        weights: the tensors of `_ElmoBiLm`, such as `_elmo_lstm.forward_layer_0.input_linearity.weight`.
        options: what the tensors do not say (clips, skip connections, the activation); None: as published.

    Raises:
        MigrationError: the tensors are not those of a biLM, or not of these options.
    """
    weights.take_optional("_word_embedding.weight")  # vectors of a cached vocabulary, which are computed anew
    names = weights.names()
    tensors: dict[str, Tensor] = {}
    for name in names:  # one after the other, so that their memory is free again
        tensors |= bilm_tensors({name: weights.take(name)})
    given = options or PUBLISHED_OPTIONS["original"]
    try:
        with shapes_only():
            bilm = BiLM(_options(tensors, given))
        bilm.load_state_dict(tensors, assign=True)
    except (LookupError, RuntimeError, ValueError) as error:
        shown = some_of([weights.prefix + name for name in names]) or f"nothing under {weights.prefix}"
        raise MigrationError(f"weights.th: not the tensors of a biLM ({one_line(error)}): {shown}") from None
    return bilm.requires_grad_(False).eval()


def _options(tensors: dict[str, Tensor], given: BiLMOptions) -> BiLMOptions:
    """The options of a biLM with these tensors, by our names; the rest is as given."""

    def number(pattern: str) -> int:
        return len({match[1] for name in tensors if (match := re.match(pattern, name))})

    kernels = [
        tensors[f"token_encoder.convolutions.{each}.weight"]
        for each in range(number(r"token_encoder\.convolutions\.(\d+)\."))
    ]
    gates, projection = tensors["directions.0.layers.0.input_weight"].shape
    return BiLMOptions(
        lstm=LstmOptions(
            dim=gates // 4,
            projection_dim=projection,
            n_layers=number(r"directions\.0\.layers\.(\d+)\."),
            **given.lstm.model_dump(include={"cell_clip", "proj_clip", "use_skip_connections"}),
        ),
        char_cnn=CharacterCnnOptions(
            embedding=CharacterEmbeddingOptions(dim=tensors["token_encoder.embedding.weight"].shape[1]),
            filters=tuple((kernel.shape[2], kernel.shape[0]) for kernel in kernels),
            n_highway=number(r"token_encoder\.highways\.(\d+)\."),
            n_characters=262,
            **given.char_cnn.model_dump(include={"activation", "max_characters_per_token"}),
        ),
    )
