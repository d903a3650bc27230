"""Imports run one way, down from floor to floor, and never in a circle. Records do not change."""

import ast
import functools
import graphlib
from collections.abc import Iterator
from pathlib import Path

import elmo_tasks

ROOT = Path(elmo_tasks.__file__).parent

# From the highest floor to the lowest. A room (a folder, or a module at the root) imports only what is below it.
LAYERS = (
    {"", "__main__"},  # the first is the package, whose functions are those of the api
    {"cli"},
    {"commands"},
    {"server"},
    {"api", "batches", "compat", "estimators", "studies", "teaching"},
    {"evaluation", "integrations", "migration", "pretraining"},
    {"runs"},
    {"predictors", "probes", "sample_data", "training"},
    {"data_readers", "models", "rendering"},
    {"modules", "tasks"},
    {"elmo", "metrics"},
    {"text"},
    {"config"},
    {"files"},
    {"errors", "progress"},
)


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


def layer(module: str) -> int:
    """Its number, or -1 if it is in none."""
    return next((number for number, parts in enumerate(LAYERS) if part(module) in parts), -1)


def test_every_module_is_in_a_layer() -> None:
    assert [module for module in MODULES if layer(module) < 0] == []


def test_a_room_imports_only_what_is_below_it() -> None:
    upwards = [
        f"{module} imports {imported}"
        for module, found in sorted(all_imports().items())
        for imported in sorted(found)
        if part(imported) not in ("", part(module)) and layer(imported) <= layer(module)
    ]
    assert upwards == []


def test_no_module_imports_itself_in_a_circle() -> None:
    graphlib.TopologicalSorter({name: set(imports(tree, for_types=False)) for name, tree in trees().items()}).prepare()


def test_models_know_no_files() -> None:
    assert not [
        name for name, found in all_imports().items() if part(name) == "models" and "files" in set(map(part, found))
    ]


def test_values_that_are_handed_on_do_not_change() -> None:
    """Dataclasses are frozen, but for those that are filled in steps, or that count them."""
    changing = {"Progress", "Schedule", "ConvertedEmbedder"}
    found = {
        node.name
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for decorator in node.decorator_list
        if "dataclass" in ast.unparse(decorator) and "frozen=True" not in ast.unparse(decorator)
    }
    assert found == changing
