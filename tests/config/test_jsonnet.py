"""What Jsonnet itself complains about."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.config.jsonnet import apply_overrides, dotted, evaluate, shown, write
from elmo_tasks.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ a: 1,\n b }", 'x.jsonnet:2: expected token OPERATOR but got "}"'),
        ("{\n a: nope }", "x.jsonnet:2: Unknown variable: nope"),
        ("{ a:\n (1 +\n nope) }", "x.jsonnet:3: Unknown variable: nope"),
        (
            "{ a:\n std.extVar('NOT_SET') }",
            "x.jsonnet:2: external variable 'NOT_SET' is undefined. Set it with --e",
        ),
        (
            "\nimport 'gone.libsonnet'",
            "x.jsonnet:2: cannot open the import 'gone.libsonnet'. Imports are looked up",
        ),
        ("{} + \n error 'too bad: a:1:2'", "x.jsonnet:2: too bad: a:1:2"),
        ("error 'two\\nlines'", "x.jsonnet:1: two lines"),
        ("{ a: std.parseInt('x') }", "x.jsonnet:1: "),
        ("[1]", "x.jsonnet: expected an object, got [1]"),
        ("function(x) x", "x.jsonnet: function parameter x not bound in call."),
    ],
)
def test_errors_of_jsonnet_are_one_line(problems: Callable[..., list[str]], text: str, expected: str) -> None:
    (line,) = problems(text)
    assert line.startswith(expected)


def test_a_variable_that_is_given_comes_before_the_environment(
    example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("x.jsonnet").write_text("{ a: std.extVar('ELMO_TASKS_DATA'), b: std.extVar('B') }")
    monkeypatch.setenv("ELMO_TASKS_DATA", "from the environment")
    monkeypatch.setenv("B", "b")
    assert evaluate("x.jsonnet") == {"a": "from the environment", "b": "b"}
    assert evaluate("x.jsonnet", {"ELMO_TASKS_DATA": "given"}) == {"a": "given", "b": "b"}


def test_an_error_in_an_import_names_that_file(problems: Callable[..., list[str]]) -> None:
    Path("inner").mkdir()
    Path("inner/y.libsonnet").write_text("{\n a: nope }")
    assert problems("import 'inner/../inner/y.libsonnet'") == ["inner/y.libsonnet:2: Unknown variable: nope"]


def test_byte_order_marks_are_skipped(example: ModuleType) -> None:
    mark = "\ufeff"
    Path("x.jsonnet").write_text(mark + "{ a: import 'y.libsonnet', b: (import 'z.json').b, c: importstr 'c.txt' }")
    Path("y.libsonnet").write_text(mark + "1")
    Path("z.json").write_text(mark + '{"b": 2}')
    Path("c.txt").write_text(mark + "c")
    assert evaluate("x.jsonnet") == {"a": 1, "b": 2, "c": "c"}
    assert evaluate("z.json") == {"b": 2}
    Path("bad.jsonnet").write_text(mark + "{\n a: nope }")
    with pytest.raises(ConfigError, match=r"bad\.jsonnet:2: Unknown variable: nope"):
        evaluate("bad.jsonnet")


@pytest.mark.parametrize(
    ("text", "overrides"),
    [
        ('{"model": {}, "trainer": {"epochs": 1, "schedule": {"rate": NaN}}}', []),
        ('{"model": {}, "trainer": {"epochs": 1, "schedule": {"rate": -Infinity}}}', []),
        ('{"model": {}, "trainer": {"epochs": 1}}', ["trainer.schedule.rate=1e400"]),
    ],
)
def test_numbers_are_finite(text: str, overrides: list[str], example: ModuleType) -> None:
    Path("x.json").write_text(text)
    with pytest.raises(ConfigError, match=r"trainer.schedule.rate: expected a number.*, got -?(NaN|Infinity)"):
        load_config("x.json", example.Run, overrides)


def test_no_file_and_no_text(example: ModuleType) -> None:
    with pytest.raises(ConfigError, match=r"^gone\.jsonnet: no such file, and no config of this name in the package"):
        load_config("gone.jsonnet", example.Run)
    Path("bytes.jsonnet").write_bytes(b"{ a: '\xff' }")
    with pytest.raises(ConfigError, match=r"^bytes\.jsonnet: the file is not UTF-8 text"):
        load_config("bytes.jsonnet", example.Run)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": std.extVar("SECRET")}',
        '{"a": importstr "private.txt"}',
        'local f(x) = f(x) + 1; {"a": f(1)}',
        '{"a": 1} // a comment',
    ],
)
def test_a_json_file_is_not_evaluated(text: str, example: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "the-secret")
    Path("private.txt").write_text("the-secret")
    Path("x.json").write_text(text)
    with pytest.raises(
        ConfigError, match=r"^x\.json:1: Invalid JSON: .* must have a name that ends in \.jsonnet"
    ) as caught:
        load_config("x.json", example.Run)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("table.csv", b"text,label\nYes.,1\n", "Name data in a config, or with --set train_data_path=FILE"),
        ("data.jsonl", b'{"text": "a"}\n{"text": "b"}\n', "Name data in a config"),
        ("eng.train", b"EU NNP I-NP I-ORG\n", "Name data in a config"),
        ("run.tar.gz", b"\x1f\x8b\x08", "The archive of a run is for `evaluate`, `predict` and `train --from`"),
        ("data.txt.gz", b"\x1f\x8b\x08", "Name data in a config"),
        ("weights.HDF5", b"\x89HDF\xff", "Weights belong to a run's folder"),
        ("config.yaml", b"model:\n  type: bcn\n", "Write it as Jsonnet"),
        ("list.txt", b"[1]", "Name data in a config"),
    ],
)
def test_what_is_not_a_config(name: str, content: bytes, advice: str, example: ModuleType) -> None:
    Path(name).write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(name, example.Run)
    expected = "a Jsonnet or JSON file, or a name that `elmo-tasks config --list` shows"
    assert str(caught.value).startswith(f"{name}: is not a config; expected {expected}. {advice}")


def test_a_config_may_have_any_name(example: ModuleType) -> None:
    Path("config.txt").write_text("{ a: 1 + 1 }")
    assert evaluate("config.txt") == {"a": 2}
    Path("config.mine").write_text("{ a: nope }")
    with pytest.raises(ConfigError, match=r"^config\.mine:1: Unknown variable: nope"):
        evaluate("config.mine")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 300 + "]" * 300, "recursion limit exceeded"),
        ('{"a":\n' + "1" * 5000 + "}", "number out of range"),
        ("[]", "Input should be an object; got .*; expected an object in JSON"),
        ("{} {}", "trailing characters at column 4"),
    ],
    ids=["depth", "digits", "list", "two objects"],
)
def test_errors_of_json_are_one_line(text: str, problem: str, example: ModuleType) -> None:
    Path("x.json").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"^x\.json(:\d)?: .*{problem}") as caught:
        load_config("x.json", example.Run)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{ a: " + "[" * 300 + "]" * 300 + "}", "recursion limit exceeded .*; expected at most 200 levels"),
        ("{ a: " + "[" * 1000 + "]" * 1000 + "}", "Exceeded maximum parse depth limit"),
        ("local f(x) = f(x) + 1; { a: f(1) }", "max stack frames exceeded"),
    ],
    ids=["depth", "more depth", "recursion"],
)
def test_jsonnet_that_is_too_deep(text: str, problem: str, problems: Callable[..., list[str]]) -> None:
    (line,) = problems(text)
    assert re.search(rf"^x\.jsonnet(:1)?: {problem}", line)


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("model.activation=" + "[" * 100_000, 'got "\\[\\[\\['),
        ("trainer.epochs=" + "1" * 5000, 'got "111'),
        (".".join("a" * 100_000) + "=1", r"--set a\.a\..*: 100000 keys; expected at most 200"),
    ],
    ids=["depth", "digits", "keys"],
)
def test_monstrous_overrides(override: str, problem: str, example: ModuleType) -> None:
    Path("x.json").write_text('{"model": {}, "trainer": {"epochs": 1}}')
    with pytest.raises(ConfigError, match=problem):
        load_config("x.json", example.Run, [override])


def test_an_index_with_thousands_of_digits(example: ModuleType) -> None:
    Path("x.json").write_text('{"model": {"encoder": {"type": "stacked", "layers": []}}, "trainer": {"epochs": 1}}')
    with pytest.raises(ConfigError, match="is a list of 0: there is no index 999"):
        load_config("x.json", example.Run, [f"model.encoder.layers.{'9' * 5000}=1"])


def test_every_override_that_fails_is_named_and_the_others_are_written() -> None:
    deep = ".".join("a" * 201)
    values: dict[str, Any] = {"list": [1, 2], "null": None}
    overrides = ["no value", f"{deep}=1", "list.2=3", "b.c=1", ".b=1", "list.1=x=y", "null.d=[1.5]", "b=true", "=1"]
    origins, problems = apply_overrides(values, overrides)
    assert values == {"list": [1, "x=y"], "null": {"d": [1.5]}, "b": True}
    assert origins == {("list", 1): "list.1", ("null",): "null.d", ("b",): "b"}
    assert problems == [
        "--set no value: expected KEY=VALUE, with a key such as model.dropout",
        f"--set {deep[:60]}...: 201 keys; expected at most 200",
        "--set list.2: list is a list of 2: there is no index 2 (the first is 0)",
        "--set .b=1: expected KEY=VALUE, with a key such as model.dropout",
        "--set =1: expected KEY=VALUE, with a key such as model.dropout",
    ]
    assert apply_overrides({}, [f"{deep[2:]}=1"])[1] == []  # two hundred keys


def test_what_a_write_makes_on_its_way_is_told() -> None:
    values: dict[str, Any] = {"a": {"b": [{"c": 1}]}}
    assert write(values, ["a", "b", "0", "c"], 2) == ("a", "b", 0, "c")
    assert write(values, ["a", "d", "e", "f"], 3) == ("a", "d")
    assert write(values, ["a", "d", "g"], 4) == ("a", "d", "g")
    assert values == {"a": {"b": [{"c": 2}], "d": {"e": {"f": 3}, "g": 4}}}


def test_long_values_are_cut_in_messages() -> None:
    assert shown("é" * 58) == f'"{"é" * 58}"'
    assert shown("é" * 59) == f'"{"é" * 56}...'
    assert shown([1, None], limit=6) == "[1,..."
    assert dotted(["a", 0, "b"]) == "a.0.b"
