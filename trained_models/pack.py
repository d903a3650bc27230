"""Packs a finished run as a model of `elmo_tasks_models`: `python trained_models/pack.py RUN NAME --help`.

Weights get float16, except vectors and single numbers. They are float32 again once they are loaded.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from elmo_tasks import __version__
from elmo_tasks.config import load_config, to_json
from elmo_tasks.config.data_folder import DEFAULT_DATA_FOLDER, data_folder
from elmo_tasks.data_readers.sources import Source, path_list
from elmo_tasks.elmo.bilm_files import DEFAULT_BILM
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import ElmoTasksError, RunError
from elmo_tasks.files.atomic import atomic_folder
from elmo_tasks.files.installed_models import About, Score
from elmo_tasks.files.json_files import json_text, read_json, write_json
from elmo_tasks.files.tensor_files import read_tensors, write_tensors
from elmo_tasks.runs.archive import open_run, trained_files
from elmo_tasks.runs.experiment_config import ExperimentConfig, Results
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.load import load_run
from elmo_tasks.text.vocabulary import Vocabulary

MODELS = Path(__file__).resolve().parent / "elmo_tasks_models"
MOST_BYTES = 75_000_000  # of all models together
_FIXED = "embedder.words.fixed"  # the vectors of words that only the vectors' file has
_LARGEST = 65_504  # of float16
_ESCAPED = str.maketrans({"|": r"\|"})  # in a cell of a table
_ABSOLUTE = re.compile(r'"(/[^"\s]+|[A-Za-z]:\\[^"]*|~/[^"]*)"')  # a path of a machine


def pack(run: str | Path, target: Path, about: About, words: int | None = None) -> None:
    """Writes a model's folder, or replaces it, and loads it.

    Arguments:
        words: how many words are kept of those that only the vectors' file has, the most frequent ones; None for all.

    Raises:
        RunError: the run has not finished, or has another biLM than that of the package, or names files of a machine.
    """
    source = open_run(run)
    files = trained_files(source, self_contained=False)
    if source.bilm.reference.is_file() and source.bilm.read_reference().bilm != DEFAULT_BILM:
        raise RunError(f"{run}: expected a run with the biLM of the package, or without one")
    config = load_config(source.config, ExperimentConfig)
    with atomic_folder(target) as folder:
        packed = RunFolder(folder)
        for name, path in files.items():
            # One names the folder of another run, the other has a hash of each training text; the card names the data.
            if path not in (source.origin, source.learned):
                shutil.copyfile(path, folder / name)
        write_json(packed.config, _with_default_data(to_json(config)))
        _shorten(packed, words)
        for path in (packed.frozen, packed.model):
            write_tensors(path, {name: _halved(name, tensor) for name, tensor in read_tensors(path).items()})
        write_json(
            About.path(folder), about.model_copy(update={"task": config.model.task.name}).model_dump(mode="json")
        )
        (folder / "README.md").write_text(model_card(target.name, packed, config, about), encoding="utf-8")
        _check_paths(packed)
        load_run(folder)
        if target.exists():
            shutil.rmtree(target)


def model_card(name: str, run: RunFolder, config: ExperimentConfig, about: About) -> str:
    """The model card of a finished run; raises `RunError` if the run has not finished."""
    results = read_json(run.metrics, Results, "the metrics of a run")
    task, head = config.model.task, to_json(config.model)["type"]
    facts = {
        "task": f"{task.name} ({task.summary})",
        "model": f"`{head}`; all settings are in [config.json](config.json)",
        "biLM": BiLMOptions.load(run.bilm.files().paths["options.json"]).summary() if config.elmo() else "none",
        "training data": _names(config.train_data_path),
        "validation data": _names(config.validation_data_path) or "none",
        "test data": _names(config.test_data_path) or "none",
        "data sets": ", ".join(about.data),
    }
    if run.calibration.is_file():
        found = read_json(run.calibration, dict[str, float], "the calibration of a run")
        errors = [
            f"{found[f'error/{part}']:.2f} % on the {part} data, {found[f'uncalibrated_error/{part}']:.2f} % before"
            for part in ("validation", "test")
            if f"error/{part}" in found
        ]
        facts["expected calibration error"] = "; ".join(errors)
    parts = results.best.validation, results.test or {}
    scores = [[metric, *(_number(part.get(metric)) for part in parts)] for metric in {**parts[0], **parts[1]}]
    others = f"\nWith and without ELMo: {about.score}.\n" if about.score else ""
    return (
        f"# {name}\n\nA model, from elmo-tasks {__version__}. To use it:\n\n"
        f"```\nelmo-tasks predict {name} INPUT\nelmo-tasks evaluate {name} DATA\n```\n\n"
        f"{_table(['', ''], facts.items())}\n"
        f"## Scores\n\n{_table(['metric', 'validation', 'test'], scores)}{others}\n"
        f"## Licence\n\n{about.licence}\n"
    )


def _names(paths: Source | None) -> str:
    """The names of data files, without their folders."""
    return ", ".join(Path(path).name for path in path_list(paths) or ()) if paths else ""


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = (columns, ["---"] * len(columns), *rows)
    return "".join(f"| {' | '.join(cell.translate(_ESCAPED) for cell in cells)} |\n" for cells in lines)


def _with_default_data(value: Any) -> Any:
    """A config with the default folder of the data in place of this machine's."""
    if isinstance(value, dict):
        return {key: _with_default_data(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_default_data(each) for each in value]
    own = f"{data_folder()}/"
    return f"{DEFAULT_DATA_FOLDER}/{value.removeprefix(own)}" if str(value).startswith(own) else value


def _shorten(packed: RunFolder, words: int | None) -> None:
    """Leaves out words that only the vectors' file has, and their vectors."""
    vocabulary, frozen = Vocabulary.load(packed.vocabulary), read_tensors(packed.frozen)
    if words is not None and _FIXED in frozen:
        kept = vocabulary.words[: vocabulary.num_trained_words + words]
        vocabulary = dataclasses.replace(vocabulary, words=kept)
        write_tensors(packed.frozen, {**frozen, _FIXED: frozen[_FIXED][:words]})
    packed.vocabulary.write_text(
        f"{json_text(vocabulary.to_json())}\n", encoding="utf-8"
    )  # a word a line is a third more


def _halved(name: str, tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point() or tensor.dim() < 2:
        return tensor
    if tensor.numel() and not tensor.abs().max() <= _LARGEST:
        raise RunError(f"{name}: has numbers that float16 does not have")
    return tensor.half()


def _check_paths(packed: RunFolder) -> None:
    for path in packed.path.glob("*.json*"):
        found = None if path == packed.vocabulary else _ABSOLUTE.search(path.read_text(encoding="utf-8"))
        if found:
            raise RunError(f"{path.name}: names {found[1]} of this machine; expected paths below {data_folder()}")


def _say_sizes(run: RunFolder, packed: RunFolder) -> None:
    for path in sorted(packed.path.iterdir()):
        before = run.path / path.name
        was = f"{before.stat().st_size:>12,}" if before.is_file() else " " * 12
        print(f"{path.name:<24}{was}{path.stat().st_size:>12,}")
    total = sum(path.stat().st_size for path in packed.path.parent.glob("*/*"))
    print(f"all models together: {total:,} bytes of at most {MOST_BYTES:,}")
    if total > MOST_BYTES:
        raise ElmoTasksError("too large; --words keeps fewer words")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Packs a finished run as a model of elmo_tasks_models.")
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("name", metavar="NAME", help="the name of the model, such as ner")
    parser.add_argument("--data", action="append", required=True, metavar="NAME", help="a data set; can be repeated")
    parser.add_argument("--licence", required=True, metavar="TEXT", help="the licence of the data")
    parser.add_argument("--predicates", metavar="NAME", help="for semantic roles: the model that finds predicates")
    parser.add_argument("--without-elmo", metavar="NAME", help="the packed model that is the same without ELMo")
    parser.add_argument("--caution", metavar="TEXT", help="what to expect of it on other texts, in a sentence")
    about = "keep the vectors of N words in addition to those of the training data, the most frequent (default: all)"
    parser.add_argument("--words", type=int, metavar="N", help=about)
    scores = parser.add_argument_group("scores of several runs, one for each seed")
    scores.add_argument("--split", choices=("validation", "test"), default="test", help="(default: test)")
    scores.add_argument("--seeds", type=int, metavar="N")
    scores.add_argument("--elmo", type=float, metavar="MEAN", help="with ELMo")
    scores.add_argument("--baseline", type=float, metavar="MEAN", help="without ELMo")
    scores.add_argument("--p", type=float, metavar="P", help="that the difference is by chance")
    parser.add_argument("--models", type=Path, default=MODELS, metavar="DIR", help="the package (default: ours)")
    parser.add_argument("--force", action="store_true", help="replace the model of this name")
    return parser


def main(words: Sequence[str] | None = None) -> None:
    arguments = _parser().parse_args(words)
    run, target, score = open_run(arguments.run), arguments.models / arguments.name, None
    if target.exists() and not arguments.force:
        raise ElmoTasksError(f"{target}: exists; --force replaces it")
    if arguments.elmo is not None:
        values = {name: getattr(arguments, name) for name in ("split", "seeds", "elmo", "baseline", "p")}
        score = Score(metric=load_config(run.config, ExperimentConfig).trainer.metric_name, **values)
    facts = {name: getattr(arguments, name) for name in ("licence", "predicates", "without_elmo", "caution")}
    about = About(data=tuple(arguments.data), score=score, **facts)
    pack(run.path, target, about, arguments.words)
    _say_sizes(run, RunFolder(target))


if __name__ == "__main__":
    try:
        main()
    except ElmoTasksError as error:
        sys.exit(f"error: {error}")
