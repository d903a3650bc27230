"""The runs that the server answers for: loaded once, by name."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

import torch

from elmo_tasks.config import to_json
from elmo_tasks.data_readers.rows import ROW_TASKS
from elmo_tasks.data_readers.sources import HUB_PREFIX, path_list
from elmo_tasks.elmo import ElmoConfig
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.explain.saliency import STEPS, cost_of_explaining
from elmo_tasks.extras.resolve.resolution import adding_resolved
from elmo_tasks.extras.server import Limits
from elmo_tasks.files.installed_models import About, model_named, package_of
from elmo_tasks.files.json_files import json_text, read_json
from elmo_tasks.predictors import Predictor
from elmo_tasks.predictors.predictor import ExampleError, Fields, release_memory_after
from elmo_tasks.predictors.semantic_roles import check_tagger
from elmo_tasks.predictors.tagger import TaggerPredictor
from elmo_tasks.rendering.drawing import CONTINUES, INK, PALETTE, PUNCTUATION, color_of
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.experiment_config import Results
from elmo_tasks.runs.experiment_data import Data, PartCounts, read_examples
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.load import Run, load_predictor, load_run, predicates_for, run_predictor
from elmo_tasks.tasks import Coreference, SemanticRoles
from elmo_tasks.tasks.classification import LABELS
from elmo_tasks.tasks.tagging import TAGS
from elmo_tasks.text.tag_schemes import OUTSIDE
from elmo_tasks.text.vocabulary import natural_order

logger = logging.getLogger(__name__)

PAGE = Path(__file__).parent / "page"
"""The folder of the page's files. Nothing else is served."""

_NAME = re.compile(r"\w[\w.-]*")
_MOST_CARRIED = 1_000_000  # bytes of an input's other keys in all of its results
_MOST_OF_CARD = 100_000  # characters
_MOST_EXAMPLES, _MOST_OF_EXAMPLE = 12, 1_000  # characters
_PAIR = ("premise", "hypothesis")
# The fields of the page, by the keys of inputs.
_TEXTS = {key: key for key in ("text", "passage", "question", *_PAIR)} | {f"{key}_tokens": key for key in _PAIR}
_TEXTS |= {"tokens": "text", "sentences": "text"}
_BEFORE_LABEL = re.compile("^[BILUESM]-")  # in a tag
_ARCHIVE = re.compile(r"\.(tar\.gz|tgz)$")


class Additions(NamedTuple):
    """What a request's results have in addition."""

    details: bool = False  # what only pictures need
    explain: bool = False  # how much each token counts


_Row = tuple[int, Fields, dict[str, Any]]  # the number of an input, its fields, an example of it


@dataclasses.dataclass(frozen=True)
class PredictionRequest:
    """The examples of a request's inputs, which are ready to be predicted."""

    predictor: Predictor
    rows: list[_Row]
    refused: Mapping[int, ElmoTasksError]  # inputs that are not usable
    inputs: int | None  # how many there are; None for a single one, which is answered for by itself
    added: Additions

    @functools.cached_property
    def tokens(self) -> int:
        return sum(self.predictor.task.length(example) for *_, example in self.rows)

    @functools.cached_property
    def cost(self) -> int:
        """The tokens that the model reads: in semantic roles, a sentence once for each predicate that is given."""
        return sum(self.predictor.cost(example) for *_, example in self.rows) * (1 + STEPS * self.added.explain)


class ServedRun:
    """A run with a name.

    Attributes:
        name: in addresses.
        predictor: computes its results.
        elmo: the config of its biLM, None without a frozen one.
        about: what `GET /api/runs` says of it.
        card: the text of its model card, None without one.
        most_cost: the most tokens that the model reads for the results of a request, and to explain them.
        twin: the same model without ELMo; None if there is none, or it is not installed.
        load_twin: loads that once, by its name.
    """

    most_cost = Limits.queue_tokens
    load_twin: Callable[[], dict[str, ServedRun]] | None = None

    def __init__(
        self, name: str, path: str | Path, run: Run, predictor: Predictor, predicates: str | None = None
    ) -> None:
        folder = open_run(path)
        self.name = name
        self.card = _card(folder)
        self.predictor = predictor
        self._resolve = adding_resolved(predictor) if isinstance(predictor.task, Coreference) else None
        elmo = run.config.elmo()
        self.elmo: ElmoConfig | None = elmo if elmo and not elmo.requires_grad else None
        self.device = run.config.trainer.torch_device()
        known = About.of(folder.path)  # all None or empty for a run that is not an installed model
        self.twin = model_named(known.without_elmo) if known.without_elmo else None
        self.about = {
            "name": name,
            **_description(run, folder),
            "bilm": self.elmo.files().fingerprint() if self.elmo else None,
            "bilm_size": BiLMOptions.load(self.elmo.files().options).summary() if self.elmo else None,
            "examples": _held_out(run, predictor, folder),
            "has_card": self.card is not None,
            "predicates": predicates,
            "without_elmo": self.twin and self.twin.name,
            "facts": known.model_dump(mode="json", include={"data", "licence", "score", "caution"}),
        }

    def prepare(self, inputs: Sequence[Any], added: Additions, *, single: bool) -> PredictionRequest:
        """Checks and tokenizes inputs.

        Arguments:
            added: what the results have in addition.
            single: whether there is one input, and not a list of them.

        Raises:
            ElmoTasksError: the single input is not usable; of several, the result of the input says it.
        """
        rows: list[_Row] = []
        refused: dict[int, ElmoTasksError] = {}
        for number, given in enumerate(inputs):
            fields = {"text": given} if isinstance(given, str) else given
            try:
                rows += [(number, fields, example) for example in self._examples(fields)]
            except ElmoTasksError as error:
                if single:
                    raise
                refused[number] = error
        return PredictionRequest(self.predictor, rows, refused, None if single else len(inputs), added)

    def _examples(self, fields: Any) -> list[dict[str, Any]]:
        if not isinstance(fields, dict):
            raise ElmoTasksError(f"{json_text(fields)}; expected a string or an object")
        made = self.predictor.checked_examples(fields)
        carried = {key: value for key, value in fields.items() if key not in self.predictor.read_keys}
        if (size := len(to_bytes(carried)) * len(made)) > _MOST_CARRIED:
            problem = f"keys that are copied to each of {len(made)} results take {size:,} bytes"
            raise ElmoTasksError(f"{problem}; expected at most {_MOST_CARRIED:,}")
        return made

    def answer(self, requests: list[PredictionRequest]) -> list[bytes | ElmoTasksError]:
        """The results of requests that are predicted together, as JSON, or what is wrong with one of them."""
        refused = [dict(request.refused) for request in requests]  # by the numbers of inputs
        while True:
            rows = [
                (number, *row)
                for number, request in enumerate(requests)
                for row in request.rows
                if row[0] not in refused[number]
            ]
            numbers, wanted = [number for number, *_ in rows], [requests[number].added for number, *_ in rows]
            try:
                examples = self.predictor.with_known_costs([example for *_, example in rows])
                self._check_costs(numbers, map(self.predictor.cost, examples))
                predictions = self.predictor.predictions(examples)
                pairs = zip(wanted, examples, predictions, strict=True)
                to_explain = (cost_of_explaining(self.predictor, *pair) if each.explain else 0 for each, *pair in pairs)
                self._check_costs(numbers, to_explain)
                additions = self._additions(wanted, examples, predictions)
                break
            except ExampleError as error:
                number, place, *_ = rows[error.row]
                refused[number][place] = error
        results: list[list[list[dict[str, Any]]]] = [[[] for _ in range(request.inputs or 1)] for request in requests]
        for (number, place, fields, example), prediction, added in zip(rows, predictions, additions, strict=True):
            result = self.predictor.complete_result(fields, example, prediction) | added
            if self._resolve and requests[number].added.details:
                result = self._resolve(result)
            results[number][place].append(result)
        release_memory_after(sum(request.tokens for request in requests))
        return list(map(_answer, requests, refused, results))

    def _check_costs(self, numbers: Sequence[int], costs: Iterable[int]) -> None:
        """Raises an `ExampleError` if the examples of a request, whose number each has, cost too much together."""
        sums = Counter[int]()
        for row, (number, cost) in enumerate(zip(numbers, costs, strict=True)):
            sums[number] += cost
            if (total := sums[number]) > self.most_cost:
                most = f"expected at most {self.most_cost:,} in a request"
                reason = (
                    "sentences are read once for each predicate, and once more for each part of a result to explain"
                )
                raise ExampleError(row, f"so far the work of {total:,} tokens; {most}: {reason}")

    def _details(self, examples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """`tag_probabilities`: for each token its most probable tags, at most five; only of models that have them."""

        @torch.inference_mode()
        def details(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
            batch = self.predictor.collate(given)
            return self.predictor.model.details(self.predictor.model(batch), batch)

        return self.predictor.in_batches(examples, details)

    def _additions(
        self, wanted: Sequence[Additions], examples: Sequence[dict[str, Any]], predictions: Sequence[Fields]
    ) -> list[dict[str, Any]]:
        """What the result of each example has in addition; an `ExampleError` if that takes too long."""
        found: list[dict[str, Any]] = [{} for _ in examples]
        detailed = [row for row, each in enumerate(wanted) if each.details]
        if isinstance(self.predictor, TaggerPredictor):
            for row, details in zip(detailed, self._details([examples[row] for row in detailed]), strict=True):
                found[row] |= details
        rows = [row for row, each in enumerate(wanted) if each.explain]
        if rows:
            try:
                explained = self.predictor.explain([examples[row] for row in rows], [predictions[row] for row in rows])
            except ExampleError as error:
                raise ExampleError(rows[error.row], str(error)) from None
            for row, each in zip(rows, explained, strict=True):
                found[row] |= each
        return found


def _answer(
    request: PredictionRequest, refused: Mapping[int, ElmoTasksError], results: Sequence[Sequence[dict[str, Any]]]
) -> bytes | ElmoTasksError:
    """The answer to one input; or a list of such answers, each for itself: `{"results": [...]}` or `{"error": ...}`."""
    answers: list[dict[str, Any]] = [
        {"error": str(refused[place])} if place in refused else {"results": each} for place, each in enumerate(results)
    ]
    if request.inputs is None:
        return refused.get(0) or to_bytes(answers[0])
    return to_bytes({"results": answers[: request.inputs]})


def load_runs(paths: Sequence[str], *, batch_tokens: int, overrides: Sequence[str] = ()) -> dict[str, ServedRun]:
    """Loads runs by name.

    A run of semantic roles gets the model that it names, if that is one of them, else the first one that finds
    predicates, else the installed model that it names.

    Arguments:
        paths: folders, archives and installed models. The name of a run is that of its folder or archive, or the given
            one: `NAME=PATH`.
            Of several, folders without a trained model are left out with a warning, so that a shell may list them all.

    Raises:
        RunError: one of them is not a run, or cannot be loaded.
        ElmoTasksError: two runs have the same name, or a name has characters that addresses should not have.
    """
    named: dict[str, Path] = {}
    for text in paths:
        name, path = _name_and_path(text)
        if len(paths) > 1 and path.is_dir() and not RunFolder(path).model.is_file():
            logger.warning("%s: not a run that has finished an epoch; skipped", path)
            continue
        if name in named:
            raise ElmoTasksError(f"{named[name]} and {path} have the same name; rename one of them: NAME={path}")
        named[name] = path
    if not named:
        raise ElmoTasksError(f"{', '.join(paths)}: none of them is a run that has finished an epoch")
    loaded = {name: load_run(path, overrides=overrides) for name, path in named.items()}
    predictors = {
        name: run_predictor(run, batch_tokens=batch_tokens)
        for name, run in loaded.items()
        if not isinstance(run.model.task, SemanticRoles)
    }
    served: dict[str, ServedRun] = {}
    for name, run in loaded.items():
        if name in predictors:
            served[name] = ServedRun(name, named[name], run, predictors[name])
            continue
        installed, predicates = predicates_for(named[name]), None
        own = (each for each in predictors if installed and loaded[each].path == installed.resolve())
        if tagger := next(own, None) or _first_tagger(predictors):
            predicates = predictors[tagger]
        elif installed:
            tagger = installed.name
            predicates = load_predictor(installed, overrides=overrides, batch_tokens=batch_tokens)
        predictor = run_predictor(run, batch_tokens=batch_tokens, predicates=predicates)
        served[name] = ServedRun(name, named[name], run, predictor, tagger)
    for each in served.values():
        if each.twin:
            twin = [f"{each.twin.name}={each.twin.folder}"]
            load = functools.partial(load_runs, twin, batch_tokens=batch_tokens, overrides=overrides)
            each.load_twin = functools.cache(load)
    return served


def _first_tagger(predictors: Mapping[str, Predictor]) -> str | None:
    """The name of the first run that finds predicates."""
    for name, predictor in predictors.items():
        with contextlib.suppress(ElmoTasksError):  # another task, or other tags
            check_tagger(predictor)
            return name
    return None


def _name_and_path(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        path, name = text, _ARCHIVE.sub("", Path(text).resolve().name)
    if not _NAME.fullmatch(name):
        raise ElmoTasksError(f"{text}: {name!r} is not a valid name of a run; choose another: NAME={path}")
    return name, Path(path)


def _card(folder: RunFolder) -> str | None:
    """The beginning of the README.md of a run's folder. A link to another file of this machine is not followed."""
    path = folder.path / "README.md"
    if not path.is_file() or (path.is_symlink() and not folder.archive):
        return None
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_MOST_OF_CARD)


def _held_out(run: Run, predictor: Predictor, folder: RunFolder) -> list[dict[str, str]] | None:
    """Texts of a run's validation data, for the form of the page; empty if there are none that can be read.

    None for an installed model. A run from elsewhere may name any file of this machine: data without the recorded hash
    is not shown.
    """
    if package_of(folder.path):
        return None
    path = run.config.validation_data_path
    if folder.archive or any(
        each.startswith(HUB_PREFIX) for each in path_list(path or run.config.train_data_path) or ()
    ):
        return []
    try:
        hashes = read_json(folder.data, dict[str, str], "the hashes of the data of a run")
        if path:
            examples = read_examples(run.reader, path, [])
        else:
            examples = Data.read(run.config, notes={}).held_out["validation"]
        if hashes.get("validation data") != PartCounts.of_part(examples, run.reader.task, run.reader.task).sha256:
            return []
    except ElmoTasksError:
        return []
    given = itertools.islice(predictor.inputs_of(examples), _MOST_EXAMPLES)
    return [{_TEXTS[key]: _beginning(each[key]) for key in _TEXTS if key in each} for each in given]


def _beginning(text: Any) -> str:
    """The beginning of a text, or of the tokens of a sentence or of several."""
    text = text if isinstance(text, str) else " ".join(map(_beginning, text))
    return text if len(text) <= _MOST_OF_EXAMPLE else text[:_MOST_OF_EXAMPLE].rpartition(" ")[0]


def _description(run: Run, folder: RunFolder) -> dict[str, Any]:
    """What others may know of a run. The folders of its files are not among it."""
    scores, scored_on = None, None
    if folder.metrics.is_file():
        results = read_json(folder.metrics, Results, "the metrics of a run")
        found = {"test": results.test, "validation": results.best.validation}
        scored_on, scores = next(((split, each) for split, each in found.items() if each), (None, None))
    mixes = [{"name": name, **mix} for name, mix in run.model.embedder.mix_weights().items()]
    vocabulary, task = run.vocabulary.labels, run.model.task
    labels = next((known for kind in (TAGS, LABELS) if (known := vocabulary.get(kind))), None)
    order = natural_order(labels or ())
    # The labels of tags, each once: `B-PER` and `I-PER` are one.
    kinds = dict.fromkeys(_BEFORE_LABEL.sub("", tag) for tag in vocabulary.get(TAGS, ()) if tag != OUTSIDE)
    return {
        "task": next((name for name in task.names() if name in ROW_TASKS), type(task).__name__),
        "labels": order or (labels and list(labels)),
        "is_ordered": bool(order),
        "legend": legend(kinds or labels or ()),
        "scores": scores,
        "scored_on": scored_on,
        "metric": run.config.trainer.metric_name,
        "config": _without_folders(to_json(run.config)),
        "mixes": mixes or None,
    }


def legend(labels: Collection[str]) -> dict[str, dict[str, Any]]:
    """The `color` and the `meaning` of each of a model's labels, without `B-` and the like.

    Punctuation has no colour. There are no meanings if less than half of the labels are known: a label of another set
    can have the name of one that is known.
    """
    are_known = sum(_meaning(label) is not None for label in labels) * 2 >= len(labels)
    colors = {label: color for label in labels if (color := color_of(label)) is not None}
    return {
        label: {
            "color": None if are_known and label in PUNCTUATION else colors.get(label, place),
            "meaning": _meaning(label) if are_known else None,
        }
        for place, label in enumerate(labels)
    }


def palette_css() -> str:
    """The colours of labels, which are the same as in other pictures, as a style sheet."""
    colors = {f"color-{number}": color for number, color in enumerate(PALETTE)}
    colors |= {"colors": str(len(PALETTE)), "on-color": INK}
    lines = [f"  --{name}: {value};\n" for name, value in colors.items()]
    return f":root {{\n{''.join(lines)}}}\n"


@functools.cache
def _meanings() -> dict[str, str]:
    """What the labels of the trained models mean."""
    lines = Path(__file__).with_name("meanings.tsv").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


def _meaning(label: str) -> str | None:
    meaning = _meanings().get(CONTINUES.sub("", label))
    before = {"C-": "continues: ", "R-": "refers to: "}.get(label[:2], "")
    return meaning and before + meaning


def _without_folders(value: Any) -> Any:
    """A value of JSON with only the last part of paths."""
    if isinstance(value, dict):
        return {key: _without_folders(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_folders(each) for each in value]
    is_path = isinstance(value, str) and re.search(r"[/\\]", value) and not value.startswith(HUB_PREFIX)
    return PureWindowsPath(value).name or value if is_path else value  # Windows has both kinds of slashes


def to_bytes(value: Any) -> bytes:
    return json_text(value).encode()
