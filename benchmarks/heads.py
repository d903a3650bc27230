"""Training steps per second and peak memory of each head, with and without ELMo, and the time of a step's parts.

    python -m benchmarks.heads [--configs configs/sst5.jsonnet ...] [--threads 1] [--steps 10] [--json FILE]

Each config runs unchanged on the data in $ELMO_TASKS_DATA, for example the data of `elmo-tasks sample-data DIR --task
all`. It runs in separate processes without ELMo, with the biLM's layers from the cache, and with the biLM computed in
every step. "Python" is the share of a step's time outside of torch operations. It is measured with torch's profiler,
whose overhead is included. "decoding" is the time to decode the batch of a step, relative to the time of the step.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import common
from benchmarks.common import Clock, Measurement
from elmo_tasks.config import load_config
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.model_building import build_model
from elmo_tasks.tasks import Batch
from elmo_tasks.training.batching import BatchLoader
from elmo_tasks.training.processes import start_accelerator
from elmo_tasks.training.random_state import seed_everything
from elmo_tasks.training.task_training import TaskSteps
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
    model = build_model(config, vocabulary, pretrained=True).train()
    loader = BatchLoader(config.data_loader, data.training, data.reader.task, vocabulary, seed=config.random_seed)
    steps = list(itertools.islice(loader.steps(0), num_steps))
    if kind == CACHED:
        examples = (example for step in steps for batch, _ in step for example in batch.examples)
        model.embedder.prepare([tokens for example in examples for tokens in data.reader.task.texts(example)])
    settings, records, seed = config.trainer, RunFolder(folder).records, config.random_seed
    accelerator, training = start_accelerator(settings), TaskSteps(loader, settings)
    return Trainer(settings, Objective(model), training, records, accelerator, seed=seed, resume=False), steps


class Parts:
    """Measures the seconds of ELMo, of the embedder with ELMo, and of the whole forward pass."""

    def __init__(self, loop: Trainer) -> None:
        self.seconds = {"elmo": 0.0, "embedder": 0.0, "forward": 0.0}
        modules = {"embedder": loop.objective.model.embedder, "forward": loop.objective.model}
        if loop.objective.model.embedder.elmo is not None:
            modules["elmo"] = loop.objective.model.embedder.elmo
        self._hooks = []
        for part, module in modules.items():
            self._hooks.append(module.register_forward_pre_hook(self._hook(part, begins=True)))
            self._hooks.append(module.register_forward_hook(self._hook(part, begins=False)))

    def _hook(self, part: str, begins: bool) -> Callable[..., None]:
        def note(*_: object) -> None:
            self.seconds[part] += -time.perf_counter() if begins else time.perf_counter()

        return note

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()


def run(loop: Trainer, steps: Sequence[Step]) -> Measurement:
    """Measures these training steps."""
    clock = Clock()
    for step in steps:
        loop.step(step)
    return clock.stop()


def decoding_seconds(loop: Trainer, steps: Sequence[Step]) -> float:
    """The time to decode the outputs of the steps' batches."""
    seconds = 0.0
    loop.objective.model.eval()
    with torch.inference_mode():
        for batch, _ in itertools.chain.from_iterable(steps):
            output = loop.objective.model(batch)
            loop.objective.model.decode(output, batch, probabilities=False)  # the first call compiles
            begin = time.perf_counter()
            loop.objective.model.decode(output, batch, probabilities=False)
            seconds += time.perf_counter() - begin
    loop.objective.model.train()
    return seconds


def python_share(loop: Trainer, steps: Sequence[Step]) -> float:
    """The share of the steps' time outside of torch operations."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        begin = time.perf_counter()
        run(loop, steps)
        seconds = time.perf_counter() - begin
    events = profiler.events() or []
    inside = sum(event.time_range.elapsed_us() for event in events if event.cpu_parent is None) / 1e6
    return max(0.0, 1 - inside / seconds)


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
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        parts = Parts(loop)
        total = run(loop, steps).seconds
        parts.remove()
        seconds = statistics.median(one.seconds for one in measurements) / len(steps)
        return {
            "seconds": seconds,
            "examples": sum(len(batch) for step in steps for batch, _ in step) / len(steps),
            "peak_bytes": peak,
            "quiet_repeats": sum(one.quiet for one in measurements),
            "elmo": parts.seconds["elmo"] / total,
            "embedder": (parts.seconds["embedder"] - parts.seconds["elmo"]) / total,
            "forward": (parts.seconds["forward"] - parts.seconds["embedder"]) / total,
            "backward": 1 - parts.seconds["forward"] / total,
            "decoding": decoding_seconds(loop, steps) / len(steps) / seconds,
            "python": python_share(loop, steps[:2]),
        }


def in_own_process(path: Path, kind: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measures in a new process, because peak memory is measured for the whole process."""
    with multiprocessing.get_context("spawn").Pool(1) as process:
        return process.apply(measure, (str(path), kind, arguments.steps, arguments.repeats, arguments.threads))


def table(results: dict[str, dict[str, dict[str, Any]]], repeats: int) -> str:
    shares = ("elmo", "embedder", "forward", "backward", "decoding", "python")
    titles = ("biLM and mix", "other vectors", "head, forward", "backward and optimizer", "decoding", "Python")
    rows = []
    for name, kinds in results.items():
        for kind, result in kinds.items():
            numbers = [f"{1 / result['seconds']:.2f}", f"{result['examples'] / result['seconds']:.0f}"]
            numbers += [f"{result['peak_bytes'] / 1e9:.2f} GB", *(f"{result[share]:.0%}" for share in shares)]
            rows.append([f"{name}, {kind}", *numbers, f"{result['quiet_repeats']}/{repeats}"])
    header = ["config", "steps/s", "examples/s", "peak memory", *titles, "quiet repeats"]
    return common.markdown_table(header, rows)


def measurements(arguments: argparse.Namespace) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    for path in arguments.configs:
        yield path.stem, {kind: in_own_process(path, kind, arguments) for kind in arguments.kinds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    arguments = parser.parse_args()
    results = {}
    with contextlib.suppress(KeyboardInterrupt):  # shows the results so far
        for name, result in measurements(arguments):
            results[name] = result
    print(table(results, arguments.repeats))
    common.write_json(arguments.json, {"machine": common.machine(), "results": results})


if __name__ == "__main__":
    main()
