"""Loading, checking, describing and documenting configs, with parts that only these tests know."""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import jsonschema
import pydantic
import pytest
from pydantic import Field

from elmo_tasks.config import Config, Part, config_schema, describe, include_packages, load_config, to_json
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


MINIMAL = "{ model: {}, trainer: { epochs: 1 } }"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, so that messages hold short paths."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(text: str, *overrides: str, **variables: str) -> Run:
    Path("x.jsonnet").write_text(text, encoding="utf-8")
    return load_config("x.jsonnet", Run, overrides, variables)


def problems(text: str, *overrides: str, **variables: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(text, *overrides, **variables)
    return str(caught.value).splitlines()


@pytest.mark.usefixtures("folder")
class TestLoading:
    def test_parts_tuples_and_defaults(self) -> None:
        run = load("""{
            model: { encoder: { type: 'stacked', layers: [{ type: 'recurrent', hidden_size: 3 }], span: [2, 'b'] } },
            trainer: { epochs: 1e1, schedule: { rate: 1 }, folder: 'c' },
        }""")
        assert run.model.encoder == Stacked(layers=(Recurrent(hidden_size=3),), span=(2, Path("b")))
        assert run.trainer == Trainer(epochs=10, schedule=Constant(rate=1.0), folder=Path("c"))

    def test_a_part_at_the_root(self) -> None:
        Path("part.json").write_text('{"type": "recurrent", "hidden_size": 2}')
        assert load_config("part.json", Encoder) == Recurrent(hidden_size=2)

    def test_variables_of_the_command_line_win_over_the_environment_and_that_over_defaults(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = "{ model: { activation: std.extVar('NAME') }, trainer: { epochs: 1 } }"
        monkeypatch.setenv("NAME", "environment")
        assert load(text).model.activation == "environment"
        assert load(text, NAME="line").model.activation == "line"
        monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
        data = "{ model: {}, trainer: { epochs: 1, folder: std.extVar('ELMO_TASKS_DATA') } }"
        assert load(data).trainer.folder == Path("../shared/data")
        monkeypatch.setenv("ELMO_TASKS_DATA", "elsewhere")
        assert load(data).trainer.folder == Path("elsewhere")

    def test_a_variable_that_is_not_text_does_no_harm(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ODD", os.fsdecode(b"\xff"))
        assert load(MINIMAL).seed == 1

    def test_overrides(self) -> None:
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
        assert run.trainer == Trainer(epochs=4, folder=Path("a=b"), names=("b", "c"))
        assert run.model == Model(encoder=Stacked(layers=(Recurrent(hidden_size=7),)), activation="tanh")
        assert run.seed == 7

    def test_an_override_fills_what_is_null(self) -> None:
        text = "{ model: {}, trainer: { epochs: 1, decaying: null } }"
        run = load(text, "trainer.decaying.type=linear", "trainer.decaying.decay=0.5")
        assert run.trainer.decaying == Linear(decay=0.5)


FAULTY = """// A config with many faults.
local encoder = {
  type: 'recurrent',
  hidden_sise: 300,
};
(import 'trainer.libsonnet') {
  model: {
    encoder: encoder,
    dropout: 'a lot',
    heads: {
      ner: { type: 'recurent' },
      /* in between */
      pos: { hidden_size: 3 },
    },
  },
  trainer+: {
    schedule: { rate: true },
    limit: 'nine',
  },
  sede: 3,
}
"""
FAULTY_TRAINER = """{
  trainer: {
    epochs: 0,
    names: [],
  },
}
"""


@pytest.mark.usefixtures("folder")
class TestProblems:
    def test_all_at_once_in_the_order_of_the_lines(self) -> None:
        Path("trainer.libsonnet").write_text(FAULTY_TRAINER)
        assert problems(FAULTY, "trainer.patience=soon", "model.activaton=relu") == [
            "x.jsonnet:4: model.encoder.hidden_sise: unknown key. Did you mean 'hidden_size'?",
            'x.jsonnet:9: model.dropout: wanted a number of at least 0 and less than 1, got "a lot"',
            "x.jsonnet:11: model.heads.ner.type: unknown type \"recurent\". Did you mean 'recurrent'? "
            "Known types: recurrent, stacked",
            "x.jsonnet:13: model.heads.pos.type: missing key. Known types: recurrent, stacked",
            "x.jsonnet:17: trainer.schedule.rate: wanted a number, got true",
            'x.jsonnet:18: trainer.limit: wanted a whole number or "none", got "nine". Did you mean \'none\'?',
            "x.jsonnet:20: sede: unknown key. Did you mean 'seed'?",
            "trainer.libsonnet:3: trainer.epochs: wanted a whole number of at least 1, got 0",
            "trainer.libsonnet:4: trainer.names: wanted a list of at least 1 entry, each a string, got []",
            "--set model.activaton: unknown key. Did you mean 'activation'?",
            '--set trainer.patience: wanted a whole number or null, got "soon"',
        ]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (
                "{ model: {},\n trainer: {} }",
                "x.jsonnet:2: trainer.epochs: missing key. Wanted a whole number of at le",
            ),
            ("{ trainer: { epochs: 1 } }", "x.jsonnet: model: missing key. Wanted an object"),
            ("{ modle: {}, trainer: { epochs: 1 } }", "x.jsonnet:1: modle: unknown key. Did you mean 'model'?"),
            (
                "{ model: { zzz: 1 } }",
                "x.jsonnet:1: model.zzz: unknown key. Known keys: dropout, encoder, heads, activ",
            ),
            ("{ model: 3 }", "x.jsonnet:1: model: wanted an object, got 3"),
            ("{ model: { encoder: 3 } }", "x.jsonnet:1: model.encoder: wanted an object with a 'type' (recurrent, sta"),
            (
                "{ model: { encoder: { tpye: 'a' } } }",
                "x.jsonnet:1: model.encoder.type: missing key. Did you mean 'typ",
            ),
            (
                "{ model: { encoder: { type: null } } }",
                "x.jsonnet:1: model.encoder.type: unknown type null. Known type",
            ),
            (
                "{ model: { activation: 'R' } }",
                "x.jsonnet:1: model.activation: wanted a string that matches ^[a-z]+$, ",
            ),
            (
                "{ trainer: { epochs: 1.5 } }",
                "x.jsonnet:1: trainer.epochs: wanted a whole number of at least 1, got 1.",
            ),
            ("{ trainer: { folder: 3 } }", "x.jsonnet:1: trainer.folder: wanted a path or null, got 3"),
            ("{ trainer: { names: ['a', 3] } }", "x.jsonnet:1: trainer.names.1: wanted a string, got 3"),
            (
                "{ trainer: { decaying: { type: 'constant' } } }",
                'x.jsonnet:1: trainer.decaying.type: unknown type "constant". Known types: linear',
            ),
            (
                "{ model: { encoder: { type: 'stacked', span: [1] } } }",
                "x.jsonnet:1: model.encoder.span: wanted a list of 2 entries: a whole number, a path, got [1]",
            ),
            (
                "{ model: { encoder: { type: 'stacked', layers: [{ type: 'stacked' } for _ in [1, 2, 3]] } } }",
                "x.jsonnet:1: model.encoder: 3 layers are too many",
            ),
            (
                "{ model: { encoder: { type: 'stacked', layers: [\n{ type: 'recurrent', hidden_size: 'x' }] } } }",
                'x.jsonnet:2: model.encoder.layers.0.hidden_size: wanted a whole number of at least 1, got "x"',
            ),
        ],
    )
    def test_wording_and_place(self, text: str, expected: str) -> None:
        assert [line for line in problems(text) if line.startswith(expected)], problems(text)

    def test_a_misspelled_key_is_not_reported_as_missing_too(self) -> None:
        text = "{ modle: {}, trainer: { epochs: 1 } }"
        assert problems(text) == ["x.jsonnet:1: modle: unknown key. Did you mean 'model'?"]

    @pytest.mark.parametrize(
        ("override", "expected"),
        [
            ("seed", "--set seed: wanted KEY=VALUE, with a key such as model.dropout"),
            ("a..b=1", "--set a..b=1: wanted KEY=VALUE, with a key such as model.dropout"),
            ("seed.x=3", "--set seed.x: seed is 4, which has no keys; wanted an object or a list there"),
            (
                "trainer.names.1=b",
                "--set trainer.names.1: trainer.names is a list of 1: there is no index 1 (the first ",
            ),
            ("trainer.names.x=b", '--set trainer.names.x: trainer.names is a list: wanted an index, got "x"'),
            ("optimzer.lr=1", "--set optimzer.lr: optimzer: unknown key. Known keys: model, trainer, seed"),
            ("trainer.epoch=2", "--set trainer.epoch: unknown key. Did you mean 'epochs'?"),
            ("trainer.names.0=1", "--set trainer.names.0: wanted a string, got 1"),
            ("trainer={}", "--set trainer: trainer.epochs: missing key. Wanted a whole number of at least 1"),
            (
                'model.encoder={"type": "recurrent", "hidden_size": 0}',
                "--set model.encoder: model.encoder.hidden_size: wanted a whole number of at least 1, got 0",
            ),
        ],
    )
    def test_overrides_are_named(self, override: str, expected: str) -> None:
        text = "{ model: {}, trainer: { epochs: 1, names: ['a'] }, seed: 4 }"
        (line,) = problems(text, override)
        assert line.startswith(expected)

    def test_overrides_that_fail_do_not_hide_other_problems(self) -> None:
        lines = problems("{ model: {}, trainer: { epochs: 0 }, seed: 4 }", "seed.x=3")
        assert [line.split(": ")[0] for line in lines] == ["--set seed.x", "x.jsonnet:1"]

    def test_a_later_override_takes_the_blame(self) -> None:
        lines = problems(MINIMAL, "trainer.epochs=0", 'trainer={"epochs": -1}')
        assert lines == ["--set trainer: trainer.epochs: wanted a whole number of at least 1, got -1"]

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
    def test_errors_of_jsonnet_are_one_line(self, text: str, expected: str) -> None:
        (line,) = problems(text)
        assert line.startswith(expected)

    def test_an_error_in_an_import_names_that_file(self) -> None:
        Path("inner").mkdir()
        Path("inner/y.libsonnet").write_text("{\n a: nope }")
        assert problems("import 'inner/../inner/y.libsonnet'") == ["inner/y.libsonnet:2: Unknown variable: nope"]

    def test_no_file_and_no_text(self) -> None:
        with pytest.raises(ConfigError, match=r"^gone\.jsonnet: no such file$"):
            load_config("gone.jsonnet", Run)
        Path("bytes.jsonnet").write_bytes(b"{ a: '\xff' }")
        with pytest.raises(ConfigError, match=r"^bytes\.jsonnet: the file is not UTF-8 text"):
            load_config("bytes.jsonnet", Run)


WHOLE = """{
  model: {
    encoder: { type: 'stacked', layers: [{ type: 'recurrent', hidden_size: 3 }] },
    heads: { 'a b': { type: 'recurrent', hidden_size: 2 } },
  },
  trainer: { epochs: 2, decaying: { type: 'linear' }, names: ['"quoted"', 'é'] },
}
"""


@pytest.mark.usefixtures("folder")
class TestWriting:
    def test_json_holds_everything_and_loads_again(self) -> None:
        run = load(WHOLE)
        values = to_json(run)
        assert values["model"]["encoder"]["layers"] == [{"type": "recurrent", "hidden_size": 3, "cell": "lstm"}]
        assert values["trainer"]["decaying"] == {"type": "linear", "decay": 0.9}
        assert values["trainer"]["schedule"] == {"type": "constant", "rate": 0.1}
        Path("config.json").write_text(json.dumps(values))
        assert load_config("config.json", Run) == run

    def test_description_marks_defaults_and_loads_again(self) -> None:
        run = load(WHOLE)
        text = describe(run)
        Path("described.jsonnet").write_text(text, encoding="utf-8")
        assert load_config("described.jsonnet", Run) == run
        assert text.startswith(
            """{
  model: {
    dropout: 0.5,  // default
    encoder: {
      type: "stacked",
      layers: [
        {
          type: "recurrent",
          hidden_size: 3,
          cell: "lstm",  // default
        },
      ],
      span: [1, "file"],  // default
    },
    heads: {
      "a b": {
"""
        )
        assert '    names: ["\\"quoted\\"", "é"],\n' in text
        assert text.endswith("  seed: 1,  // default\n}\n")

    def test_what_lies_in_a_default_is_a_default(self) -> None:
        lines = describe(load(MINIMAL)).splitlines()
        assert "      hidden_size: 4,  // default" in lines
        assert "    heads: {},  // default" in lines
        assert [line for line in lines if "// default" not in line and line.strip(" {}[],")] == [
            "  model: {",
            "    encoder: {",
            "  trainer: {",
            "    epochs: 1,",
            "    schedule: {",
        ]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    return config_schema(Run)


class TestSchema:
    def test_is_a_schema_and_tells_good_from_bad(self, schema: dict[str, Any]) -> None:
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        good = {
            "model": {"encoder": {"type": "stacked", "layers": [{"type": "recurrent", "hidden_size": 3}]}},
            "trainer": {"epochs": 1, "schedule": {"rate": 1}, "decaying": {"type": "linear"}},
        }
        validator.validate(good)
        validator.validate(to_json(Run.model_validate_json(json.dumps(good))))

        def broken(change: dict[str, Any], *path: str | int) -> bool:
            bad: Any = copy.deepcopy(good)
            holder = bad
            for step in path:
                holder = holder[step]
            holder.update(change)
            return not validator.is_valid(bad)

        assert broken({"surprise": 1})
        assert broken({"epochs": 0}, "trainer")
        assert broken({"hidden_size": 0}, "model", "encoder", "layers", 0)
        assert broken({"type": "unheard"}, "model", "encoder")
        assert broken({"type": "constant"}, "trainer", "decaying")
        assert broken({"encoder": {"hidden_size": 3}}, "model")  # this kind has no default type
        assert not broken({"dropout": 0.9}, "model")

    def test_descriptions_defaults_and_bounds(self, schema: dict[str, Any]) -> None:
        definitions = schema["$defs"]
        assert definitions["Recurrent"]["properties"]["hidden_size"] == {
            "description": "Units of a layer.",
            "minimum": 1,
            "type": "integer",
        }
        assert definitions["Recurrent"]["properties"]["type"]["const"] == "recurrent"
        assert definitions["Recurrent"]["additionalProperties"] is False
        encoder = definitions["Model"]["properties"]["encoder"]
        assert encoder["default"] == {"type": "recurrent", "hidden_size": 4, "cell": "lstm"}
        kind = definitions[encoder["$ref"].removeprefix("#/$defs/")]
        assert kind["description"] == "Kinds of encoders.\n\nMore of them."
        assert [choice["$ref"] for choice in kind["oneOf"]] == ["#/$defs/Recurrent", "#/$defs/Stacked"]

    def test_holds_nothing_else(self, schema: dict[str, Any]) -> None:
        class Unrelated(Part):
            pass

        class Alone(Unrelated):
            type: Literal["alone"] = "alone"

        names = set(config_schema(Run)["$defs"])
        assert names == set(schema["$defs"])
        assert "Alone" not in names
        assert Alone().type == "alone"

    def test_a_part_at_the_root(self) -> None:
        validator = jsonschema.Draft202012Validator(config_schema(Encoder))
        assert validator.is_valid({"type": "recurrent", "hidden_size": 1})
        assert not validator.is_valid({"type": "recurrent"})


class TestParts:
    def test_a_type_name_is_taken_once(self) -> None:
        with pytest.raises(TypeError, match=r"Other: the type 'recurrent' is already taken by .*\.Recurrent"):

            class Other(Encoder):
                type: Literal["recurrent"] = "recurrent"

    def test_configs_are_frozen_and_build_from_python(self) -> None:
        model = Model(encoder=Stacked(layers=(Recurrent(hidden_size=1),)))
        with pytest.raises(pydantic.ValidationError, match="frozen"):
            model.dropout = 0.1  # type: ignore[misc]
        with pytest.raises(pydantic.ValidationError, match="dropuot"):
            Model(dropuot=0.1)  # type: ignore[call-arg]


class TestIncludedPackages:
    @pytest.fixture(autouse=True)
    def clean(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setattr(sys, "path", list(sys.path))
        before = set(sys.modules)
        yield
        for name in set(sys.modules) - before:
            del sys.modules[name]

    def test_registers_the_parts_of_all_modules(self, folder: Path) -> None:
        (folder / "mine_a" / "inner").mkdir(parents=True)
        (folder / "mine_a" / "__init__.py").touch()
        (folder / "mine_a" / "__main__.py").write_text("raise SystemExit")
        (folder / "mine_a" / "inner" / "__init__.py").touch()
        (folder / "mine_a" / "inner" / "parts.py").write_text(
            "from typing import Literal\n"
            "from elmo_tasks.config import Part\n"
            "class MineKind(Part):\n    pass\n"
            "class MinePart(MineKind):\n    type: Literal['mine'] = 'mine'\n"
        )
        include_packages(["mine_a"])
        kind = sys.modules["mine_a.inner.parts"].MineKind
        (folder / "mine.jsonnet").write_text("{ type: 'mine' }")
        assert type(load_config("mine.jsonnet", kind)).__name__ == "MinePart"

    @pytest.mark.parametrize(
        ("name", "text", "expected"),
        [
            (
                "mine_gone",
                None,
                "--include-package mine_gone: cannot import mine_gone (ModuleNotFoundError: No module ",
            ),
            (
                "mine_bad",
                "1 / 0",
                "--include-package mine_bad: cannot import mine_bad (ZeroDivisionError: division by ",
            ),
            ("mine_wrong", "(", "--include-package mine_wrong: cannot import mine_wrong (SyntaxError: "),
        ],
    )
    def test_says_why_an_import_failed(self, folder: Path, name: str, text: str | None, expected: str) -> None:
        if text is not None:
            (folder / f"{name}.py").write_text(text)
        with pytest.raises(ConfigError) as caught:
            include_packages([name])
        assert str(caught.value).startswith(expected)

    def test_a_failing_inner_module_is_named(self, folder: Path) -> None:
        (folder / "mine_deep" / "inner").mkdir(parents=True)
        (folder / "mine_deep" / "__init__.py").touch()
        (folder / "mine_deep" / "inner" / "__init__.py").write_text("import nothing_of_this_name")
        with pytest.raises(ConfigError, match=r"cannot import mine_deep\.inner \(ModuleNotFoundError"):
            include_packages(["mine_deep"])
