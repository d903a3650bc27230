"""A config of all kinds of fields, with parts that only these tests know."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, ClassVar, Literal

import pydantic
import pytest
from pydantic import Field

from elmo_tasks.config import Config, Part, load_config
from elmo_tasks.errors import ConfigError


class Encoder(Part):
    """Kinds of encoders.

    More of them.
    """


class Recurrent(Encoder):
    """A recurrent encoder."""

    type: Literal["recurrent"] = "recurrent"
    hidden_size: Annotated[int, Field(ge=1, description="Units of a layer.")]
    cell: Literal["lstm", "gru"] = "lstm"


class Stacked(Encoder):
    type: Literal["stacked"] = "stacked"
    layers: tuple[Encoder, ...] = ()
    span: tuple[int, Path] = (1, Path("file"))

    @pydantic.model_validator(mode="after")
    def _check(self) -> Stacked:
        if len(self.layers) > 2:
            raise ValueError(f"{len(self.layers)} layers are too many")
        return self


class Schedule(Part):
    default_type: ClassVar[str | None] = "constant"


class Decaying(Schedule):
    """An abstract step: not an alternative itself."""

    decay: Annotated[float, Field(gt=0, le=1)] = 0.9


class Constant(Schedule):
    type: Literal["constant"] = "constant"
    rate: float = 0.1


class Linear(Decaying):
    type: Literal["linear"] = "linear"


class Model(Config):
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.5
    encoder: Encoder = Recurrent(hidden_size=4)
    heads: Annotated[dict[str, Encoder], Field(default_factory=dict)]
    activation: Annotated[str, Field(pattern="^[a-z]+$")] = "relu"


class Trainer(Config):
    epochs: Annotated[int, Field(ge=1)]
    patience: int | None = None
    schedule: Schedule = Constant()
    decaying: Decaying | None = None
    limit: int | Literal["none"] = "none"
    names: Annotated[tuple[str, ...], Field(min_length=1)] = ("a",)
    folder: Path | None = None


class Run(Config):
    """A whole run."""

    model: Model
    trainer: Trainer
    seed: int = 1


@pytest.fixture(scope="session")
def example() -> ModuleType:
    """This module, for its classes."""
    return sys.modules[__name__]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, so that messages hold short paths."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def load() -> Callable[..., Run]:
    """Loads the text of a config, `x.jsonnet` in the current folder."""

    def load(text: str, *overrides: str, **variables: str) -> Run:
        Path("x.jsonnet").write_text(text, encoding="utf-8")
        return load_config("x.jsonnet", Run, overrides, variables)

    return load


@pytest.fixture
def problems(load: Callable[..., Run]) -> Callable[..., list[str]]:
    """The problems of a text, one a line."""

    def problems(text: str, *overrides: str, **variables: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(text, *overrides, **variables)
        return str(caught.value).splitlines()

    return problems
