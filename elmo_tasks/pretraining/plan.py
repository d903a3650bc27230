"""What a pretraining will take: time and memory, for the processes that share it."""

from __future__ import annotations

import math
import resource
import sys
import time

import torch
from accelerate.utils import gather_object
from torch import Tensor, nn

from elmo_tasks.pretraining.corpus import Corpus
from elmo_tasks.pretraining.objective import StreamObjective
from elmo_tasks.pretraining.output_vocabulary import UNKNOWN_NUMBER
from elmo_tasks.pretraining.windows import TokenStreams, Window
from elmo_tasks.training.trainer import Trainer

_STEPS_TRIED = 4  # the first takes far longer


def make_plan(corpus: Corpus, streams: TokenStreams, trainer: Trainer, objective: StreamObjective) -> dict[str, str]:
    """Names and values for a table. All processes try out their first window; training is not affected."""
    tried = gather_object([_try_out(trainer, objective, next(streams.windows(0)))])
    seconds, memory = (max(values) for values in zip(*tried, strict=True))
    shared = f" in each of {len(tried)} processes" if len(tried) > 1 else ""
    num_words, num_tokens = len(objective.model.vocabulary), len(corpus.training.tokens)
    unknown = 100.0 * float(streams.reader.count_targets(num_words)[UNKNOWN_NUMBER]) / num_tokens
    parameters = sum(parameter.numel() for parameter in trainer.parameters.values())
    precision = str(objective.dtype).removeprefix("torch.")
    hours, rate = trainer.steps.total * seconds / 3600, streams.slots_per_window / seconds
    return {
        "corpus": str(corpus.folder),
        "tokens": f"{num_tokens:,} ({len(corpus.types):,} distinct), {len(corpus.held_out.tokens):,} held out",
        "vocabulary": f"{num_words:,} words; {unknown:.2f} % of the tokens are not among them",
        "parameters": f"{parameters:,}, products in {precision}",
        "steps": f"{trainer.steps.total:,}",
        "estimated time": f"{hours:.1f} hours, {rate:,.0f} tokens/s",
        "estimated memory": f"{memory / 1e9:.1f} GB{shared}",
    }


def _try_out(trainer: Trainer, objective: StreamObjective, window: Window) -> tuple[float, int]:
    """The seconds of the fastest of some steps, without the update, and the bytes that this process will need."""
    device, states, seconds = trainer.accelerator.device, objective.states, math.inf
    for _ in range(_STEPS_TRIED):
        objective.states = states
        started = time.monotonic()
        loss = trainer.loss_of(window)
        trainer.accelerator.backward(loss)
        loss.item()
        seconds = min(seconds, time.monotonic() - started)
        trainer.optimizer.zero_grad()
    objective.states = states
    unit = 1 if sys.platform == "darwin" else 1024
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    if device.type == "cuda":
        memory = torch.cuda.max_memory_allocated(device)
    return seconds, memory + _optimizer_bytes(trainer) - _state_bytes(trainer.optimizer)


def _optimizer_bytes(trainer: Trainer) -> int:
    """Of what the optimizer keeps after a step, which parameters without memory make."""
    parameters = {
        name: nn.Parameter(torch.empty_like(each, device="meta")) for name, each in trainer.parameters.items()
    }
    for parameter in parameters.values():
        parameter.grad = torch.empty_like(parameter)
    optimizer = trainer.config.optimizer.build(parameters.items())
    optimizer.step()
    return _state_bytes(optimizer)


def _state_bytes(optimizer: torch.optim.Optimizer) -> int:
    states = (each for state in optimizer.state.values() for each in state.values())
    return sum(each.nbytes for each in states if isinstance(each, Tensor))
