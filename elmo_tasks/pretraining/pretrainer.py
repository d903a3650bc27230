"""The loop that trains a language model.

    train -> step, step, ... -> now and then: evaluate on held-out text, save -> the end: evaluate on all of it

A training that is killed and resumed ends with the same weights, bit for bit, as one that was not: the state holds
the parameters, the optimizer, the schedule, the generators of random numbers, the place in the text and where every
stream's LSTMs stand.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from rich.progress import Progress, TaskID
from torch import Tensor, nn

from elmo_tasks.errors import ElmoTasksError, RunError
from elmo_tasks.pretraining.config import PretrainerConfig
from elmo_tasks.pretraining.language_model import LanguageModel, LayerStates
from elmo_tasks.pretraining.perplexity import Perplexity, evaluate_perplexity
from elmo_tasks.pretraining.runs import PretrainingFolder
from elmo_tasks.pretraining.softmax import SoftmaxConfig
from elmo_tasks.pretraining.windows import SlotReader, TokenStreams, Window
from elmo_tasks.progress import progress_bar
from elmo_tasks.runs import append_line, keep_lines, write_state
from elmo_tasks.training.random_state import random_state, set_random_state

logger = logging.getLogger(__name__)

_DEFAULT_EVALUATIONS = 20
_STEPS_A_CURVE_POINT = 50
_STEPS_TRIED = 4  # the first takes far longer: kernels are made, memory is fetched


class _Curves:
    """TensorBoard's curves, of the main process alone."""

    def __init__(self, folder: PretrainingFolder, step: int, main: bool) -> None:
        self._writer = None
        if main:
            # TensorBoard takes a second to import.
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder.tensorboard), purge_step=step + 1 if step else None)

    def __enter__(self) -> _Curves:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer:
            self._writer.close()

    def add(self, values: Mapping[str, float], step: int) -> None:
        if self._writer:
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)


@dataclasses.dataclass
class Position:
    """How far a training has come."""

    step: int = 0
    targets: int = 0  # that were predicted by each direction, in all processes
    seconds: float = 0.0  # of training, evaluations left out
    loss_sum: float = 0.0  # over the steps since the last evaluation
    steps_in_sum: int = 0
    records: int = 0  # lines written to the log


class _Loss(nn.Module):
    """From a window to its mean loss in one call, as data-parallel wrappers want it."""

    def __init__(self, model: LanguageModel, softmax: SoftmaxConfig, dtype: torch.dtype) -> None:
        super().__init__()
        self.model = model
        self._softmax = softmax
        self._dtype = dtype

    def forward(self, window: Window, states: LayerStates) -> tuple[Tensor, LayerStates]:
        candidates = self._softmax.draw(len(self.model.vocabulary))
        device = self.model.softmax_bias.device
        loss = self.model(window, states, candidates.to(device) if candidates else None, self._dtype)
        return loss.mean, loss.states


class Pretrainer:
    """Trains a language model.

    Arguments:
        model: the language model, on its device.
        softmax: what targets are compared with.
        training: reads the training text.
        held_out: reads the held-out text.
        folder: where everything is written.
        accelerator: device, and the processes that share the work.
        dtype: of the products' factors.
        seed: of the documents' order.
    """

    def __init__(
        self,
        config: PretrainerConfig,
        model: LanguageModel,
        softmax: SoftmaxConfig,
        training: SlotReader,
        held_out: SlotReader,
        folder: PretrainingFolder,
        accelerator: Accelerator,
        dtype: torch.dtype,
        seed: int,
    ) -> None:
        self.config = config
        self.model = model.to(accelerator.device)
        self.training = training
        self.held_out = held_out
        self.folder = folder
        self.accelerator = accelerator
        self.dtype = dtype
        process = accelerator.process_index, accelerator.num_processes
        self.streams = TokenStreams(training, config.batch_size, config.unroll_steps, seed, config.reset_share, process)
        self.targets_per_step = config.batch_size * config.unroll_steps
        self.num_steps = max(1, round(config.num_epochs * self.streams.windows_per_epoch))
        self.evaluate_every = config.evaluate_every_steps or max(1, self.num_steps // _DEFAULT_EVALUATIONS)
        named = list(model.named_parameters())
        self.parameters = [parameter for _, parameter in named]
        self.optimizer = config.optimizer.build(named)
        self.schedule = config.learning_rate_scheduler.build(self.optimizer, self.num_steps, higher_is_better=False)
        self.loss = accelerator.prepare_model(_Loss(model, softmax, dtype))
        self.states = model.initial_states(self.streams.num_rows)
        self.position = Position()
        self.before: dict[str, float] | None = None

    def try_out(self) -> tuple[float, int]:
        """Makes some steps without changing a weight: the seconds of the fastest, and the bytes that training takes."""
        window = next(self.streams.windows(0)).to(self.accelerator.device)
        seconds = math.inf
        for _ in range(_STEPS_TRIED):
            started = time.monotonic()
            loss, _ = self.loss(window, self.states)
            self.accelerator.backward(loss)
            loss.item()
            seconds = min(seconds, time.monotonic() - started)
            self.optimizer.zero_grad(set_to_none=True)
        moments = 2 * sum(parameter.numel() * parameter.element_size() for parameter in self.parameters)
        return seconds, peak_memory(self.accelerator.device) + moments

    def train(self, evaluate_first: bool = False) -> Perplexity:
        """Trains to the end, from wherever the training has come; the biLM is written after each evaluation.

        Arguments:
            evaluate_first: whether to look at the held-out text before the first step too.

        Returns:
            the perplexity of the whole held-out text.

        Raises:
            ElmoTasksError: the loss is no longer finite.
        """
        main, position = self.accelerator.is_main_process, self.position
        if main:
            keep_lines(self.folder.log, position.records)
        self.model.train()
        with _Curves(self.folder, position.step, main) as curves, progress_bar(visible=main) as bar:
            if evaluate_first and self.before is None:
                self.before = self._evaluate(curves, whole=True).as_record()
                self.save()
            task = bar.add_task("steps", total=self.num_steps, completed=position.step, note="")
            for window in self._windows():
                started = time.monotonic()
                loss = self.step(window)
                self._advance(loss, time.monotonic() - started)
                self._show(bar, task, curves, loss)
                if position.step % self.evaluate_every == 0 and position.step < self.num_steps:
                    self._evaluate(curves)
                if position.step % self.config.checkpoint_every_steps == 0:
                    self.save()
            self.save()  # before the last line of the log, which resuming from here writes anew
            return self._evaluate(curves, whole=True)

    def step(self, window: Window) -> float:
        """Makes one optimizer step.

        Returns:
            the mean loss of a target, in nats, over all processes; under the sampled softmax, where that is used.
        """
        self.optimizer.zero_grad(set_to_none=True)
        loss, self.states = self.loss(window.to(self.accelerator.device), self.states)
        self.accelerator.backward(loss)
        if self.config.grad_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.config.grad_norm)
        self.optimizer.step()
        self.schedule.after_step()
        mean: Tensor = self.accelerator.reduce(loss.detach(), "mean")
        if not math.isfinite(value := mean.item()):
            raise ElmoTasksError(
                f"the loss is {value} at step {self.position.step + 1}; a lower trainer.optimizer.lr or "
                "trainer.grad_norm may help"
            )
        return value

    def _windows(self) -> Iterator[Window]:
        """The windows from the position on; epoch follows epoch without a break in the streams."""
        per_epoch = self.streams.windows_per_epoch
        while self.position.step < self.num_steps:
            epoch, first = divmod(self.position.step, per_epoch)
            for window in self.streams.windows(epoch, first):
                if self.position.step == self.num_steps:
                    return
                yield window

    def _advance(self, loss: float, seconds: float) -> None:
        position = self.position
        position.step += 1
        position.targets += self.targets_per_step
        position.seconds += seconds
        position.loss_sum += loss
        position.steps_in_sum += 1

    def _show(self, bar: Progress, task: TaskID, curves: _Curves, loss: float) -> None:
        position = self.position
        epoch = 1 + (position.step - 1) // self.streams.windows_per_epoch
        rate = position.targets / position.seconds
        note = f"epoch {epoch} of {self.config.num_epochs:g}, loss {loss:.3f}, {rate:,.0f} tokens/s"
        bar.update(task, completed=position.step, note=note)
        if position.step % _STEPS_A_CURVE_POINT == 0:
            curves.add({"training/loss": loss, "tokens_per_second": rate}, position.step)

    def _evaluate(self, curves: _Curves, whole: bool = False) -> Perplexity:
        """Looks at held-out text and adds a line to the log."""
        reader = self.held_out if whole else self.held_out.beginning(self.config.evaluation_tokens)
        position = self.position
        perplexity = evaluate_perplexity(self.model, reader, self.dtype, visible=self.accelerator.is_main_process)
        record = {
            "step": position.step,
            "targets": position.targets,
            "training_loss": position.loss_sum / max(1, position.steps_in_sum),
            "learning_rate": self.optimizer.param_groups[0]["lr"],
            "seconds": round(position.seconds, 1),
            "held_out": perplexity.as_record(),
        }
        position.loss_sum, position.steps_in_sum = 0.0, 0
        position.records += 1
        logger.info(
            "step %d of %d, %.1f M tokens, %.0f tokens/s: loss %.3f; held-out perplexity %.1f",
            position.step,
            self.num_steps,
            position.targets / 1e6,
            position.targets / max(1e-9, position.seconds),
            record["training_loss"],
            perplexity.mean,
        )
        if self.accelerator.is_main_process:
            append_line(self.folder.log, record)
            self.model.save(self.folder.path)
            curves.add({f"held_out/{name}": value for name, value in perplexity.as_record().items()}, position.step)
        return perplexity

    def save(self) -> None:
        """Writes the state from which `resume` goes on."""
        own = {"generators": random_state(), "states": self.states}
        everyone = gather_object([own])
        if not self.accelerator.is_main_process:
            return
        state = {
            "before": self.before,
            "position": dataclasses.asdict(self.position),
            "dtype": str(self.dtype).removeprefix("torch."),
            "parameters": [parameter.detach() for parameter in self.parameters],
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "processes": everyone,
        }
        write_state(self.folder.training_state, state)

    def resume(self, state: dict[str, Any]) -> None:
        """Takes up a state that `save` wrote.

        Raises:
            RunError: it was saved by another number of processes.
        """
        if len(state["processes"]) != self.accelerator.num_processes:
            raise RunError(
                f"{self.folder.training_state}: saved by {len(state['processes'])} processes, resumed by "
                f"{self.accelerator.num_processes}; wanted the same number"
            )
        self.before = state["before"]
        self.position = Position(**state["position"])
        with torch.no_grad():
            for parameter, saved in zip(self.parameters, state["parameters"], strict=True):
                parameter.copy_(saved)
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        own = state["processes"][self.accelerator.process_index]
        set_random_state(own["generators"])
        device = self.accelerator.device
        self.states = [
            ((forward[0].to(device), forward[1].to(device)), (backward[0].to(device), backward[1].to(device)))
            for forward, backward in own["states"]
        ]
        logger.info("resumed at step %d of %d", self.position.step, self.num_steps)


def peak_memory(device: torch.device) -> int:
    """The most bytes that have been in use: of a GPU's memory by torch, or of the machine's by this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes * (1 if sys.platform == "darwin" else 1024)
