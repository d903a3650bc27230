"""The model of a run, as its config describes it."""

from __future__ import annotations

from elmo_tasks.elmo.shapes_only import shapes_only
from elmo_tasks.errors import RunError, one_line
from elmo_tasks.models.model import TaskModel
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.text.vocabulary import Vocabulary


def build_model(config: ExperimentConfig, vocabulary: Vocabulary, *, pretrained: bool) -> TaskModel:
    """The untrained model. With `pretrained`, the word vectors are read; otherwise a run's tensors replace them."""
    embedder = config.model.embedder.build(vocabulary, pretrained=pretrained)
    return config.model.build(vocabulary, embedder)


def tensor_shapes(config: ExperimentConfig, vocabulary: Vocabulary, folder: RunFolder) -> dict[str, tuple[int, ...]]:
    """The shapes of the model's tensors. No memory is allocated for them, since the config may be a stranger's."""
    try:
        with shapes_only():
            model = build_model(config, vocabulary, pretrained=False)
    except (RuntimeError, OverflowError, TypeError) as error:  # torch's, of sizes beyond what it can count
        raise RunError(f"{folder.config}: its sizes are too large for a model ({one_line(error)})") from None
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def check_frozen_models(config: ExperimentConfig, folder: RunFolder) -> None:
    """Raises `RunError` if the config's biLM or transformer is not the one that the run began with."""
    for frozen in folder.frozen_models:
        frozen.check(config.model.embedder)
