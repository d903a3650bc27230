"""The configs in the package: they are found by name, listed and copied."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from elmo_tasks.errors import ConfigError, did_you_mean
from elmo_tasks.files.paths import local_path

_FOLDER = Path(__file__).resolve().parents[1] / "configs"
IMPORT_FOLDER = _FOLDER.parent.parent
"""Imports that are not found next to a config are looked up here: `import 'elmo_tasks/configs/ner_conll03.jsonnet'`."""

CPU_RULE = """\
cpu/NAME is NAME made smaller, with a shorter schedule, for one or two CPU cores. The taggers (ner_*, chunking_*, pos_*
and predicates_*) have no such version: they train in minutes on a CPU as they are. For the files of CoNLL-2012, set the
data paths of cpu/srl_ewt or cpu/coref_ontogum; for plain BiDAF, take a share of the data (dataset_reader.share).
small/TASK is for 40 to 5,000 examples of your own: docs/own_data.md shows it."""
"""Which configs have a version for CPUs."""

_IMPORT = re.compile(r"""\bimport\s*(["'])([^"']+)\1""")


def packaged_configs() -> dict[str, Path]:
    """The files of the configs by their names, such as `ner_conll03` and `cpu/baselines/sst5`."""
    return files_by_name(_FOLDER)


def files_by_name(folder: Path) -> dict[str, Path]:
    """The Jsonnet files in a folder by their names without the ending."""
    files = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.jsonnet")}
    return dict(sorted(files.items(), key=lambda item: (item[0].count("/"), item[0])))


def find_config(name: str | Path) -> Path:
    """The file of a config, which is named by its path or else by its name in the package.

    Raises:
        ConfigError: there is neither.
    """
    return find_file(name, packaged_configs(), "config", "elmo-tasks config --list")


def find_file(name: str | Path, known: Mapping[str, Path], kind: str, lister: str) -> Path:
    """As `find_config`, for files of another kind: `known` by name, and the command that lists them."""
    path = local_path(name)
    if path.is_file():
        return path
    if (plain := path.as_posix()) in known:
        return known[plain]
    if (config := path / "config.json").is_file():
        raise ConfigError(f"{name}: the folder of a run; its config is {config}")
    if path.is_dir():
        raise ConfigError(f"{name}: a folder; expected a Jsonnet or JSON file, or the name of a {kind} in the package")
    hint = did_you_mean(plain.removesuffix(".jsonnet").removeprefix("configs/").removeprefix("studies/"), list(known))
    raise ConfigError(f"{name}: no such file, and no {kind} of this name in the package.{hint} `{lister}` lists them")


def summary(path: Path) -> str:
    """The first sentence of the comment at the beginning of a config."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = [line.removeprefix("//").strip() for line in lines if line.startswith("//")]
    sentence = re.split(r"\.(?:\s+(?=[A-Z])|$)", " ".join(comment))[0]
    return re.sub(r"(?:\.\./)*(\w+)\.jsonnet", r"\1", sentence)  # other configs by their names


def portable_text(name: str | Path) -> str:
    """The text of a config in the package, with imports that work in any folder.

    Raises:
        ConfigError: there is no such config, or it is not in the package.
    """
    path = find_config(name).resolve()
    if not path.is_relative_to(_FOLDER):
        raise ConfigError(f"{name}: not a config of the package; copy the file yourself")

    def from_package(match: re.Match[str]) -> str:
        target = (path.parent / match[2]).resolve().relative_to(IMPORT_FOLDER)
        return f"import {match[1]}{target.as_posix()}{match[1]}"

    return _IMPORT.sub(from_package, path.read_text(encoding="utf-8"))
