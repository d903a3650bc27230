"""The device, the precision and the processes that share a training or an evaluation.

`start_accelerator` is the only place that changes the state of the whole process: accelerate's, that of torch's process
group, and the level of the log.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from accelerate.utils import DistributedDataParallelKwargs, ProjectConfiguration, gather_object

from elmo_tasks.errors import ConfigError
from elmo_tasks.training.trainer_config import BaseTrainerConfig


class RunAccelerator(Accelerator):
    """Accelerate's, with a device and a precision of its own.

    All accelerators of a process share one state, which accelerate never changes. So that runs of one process may
    differ, a single process takes neither the device nor the precision from there.
    """

    def __init__(self, device: torch.device, factor_type: torch.dtype, **settings: Any) -> None:
        self._own_device = device
        self.factor_type = factor_type  # of products
        several = "LOCAL_RANK" in os.environ  # set by the launchers of several processes
        super().__init__(cpu=several and device.type == "cpu", mixed_precision="no", **settings)

    @property
    def device(self) -> torch.device:
        return super().device if self.num_processes > 1 else self._own_device

    def autocast(self, autocast_handler: Any = None) -> AbstractContextManager[Any]:
        """Within the block, products have factors of the chosen type."""
        if self.factor_type != torch.bfloat16:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)


class FromDevice:
    """A number on its way from a device, which is read without waiting for what was started there after it."""

    def __init__(self, number: torch.Tensor) -> None:
        self._number = number.to("cpu", non_blocking=True)
        self._arrival = torch.cuda.current_stream(number.device).record_event() if number.is_cuda else None

    def read(self) -> float:
        if self._arrival:
            self._arrival.synchronize()
        return self._number.item()


def start_accelerator(config: BaseTrainerConfig, folder: Path | None = None) -> RunAccelerator:
    """The accelerator for a training or an evaluation.

    Arguments:
        folder: where TensorBoard's curves go. Without it nothing is tracked.

    Raises:
        ConfigError: a tracker is not installed, or there is no GPU for the device 'cuda'.
    """
    device = config.torch_device()
    trackers = list(config.trackers) if folder else []
    installed = sorted(str(name) for name in get_available_trackers())
    if missing := [name for name in trackers if name not in installed]:
        raise ConfigError(
            f"trainer.trackers: {', '.join(missing)} cannot be imported; install it with pip, or choose among "
            f"those that are installed: {', '.join(installed)}"
        )
    accelerator = RunAccelerator(
        device,
        config.autocast_type(device),
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=bool(config.unfreeze))],
        log_with=trackers or None,
        project_config=ProjectConfiguration(logging_dir=str(folder) if folder else None),
    )
    if accelerator.num_processes > 1:
        if len(set(gather_object([str(accelerator.factor_type)]))) > 1:
            raise ConfigError("trainer.precision: 'auto' differs between the processes; set float32 or bfloat16")
        # A thread of the process group that lets a tensor go after the interpreter has ended aborts the process.
        atexit.register(_destroy_process_group)
    if not accelerator.is_main_process:  # only the first of several processes logs more than warnings
        package = logging.getLogger("elmo_tasks")
        package.setLevel(max(package.getEffectiveLevel(), logging.WARNING))
    return accelerator


def _destroy_process_group() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
