"""AllenNLP's way of predicting, with runs of this project."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch

from elmo_tasks import __version__, predictors
from elmo_tasks.config.jsonnet import parse_value
from elmo_tasks.errors import (
    AllenNlpArchiveError,
    ArgumentError,
    ElmoTasksError,
    RunError,
    check_argument,
    check_several,
    did_you_mean,
    one_line_of,
)
from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor, FindPredicates
from elmo_tasks.extras.allennlp.archive import archive_hash
from elmo_tasks.extras.allennlp.elmo_embedder import checked_device
from elmo_tasks.extras.allennlp.importing import import_allennlp, local_archive
from elmo_tasks.extras.resolve.resolution import resolved_document, resolved_text, tags_by_installed_model
from elmo_tasks.files.atomic import atomic_folder
from elmo_tasks.files.cache import used_cache
from elmo_tasks.files.downloads import is_address
from elmo_tasks.files.installed_models import VERBS, model_named
from elmo_tasks.files.json_files import read_json
from elmo_tasks.runs import load
from elmo_tasks.runs.archive import open_run

logger = logging.getLogger(__name__)

Json = dict[str, Any]
_PredictorT = TypeVar("_PredictorT", bound="Predictor")


@dataclasses.dataclass(frozen=True)
class LoadedArchive:
    """AllenNLP's `allennlp.models.archival.load_archive`, for `Predictor.from_archive`, which reads the archive."""

    archive_file: str | Path
    cuda_device: int = -1
    overrides: str | Mapping[str, Any] = ""
    weights_file: None = None

    def __post_init__(self) -> None:
        if self.weights_file is not None:
            raise ArgumentError("weights_file: other weights than the archive's are not supported; expected None")
        check_argument("archive_file", self.archive_file, (str, Path), "an archive, or a run")
        if not is_address(self.archive_file):
            with contextlib.suppress(AllenNlpArchiveError):
                open_run(self.archive_file)

    def __getattr__(self, name: str) -> NoReturn:
        """Says what to use instead of the attributes of AllenNLP's `Archive`, such as `model`."""
        advice = "import the archive, and use elmo_tasks.load('RUN'), which has model, vocabulary and reader"
        raise AttributeError(f"archive.{name} is not available here; {advice}")


load_archive = LoadedArchive


class Predictor:
    """AllenNLP's `Predictor`: a program that predicts with AllenNLP runs when only its import is changed.

    Source: `allennlp.predictors.Predictor` of AllenNLP 0.9 and 2.10. `AllenNlpPredictor` describes inputs and results.
    Departures: text is split into tokens as the run's config says, and not by spaCy, and the verbs are those that the
    installed model `pos` finds. `from_path` of this class gives the predictor of the run's task, such as
    `SemanticRoleLabelerPredictor`.

    Arguments:
        predictor: the predictor of a run.
    """

    _lists: tuple[str, ...] = ()  # the keys of the result of a sentence without words

    def __init__(self, predictor: AllenNlpPredictor) -> None:
        self._predictor = predictor

    def __init_subclass__(cls) -> None:
        if cls.__module__ != __name__:
            cls.register(cls.__name__)

    @staticmethod
    def register(name: str) -> NoReturn:
        """Says what to use instead of a subclass, which AllenNLP registers."""
        advice = "call predict_json of Predictor.from_path(...), and change the inputs and results around it"
        raise ArgumentError(f"{name}: subclasses of AllenNLP's predictors are not used here; {advice}")

    @classmethod
    def from_path(
        cls: type[_PredictorT],
        archive_path: str | Path,
        predictor_name: str | None = None,
        cuda_device: int | torch.device | None = -1,
        dataset_reader_to_load: str = "validation",
        frozen: bool = True,
        import_plugins: bool = True,
        overrides: str | Mapping[str, Any] = "",
        *,
        language: str | None = None,
        extra_args: Mapping[str, Any] | None = None,
        predicates: str | Path | FindPredicates | None = None,
        transformer: str | None = None,
    ) -> _PredictorT:
        """The predictor of a run.

        `dataset_reader_to_load`, `frozen`, `import_plugins`, `language` and `extra_args` make no difference.

        Arguments:
            archive_path: AllenNLP's `model.tar.gz` or the folder of its training, imported into the cache the first
                time; or its address, from which it is downloaded once; or the folder, the archive or the name of a run.
            predictor_name: what AllenNLP calls the predictor, which must fit the run; not needed.
            cuda_device: -1, None or `cpu` for the CPU; otherwise a GPU, or the CPU with a warning if there is none.
            overrides: other values for the config in AllenNLP's archive, nested or with dots in their keys; or Jsonnet.
            predicates: for semantic roles, the run of a tagger that finds the predicates, or a function from a list of
                tokens to the indices of the predicates in it. By default all verbs are predicates; `"predicates"`, an
                installed model, also finds nouns and adjectives.
            transformer: where the config and the tokenizer of an archive's transformer are; see `import_allennlp`.

        Raises:
            RunError: there is no run or no finished epoch, or its biLM has moved or changed.
            MigrationError: AllenNLP's archive is damaged, or this project does not have its model.
            RemoteError: there is no such file, or no network.
            ElmoTasksError: the run is for another task than the predictor of this name, or `predicates` does not fit.
        """
        check_argument("archive_path", archive_path, (str, Path), "an archive, or a run")
        device = [f"trainer.device={checked_device(cuda_device).type}"]
        path = local_archive(archive_path)
        given: Any = parse_value(overrides or "{}", "overrides") if isinstance(overrides, str) else overrides
        if not isinstance(given, Mapping):
            raise ArgumentError(f"overrides is {one_line_of(overrides)}; expected a mapping, also as Jsonnet")
        try:
            open_run(path)
        except AllenNlpArchiveError:
            path = _imported(path, given, transformer)
        else:
            if given:
                raise ArgumentError(f"overrides are for AllenNLP's archives; {path} is not one")
        tagger: predictors.Predictor | None = None  # by default, the predicates of semantic roles are verbs
        if predicates is None and load.predicates_for(path) and (verbs := model_named(VERBS)):
            tagger = load.load_predictor(verbs.folder, overrides=device)
        elif isinstance(predicates, (str, Path)):
            tagger = load.load_predictor(predicates, overrides=device)
        run = load.load_predictor(path, overrides=device, predicates=tagger)
        predictor = AllenNlpPredictor(run, predicates if callable(predicates) else None)
        if predictor_name is not None and predictor_name.replace("-", "_") not in predictor.names:
            expected = " or ".join(map(repr, predictor.names))
            raise ElmoTasksError(f"predictor_name is {predictor_name!r}; expected {expected} for {archive_path}")
        kind = _KINDS.get(predictor.names[0], Predictor)
        if not issubclass(kind, cls):
            raise ElmoTasksError(f"{archive_path}: its predictor is a {kind.__name__}; expected a {cls.__name__}")
        return kind(predictor)

    @classmethod
    def from_archive(
        cls: type[_PredictorT],
        archive: LoadedArchive,
        predictor_name: str | None = None,
        dataset_reader_to_load: str = "validation",
        frozen: bool = True,
        **settings: Any,
    ) -> _PredictorT:
        """The predictor of what `load_archive` gives; arguments and errors as for `from_path`."""
        settings = {"cuda_device": archive.cuda_device, "overrides": archive.overrides, **settings}
        return cls.from_path(archive.archive_file, predictor_name, **settings)

    def predict(self, *values: Any, **inputs: Any) -> Json:
        """The result of one input, given by position or by name, such as `sentence`.

        Raises:
            DataError: the input is not usable.
            ArgumentError: there are more values than the predictor has inputs, or one is given twice.
        """
        names = self._predictor.arguments
        if len(values) > len(names) or any(name in inputs for name in names[: len(values)]):
            raise ArgumentError(f"predict takes {', '.join(names)}, each once")
        return self.predict_json({**dict(zip(names, values, strict=False)), **inputs})

    def predict_tokenized(self, tokens: list[str]) -> Json:
        """Like `predict`, of a tokenized sentence; of coreference, a document of one sentence."""
        return self.predict_json({"tokens": tokens})

    def predict_json(self, inputs: Json) -> Json:
        """The result of one input; errors as for `predict`."""
        check_argument("inputs", inputs, Mapping, "a dict")
        return self._of_blank(inputs) or next(self._predictor.predict([inputs]))

    def predict_batch_json(self, inputs: Sequence[Json]) -> list[Json]:
        """The result of each input, in their order: `{"error": "..."}` for one that is not usable."""
        check_several("inputs", inputs, "a list of dicts")
        found = self._predictor.each(inputs)
        return [self._of_blank(given) or result for given, (result,) in zip(inputs, found, strict=True)]

    def _of_blank(self, inputs: Json) -> Json | None:
        """AllenNLP's result of a sentence without words; None if it has words, or no result."""
        given = inputs.get("sentence", inputs.get("tokens")) if isinstance(inputs, Mapping) else None
        is_blank = given == [] or (isinstance(given, str) and not given.strip())
        return {key: [] for key in self._lists} if is_blank and self._lists else None


class SentenceTaggerPredictor(Predictor):
    """Of taggers, such as recognizers of named entities."""

    _lists = ("words", "tags", "mask", "logits", "class_probabilities")


class SemanticRoleLabelerPredictor(Predictor):
    """Of semantic roles."""

    _lists = ("verbs", "words")


class TextClassifierPredictor(Predictor):
    """Of classifiers of texts, such as sentiment."""


class TextualEntailmentPredictor(Predictor):
    """Of inference."""


class ReadingComprehensionPredictor(Predictor):
    """Of questions about a passage."""


class CorefPredictor(Predictor):
    """Of coreference."""

    def coref_resolved(self, document: str) -> str:
        """The document, with each mention replaced by the first name of its chain; see `resolved_text`."""
        results = list(self._predictor.inner.predict([{"text": document}]))
        return resolved_text(results[0], tags_by_installed_model()) if results else document

    @staticmethod
    def replace_corefs(
        document: Any, clusters: Sequence[Sequence[Sequence[int]]], tokens: Sequence[str] | None = None
    ) -> str:
        """The same of a document of spaCy's with given clusters of tokens, the end inclusive; see `resolved_document`.

        Departure: clusters may count the `tokens` of a result, its `document`, which spaCy does not always have.
        """
        return resolved_document(document, clusters, tokens)


BidafPredictor = ReadingComprehensionPredictor
DecomposableAttentionPredictor = TextualEntailmentPredictor
_PUBLISHED = Path(__file__).with_name("published_models.json")  # files, by the names in AllenNLP's list
_STORAGE = "https://storage.googleapis.com/allennlp-public-models"
_KINDS: dict[str, type[Predictor]] = {
    "sentence_tagger": SentenceTaggerPredictor,
    "semantic_role_labeling": SemanticRoleLabelerPredictor,
    "text_classifier": TextClassifierPredictor,
    "textual_entailment": TextualEntailmentPredictor,
    "reading_comprehension": ReadingComprehensionPredictor,
    "coreference_resolution": CorefPredictor,
}


def load_predictor(
    model_id: str, pretrained_models: None = None, cuda_device: int = -1, overrides: str | Mapping[str, Any] = ""
) -> Predictor:
    """The predictor of a published model, as `load_predictor` of `allennlp_models.pretrained` gives it.

    Arguments:
        model_id: the name of the model, such as `structured-prediction-srl-bert`; also all that `from_path` takes.
        pretrained_models: not used.
        cuda_device: see `Predictor.from_path`, as for `overrides` and the errors.
    """
    published = read_json(_PUBLISHED, dict[str, str], "the names of AllenNLP's published models")
    path = f"{_STORAGE}/{published[model_id]}.tar.gz" if model_id in published else model_id
    try:
        return Predictor.from_path(path, None, cuda_device, overrides=overrides)
    except RunError as error:
        if Path(path).exists() or model_named(model_id):
            raise
        advice = f"Not all published models can be imported.{did_you_mean(model_id, [*published])}"
        raise RunError(f"{error} {advice}") from None


def _imported(archive: Path, overrides: Mapping[str, Any], transformer: str | None) -> Path:
    """The run in the cache that an archive of AllenNLP's is imported to, once."""
    settings = json.dumps([overrides, transformer], sort_keys=True) if overrides or transformer else ""
    key = hashlib.sha256(f"{__version__} {archive_hash(archive)}{settings}".encode()).hexdigest()
    target = used_cache("archives") / key
    if not target.is_dir():
        with atomic_folder(target) as run:
            imported = import_allennlp(archive, run, transformer=transformer, overrides=overrides)
            for note in imported.lines():
                logger.warning("%s: %s", archive, note)
    return target


_INSTEAD = {
    "ELMoCharacterMapper": "batch_to_ids(sentences), which gives the character ids of tokens",
    "ELMoTokenCharactersIndexer": "batch_to_ids(sentences), which gives the character ids of tokens",
    "DatasetReader": "elmo_tasks.data_readers.DatasetReader, whose subclasses read other files",
    "Model": "elmo_tasks.load('RUN').model, or a subclass of elmo_tasks.models.TaskModel",
}


def missing_class(name: str) -> NoReturn:
    """Says what to use instead of a class that `elmo_tasks.compat` does not have."""
    if name in _INSTEAD:
        raise ImportError(f"elmo_tasks.compat has no {name}; use {_INSTEAD[name]}")
    raise AttributeError(f"module 'elmo_tasks.compat' has no attribute {name!r}")
