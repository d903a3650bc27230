"""Systems to compare or to look at: what runs, or files of predictions, predict for the examples of a data set.

# N units, K sums of the task's metric
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from elmo_tasks.config import Overrides
from elmo_tasks.config.data_folder import DEFAULT_DATA_FOLDER, data_folder
from elmo_tasks.data_readers.records import checked_examples
from elmo_tasks.data_readers.sources import Parsing, Source, path_list
from elmo_tasks.errors import DataError, ElmoTasksError, RunError, one_line
from elmo_tasks.files.installed_models import package_of
from elmo_tasks.files.json_files import parse_json
from elmo_tasks.files.paths import local_path, refuse_stream
from elmo_tasks.files.text import read_lines
from elmo_tasks.runs.archive import is_run
from elmo_tasks.runs.evaluate import UnknownLabels, evaluate_run
from elmo_tasks.runs.load import Run, load_run
from elmo_tasks.tasks import Reading, Tagging, Task
from elmo_tasks.text.tag_schemes import TagScheme, is_tag, spans_of_tags

logger = logging.getLogger(__name__)

_ARCHIVES = (".tar.gz", ".tgz")
_EXPECTED = "a JSON object with 'example' and 'prediction' on each line, as `evaluate --predictions` writes them"


@dataclasses.dataclass(frozen=True)
class Predictions:
    """What one model predicts for a data set.

    Arguments:
        name: the run or the file, for messages.
        examples: with the columns of the task.
        predictions: one for each example; only what the task's metric reads.
        places: of the examples, such as `file:line`.
        learned: the rows of examples that the model has learned from, if there are others.
        own_data: whether they are of a run's own data, as no other was named.
    """

    name: str
    task: Task
    examples: list[dict[str, Any]]
    predictions: list[dict[str, Any]]
    places: list[str]
    learned: frozenset[int] = frozenset()
    own_data: bool = False

    def without(self, rows: Set[int]) -> Predictions:
        """The predictions of all other examples."""
        kept = [row for row in range(len(self.examples)) if row not in rows]
        examples, predictions = ([each[row] for row in kept] for each in (self.examples, self.predictions))
        places = [self.places[row] for row in kept]
        return dataclasses.replace(self, examples=examples, predictions=predictions, places=places, learned=frozenset())

    def units(self) -> list[list[int]]:
        """The rows of the examples of each unit, see `Task.unit`."""
        units: dict[Hashable, list[int]] = {}
        for row, example in enumerate(self.examples):
            units.setdefault(self.task.unit(row, example), []).append(row)
        return list(units.values())

    def sums(self, units: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """What the metric sums up, for each unit: (N, K).

        Raises:
            DataError: a prediction does not fit its example; it is named.
        """
        metric = self.task.build_metric()
        metric.prepare(self.examples)
        sums = []
        for rows in units:
            metric.reset()
            for row in rows:
                try:
                    metric.update([self.predictions[row]], [self.examples[row]])
                except (ElmoTasksError, KeyError, TypeError, ValueError, AttributeError) as error:
                    problem = f"its prediction cannot be scored ({one_line(error)})"
                    raise DataError(f"{self.name}: example {row}", problem) from None
            sums.append(metric.sums())
        return np.array(sums, dtype=np.float64)

    def check_same_examples(self, other: Predictions) -> None:
        """Raises an ElmoTasksError unless another system was measured on the same examples, in the same order."""
        expected = f"expected the same examples in the same order as for {self.name}"
        if self.own_data and other.own_data:
            expected += "; as the last argument, name the data to evaluate both on"
        if type(self.task) is not type(other.task):
            mine, theirs = (type(each.task).__name__ for each in (self, other))
            raise ElmoTasksError(
                f"{other.name}: the task is {theirs}, that of {self.name} is {mine}; expected the same task"
            )
        if len(self.examples) != len(other.examples):
            raise ElmoTasksError(f"{other.name}: {len(other.examples)} examples, not {len(self.examples)}; {expected}")
        for row, (one, another) in enumerate(zip(self.examples, other.examples, strict=True)):
            content, others = _content(self.task, one), _content(other.task, another)
            if differing := [column for column in content if content[column] != others[column]]:
                raise ElmoTasksError(f"{other.name}: example {row} has other {' and '.join(differing)}; {expected}")


@dataclasses.dataclass(frozen=True)
class System:
    """One or more trained models that are compared as one system.

    Arguments:
        name: its path, or the last part of it.
        paths: of its runs, or of its file of predictions.
        seeds: of the runs, if they are those that `train --seeds` made; otherwise empty.
    """

    name: str
    paths: Sequence[Path]
    seeds: Sequence[int] = ()


def find_systems(paths: Sequence[str | Path]) -> list[System]:
    """The systems of paths, named as briefly as keeps them apart."""
    brief = [Path(path).resolve().name for path in paths]
    names = brief if len(set(brief)) == len(brief) else list(map(str, paths))
    return [_find_system(name, local_path(path)) for name, path in zip(names, paths, strict=True)]


def _find_system(name: str, path: Path) -> System:
    folders = {int(seed): each for each in path.glob("seed_*") if (seed := each.name[len("seed_") :]).isdecimal()}
    begun = sorted(seed for seed, folder in folders.items() if (folder / "config.json").is_file())
    if not begun or (path / "config.json").is_file():
        return System(name, [path])
    finished = [seed for seed in begun if (folders[seed] / "metrics.json").is_file()]
    seeds = finished or begun
    if len(seeds) < len(begun):
        left_out = ", ".join(str(folders[seed]) for seed in begun if seed not in seeds)
        logger.warning("%s: left out, since the training has not finished; --resume continues it", left_out)
    return System(name, [folders[seed] for seed in seeds], seeds)


def is_data_file(path: str | Path) -> bool:
    """Whether a path is a file and not an archive; raises a `DataError` if it is a pipe or a device."""
    path = Path(path)
    refuse_stream(path)
    return path.is_file() and not path.name.endswith(_ARCHIVES)


def stored_predictions(path: str | Path) -> Path | None:
    """The file of predictions that a path is, or that the folder of a run has, if its model is not there."""
    if is_data_file(path):
        return Path(path)
    file, model = Path(path, "predictions.jsonl"), Path(path, "model.safetensors")
    return file if file.is_file() and not model.is_file() else None


def is_system(path: str | Path) -> bool:
    """Whether a path is a run, a folder of seeds or a file of predictions, and not a data set."""
    path = Path(path)
    if not is_data_file(path):
        return is_run(path) or bool(_find_system("", path).seeds)
    try:
        _, line = next(read_lines(path), (0, ""))
        record = parse_json(line, path, _EXPECTED)
    except DataError:
        return False
    return isinstance(record, dict) and {"example", "prediction"} <= record.keys()


def read_predictions(
    path: Path,
    data: Source | None = None,
    overrides: Overrides = (),
    unknown_labels: UnknownLabels = "error",
) -> Predictions:
    """What a run predicts for a data set, or what a file of predictions holds, see `stored_predictions`.

    Arguments:
        data: for runs; by default, the test data of the run's config.
        overrides: `key.path=value`, in place of the values of the run's config.
        unknown_labels: for runs; see `evaluate`.

    Raises:
        DataError: a file does not follow its format.
        RunError: there is no trained run, or neither `data` nor test data in its config.
    """
    if file := stored_predictions(path):
        return _read_file(file)
    run = load_run(path, overrides=overrides)
    if data is None and run.config.test_data_path is None and run.folder and run.folder.cross_validation.is_file():
        return _read_file(run.folder.validation_predictions, run)
    own_data, data = data is None, _test_data(path, run) if data is None else data
    task, found = run.reader.task, dict[int, tuple[dict[str, Any], dict[str, Any]]]()
    field = task.predicted_field  # probabilities and attention can be large

    def keep(row: int, example: dict[str, Any], prediction: dict[str, Any]) -> None:
        found[row] = example, {field: prediction[field]}

    _, apart = evaluate_run(run, data, sink=keep, unknown_labels=unknown_labels)
    pairs = [found[row] for row in sorted(found)]
    places = list(run.reader.locations(data, (example for example, _ in pairs)))
    examples = [{column: example[column] for column in task.features} for example, _ in pairs]
    predictions = [prediction for _, prediction in pairs]
    return Predictions(str(path), task, examples, predictions, places, frozenset(apart), own_data)


def _test_data(path: Path, run: Run) -> Source:
    """The test data of a run's config; that of an installed model, and what is gone, is in the folder of the data."""
    data = path_list(run.config.test_data_path or ())
    if not data:
        raise RunError(
            f"{path}: its config has no test_data_path; as the last argument, name the data to evaluate it on"
        )
    installed = isinstance(run.path, Path) and package_of(run.path)
    found = []
    for each in data:
        given = Path(each)
        if (installed or not given.exists()) and given.is_relative_to(DEFAULT_DATA_FOLDER):
            each = str(data_folder() / given.relative_to(DEFAULT_DATA_FOLDER))
        found.append(each)
    return found


def _read_file(path: Path, run: Run | None = None) -> Predictions:
    """The predictions of a file; of a cross-validated run, with the places of its training data."""
    if not (records := list(_records(path))):
        raise DataError(path, f"no examples; expected {_EXPECTED}")
    given = [example for _, example, _ in records]
    task = _task_of(path, given)
    places = [f"{path}:{number}" for number, _, _ in records]
    if run:
        with contextlib.suppress(DataError, IndexError):  # the training data may no longer be there
            places = list(run.reader.locations(run.config.train_data_path, given))
    checked = checked_examples(given, task, str(path), Parsing())
    examples = [{column: example[column] for column in task.features} for example in checked]
    field, predictions = task.predicted_field, list[dict[str, Any]]()
    for row, (_, _, prediction) in enumerate(records):
        if field not in prediction:
            raise DataError(f"{path}: example {row}", f"there is no {field!r} in the prediction")
        predictions.append({field: prediction[field]})
    # What is predicted has the columns of what is gold.
    predicted = [{**example, **each} for example, each in zip(examples, predictions, strict=True)]
    list(checked_examples(predicted, task, f"{path}, predictions", Parsing()))
    return Predictions(str(path), task, examples, predictions, places, own_data=run is not None)


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """The number of each line, with its example and its prediction."""
    for number, line in read_lines(path):
        record = parse_json(line, path, _EXPECTED, number)
        example, prediction = map(record.get, ("example", "prediction")) if isinstance(record, dict) else (None, None)
        if not (isinstance(example, dict) and isinstance(prediction, dict)):
            raise DataError(path, f"no example with its prediction; expected {_EXPECTED}", number)
        yield number, example, prediction


def _task_of(path: Path, examples: Sequence[Mapping[str, Any]]) -> Task:
    """The task whose columns all examples have; of several, the one with the most columns."""
    common = set.intersection(*(set(example) for example in examples)) if examples else set()
    needed = {kind: kind.features.keys() - kind.optional for kind in _kinds(Task)}  # type: ignore[type-abstract]
    fitting = [kind for kind, columns in needed.items() if columns <= common]
    if not fitting:
        columns = f"the columns {', '.join(sorted(common))}" if common else "no columns in common"
        raise DataError(path, f"its examples have {columns}, which match no task")
    kind = max(fitting, key=lambda kind: len(needed[kind]))
    if issubclass(kind, Reading):
        return kind(no_answer=any(example["answers"] == [] for example in examples))
    if not issubclass(kind, Tagging):
        return kind()
    # Spans of different schemes are read by the same rule, so any scheme will do that has all the tags.
    given = [tags for example in examples if isinstance(tags := example["tags"], list)]
    tags = {tag for each in given for tag in each if isinstance(tag, str)}
    schemes = (scheme for scheme in get_args(TagScheme) if all(is_tag(tag, scheme) for tag in tags))
    return kind(tag_scheme=next(schemes, None))


def _kinds(base: type[Task]) -> Iterator[type[Task]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


def _content(task: Task, example: Mapping[str, Any]) -> dict[str, Any]:
    """What two systems must have in common; spans instead of tags, as each may have learned another scheme."""
    content = {column: example[column] for column in task.features.keys() - task.optional}
    if isinstance(task, Tagging) and task.tag_scheme:
        content["tags"] = spans_of_tags(content["tags"])
    return content
