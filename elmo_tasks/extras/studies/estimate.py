"""What a run will take on this machine, from a short training on parts of its data."""

from __future__ import annotations

import dataclasses
import json
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import datasets

from elmo_tasks.models.model import TaskModel
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.train import make_loaders
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.data_splits import TrainShare
from elmo_tasks.training.processes import start_accelerator
from elmo_tasks.training.task_training import TaskAgenda, Validation
from elmo_tasks.training.trainer import Objective, Trainer

_TOKENS = 8_000  # of each part of the data, padding included
_LAYER_BYTES = 1 << 24  # of the layers whose computation is timed: some seconds


def estimate(config: ExperimentConfig) -> tuple[float, float, int]:
    """Trains two epochs on a little of the data, of which the second one counts. Only caches are written.

    Returns:
        the seconds of reading, of all epochs and of the test, as if they took a time proportional to the padded tokens;
        those of computing the layers that the cache lacks; and the bytes of these.
    """
    began = time.monotonic()
    data = Data.read(config, notes={})
    vocabulary = data.vocabulary(config)
    model = config.build_model(vocabulary, pretrained=True)
    settings = config.trainer.with_precision().model_copy(update={"num_epochs": 2, "patience": None})
    accelerator = start_accelerator(settings)
    training, held_out = make_loaders(config, data, vocabulary, accelerator)
    texts, reading = data.texts(model), time.monotonic() - began
    layer_seconds, layer_bytes = _layers(model, texts)
    parts = {name: _part(loader) for name, loader in held_out.items()}
    little = dataclasses.replace(data, training=_part(training), held_out=parts)
    model.embedder.prepare(little.texts(model))
    model.prepare_training(little.training)
    some, some_held_out = make_loaders(config, little, vocabulary, accelerator)
    with tempfile.TemporaryDirectory() as folder:
        records, seed = Path(folder, "metrics.jsonl"), config.random_seed
        steps = TaskAgenda(some, settings, config.model.trained_by_steps)
        trainer = Trainer(settings, Objective(model), steps, records, accelerator, seed=seed, resume=False)
        trainer.fit(Validation(settings, model, some_held_out.get("validation"), Path(folder, "best")))
        record = json.loads(records.read_text(encoding="utf-8").splitlines()[-1])
    seconds = record["training"]["seconds"] * training.padded_tokens() / some.padded_tokens()
    rate, times = 0.0, config.trainer.num_epochs
    if validation := some_held_out.get("validation"):
        rate = (record["seconds"] - record["training"]["seconds"]) / validation.padded_tokens()
        seconds += rate * held_out["validation"].padded_tokens()
    test = rate * held_out["test"].padded_tokens() if "test" in held_out else 0.0
    return reading + times * seconds + test, layer_seconds, layer_bytes


def _layers(model: TaskModel, texts: Sequence[Sequence[str]]) -> tuple[float, int]:
    """The seconds and the bytes of the layers that the cache lacks, some of which are computed."""
    seconds, size = 0.0, 0
    for part in (model.embedder.elmo, model.embedder.transformer):
        if part and (store := part.provider.store) and (missing := store.missing(texts)):
            part.prepare(missing[-1:])  # loads the frozen network
            size += store.need(missing)[0]
            sample, began = missing[:: math.ceil(store.need(missing)[0] / _LAYER_BYTES)], time.monotonic()
            part.prepare(sample)
            seconds += (time.monotonic() - began) * sum(map(len, missing)) / sum(map(len, sample))
    return seconds, size


def _part(loader: BatchLoader) -> datasets.Dataset:
    """A random part of a loader's data."""
    return TrainShare(share=min(1.0, _TOKENS / loader.padded_tokens())).take(loader.data)
