import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import Field

from elmo_tasks.config import Config, include_packages, load_config, own_code, own_packages
from elmo_tasks.config.packages import import_installed_parts
from elmo_tasks.errors import ConfigError
from elmo_tasks.files.cache import content_hash


@pytest.fixture(autouse=True)
def clean(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    import_installed_parts.cache_clear()
    yield
    import_installed_parts.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


PARTS = """
from typing import Literal
from elmo_tasks.config import Part
class MineKind(Part):
    pass
class MinePart(MineKind):
    type: Literal['mine'] = 'mine'
"""


class Holder(Config):
    parts: tuple[Any, ...] = ()
    named: dict[str, Any] = Field({})


def write(files: dict[str, str]) -> None:
    """Writes files in the current folder, by their names."""
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def test_registers_the_parts_of_all_modules(folder: Path) -> None:
    write({"mine_a/__init__.py": "", "mine_a/__main__.py": "raise SystemExit"})
    write({"mine_a/inner/__init__.py": "", "mine_a/inner/parts.py": PARTS})
    before = list(sys.path)
    include_packages([])
    assert sys.path == before
    for _ in range(2):
        include_packages(["mine_a"])
        assert sys.path == [str(folder), *before]
    kind = sys.modules["mine_a.inner.parts"].MineKind
    (folder / "mine.jsonnet").write_text("{ type: 'mine' }")
    assert type(load_config("mine.jsonnet", kind)).__name__ == "MinePart"


def test_a_config_s_own_packages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elmo_tasks.config.packages._included", set())
    write({"mine_one/parts.py": PARTS, "mine_two/parts.py": PARTS})
    include_packages(["mine_one.parts"])
    sys.path.insert(0, str(folder))
    one, two = (importlib.import_module(f"{name}.parts").MinePart() for name in ("mine_one", "mine_two"))
    monkeypatch.setattr(Holder, "__module__", "elmo_tasks.holder")
    assert own_packages(Holder(parts=(one, 1))) == {"mine_one.parts"}
    assert own_packages(Holder(named={"two": [two, one]})) == {"mine_one.parts", "mine_two"}
    assert own_packages(Holder()) == set()
    monkeypatch.setattr("elmo_tasks.config.packages._included", {"mine_one.inner", "mine_two"})
    monkeypatch.setattr(type(one), "__module__", "mine_one.inner.deep.parts")
    assert own_packages(Holder(parts=(one, two))) == {"mine_one.inner", "mine_two"}
    monkeypatch.setattr(type(one), "__module__", "mine_one.parts")
    monkeypatch.setattr("elmo_tasks.config.packages._included", {"mine"})
    assert own_packages(Holder(parts=(one,))) == {"mine_one"}  # `mine` only begins its name


def test_the_code_of_own_parts_is_that_of_all_modules_of_their_packages(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [folder / name for name in ("mine_one/parts.py", "mine_one/rest.py", "mine_two/parts.py")]
    write({str(file): f"{PARTS}# {number}" for number, file in enumerate(files)})
    sys.path.insert(0, str(folder))
    one, _, two = (importlib.import_module(f"{file.parent.name}.{file.stem}") for file in files)
    monkeypatch.setattr(Holder, "__module__", "elmo_tasks.holder")
    notebook = ModuleType("mine_one.notebook")
    notebook.__file__ = str(folder / "gone.py")
    monkeypatch.setitem(sys.modules, "mine_one.notebook", notebook)
    hashes = [*map(content_hash, files)]
    assert own_code(Holder(parts=(one.MinePart(),))) == hashes[:2]
    assert own_code(Holder(parts=(one.MinePart(),)), two.MinePart, Config) == hashes
    assert own_code(Holder(), Config) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("mine_gone", None, "--include-package mine_gone: cannot import mine_gone (ModuleNotFoundError: No module "),
        ("mine_bad", "1 / 0", "--include-package mine_bad: cannot import mine_bad (ZeroDivisionError: division by "),
        ("mine_wrong", "(", "--include-package mine_wrong: cannot import mine_wrong (SyntaxError: "),
    ],
)
def test_says_why_an_import_failed(folder: Path, name: str, text: str | None, expected: str) -> None:
    if text is not None:
        (folder / f"{name}.py").write_text(text)
    with pytest.raises(ConfigError) as caught:
        include_packages([name])
    assert str(caught.value).startswith(expected)


def test_a_failing_inner_module_is_named(folder: Path) -> None:
    write({"mine_deep/__init__.py": "", "mine_deep/inner/__init__.py": "import nothing_of_this_name"})
    with pytest.raises(ConfigError, match=r"cannot import mine_deep\.inner \(ModuleNotFoundError"):
        include_packages(["mine_deep"])


def install(folder: Path, module: str) -> None:
    """Makes the current folder one with an installed distribution whose entry point is `module`."""
    metadata = {
        "METADATA": "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n",
        "entry_points.txt": f"[elmo_tasks.parts]\nours = {module}\n",
    }
    write({f"mine-1.0.dist-info/{name}": text for name, text in metadata.items()})
    sys.path.insert(0, str(folder))


def test_parts_of_installed_packages_need_no_option(folder: Path, example: ModuleType) -> None:
    install(folder, "mine_installed")
    write({"mine_installed/__init__.py": "", "mine_installed/inner/__init__.py": PARTS})
    write({"encoder.jsonnet": "{ type: 'recurrent', hidden_size: 1 }"})
    load_config("encoder.jsonnet", example.Encoder)
    assert set(sys.modules["mine_installed.inner"].MineKind.alternatives) == {"mine"}
    import_installed_parts.cache_clear()
    del sys.modules["mine_installed.inner"]
    include_packages([])
    assert "mine_installed.inner" in sys.modules


def test_an_installed_package_that_fails_is_named(folder: Path) -> None:
    install(folder, "mine_missing")
    with pytest.raises(ConfigError) as caught:
        include_packages([])
    assert str(caught.value).startswith(
        "entry point ours of elmo_tasks.parts: cannot import mine_missing (ModuleNotFoundError: No module "
    )
