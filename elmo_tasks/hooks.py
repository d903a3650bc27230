"""Where other code hooks into the core: the extras of this project, and users' own packages.

A *place* is something that the core looks up by name, such as the formats of `predict --output-format`. A package adds
to a place by registering an object under a name, `register("output_format", "brat", ...)`. The extras do the same by a
table, `elmo_tasks/extras/__init__.py`, so that an extra is only imported when one of its names is asked for. The folder
of an extra can be deleted: what it adds is then not there, and so is each extra that needs it.

Places, and what is registered there:

training_check: before a training, `(config, data, training_loader, num_steps) -> iterable of str`, warnings to log;
    `num_steps` is None for a run that starts from another.
callback: what every training calls, `(accelerator, folder of the run) -> training.callbacks.Callback`.
result_check: after a training, `(scores, task, trainer_config, training_loader, validation_data, num_steps) -> None`,
    which logs what the scores of the best epoch mean.
first_weights: the weights that a new model starts with, from a "run": `(model, vocabulary, shapes_of, embedder config,
    path of the run) -> the contents of origin.json`; `shapes_of(vocabulary)` gives the shapes of the model's tensors.
several_runs: how several runs are used as one, `(paths, overrides) -> Run`; the core asks for "mean".
repeated_training: a training that is repeated. "seeds": `(config, folder, seeds, **arguments of runs.train.train) ->
    the summary`, which "print_seeds" prints. "folds": `(config, folder, number of folds, **the same) -> the metrics of
    the run`, about which "print_folds", `(folder)`, prints all.

bilm_format: a `elmo.bilm_files.BiLMFormat`, another form in which biLMs are published; zip archives come first.
published_file: `(address) -> (the publisher's address, its SHA-256 or None)` of a published file, which needs no hash;
    None for other addresses.
bilm_names: for `BiLM.load_state_dict`, `(tensors, prefix) -> None`, which renames in a state dict the tensors
    that another project has named.
token_encoder: a subclass of `elmo.token_encoder.TokenEncoder`, for biLMs that look tokens up: "lexicon".
text_check: `(files of a biLM) -> an object with see(sentences)`, which sees what the biLM reads, and may warn.
frozen_model: a subclass of `runs.frozen_models.FrozenModel`, whose files a run refers to.

missing_data: what can be done about a data file that is not there, `(path) -> a sentence`, or an empty text.
input_format, output_format: what `predict --format` and `--output-format` name, a `commands.predict.InputFormat` or
    `OutputFormat`.
result_file: by the ending of a file, how `predict --output` writes results to it, `(path, reader or None, source) ->
    context manager`, which gives a function that takes a result.
result_folder: how `predict --output DIR/` writes many files; the core asks for "parquet", an object with functions
    `add_options(parser)`, `is_asked_for(arguments)` and `predict(request)`.
result_change: what an option adds to results, `(predictor) -> function from result to result`; the core asks for
    "resolve".
page: a page of results, `(path, title, note) -> context manager`, which gives a function that takes a drawing; `note()`
    says at the end why there are no more. The core asks for "html".
config_kind: by the key that only such a config has, the class of configs that are not of a task.
explanation: what each token counts for predictions, `(predictor, examples, predictions) -> a dict for each example`,
    whose items are added to the result; the core asks for "saliency".
DatasetReaderConfig, ModelConfig, OptimizerConfig and every other kind of `config.Part`: its subclass with a `"type"`.
foreign_key: what a key or value of another project's configs is called here, from its path, its value and the object
    that it is in; None if it is not one of theirs, or the same.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from elmo_tasks.errors import ElmoTasksError

RESUMED = "the same command with --resume, and without --force, goes on"
GOES_ON = "the same command goes on"
"""What a command that a signal has ended says of its output."""

_TABLE = "elmo_tasks.extras"
_registered: dict[str, dict[str, Any]] = {}
_announced: dict[str, dict[str, str]] = {}


class CommandRow(NamedTuple):
    """A command, of the core or of an extra.

    Attributes:
        group: the title that it is listed under.
        summary: what it does, shown in the list of commands.
        example: a command line that calls it, shown in its help.
        module: the one that has `add_NAME` and `run_NAME`, in `elmo_tasks.commands` or in the extra's folder.
        goes_on: if a signal stops the command, the message says that this continues from what was written; empty if
            nothing can.
    """

    group: str
    summary: str
    example: str
    module: str = "commands"
    goes_on: str = ""


class Extra(NamedTuple):
    """What an extra is, and adds.

    Attributes:
        summary: in a line.
        commands: by name.
        adds: by place and name, what is registered there, as "module:attribute" in the extra's folder. The place of
            a part (a `"type"` of configs) is the name of its kind.
        needs: other extras that it imports.
    """

    summary: str
    commands: Mapping[str, CommandRow] = {}
    adds: Mapping[str, Mapping[str, str]] = {}
    needs: tuple[str, ...] = ()


@functools.cache
def extras() -> dict[str, Extra]:
    """The extras that are installed, with all that they need. Imports none of them."""
    if importlib.util.find_spec(_TABLE) is None:
        return {}
    table: Mapping[str, Extra] = importlib.import_module(_TABLE).EXTRAS
    there = {name for name in table if importlib.util.find_spec(f"{_TABLE}.{name}")}
    while missing := {name for name in there if not there.issuperset(table[name].needs)}:
        there -= missing
    return {name: extra for name, extra in table.items() if name in there}


def register(place: str, name: str, value: Any) -> None:
    """Adds an object to a place. It takes the place of an earlier one with the same name."""
    _registered.setdefault(place, {})[name] = value


def announce(place: str, references: Mapping[str, str]) -> None:
    """Adds objects to a place, by name as "module:attribute", that are imported when they are asked for."""
    _announced.setdefault(place, {}).update(references)


def names(place: str) -> list[str]:
    """The names at a place, those of extras last, whatever has been imported. Imports nothing."""
    on_demand = dict.fromkeys([*_announced.get(place, {}), *_added(place)])
    return [*(name for name in _registered.get(place, {}) if name not in on_demand), *on_demand]


def find(place: str, name: str) -> Any:
    """What is registered at a place under a name, imported if need be; or None."""
    known = _registered.get(place, {})
    if name not in known and (reference := home(place, name)):
        module, _, attribute = reference.partition(":")
        value = getattr(importlib.import_module(module), attribute)
        _registered.setdefault(place, {}).setdefault(name, value)
    return _registered.get(place, {}).get(name)


def required(place: str, name: str, what: str = "") -> Any:
    """What is registered at a place under a name.

    Arguments:
        what: what is asked for, in the message; by default the name.

    Raises:
        ElmoTasksError: there is nothing; the extra that has it is named.
    """
    if (value := find(place, name)) is None:
        table = importlib.import_module(_TABLE).EXTRAS if importlib.util.find_spec(_TABLE) else {}
        owner = next((f"the extra {extra!r}" for extra, row in table.items() if name in row.adds.get(place, {})), "")
        raise ElmoTasksError(f"{what or name}: is in {owner or 'an extra'}, which is not installed here")
    return value


@contextlib.contextmanager
def importing_extra() -> Iterator[None]:
    """Within the block, the import of an extra that is not there is an `ElmoTasksError` that says so."""
    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(_TABLE):
            raise
        name = str(error.name).removeprefix(_TABLE).strip(".").partition(".")[0]
        owner = f"the extra {name!r}" if name else "an extra"
        raise ElmoTasksError(f"this is in {owner}, which is not installed here") from None


def home(place: str, name: str) -> str | None:
    """Where what has a name at a place is defined, as "module:attribute", if it is imported on demand."""
    return _announced.get(place, {}).get(name) or _added(place).get(name)


def everything(place: str) -> Iterator[Any]:
    """All that is registered at a place."""
    return (find(place, name) for name in names(place))


@functools.cache
def _added(place: str) -> dict[str, str]:
    """What the extras add to a place: by name, the module and the attribute."""
    return {
        name: f"{_TABLE}.{extra}.{reference}"
        for extra, row in extras().items()
        for name, reference in row.adds.get(place, {}).items()
    }
