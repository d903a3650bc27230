"""Runs of the small experiment: they are trained, resumed, refused and killed."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from elmo_tasks.errors import ElmoTasksError, RunError
from elmo_tasks.runs.train import train

QUICK = ("trainer.num_epochs=2",)
INPUTS: list[dict[str, Any]] = [{"text": "Mary went to Boeing. She met Collins Group."}, {"tokens": ["Mary", "slept"]}]


@dataclasses.dataclass(frozen=True)
class SmallRun:
    """The folder of a run, and the config of its experiment."""

    path: Path
    config: Path | dict[str, Any]

    def train(self, *overrides: str, **options: Any) -> dict[str, Any]:
        """Trains for two epochs, if the overrides do not say how many."""
        return train(self.config, self.path, overrides=(*QUICK, *overrides), **options)

    def resume(self, *overrides: str, **options: Any) -> dict[str, Any]:
        return self.train(*overrides, resume=True, **options)

    def refuses(
        self, problem: str, *overrides: str, resume: bool = True, error: type[ElmoTasksError] = RunError, **options: Any
    ) -> None:
        """Training is an error of one line, and no file changes."""
        before = self.files()
        with pytest.raises(error, match=problem) as caught:
            self.train(*overrides, resume=resume, **options)
        assert "\n" not in str(caught.value)
        assert self.files() == before

    def files(self) -> dict[str, bytes]:
        """The contents of the files in the folder, by their names."""
        paths = self.path.iterdir() if self.path.is_dir() else ()
        return {path.name: path.read_bytes() for path in paths if path.is_file()}

    def json(self, name: str) -> Any:
        return json.loads((self.path / name).read_text(encoding="utf-8"))

    def records(self) -> list[dict[str, Any]]:
        """What was written after each epoch."""
        return [json.loads(line) for line in (self.path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]

    def write(self, name: str, value: Any) -> None:
        """Writes a text, or the JSON of another value."""
        text = value if isinstance(value, str) else json.dumps(value)
        (self.path / name).write_text(text, encoding="utf-8")

    def remove(self, *names: str) -> None:
        for name in names:
            (self.path / name).unlink()


@contextlib.contextmanager
def killed_at(owner: object, name: str) -> Iterator[None]:
    """A block that is killed where it calls this function."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            yield
