import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.errors import ConfigError

MINIMAL = "{ model: {}, trainer: { epochs: 1 } }"


def test_parts_tuples_and_defaults(load: Callable[..., Any], example: ModuleType) -> None:
    run = load("""{
        model: { encoder: { type: 'stacked', layers: [{ type: 'recurrent', hidden_size: 3 }], span: [2, 'b'] } },
        trainer: { epochs: 1e1, schedule: { rate: 1 }, folder: 'c' },
    }""")
    assert run.model.encoder == example.Stacked(layers=(example.Recurrent(hidden_size=3),), span=(2, Path("b")))
    assert run.trainer == example.Trainer(epochs=10, schedule=example.Constant(rate=1.0), folder=Path("c"))


def test_overrides_leave_given_values_as_they_are(example: ModuleType) -> None:
    given = {"model": {}, "trainer": {"epochs": 1, "folder": Path("c")}}
    found = [load_config(given, example.Run, overrides, {}) for overrides in (["trainer.epochs=7"], [])]
    assert [each.trainer.epochs for each in found] == [7, 1]
    assert [each.trainer.folder for each in found] == [Path("c")] * 2


def test_a_part_at_the_root(example: ModuleType) -> None:
    Path("part.json").write_text('{"type": "recurrent", "hidden_size": 2}')
    assert load_config("part.json", example.Encoder) == example.Recurrent(hidden_size=2)


def test_variables_of_the_command_line_win_over_the_environment_and_that_over_defaults(
    load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "{ model: { activation: std.extVar('NAME') }, trainer: { epochs: 1 } }"
    monkeypatch.setenv("NAME", "environment")
    assert load(text).model.activation == "environment"
    assert load(text, NAME="line").model.activation == "line"
    monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
    data = "{ model: {}, trainer: { epochs: 1, folder: std.extVar('ELMO_TASKS_DATA') } }"
    assert load(data).trainer.folder == Path("data")
    monkeypatch.setenv("ELMO_TASKS_DATA", "elsewhere")
    assert load(data).trainer.folder == Path("elsewhere")


def test_a_variable_that_is_not_text_does_no_harm(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD", os.fsdecode(b"\xff"))
    assert load(MINIMAL).seed == 1


def test_overrides(load: Callable[..., Any], example: ModuleType) -> None:
    text = "{ model: { encoder: { type: 'stacked', layers: [{ type: 'recurrent', hidden_size: 3 }] } }, seed: 5 }"
    run = load(
        text,
        "trainer.epochs=4",
        "trainer.folder=a=b",
        "trainer.patience=null",
        'trainer.names=["b", "c"]',
        "trainer.limit=NaN or so",
        "trainer.limit=none",
        "model.encoder.layers.0.hidden_size=7",
        "model.activation=tanh",
        "seed=6",
        "seed=7",
    )
    assert run.trainer == example.Trainer(epochs=4, folder=Path("a=b"), names=("b", "c"))
    assert run.model == example.Model(
        encoder=example.Stacked(layers=(example.Recurrent(hidden_size=7),)), activation="tanh"
    )
    assert run.seed == 7


def test_an_override_fills_what_is_null(load: Callable[..., Any], example: ModuleType) -> None:
    text = "{ model: {}, trainer: { epochs: 1, decaying: null } }"
    run = load(text, "trainer.decaying.type=linear", "trainer.decaying.decay=0.5")
    assert run.trainer.decaying == example.Linear(decay=0.5)


def test_values_in_place_of_the_file_s_come_before_overrides(load: Callable[..., Any], example: ModuleType) -> None:
    load(MINIMAL)
    replaced = {"model.dropout": 0.2, "trainer.folder": "a", "trainer.names": ["b"]}
    run = load_config("x.jsonnet", example.Run, ["trainer.names.0=c"], replaced=replaced)
    assert (run.model.dropout, run.trainer.folder, run.trainer.names) == (0.2, Path("a"), ("c",))
    Path("x.jsonnet").write_text("{ seed: 3 }")
    with pytest.raises(ConfigError, match=r"^x\.jsonnet: seed is 3, which has no keys"):
        load_config("x.jsonnet", example.Run, replaced={"seed.x": 1})


UNDEFINED = """local folder = std.extVar('NOWHERE');
{ model: {}, trainer: { epochs: 1, folder: folder + '/' + std.extVar('NAME') } }"""


def test_variables_of_a_value_that_is_replaced_are_not_needed(load: Callable[..., Any]) -> None:
    whole = 'trainer={"epochs": 2, "folder": "c"}'
    for overrides in (["trainer.folder=c"], [whole], ["trainer.folder=x", "trainer.folder=c"]):
        assert load(UNDEFINED, *overrides).trainer.folder == Path("c")
    others = "{ model: { activation: std.extVar('NAME') }, trainer: { epochs: 1, folder: std.extVar('NOWHERE') } }"
    assert load(others, "trainer.folder=c", NAME="tanh").model.activation == "tanh"


@pytest.mark.parametrize(
    ("text", "overrides", "name"),
    [
        (UNDEFINED, [], "NOWHERE"),
        (UNDEFINED, ["trainer.epochs=3"], "NOWHERE"),
        ("{ model: {}, trainer: { epochs: std.parseInt(std.extVar('COUNT')) } }", ["trainer.epochs=3"], "COUNT"),
        ("{ [std.extVar('KEY')]: {}, trainer: { epochs: 1, folder: 'c' } }", ["model={}"], "KEY"),
    ],
)
def test_variables_that_are_still_needed_are_named(
    text: str, overrides: list[str], name: str, load: Callable[..., Any]
) -> None:
    with pytest.raises(ConfigError, match=f"external variable '{name}' is undefined"):
        load(text, *overrides)
