"""What a pretraining will take, for the processes that share it."""

from __future__ import annotations

import math
import time

from accelerate.utils import gather_object

from elmo_tasks.extras.pretraining.corpus import Corpus
from elmo_tasks.extras.pretraining.objective import StreamObjective
from elmo_tasks.extras.pretraining.output_vocabulary import UNKNOWN_NUMBER
from elmo_tasks.extras.pretraining.windows import TokenStreams, Window
from elmo_tasks.training.trainer import Trainer

_STEPS_TRIED = 4  # the first takes far longer


def make_plan(corpus: Corpus, streams: TokenStreams, trainer: Trainer, objective: StreamObjective) -> dict[str, str]:
    """Names and values for a table. All processes try out their first window; training is not affected."""
    seconds = max(gather_object([_try_out(trainer, objective, next(streams.windows(0)))]))
    num_words, num_tokens = len(objective.model.vocabulary), len(corpus.training.tokens)
    unknown = 100.0 * float(streams.reader.count_targets(num_words)[UNKNOWN_NUMBER]) / num_tokens
    parameters = sum(parameter.numel() for parameter in trainer.parameters.values())
    precision = str(objective.dtype).removeprefix("torch.")
    hours, rate = trainer.agenda.total * seconds / 3600, streams.slots_per_window / seconds
    return {
        "corpus": str(corpus.folder),
        "tokens": f"{num_tokens:,} ({len(corpus.types):,} distinct), {len(corpus.held_out.tokens):,} held out",
        "vocabulary": f"{num_words:,} words; {unknown:.2f} % of the tokens are not among them",
        "parameters": f"{parameters:,}, products in {precision}",
        "steps": f"{trainer.agenda.total:,}",
        "estimated time": f"{hours:.1f} hours, {rate:,.0f} tokens/s",
    }


def _try_out(trainer: Trainer, objective: StreamObjective, window: Window) -> float:
    """The seconds of the fastest of some steps, without the update."""
    states, seconds = objective.states, math.inf
    for _ in range(_STEPS_TRIED):
        objective.states = states
        started = time.monotonic()
        loss = trainer.loss_of(window)
        trainer.accelerator.backward(loss)
        loss.item()
        seconds = min(seconds, time.monotonic() - started)
        trainer.optimizer.zero_grad()
    objective.states = states
    return seconds
