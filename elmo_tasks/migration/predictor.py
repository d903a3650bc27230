"""AllenNLP's way of predicting, with runs of this project."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_tasks import __version__
from elmo_tasks.errors import AllenNlpArchiveError, ArgumentError, ElmoTasksError
from elmo_tasks.files.atomic import atomic_folder
from elmo_tasks.files.cache import used_cache
from elmo_tasks.files.hashes import content_hash
from elmo_tasks.migration.importing import import_allennlp
from elmo_tasks.predictors import AllenNlpPredictor
from elmo_tasks.predictors.allennlp_format import FindPredicates
from elmo_tasks.runs.load import load_predictor

logger = logging.getLogger(__name__)

Json = dict[str, Any]


class Predictor:
    """AllenNLP's `Predictor`: a program that predicts with AllenNLP runs when only its import is changed.

    Source: `allennlp.predictors.Predictor` of AllenNLP 0.9 and 2.10. `AllenNlpPredictor` describes inputs and results.
    Departures: text is split into tokens as the run's config says, and not by spaCy; the results have no `logits` and
    other inner values of models; and predicates of semantic roles are not all verbs that spaCy finds, see `from_path`.

    Arguments:
        predictor: the predictor of a run.
    """

    def __init__(self, predictor: AllenNlpPredictor) -> None:
        self._predictor = predictor

    @classmethod
    def from_path(
        cls,
        archive_path: str | Path,
        predictor_name: str | None = None,
        cuda_device: int = -1,
        *,
        predicates: str | Path | FindPredicates | None = None,
    ) -> Predictor:
        """The predictor of a run.

        Arguments:
            archive_path: the folder or the archive of a run; or AllenNLP's `model.tar.gz`, which is imported into the
                cache the first time.
            predictor_name: what AllenNLP calls the predictor, which must fit the run; not needed.
            cuda_device: -1 for the CPU; otherwise the GPU is used, if there is one.
            predicates: for semantic roles, the run of a tagger that finds the predicates, or a function from a list of
                tokens to the indices of the predicates in it, such as that of the verbs that spaCy finds. By default,
                the installed model `predicates` finds them for AllenNLP's models, and for an installed one the model
                that it names.

        Raises:
            RunError: there is no run or no finished epoch, or its biLM has moved or changed.
            MigrationError: AllenNLP's archive is damaged, or this project does not have its model.
            ElmoTasksError: the run is for another task than the predictor of this name, or `predicates` does not fit.
        """
        device = [f"trainer.device={'cpu' if cuda_device < 0 else 'auto'}"]
        tagger, find = None, None
        if isinstance(predicates, (str, Path)):
            tagger = load_predictor(predicates, overrides=device)
        else:
            find = predicates
        try:
            run = load_predictor(archive_path, overrides=device, predicates=tagger)
        except AllenNlpArchiveError:
            if not Path(archive_path).is_file():
                raise
            run = load_predictor(_imported(Path(archive_path)), overrides=device, predicates=tagger)
        predictor = AllenNlpPredictor(run, find)
        if predictor_name is not None and predictor_name.replace("-", "_") not in predictor.names:
            expected = " or ".join(map(repr, predictor.names))
            raise ElmoTasksError(f"predictor_name is {predictor_name!r}; expected {expected} for {archive_path}")
        return cls(predictor)

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
        return self.predict_batch_json([inputs])[0]

    def predict_batch_json(self, inputs: Sequence[Json]) -> list[Json]:
        """The results of inputs, in their order; errors as for `predict`."""
        return list(self._predictor.predict(inputs))


def _imported(archive: Path) -> Path:
    """The run in the cache that an archive of AllenNLP's is imported to, once."""
    key = hashlib.sha256(f"{__version__} {content_hash(archive)}".encode()).hexdigest()
    target = used_cache("archives") / key
    if not target.is_dir():
        with atomic_folder(target) as run:
            for note in import_allennlp(archive, run).notes:
                logger.info("%s: %s", archive, note)
    return target
