import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from elmo_tasks.config import Config, load_config
from elmo_tasks.errors import ConfigError

MINIMAL = "{ model: {}, trainer: { epochs: 1 } }"


OWN = "; if it is one of your own, add --include-package"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ model: {},\n trainer: {} }", "trainer.epochs: missing key. Expected a whole number of at least 1"),
        ("{ trainer: { epochs: 1 } }", "model: missing key. Expected an object"),
        ("{ model: { zzz: 1 } }", "model.zzz: unknown key. Known keys: dropout, encoder, heads, activation"),
        ("{ model: 3 }", "model: expected an object, got 3"),
        ("{ model: { encoder: 3 } }", "model.encoder: expected an object with a 'type' (recurrent, stacked), got 3"),
        ("{ model: { encoder: { tpye: 'a' } } }", "model.encoder.type: missing key. Did you mean 'type' by 'tpye'? "
         "Known types: recurrent, stacked"),
        ("{ model: { encoder: { type: ['a'] } } }",
         f'model.encoder.type: unknown type ["a"]. Known types: recurrent, stacked{OWN}'),
        ("{ model: { encoder: { type: 'recurent' } } }",
         "model.encoder.type: unknown type \"recurent\". Did you mean 'recurrent'? Known types: recurrent, stacked"),
        ("{ model: { activation: 'R' } }", 'model.activation: expected a string that matches ^[a-z]+$, got "R"'),
        ("{ trainer: { folder: 3 } }", "trainer.folder: expected a path or null, got 3"),
        ("{ trainer: { names: ['a', 3] } }", "trainer.names.1: expected a string, got 3"),
        ("{ trainer: { decaying: { type: 'constant' } } }",
         f'trainer.decaying.type: unknown type "constant". Known types: linear{OWN}'),
        ("{ trainer: { schedule: { type: 'linear', decay: 2 } } }",
         "trainer.schedule.decay: expected a number of more than 0 and at most 1, got 2"),
        ("{ model: { encoder: { type: 'stacked', span: [1] } } }",
         "model.encoder.span: expected a list of 2 entries: a whole number, a path, got [1]"),
        ("{ model: { encoder: { type: 'stacked', span: ['x', 'b'] } } }",
         'model.encoder.span.0: expected a whole number, got "x"'),
        ("{ model: { encoder: { type: 'stacked', layers: [{ type: 'stacked' } for _ in [1, 2, 3]] } } }",
         "model.encoder: 3 layers are too many"),
    ],
)  # fmt: skip
def test_wording_and_place(problems: Callable[..., list[str]], text: str, expected: str) -> None:
    assert f"x.jsonnet: {expected}" in problems(text)


def _refused(value: str) -> str:
    raise PydanticCustomError("own_error", "not '{value}'", {"value": value})


def _positive(value: int) -> int:
    if value <= 0:
        raise AssertionError(f"{value} is not positive")
    return value


class Empty(Config):
    pass


class Wordings(Config):
    name: Annotated[str, Field(min_length=1)] = "a"
    code: Annotated[str, Field(max_length=2)] = "a"
    pair: Annotated[tuple[int, ...], Field(min_length=2, max_length=2)] = (1, 2)
    pieces: Annotated[tuple[str, ...], Field(min_length=1, max_length=2)] = ("a",)
    size: Annotated[int, Field(multiple_of=8)] = 8
    share: Annotated[float, Field(gt=0, le=1)] = 1.0
    below: Annotated[float, Field(lt=1)] = 0.0
    flag: bool = False
    mode: Literal["one"] = "one"
    kind: Literal["one", "two"] = "one"
    sizes: Annotated[dict[str, int], Field(default_factory=dict)]
    empty: Empty = Empty()
    paths: str | tuple[str, ...] = "a"
    own: Annotated[str, AfterValidator(_refused)] = ""
    positive: Annotated[int, AfterValidator(_positive)] = 1


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("name", "", 'expected a string of at least 1 character, got ""'),
        ("code", "abc", 'expected a string of at most 2 characters, got "abc"'),
        ("pair", [1], "expected a list of 2 entries, each a whole number, got [1]"),
        ("pieces", [], "expected a list of at least 1 and at most 2 entries, each a string, got []"),
        ("size", 9, "expected a whole number that is a multiple of 8, got 9"),
        ("share", 0, "expected a number of more than 0 and at most 1, got 0"),
        ("below", 1, "expected a number of less than 1, got 1"),
        ("flag", "yes", 'expected true or false, got "yes"'),
        ("mode", "ome", """expected "one", got "ome". Did you mean 'one'?"""),
        ("kind", "tow", """expected one of "one", "two", got "tow". Did you mean 'two'?"""),
        ("sizes.a", 1.5, "expected a whole number, got 1.5"),
        ("empty.a", 1, "unknown key. Known keys: none"),
        ("paths", 3, "expected a string or a list, each a string, got 3"),
        ("paths", ["a", 3], "paths.1: expected a string, got 3"),
        ("own", "mine", "not 'mine'"),
        ("positive", -1, "-1 is not positive"),
    ],
)
def test_what_is_expected_in_words(key: str, value: object, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({}, Wordings, [f"{key}={json.dumps(value)}"])
    assert str(caught.value) == f"--set {key}: {problem}"


class Paths(Config):
    train_path: str
    test_path: str | None = None
    seed: int = 1


@pytest.mark.parametrize(
    ("text", "overrides", "hint"),
    [
        ("{ train_path: 'a', tran_path: 'b' }", [], "Did you mean 'test_path'?"),
        ("{ tran_path: 'b' }", [], "Did you mean 'train_path'?"),
        ("{ train_path: 'a', test_path: 'b', tran_path: 'c' }", [], "Known keys: train_path, test_path, seed"),
        # An override may well mean what the file gives.
        ("{ train_path: 'a', test_path: 'b' }", ["tran_path=c"], "Did you mean 'train_path'?"),
    ],
)
def test_a_suggestion_is_not_given_already(text: str, overrides: list[str], hint: str) -> None:
    Path("x.jsonnet").write_text(text)
    with pytest.raises(ConfigError, match=rf"tran_path: unknown key\. {re.escape(hint)}$"):
        load_config("x.jsonnet", Paths, overrides)


class First(Config):
    mode: Literal["one"]


class Second(Config):
    mode: Literal["two"]
    depth: int


class Either(Config):
    either: First | Second


def test_what_came_is_not_suggested() -> None:
    Path("x.json").write_text('{"either": {"mode": "one", "depth": 1}}')
    with pytest.raises(ConfigError) as caught:  # the first has no depth, and the mode is not that of the second
        load_config("x.json", Either)
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("a..b=1", "--set a..b=1: expected KEY=VALUE, with a key such as model.dropout"),
        ("seed.x=3", "--set seed.x: seed is 4, which has no keys; expected an object or a list there"),
        ("trainer.names.x=b", '--set trainer.names.x: trainer.names is a list: expected an index, got "x"'),
        ("optimzer.lr=1", "--set optimzer.lr: optimzer: unknown key. Known keys: model, trainer, seed"),
        ("trainer.names.0=1", "--set trainer.names.0: expected a string, got 1"),
        ("trainer={}", "--set trainer: trainer.epochs: missing key. Expected a whole number of at least 1"),
        # The override has made everything from the encoder on.
        ("model.encoder.cells.first=1", "--set model.encoder.cells.first: model.encoder.type: missing key."),
        ("trainer.schedule.rate=1e400", "--set trainer.schedule.rate: expected a number, got Infinity"),
        pytest.param("model.activation=" + "[" * 100_000, "--set model.activation: expected a string that", id="depth"),
        pytest.param("trainer.epochs=" + "1" * 5000, "--set trainer.epochs: expected a whole number of", id="digits"),
        pytest.param(f"trainer.names.{'9' * 5000}=1", "--set trainer.names.999", id="index"),
        (
            'model.encoder={"type": "recurrent", "hidden_size": 0}',
            "--set model.encoder: model.encoder.hidden_size: expected a whole number of at least 1, got 0",
        ),
    ],
)
def test_overrides_are_named(problems: Callable[..., list[str]], override: str, expected: str) -> None:
    text = "{ model: {}, trainer: { epochs: 1, names: ['a'] }, seed: 4 }"
    (line,) = problems(text, override)
    assert line.startswith(expected)


def test_overrides_that_fail_do_not_hide_other_problems(problems: Callable[..., list[str]]) -> None:
    lines = problems("{ model: {}, trainer: { epochs: 0 }, seed: 4 }", "seed.x=3")
    assert [line.split(": ")[0] for line in lines] == ["--set seed.x", "x.jsonnet"]


def test_a_misspelled_key_is_not_missing_too(problems: Callable[..., list[str]]) -> None:
    assert problems("{ modle: {}, trainer: { epoch: 1 } }") == [
        "x.jsonnet: trainer.epoch: unknown key. Did you mean 'epochs'?",
        "x.jsonnet: modle: unknown key. Did you mean 'model'?",
    ]


def test_wrong_values_come_before_missing_keys_and_what_fits_none_of_several_types(
    problems: Callable[..., list[str]],
) -> None:
    found = problems("{ model: { dropout: 2 }, trainer: { limit: 'x' } }")
    assert [line.split(": ")[1] for line in found] == ["model.dropout", "trainer.epochs", "trainer.limit"]
    assert found[2].endswith('expected a whole number or "none", got "x"')


def test_a_later_override_takes_the_blame(problems: Callable[..., list[str]]) -> None:
    lines = problems(MINIMAL, "trainer.epochs=0", 'trainer={"epochs": -1}')
    assert lines == ["--set trainer: trainer.epochs: expected a whole number of at least 1, got -1"]


def test_a_part_of_a_value_that_an_override_wrote_has_the_place_of_the_rest(
    problems: Callable[..., list[str]],
) -> None:
    text = "{ model: {},\n trainer: { names: ['a', 3], patience: 'soon' } }"
    assert [line.partition(" expected")[0] for line in problems(text, "trainer.epochs=1", "trainer.names.0=b")] == [
        "x.jsonnet: trainer.patience:",
        "x.jsonnet: trainer.names.1:",
    ]
