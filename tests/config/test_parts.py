from __future__ import annotations

from types import ModuleType
from typing import Literal

import pydantic
import pytest


def test_a_type_name_is_taken_once(example: ModuleType) -> None:
    with pytest.raises(TypeError, match=r"Other: the type 'recurrent' is already taken by .*\.Recurrent"):

        class Other(example.Encoder):
            type: Literal["recurrent"] = "recurrent"


def test_configs_are_frozen_and_build_from_python(example: ModuleType) -> None:
    model = example.Model(encoder=example.Stacked(layers=(example.Recurrent(hidden_size=1),)))
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        model.dropout = 0.1  # type: ignore[misc]
    with pytest.raises(pydantic.ValidationError, match="dropuot"):
        example.Model(dropuot=0.1)  # type: ignore[call-arg]
