"""Imports run one way, down from floor to floor, never in a circle; the core imports no extra. Records are fixed."""

import ast
import functools
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import elmo_tasks
from elmo_tasks.extras import EXTRAS

ROOT = Path(elmo_tasks.__file__).parent

# The core from the highest floor to the lowest. A room (a folder, or a module at the root) imports only what is below.
LAYERS = (
    {"", "__main__"},  # the first is the package, whose functions are those of the api
    {"api", "batches", "cli", "compat", "estimators"},
    {"commands"},
    {"runs"},
    {"predictors", "training"},
    {"data_readers", "models", "rendering"},
    {"tasks"},
    {"elmo", "metrics"},
    {"modules"},
    {"text"},
    {"config"},
    {"files"},
    {"hooks"},
    {"errors", "progress"},
)
# Names under which users import what extras have; the first is the package.
PUBLIC_NAMES = {"", "api", "batches", "compat", "estimators"}


def modules() -> dict[str, Path]:
    """Every module of the package, by its name."""
    names = {path: ".".join(path.relative_to(ROOT.parent).with_suffix("").parts) for path in ROOT.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


MODULES = modules()


def imports(node: ast.AST, *, for_types: bool) -> Iterator[str]:
    """The modules of the package that a syntax tree imports, also within functions.

    Arguments:
        for_types: also those that only a type checker imports.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            names = [alias.name for alias in child.names]
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "a relative import"
            inner = [f"{child.module}.{alias.name}" for alias in child.names]
            names = [name if name in MODULES else str(child.module) for name in inner]
        elif for_types or not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            names = list(imports(child, for_types=for_types))
        else:
            continue
        yield from (name for name in names if name in MODULES)


@functools.cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of every module. Not made on import, which all processes of the tests would wait for."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


@functools.cache
def all_imports() -> dict[str, set[str]]:
    """What every module imports, also for types."""
    return {name: set(imports(tree, for_types=True)) for name, tree in trees().items()}


def part(module: str) -> str:
    """The folder of a module, or the module itself if it is in none: `elmo`, `cli`."""
    return f"{module}.".split(".")[1]


def extra(module: str) -> str:
    """The extra that a module is in; empty for the core and for the table of the extras."""
    return module.split(".")[2] if part(module) == "extras" and module.count(".") > 1 else ""


def layer(module: str) -> int:
    """Its number, or -1 if it is in none."""
    return next((number for number, parts in enumerate(LAYERS) if part(module) in parts), -1)


def test_every_module_is_in_a_layer_or_an_extra() -> None:
    assert [module for module in MODULES if layer(module) < 0 and part(module) != "extras"] == []
    assert {extra(module) for module in MODULES} == {"", *EXTRAS}


def test_a_room_imports_only_what_is_below_it() -> None:
    upwards = [
        f"{module} imports {imported}"
        for module, found in sorted(all_imports().items())
        if not extra(module)
        for imported in sorted(found)
        if part(imported) not in ("", "extras", part(module)) and layer(imported) <= layer(module)
    ]
    assert upwards == []


def test_the_core_imports_no_extra() -> None:
    imported = [
        f"{module} imports {each}"
        for module, found in all_imports().items()
        for each in found
        if extra(each) and not extra(module) and part(module) not in PUBLIC_NAMES
    ]
    assert imported == []


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_imports_only_the_core_and_the_extras_that_it_needs(name: str) -> None:
    others = {extra(each) for module, found in all_imports().items() if extra(module) == name for each in found}
    assert others - {"", name} == set(EXTRAS[name].needs)


def test_no_module_imports_itself_in_a_circle() -> None:
    """Also not where an import is within a function."""
    graphlib.TopologicalSorter({name: set(imports(tree, for_types=False)) for name, tree in trees().items()}).prepare()


def test_the_core_also_imports_where_posix_is_not() -> None:
    """What Windows does not have is not imported when a module of the core is."""
    posix = {"fcntl", "grp", "pwd", "resource", "termios"}
    found = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and not extra(name)
        if posix & {getattr(node, "module", None), *(alias.name for alias in node.names)}
    ]
    assert found == []


def test_models_know_no_files() -> None:
    assert not [
        name for name, found in all_imports().items() if part(name) == "models" and "files" in set(map(part, found))
    ]


def test_records_are_fixed() -> None:
    """Except for those that something is collected in."""
    decorators = {
        node.name: ast.unparse(decorator)
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for decorator in node.decorator_list
    }
    changing = {name for name, text in decorators.items() if "dataclass" in text and "frozen=True" not in text}
    assert changing == {"ConvertedEmbedder", "LineWidths", "Parsing", "Progress", "Schedule"}
