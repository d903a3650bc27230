import re
from pathlib import Path
from types import ModuleType
from typing import ClassVar, Literal

import pydantic
import pytest

from elmo_tasks.config import Part, parse_part
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models import ModelConfig


def test_the_type_of_a_head_is_taken_before_it_is_imported() -> None:
    problem = r"Mine: the type 'crf_tagger' is already taken by elmo_tasks\.models\.crf_tagger\.CrfTaggerConfig"
    with pytest.raises(TypeError, match=problem):

        class Mine(ModelConfig):
            type: Literal["crf_tagger"] = "crf_tagger"

    assert ModelConfig.choices()["crf_tagger"].__name__ == "CrfTaggerConfig"


def test_a_type_name_is_taken_once(example: ModuleType) -> None:
    with pytest.raises(TypeError, match=r"Other: the type 'recurrent' is already taken by .*\.Recurrent"):

        class Other(example.Encoder):  # type: ignore[name-defined]
            type: Literal["recurrent"] = "recurrent"


def test_configs_are_frozen_and_build_from_python(example: ModuleType) -> None:
    model = example.Model(encoder=example.Stacked(layers=(example.Recurrent(hidden_size=1),)))
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        model.dropout = 0.1
    with pytest.raises(pydantic.ValidationError, match="dropuot"):
        example.Model(dropuot=0.1)


def test_a_part_is_named_on_the_command_line_or_given_as_json(example: ModuleType) -> None:
    assert parse_part(example.Schedule, "linear", "schedule", "{...}") == example.Linear()
    given = ' {"type": "stacked", "span": [2, "b"], "layers": [{"type": "recurrent", "hidden_size": 2}]}'
    expected = example.Stacked(span=(2, Path("b")), layers=(example.Recurrent(hidden_size=2),))
    assert parse_part(example.Encoder, given, "encoder", "{...}") == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("recurent", "the encoder 'recurent': unknown type"),
        ('{"type": ', """the encoder '{"type": ': its settings: '{"type": ' is not valid Jsonnet"""),
        ('{"type": "stacked", "span": [1, 2]}', ": span: 1: Input should be a valid string"),
        ('{"type": "stacked", "layers": [{"type": "recurrent"}]}', ": layers: 0: hidden_size: Field required"),
        ('{"type": "recurrent", "hidden_size": 0}', ": hidden_size: Input should be greater than or equal to 1"),
    ],
)
def test_what_is_wrong_with_a_part_on_the_command_line(text: str, problem: str, example: ModuleType) -> None:
    with pytest.raises(ElmoTasksError) as caught:
        parse_part(example.Encoder, text, "encoder", '{"type": "recurrent", "hidden_size": 3}')
    assert problem in str(caught.value)
    assert str(caught.value).endswith(
        '; expected one of recurrent, stacked, or a JSON object such as {"type": "recurrent", "hidden_size": 3}'
    )


def test_what_is_missing_in_a_part_on_the_command_line(example: ModuleType) -> None:
    problem = (
        """hidden_size: Field required; expected a JSON object such as {"type": "recurrent", "hidden_size": "..."}"""
    )
    with pytest.raises(ElmoTasksError, match=f"^the encoder 'recurrent': {re.escape(problem)}$"):
        parse_part(example.Encoder, "recurrent", "encoder", "{...}")


def test_a_default_of_an_extra_that_is_not_installed() -> None:
    class Lost(Part):
        default_type: ClassVar[str | None] = "lost"

    with pytest.raises(pydantic.ValidationError, match="lost: is in an extra, which is not installed here"):
        Lost.model_validate({})
    with pytest.raises(pydantic.ValidationError, match="unknown type"):
        Lost.model_validate({"type": "lost"})


def test_an_abstract_step_has_only_the_alternatives_below_it(example: ModuleType) -> None:
    assert list(example.Schedule.choices()) == ["constant", "linear"]
    assert list(example.Decaying.choices()) == ["linear"]


def test_a_part_within_python_values_takes_tuples_and_parts(example: ModuleType) -> None:
    part = example.Recurrent(hidden_size=2)
    given = {"encoder": {"type": "stacked", "layers": (part,)}, "heads": {"a": part}}
    model = example.Model.model_validate(given)
    assert model == example.Model(encoder=example.Stacked(layers=(part,)), heads={"a": part})
    with pytest.raises(pydantic.ValidationError, match="valid tuple"):
        example.Model.model_validate({"encoder": {"type": "stacked", "layers": [part]}})
