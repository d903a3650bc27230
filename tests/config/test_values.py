"""What Jsonnet itself complains about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from elmo_tasks.config import load_config
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
        ("[1]", "x.jsonnet: wanted an object, got [1]"),
        ("function(x) x", "x.jsonnet: function parameter x not bound in call."),
    ],
)
def test_errors_of_jsonnet_are_one_line(problems: Callable[..., list[str]], text: str, expected: str) -> None:
    (line,) = problems(text)
    assert line.startswith(expected)


def test_an_error_in_an_import_names_that_file(problems: Callable[..., list[str]]) -> None:
    Path("inner").mkdir()
    Path("inner/y.libsonnet").write_text("{\n a: nope }")
    assert problems("import 'inner/../inner/y.libsonnet'") == ["inner/y.libsonnet:2: Unknown variable: nope"]


def test_no_file_and_no_text(example: ModuleType) -> None:
    with pytest.raises(ConfigError, match=r"^gone\.jsonnet: no such file$"):
        load_config("gone.jsonnet", example.Run)
    Path("bytes.jsonnet").write_bytes(b"{ a: '\xff' }")
    with pytest.raises(ConfigError, match=r"^bytes\.jsonnet: the file is not UTF-8 text"):
        load_config("bytes.jsonnet", example.Run)
