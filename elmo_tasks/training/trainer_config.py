"""How a model is trained: the settings that heads and biLMs share, and those of a head's trainer."""

from __future__ import annotations

import collections
import logging
import math
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field, field_validator

from elmo_tasks.config import Config
from elmo_tasks.errors import ConfigError
from elmo_tasks.modules.devices import Device, torch_device
from elmo_tasks.training.callbacks import Callback, MovingAverage, Patience
from elmo_tasks.training.optimizers import Adam, OptimizerConfig, ParameterNames, find_parameters
from elmo_tasks.training.schedules import Constant, SchedulerConfig

logger = logging.getLogger(__name__)

Precision = Literal["auto", "float32", "bfloat16"]

_SIZE = 512  # of the products that are tried, about those of a training step
_TRIES = 5
_CLEARLY_FASTER = 0.75  # of the time: a smaller gain is lost to the conversions

TrackerName = Literal[
    "tensorboard", "wandb", "mlflow", "comet_ml", "aim", "clearml", "dvclive", "swanlab", "trackio"
]  # those of accelerate


class MovingAverageConfig(Config):
    """An exponential moving average: after each step, average = decay x average + (1 - decay) x parameter."""

    decay: Annotated[float, Field(gt=0, lt=1)] = 0.999

    def build(self, parameters: Sequence[torch.nn.Parameter]) -> MovingAverage:
        return MovingAverage(parameters, self.decay)


class Regularizer(Config):
    """A penalty on the parameters whose names match a regular expression, added to the loss.

    For ELMo's mix, l2 is the paper's lambda (Peters et al. 2018, section 3.2): lambda times the sum of w squared.
    """

    parameters: ParameterNames
    l1: Annotated[float, Field(ge=0)] = Field(0.0, description="times the sum of absolute values")
    l2: Annotated[float, Field(ge=0)] = Field(0.0, description="times the sum of squares")


class Unfreezing(Config):
    """Keeps the parameters whose names match a regular expression as they are until an epoch begins.

    The first entry that matches a name wins. Source: gradual unfreezing, Howard and Ruder 2018, section 3.3.
    """

    parameters: ParameterNames
    epoch: Annotated[int, Field(ge=1)] = Field(description="the first epoch, counted from 1, in which they are trained")


class BaseTrainerConfig(Config):
    """How a head or a language model is trained. The names are AllenNLP's."""

    num_epochs: Annotated[float, Field(gt=0)]
    optimizer: OptimizerConfig = Adam()
    learning_rate_scheduler: SchedulerConfig = Constant()
    grad_norm: Annotated[float, Field(gt=0)] | None = Field(
        None, description="scales the gradients of all parameters down to this norm"
    )
    grad_clipping: Annotated[float, Field(gt=0)] | None = Field(
        None, description="limits each value of the gradients to this size"
    )
    moving_average: MovingAverageConfig | None = Field(None, description="evaluates and saves averaged parameters")
    regularizers: tuple[Regularizer, ...] = ()
    unfreeze: tuple[Unfreezing, ...] = Field((), description="from which epoch on some of the parameters are trained")
    checkpoint_every_steps: Annotated[int, Field(ge=1)] | None = Field(
        None, description="saves the state from which to resume this often, in addition to each epoch's end"
    )
    device: Device = Field("auto", description="'auto' uses a GPU if there is one; 'cuda' requires one")
    trackers: tuple[TrackerName, ...] = Field(
        ("tensorboard",),
        description="where the curves go: 'tensorboard' writes them to the run's folder; the others must be installed "
        "and set up by you",
    )

    def torch_device(self) -> torch.device:
        """The device of a single process.

        Raises:
            ConfigError: the device is 'cuda', and there is no GPU.
        """
        return torch_device(self.device, "trainer.device")

    @property
    def higher_is_better(self) -> bool:
        """Whether a higher validation metric is better."""
        return False

    def saves_after(self, step: int) -> bool:
        """Whether the state is saved after a step, in addition to each epoch's end."""
        return self.checkpoint_every_steps is not None and step % self.checkpoint_every_steps == 0

    def callbacks(self) -> list[Callback]:
        """What these settings add to the callbacks of a training."""
        return []

    def first_epochs(self, names: Sequence[str]) -> dict[str, int]:
        """The epochs, from 1, from which on the parameters that are frozen at first are trained.

        Raises:
            ConfigError: an expression matches no parameter, or no parameter is trained in epoch 1.
        """
        epochs: dict[str, int] = {}
        for entry in self.unfreeze:
            found = find_parameters(names, entry.parameters, "trainer.unfreeze")
            epochs = dict.fromkeys(found, entry.epoch) | epochs
        for epoch, number in sorted(collections.Counter(epochs.values()).items()):
            logger.info("%d parameter tensors are trained from epoch %d on", number, epoch)
        if epochs and all(epochs.get(name, 1) > 1 for name in names):
            raise ConfigError("trainer.unfreeze: no parameter is trained in epoch 1; expected some that are")
        return epochs

    def autocast_type(self, device: torch.device) -> torch.dtype:
        """The type of the factors of products that `torch.autocast` computes; float32 means that it does nothing."""
        return torch.float32


class TrainerConfig(BaseTrainerConfig):
    """How a head is trained."""

    num_epochs: Annotated[int, Field(ge=1)] = Field(description="most epochs")
    patience: Annotated[int, Field(ge=1)] | None = Field(
        None, description="stops after this many epochs without a better validation metric; an equal one is not better"
    )
    validation_metric: Annotated[str, Field(min_length=1)] = Field(
        description="chooses the best epoch; '+' before the name where higher is better, '-' where lower is. Of epochs "
        "with the same value, the one with the lowest validation loss is the best"
    )
    num_gradient_accumulation_steps: Annotated[int, Field(ge=1)] = Field(1, description="batches to an optimizer step")
    precision: Precision = Field("float32", description="of the products; 'auto' takes bfloat16 where it is faster")

    @field_validator("validation_metric")
    @classmethod
    def _has_a_direction(cls, metric: str) -> str:
        if metric[0] not in "+-" or len(metric) == 1:
            name = metric.strip("+-") or "f1"
            raise ValueError(
                f"expected '+{name}' if a higher value is better, or '-{name}' if a lower one is; got {metric!r}"
            )
        return metric

    @property
    def metric_name(self) -> str:
        return self.validation_metric[1:]

    @property
    def higher_is_better(self) -> bool:
        return self.validation_metric[0] == "+"

    def check_metric(self, known: Mapping[str, float]) -> None:
        """Raises `ValueError` if the validation metric is not among those that a model has before it sees data."""
        if self.metric_name.partition("/")[0] not in known:  # f1/PER is known only after the data has been read
            names = ", ".join(sorted(known))
            raise ValueError(f"validation_metric: no metric {self.metric_name!r}; there are {names}")

    def value_of(self, metrics: Mapping[str, float]) -> float:
        """The validation metric among all metrics; raises `ConfigError` if it is missing."""
        if self.metric_name not in metrics:
            known = ", ".join(sorted(metrics))
            raise ConfigError(f"trainer.validation_metric: no metric {self.metric_name!r}; there are {known}")
        return metrics[self.metric_name]

    def with_precision(self, earlier: str | None = None) -> TrainerConfig:
        """These settings with what 'auto' means on this machine, or meant for a run that began earlier."""
        if self.precision != "auto":
            return self
        chosen = earlier or str(product_type(self.precision, self.torch_device())).removeprefix("torch.")
        return self.model_copy(update={"precision": chosen})

    def callbacks(self) -> list[Callback]:
        return [Patience(self.patience)] if self.patience else []

    def autocast_type(self, device: torch.device) -> torch.dtype:
        return product_type(self.precision, device)


def product_type(precision: Precision, device: torch.device) -> torch.dtype:
    """The type of the factors; "auto" is bfloat16 where it is clearly faster than float32.

    Processors without instructions for bfloat16 compute it many times slower than float32, so "auto" measures it.
    """
    if precision != "auto":
        return torch.bfloat16 if precision == "bfloat16" else torch.float32
    factors = [torch.ones(_SIZE, _SIZE, dtype=dtype, device=device) for dtype in (torch.float32, torch.bfloat16)]
    best = [math.inf, math.inf]
    for _ in range(_TRIES):
        best = [min(earlier, _seconds(each)) for earlier, each in zip(best, factors, strict=True)]
    return torch.bfloat16 if best[1] < _CLEARLY_FASTER * best[0] else torch.float32


def _seconds(factor: torch.Tensor) -> float:
    started = time.perf_counter()
    (factor @ factor)[0, 0].item()  # waits for the device
    return time.perf_counter() - started
