"""What Jsonnet itself complains about."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from elmo_tasks.config import load_config
from elmo_tasks.config.jsonnet import apply_overrides, dotted, evaluate, shown
from elmo_tasks.errors import ConfigError

ADVICE = "; expected a Jsonnet or JSON file, or a name that `elmo-tasks config --list` shows. Name data with --set"
NO_JSON = r"x.json:1: Invalid JSON: .* must have a name that ends in \.jsonnet"
# The name of a file, its content, and how the error begins, as a regular expression
FILES: list[tuple[str, str | bytes, str]] = [
    ("x.jsonnet", "{ a: 1,\n b }", r'x.jsonnet:2: expected token OPERATOR but got "}"'),
    ("x.jsonnet", "{\n a: nope }", "x.jsonnet:2: Unknown variable: nope"),
    ("x.jsonnet", "{ a:\n (1 +\n nope) }", "x.jsonnet:3: Unknown variable: nope"),
    ("x.jsonnet", "{ a:\n std.extVar('NOT_SET') }",
     "x.jsonnet:2: external variable 'NOT_SET' is undefined. Set it with --ext-var NOT_SET=VALUE or in the environme"),
    ("x.jsonnet", "\nimport 'gone.libsonnet'",
     "x.jsonnet:2: cannot open the import 'gone.libsonnet'. .*; those of the package are 'elmo_tasks/configs/NAME"),
    ("x.jsonnet", "{} + \n error 'too bad: a:1:2'", "x.jsonnet:2: too bad: a:1:2"),
    ("x.jsonnet", "error 'two\\nlines'", "x.jsonnet:1: two lines"),
    ("x.jsonnet", "{ a: std.parseInt('x') }", "x.jsonnet:1: "),
    ("x.jsonnet", "[1]", r"x.jsonnet: expected an object, got \[1\]"),
    ("x.jsonnet", "function(x) x", "x.jsonnet: function parameter x not bound in call."),
    ("x.jsonnet", "{ a: " + "[" * 300 + "]" * 300 + "}",
     r"x.jsonnet(:1)?: recursion limit exceeded .*; expected at most 200 levels"),
    ("x.jsonnet", "{ a: " + "[" * 1000 + "]" * 1000 + "}", r"x.jsonnet(:1)?: Exceeded maximum parse depth limit"),
    ("x.jsonnet", "local f(x) = f(x) + 1; { a: f(1) }", r"x.jsonnet(:1)?: max stack frames exceeded"),
    ("bytes.jsonnet", b"{ a: '\xff' }", r"bytes.jsonnet: the file is not UTF-8 text"),
    # JSON is not evaluated.
    ("x.json", '{"a": std.extVar("SECRET")}', NO_JSON),
    ("x.json", '{"a": importstr "private.txt"}', NO_JSON),
    ("x.json", 'local f(x) = f(x) + 1; {"a": f(1)}', NO_JSON),
    ("x.json", '{"a": 1} // a comment', NO_JSON),
    ("x.json", "[" * 300 + "]" * 300, r"x.json(:\d)?: .*recursion limit exceeded"),
    ("x.json", '{"a":\n' + "1" * 5000 + "}", r"x.json(:\d)?: .*number out of range"),
    ("x.json", '{"a": {"c": 0, "b": 1,\n "b": 2}}',
     r"x.json: an object has the key 'b' twice; expected an object in JSON"),
    ("x.json", "[]", r"x.json(:\d)?: .*Input should be an object; got .*; expected an object in JSON"),
    ("x.json", "{} {}", r"x.json(:\d)?: .*trailing characters at column 4"),
    # Files of other kinds.
    ("table.csv", "text,label\nYes.,1\n", f"table.csv:1: .*{ADVICE}"),
    ("data.jsonl", '{"text": "a"}\n{"text": "b"}\n', f"data.jsonl: JSON lines{ADVICE}"),
    ("run.tar.gz", b"\x1f\x8b\x08", f"run.tar.gz: the file is not UTF-8 text .*{ADVICE}"),
    ("list.txt", "[1]", rf"list.txt: expected an object, got \[1\]{ADVICE}"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "expected"), FILES, ids=range(len(FILES)))
def test_a_file_that_is_not_a_config_is_an_error_of_one_line(
    name: str, content: str | bytes, expected: str, example: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "the-secret")
    Path("private.txt").write_text("the-secret")
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError, match=f"^{expected}") as caught:
        load_config(name, example.Run)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


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


@pytest.mark.parametrize("number", ["NaN", "-Infinity"])
def test_numbers_are_finite(number: str, example: ModuleType) -> None:
    Path("x.json").write_text(f'{{"model": {{}}, "trainer": {{"epochs": 1, "schedule": {{"rate": {number}}}}}}}')
    with pytest.raises(
        ConfigError, match=rf"x\.json: {number} is not a finite number \(null stands for none\); expected an object"
    ):
        load_config("x.json", example.Run)


def test_every_override_that_fails_is_named_and_the_others_are_written() -> None:
    deep = ".".join("a" * 201)
    values: dict[str, Any] = {"list": [1, 2], "null": None}
    overrides = ["no value", f"{deep}=1", "list.2=3", "b.c=1", ".b=1", "list.1=x=y", "null.d=[1.5]", "b=true", "=1",
                 'b={"c": 1, "c": 2}']  # fmt: skip
    origins, problems = apply_overrides(values, overrides)
    assert values == {"list": [1, "x=y"], "null": {"d": [1.5]}, "b": True}
    assert origins == {("list", 1): "list.1", ("null",): "null.d", ("b",): "b"}
    assert problems == [
        "--set no value: expected KEY=VALUE, with a key such as model.dropout",
        f"--set {deep[:60]}...: 201 keys; expected at most 200",
        "--set list.2: list is a list of 2: there is no index 2 (the first is 0)",
        "--set .b=1: expected KEY=VALUE, with a key such as model.dropout",
        "--set =1: expected KEY=VALUE, with a key such as model.dropout",
        "--set b: an object has the key 'c' twice; expected JSON",
    ]
    assert apply_overrides({}, [f"{deep[2:]}=1"])[1] == []  # two hundred keys


def test_long_values_are_cut_in_messages() -> None:
    assert shown("é" * 58) == f'"{"é" * 58}"'
    assert shown("é" * 59) == f'"{"é" * 56}...'
    assert shown([1, None], limit=6) == "[1,..."
    assert dotted(["a", 0, "b"]) == "a.0.b"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{good: 1, bad: 3}", {"good": 1, "bad": 3}),
        ("['train.csv', 'd*.csv',]", ["train.csv", "d*.csv"]),
        (" { type: 'regex' } ", {"type": "regex"}),
        ("'in quotes'", "in quotes"),
        ('"JSON"', "JSON"),
        ("0.5", 0.5),
        ("null", None),
        ("NaN", "NaN"),
        ("lstm", "lstm"),
        ("data/my train.txt", "data/my train.txt"),
        ("[ab]*.txt", "[ab]*.txt"),
        ("1/2", "1/2"),
        ("it's", "it's"),
        ("std.txt", "std.txt"),
        ("import 'x'", "import 'x'"),
    ],
)
def test_the_value_of_an_override_is_jsonnet_or_a_plain_string(text: str, value: Any) -> None:
    values: dict[str, Any] = {}
    assert apply_overrides(values, [f"key={text}"])[1] == []
    assert values == {"key": value}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{good: 1", "expected a comma before next field"),
        ("[train, test]", "Unknown variable: train"),
        ("{a: 1, a: 2}", "duplicate field: a"),
    ],
)
def test_what_is_wrong_with_the_jsonnet_of_an_override(text: str, problem: str) -> None:
    (found,) = apply_overrides({}, [f"model.x={text}"])[1]
    assert found.startswith(f"--set model.x: '{text}' is not valid Jsonnet ({problem}")
    assert found.endswith("); write text in quotes, such as {label: 'name'}")
