"""What a training run writes down: a line of metrics for each epoch, and curves for TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_tasks.runs import RunFolder, append_line, keep_lines


class Report:
    """The records of one run: `metrics.jsonl` and TensorBoard's files.

    Arguments:
        epochs: how many epochs the run had made when its state was saved; what it wrote after that is taken back.
        step: the optimizer steps made by then.
    """

    def __init__(self, folder: RunFolder, *, epochs: int, step: int) -> None:
        # TensorBoard takes a second to import.
        from torch.utils.tensorboard import SummaryWriter

        self._folder = folder
        keep_lines(folder.epochs, epochs)
        self._writer = SummaryWriter(str(folder.tensorboard), purge_step=step + 1 if step else None)

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Adds an epoch's record: nested mappings of numbers."""
        append_line(self._folder.epochs, record)
        for name, value in flatten(record).items():
            self._writer.add_scalar(name, value, record["step"])
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


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
