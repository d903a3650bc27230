"""The curves of a training, for TensorBoard and other trackers."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from accelerate import Accelerator

from elmo_tasks.errors import DISK_FULL_ERRORS, WriteError
from elmo_tasks.training.callbacks import Callback, Progress

logger = logging.getLogger(__name__)

_PROJECT = "elmo-tasks"
_STEPS_PER_POINT = 50


class Trackers(Callback):
    """Sends the losses and the records to the accelerator's trackers, under the name of the run's folder.

    Integers, such as the step and the number of gold labels, are left out: they hardly ever change.
    When a training resumes, TensorBoard forgets what came after the saved step. The other trackers begin a new curve.
    """

    def __init__(self, accelerator: Accelerator, folder: Path) -> None:
        self._accelerator = accelerator
        self._folder = accelerator.logging_dir or folder
        self._name = folder.resolve().name

    def on_start(self, progress: Progress) -> None:
        if not self._accelerator.log_with:
            return
        settings = {"tensorboard": {"purge_step": progress.step + 1 if progress.step else None}}
        settings |= {"wandb": {"name": self._name}, "mlflow": {"run_name": self._name}}  # type: ignore[dict-item]
        with self._full_disk():
            self._accelerator.init_trackers(_PROJECT, init_kwargs=settings)  # TensorBoard takes a second to import

    def on_step(self, progress: Progress, loss: float) -> None:
        if progress.step % _STEPS_PER_POINT == 0:
            rate = progress.step / max(1e-9, progress.seconds)
            self._log({"step/loss": loss, "step/steps_per_second": rate}, progress.step)

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        values = {name: value for name, value in flatten(record).items() if isinstance(value, float)}
        rates = [name for name in values if name.startswith("learning_rate/")]
        if len({values[name] for name in rates}) == 1:  # one curve for all groups of parameters with the same rate
            values = {name: value for name, value in values.items() if name not in rates[1:]}
        self._log(values, progress.step)

    def on_end(self) -> None:
        trackers = list(self._accelerator.trackers)
        self._accelerator.trackers.clear()
        for tracker in trackers:  # end_training would end the processes' connection too
            try:
                tracker.finish()
            except OSError as error:  # it may be the error that ends the training, or the training is complete
                logger.warning("%s: the last points of the curves are not written: %s", self._folder, error)

    def _log(self, values: Mapping[str, float], step: int) -> None:
        with self._full_disk():
            self._accelerator.log(values, step=step)

    @contextlib.contextmanager
    def _full_disk(self) -> Iterator[None]:
        """Turns the error of a tracker that finds no room into one that names the folder."""
        try:
            yield
        except OSError as error:
            if error.errno in DISK_FULL_ERRORS:
                raise WriteError(self._folder, error) from None
            raise


def flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers of nested mappings and lists under names like `validation/f1` and `elmo/input/weights/0`."""
    flat: dict[str, float] = {}
    for key, value in record.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{name}/"))
        elif isinstance(value, (list, tuple)):
            flat.update(flatten(dict(enumerate(value)), f"{name}/"))  # type: ignore[arg-type]
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            flat[name] = value
    return flat
