"""Training steps per second and peak memory of each head, with and without ELMo.

    python -m benchmarks.heads [--configs configs/sst5.jsonnet ...] [--threads 1] [--steps 10] [--json FILE]

Each config runs unchanged on the data in $ELMO_TASKS_DATA, for example the data of `elmo-tasks sample-data DIR --task
all`. It runs in separate processes without ELMo, with the biLM's layers from the cache, and with the biLM computed in
every step.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import common
from benchmarks.common import Clock, Measurement
from elmo_tasks.config import load_config
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.tasks import Batch
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.processes import start_accelerator
from elmo_tasks.training.state import seed_everything
from elmo_tasks.training.task_training import TaskAgenda
from elmo_tasks.training.trainer import Objective, Trainer

CONFIGS = Path(__file__).parent.parent / "configs"
BASELINE, CACHED, COMPUTED = KINDS = ("no ELMo", "ELMo, layers cached", "ELMo, biLM at work")

Step = list[tuple[Batch, float]]


def all_configs() -> list[Path]:
    """The configs that have a baseline."""
    return [CONFIGS / path.name for path in sorted((CONFIGS / "baselines").glob("*.jsonnet"))]


def prepare(config: ExperimentConfig, kind: str, num_steps: int, folder: Path) -> tuple[Trainer, list[Step]]:
    """A loop, and the first steps of its first epoch."""
    seed_everything(config.random_seed)
    data = Data.read(config)
    vocabulary = data.vocabulary(config)
    model = config.build_model(vocabulary, pretrained=True).train()
    loader = BatchLoader(config.data_loader, data.training, data.reader.task, vocabulary, seed=config.random_seed)
    steps = list(itertools.islice(loader.steps(0), num_steps))
    if kind == CACHED:
        examples = (example for step in steps for batch, _ in step for example in batch.examples)
        model.embedder.prepare([tokens for example in examples for tokens in data.reader.task.texts(example)])
    settings, records, seed = config.trainer, RunFolder(folder).records, config.random_seed
    accelerator, training = start_accelerator(settings), TaskAgenda(loader, settings)
    return Trainer(settings, Objective(model), training, records, accelerator, seed=seed, resume=False), steps


def run(loop: Trainer, steps: Sequence[Step]) -> Measurement:
    """Measures these training steps."""
    clock = Clock()
    for step in steps:
        loop.step(step)
    return clock.stop()


def measure(path: str, kind: str, num_steps: int, repeats: int, threads: int) -> dict[str, Any]:
    """Measures a config with one kind of step."""
    torch.set_num_threads(threads)
    overrides = ["model.embedder.elmo=null", "trainer.regularizers=[]"] if kind == BASELINE else []
    if kind == COMPUTED:
        overrides = ["model.embedder.elmo.layer_cache=null"]
    config = load_config(path, ExperimentConfig, overrides, {})
    with tempfile.TemporaryDirectory() as folder:
        loop, steps = prepare(config, kind, num_steps, Path(folder))
        run(loop, steps)  # warms up: oneDNN compiles its kernels
        measurements = [run(loop, steps) for _ in range(repeats)]
        return {
            "seconds": statistics.median(one.seconds for one in measurements) / len(steps),
            "examples": sum(len(batch) for step in steps for batch, _ in step) / len(steps),
            "peak_gigabytes": common.peak_gigabytes(),
            "quiet_repeats": sum(one.quiet for one in measurements),
        }


def table(results: dict[str, dict[str, dict[str, Any]]], repeats: int) -> str:
    rows = []
    for name, kinds in results.items():
        for kind, result in kinds.items():
            numbers = [f"{1 / result['seconds']:.2f}", f"{result['examples'] / result['seconds']:.0f}"]
            numbers += [f"{result['peak_gigabytes']:.2f} GB", f"{result['quiet_repeats']}/{repeats}"]
            rows.append([f"{name}, {kind}", *numbers])
    return common.markdown_table(["config", "steps/s", "examples/s", "peak memory", "quiet repeats"], rows)


def main() -> None:
    parser = common.make_parser(__doc__)
    parser.add_argument(
        "--configs",
        type=Path,
        nargs="+",
        default=all_configs(),
        help="the configs to measure (default: all that have a baseline)",
    )
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6, help="steps per repeat")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    settings = arguments.steps, arguments.repeats, arguments.threads
    results = {
        path.stem: {kind: common.in_own_process(measure, str(path), kind, *settings) for kind in arguments.kinds}
        for path in arguments.configs
    }
    print(table(results, arguments.repeats))
    common.write_results(arguments.json, results=results)


if __name__ == "__main__":
    main()
