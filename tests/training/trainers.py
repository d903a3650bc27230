"""A trainer of the sample experiment, for tests of single steps."""

import json
from pathlib import Path

from elmo_tasks.config import load_config
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.text.vocabulary import Counts, Vocabulary
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.processes import start_accelerator
from elmo_tasks.training.state import seed_everything
from elmo_tasks.training.task_training import TaskAgenda
from elmo_tasks.training.trainer import Objective, Trainer

NO_DROPOUT = (
    "model.dropout=0",
    "model.encoder.dropout=0",
    "model.embedder.elmo.dropout=0",
    "model.embedder.words.unknown_probability=0",
)
LEARNS = "model.embedder.elmo.requires_grad=true"
BY_LAYER = [
    {"parameters": r"bilm.*layers\.1", "epoch": 2},
    {"parameters": r"bilm.*layers\.0", "epoch": 3},
    {"parameters": "bilm|characters", "epoch": 4},
]
GRADUALLY = (LEARNS, f"trainer.unfreeze={json.dumps(BY_LAYER)}")


def make_trainer(config_file: Path, folder: Path, *overrides: str) -> tuple[Trainer, BatchLoader]:
    """A trainer on the experiment's data, its model freshly made, and the training data."""
    config = load_config(config_file, ExperimentConfig, overrides)
    seed_everything(1)
    reader = config.dataset_reader.build()
    data = reader.read(config.train_data_path)
    vectors = config.model.embedder.word_vectors()
    words = vectors.words if vectors else ()
    vocabulary: Vocabulary = config.vocabulary.build(Counts.of(reader.task, data), [], words)
    model = config.build_model(vocabulary, pretrained=True)
    training = BatchLoader(config.data_loader, data, reader.task, vocabulary, seed=1)
    folder.mkdir(exist_ok=True)
    settings, records = config.trainer, RunFolder(folder).records
    steps, accelerator = TaskAgenda(training, settings), start_accelerator(settings)
    trainer = Trainer(settings, Objective(model), steps, records, accelerator, seed=1, resume=False)
    return trainer, training
