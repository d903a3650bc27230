"""Training steps per second of the CRF tagger, with and without ELMo.

    python -m benchmarks.tagger_step [--threads 1 2] [--precision bfloat16] [--json FILE]

The tagger has the sizes of configs/ner_conll03.jsonnet. It reads random sentences with the lengths of CoNLL-2003. The
layers of the biLM are random numbers of the original size, which are only copied. Each kind of step also runs with
torch's LSTM on packed sentences. In each repeat, all kinds run one after another on the same batches.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks import common
from benchmarks.common import Measurement
from benchmarks.heads import Step, run
from elmo_tasks.elmo import ScalarMix
from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.elmo.frozen_layers import FrozenLayers, LayerProvider, LayerSource
from elmo_tasks.models import Embedder
from elmo_tasks.models.crf_tagger import CrfTagger, CrfTaggerConfig
from elmo_tasks.modules.character_cnn import CharacterCnnConfig
from elmo_tasks.modules.encoders import StackedBiLstmConfig
from elmo_tasks.modules.word_embedding import WordEmbedding, WordEmbeddingConfig
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.tasks import Tagging
from elmo_tasks.text.vocabulary import Vocabulary
from elmo_tasks.training.batching import BatchLoader, DataLoaderConfig
from elmo_tasks.training.processes import start_accelerator
from elmo_tasks.training.task_training import TaskAgenda
from elmo_tasks.training.trainer import Objective, Trainer
from elmo_tasks.training.trainer_config import TrainerConfig

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,-'"
LABELS = ("O", *(f"{place}-{kind}" for kind in ("PER", "LOC", "ORG", "MISC") for place in "BILU"))
NUM_TRAINED_WORDS, NUM_FIXED_WORDS = 21_000, 50_000
NUM_LAYERS, ELMO_SIZE = 3, 1024

BASELINE = "no ELMo"
# Name, with ELMo or not, with torch's LSTM on packed sentences or not.
KINDS = (
    (BASELINE, False, False),
    ("no ELMo, packed", False, True),
    ("ELMo", True, False),
    ("ELMo, packed", True, True),
)


class PackedLstm(nn.LSTM):
    """torch's bidirectional LSTM on packed sentences, as a replacement for `BiLstm`."""

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        packed = pack_padded_sequence(inputs, mask.sum(1), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(super().forward(packed)[0], batch_first=True, total_length=mask.shape[1])[0]


class CopiedLayers(LayerProvider):
    """A stand-in for a biLM, whose layers are only copied."""

    def __init__(self) -> None:
        self._layers = torch.randn(4096, NUM_LAYERS, ELMO_SIZE)

    def load(self, device: torch.device) -> LayerSource:
        raise NotImplementedError

    def open_store(self) -> None:
        return None

    def layers(self, sentences: Sequence[Sequence[str]], device: torch.device) -> LayerOutput:
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)  # (B, T)
        layers = torch.zeros(*mask.shape, NUM_LAYERS, ELMO_SIZE)
        layers[mask] = self._layers[: int(lengths.sum())]
        return LayerOutput(layers=layers.transpose(1, 2).contiguous(), mask=mask)


def make_batches(num_sentences: int = 14_000, batch_size: int = 32) -> tuple[Vocabulary, BatchLoader]:
    """A vocabulary, and batches of sentences with 14.5 tokens on average and Zipfian word frequencies."""
    generator, numbers = random.Random(1), np.random.default_rng(1)
    lengths = np.maximum(1, numbers.gamma(4, 1.5, NUM_TRAINED_WORDS)).astype(int)
    words = list(dict.fromkeys("".join(generator.choices(LETTERS, k=length)) for length in lengths))
    frequencies = 1 / np.arange(1, len(words) + 1)
    sentences = numbers.gamma(1.55, 9.4, num_sentences).round().clip(1, 113).astype(int)
    texts = [list(numbers.choice(words, length, p=frequencies / frequencies.sum())) for length in sentences]
    vocabulary = Vocabulary(
        words=("", "\0", *words, *(f"\0{number}" for number in range(NUM_FIXED_WORDS))),
        num_trained_words=len(words) + 2,
        characters=("", "\0", *LETTERS),
        labels={"tags": LABELS},
    )
    data = datasets.Dataset.from_list([{"tokens": text, "tags": ["O"] * len(text)} for text in texts])
    return vocabulary, BatchLoader(DataLoaderConfig(batch_size=batch_size), data, Tagging("BIOUL"), vocabulary)


def make_trainer(vocabulary: Vocabulary, loader: BatchLoader, elmo: bool, packed: bool, precision: str) -> Trainer:
    embedder = Embedder(
        WordEmbedding(vocabulary.num_trained_words, NUM_FIXED_WORDS, WordEmbeddingConfig(size=50)),
        CharacterCnnConfig().build(len(vocabulary.characters)),
        FrozenLayers(CopiedLayers(), ELMO_SIZE, {"input": ScalarMix(NUM_LAYERS)}) if elmo else None,
    )
    encoder_config = StackedBiLstmConfig(hidden_sizes=(200, 100), dropout=0.5)
    model_config = CrfTaggerConfig.model_construct(encoder=encoder_config, dropout=0.5)  # type: ignore[call-arg]
    model = CrfTagger(embedder, model_config, LABELS).train()
    if packed:
        encoder: Any = model.encoder
        sizes = [(layer.input_size, layer.hidden_size) for layer in encoder.layers]
        encoder.layers = nn.ModuleList(PackedLstm(*each, batch_first=True, bidirectional=True) for each in sizes)
    settings = {"num_epochs": 25, "validation_metric": "+f1", "optimizer": {"type": "adam", "lr": 0.002}}
    settings |= {"grad_norm": 5.0, "moving_average": {"decay": 0.999}, "device": "cpu", "precision": precision}
    config = TrainerConfig.model_validate(settings)
    folder = RunFolder(Path(tempfile.gettempdir()))  # nothing is written to it
    steps, accelerator = TaskAgenda(loader, config), start_accelerator(config)
    return Trainer(config, Objective(model), steps, folder.records, accelerator, seed=1, resume=False)


def compare(loops: dict[str, Trainer], steps: Sequence[Step], repeats: int) -> dict[str, dict[str, Any]]:
    """Measures all kinds of step in turns. The first turn, in which oneDNN compiles its kernels, does not count."""
    measurements: dict[str, list[Measurement]] = {name: [] for name in loops}
    for _ in range(repeats + 1):
        for name, loop in loops.items():
            measurements[name].append(run(loop, steps))
    results: dict[str, dict[str, Any]] = {}
    for name in loops:
        seconds, quiet_repeats = common.median_of_quiet(measurements[name][1:])
        results[name] = {"milliseconds": 1000 * seconds / len(steps), "quiet_repeats": quiet_repeats}
    return results


def table(results: dict[int, dict[str, dict[str, Any]]], repeats: int) -> str:
    rows = []
    for threads, by_kind in results.items():
        for kind, result in by_kind.items():
            milliseconds, baseline = result["milliseconds"], by_kind[BASELINE]["milliseconds"]
            numbers = [f"{milliseconds:.1f}", f"{1000 / milliseconds:.1f}", f"{milliseconds / baseline:.2f}"]
            rows.append([kind, threads, *numbers, f"{result['quiet_repeats']}/{repeats}"])
    return common.markdown_table(["step", "threads", "ms", "steps/s", "time over baseline", "quiet repeats"], rows)


def main() -> None:
    parser = common.make_parser(__doc__)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--steps", type=int, default=24, help="steps per repeat")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    vocabulary, loader = make_batches()
    steps = list(itertools.islice(loader.steps(0), arguments.steps))
    results = {}
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        loops = {kind[0]: make_trainer(vocabulary, loader, *kind[1:], arguments.precision) for kind in KINDS}
        results[threads] = compare(loops, steps, arguments.repeats)
    print(table(results, arguments.repeats))
    common.write_results(arguments.json, results=results)


if __name__ == "__main__":
    main()
