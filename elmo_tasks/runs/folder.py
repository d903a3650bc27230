"""The folder of a training run and its files.

config.json           the resolved config, with all defaults
data.json             the hashes of the examples and of the word vectors
versions.json         the versions of Python and of the packages that made the run, and the users' own packages
vocabulary.json       words, characters and labels
frozen.safetensors    tensors that training does not change, except the biLM's and the transformer's
model.safetensors     the best epoch's trained parameters, and the threshold that validation chose, if there is one
bilm.json             the biLM's files and their hash, as the run began with them
bilm/                 the biLM's files themselves, where the run is self-contained
transformer.json      where the transformer is and the hash of its files, as the run began with them
transformer/          the transformer's files themselves, where the run is self-contained
bilm_options.json     the options of a biLM that is trained with the task; its weights are in model.safetensors
origin.json           the run that it began from (--from), and what it took over; or the archive of AllenNLP's
validation_examples.json   where each example begins that `validation_share` or a fold holds out
learned.safetensors   hashes of the training examples, and of those that are held out of them
folds/                a cross-validation: the run of each fold, and of parts of the training data
cross_validation.json     a cross-validation: its score, and what is known of it
report.html           the same for people
metrics.jsonl         a line for each epoch
metrics.json          the best epoch's metrics, and the test set's
calibration.json      the temperature of probabilities, and their errors before and after
predictions.jsonl     of the best epoch, for the test data, with --predictions test
predictions_validation.jsonl   the same with --predictions validation; of a cross-validation, for each example by the
                      model that had not seen it
training.pt           the state from which training resumes
tensorboard/          curves
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from elmo_tasks import hooks
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.errors import BEGIN_AGAIN, RunError, some_of
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.files.paths import local_path
from elmo_tasks.files.tensor_files import tensor_shapes
from elmo_tasks.models.embedder import EmbedderConfig
from elmo_tasks.runs.frozen_models import FrozenModel, RunBiLM
from elmo_tasks.training.state import STATE_FILE

_PACKAGES = ("elmo-tasks", "torch", "pytorch-crf", "datasets", "accelerate", "seqeval", "numpy")
_INCLUDED, _PRECISION = "include-package", "precision"  # keys of versions.json
_MODULE_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
Split = Literal["validation", "test"]
"""The data that the best epoch is scored on."""

_VECTORS, WORD_VECTORS = "model.embedder.words.vectors", "word vectors"  # a key of a config, and one of data.json
LENGTH = ("trainer.num_epochs", "trainer.patience")  # what may change when a run is resumed
# And the paths of files whose content is checked.
_DATA = ("train_data_path", "validation_data_path", "test_data_path")


class Folder:
    """The folder of a run of any kind: its files by name. A subclass adds more; `clear` removes those in `files`."""

    records: Path  # one JSON object per line and evaluation
    summary: Path  # of a run that has finished; written last

    def __init__(self, path: str | Path) -> None:
        self.path = local_path(path)
        self.config = self.path / "config.json"
        self.versions = self.path / "versions.json"
        self.training_state = self.path / STATE_FILE
        self.tensorboard = self.path / "tensorboard"
        self.files: tuple[Path, ...] = (self.config, self.versions, self.training_state, self.tensorboard)
        self.begun: tuple[Path, ...] = (self.versions, self.tensorboard)  # may be there before the config is

    def adjustable(self) -> Collection[str]:
        """Keys of the config that may differ when the run is resumed."""
        return ()

    def is_started(self) -> bool:
        return self.config.is_file()

    def create(
        self, config: Mapping[str, Any], included: Collection[str] = (), *, precision: str | None = None
    ) -> None:
        """Writes the packages' versions and, last, the config, which marks the folder as that of a run.

        Arguments:
            included: the users' own packages that the run's parts come from.
            precision: see `begun_precision`.
        """
        versions: dict[str, Any] = {name: importlib.metadata.version(name) for name in _PACKAGES}
        versions["python"] = platform.python_version()
        if included:
            versions[_INCLUDED] = sorted(included)
        if precision:
            versions[_PRECISION] = precision
        write_json(self.versions, versions)
        write_json(self.config, config)

    def included_packages(self) -> list[str]:
        """The packages that the run's parts came from, to be named in messages. They must not be imported unasked."""
        included = self._version(_INCLUDED)
        return [name for name in included if _MODULE_NAME.fullmatch(str(name))] if isinstance(included, list) else []

    def begun_precision(self) -> str | None:
        """The precision that a run with the setting 'auto' began with; it is resumed and evaluated with the same."""
        precision: str | None = self._version(_PRECISION)
        return precision

    def _version(self, key: str) -> Any:
        with contextlib.suppress(RunError):
            return read_json(self.versions, dict[str, Any], "versions").get(key)
        return None

    def clear(self) -> None:
        """Removes the run's files, but no other files in the folder."""
        for path in self.files:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


class RunFolder(Folder):
    """The files of a task model's run.

    Arguments:
        archive: the archive that the folder was unpacked from, or the run's name on the hub. Such a run uses no files
            outside of the folder.
    """

    def __init__(self, path: str | Path, archive: Path | None = None) -> None:
        super().__init__(path)
        self.archive = archive
        self.vocabulary = self.path / "vocabulary.json"
        self.frozen = self.path / "frozen.safetensors"
        self.model = self.path / "model.safetensors"
        self.data = self.path / "data.json"
        self.bilm_options = self.path / "bilm_options.json"
        self.bilm = RunBiLM(self.path, archive, BiLMFiles(self.bilm_options, self.model))
        others: Iterator[type[FrozenModel]] = hooks.everything("frozen_model")
        self.frozen_models: tuple[FrozenModel, ...] = (self.bilm, *(kind(self.path, archive) for kind in others))
        self.origin = self.path / "origin.json"
        self.validation_examples = self.path / "validation_examples.json"
        self.records = self.path / "metrics.jsonl"
        self.metrics = self.summary = self.path / "metrics.json"
        self.calibration = self.path / "calibration.json"
        self.predictions = self.path / "predictions.jsonl"
        self.validation_predictions = self.path / "predictions_validation.jsonl"
        self.learned = self.path / "learned.safetensors"
        self.folds = self.path / "folds"
        self.cross_validation = self.path / "cross_validation.json"
        self.report = self.path / "report.html"
        begun = [self.vocabulary, self.frozen, self.bilm_options, self.origin, self.data, self.validation_examples]
        begun.append(self.learned)
        begun += [path for model in self.frozen_models for path in (model.reference, model.copies)]
        self.begun += tuple(begun)
        predictions = (self.predictions, self.validation_predictions)
        self.results = (self.metrics, self.calibration, *predictions, self.cross_validation, self.report)
        self.files += (*begun, self.model, self.records, *self.results)

    def adjustable(self) -> Collection[str]:
        if not self.data.is_file():
            return LENGTH
        models = [key for frozen in self.frozen_models for key in frozen.located_by()]
        return (*LENGTH, *_DATA, _VECTORS, *models)

    def check_data(self, hashes: Mapping[str, str], changed: Collection[str]) -> None:
        """Raises `RunError` if a resumed run began with other data, as far as its record says.

        Arguments:
            hashes: of the data that is read now.
            changed: keys of the config that have changed since the run began.
        """
        if not self.data.is_file():  # of an earlier version
            return
        earlier = read_json(self.data, dict[str, str], f"the hashes of the data of a run ({BEGIN_AGAIN})")
        others = [name for name in sorted({*earlier, *hashes}) if earlier.get(name) != hashes.get(name)]
        if _VECTORS not in changed and WORD_VECTORS in others:  # the run has its own copy of what it needs
            others.remove(WORD_VECTORS)
        if others:
            raise RunError(
                f"{self.path}: cannot resume with other {' and other '.join(others)}: expected the same content as "
                "when the run began; give that, or choose another folder"
            )

    def check_frozen_models(self, embedder: EmbedderConfig) -> None:
        """Raises `RunError` if an embedder has another biLM or transformer than the run has, or began with."""
        for frozen in self.frozen_models:
            frozen.check(embedder)

    def predictions_for(self, split: Split) -> Path:
        return self.predictions if split == "test" else self.validation_predictions

    def packed(self) -> dict[str, Path]:
        """The files of the folder that an archive can have, by their names in it."""
        names = (self.config, self.versions, self.vocabulary, self.frozen, self.model, self.records, self.metrics)
        own = {path.name: path for path in (*names, self.calibration, self.learned, self.bilm_options, self.origin)}
        for frozen in self.frozen_models:
            own |= frozen.archived_paths()
        return own

    def check_tensors(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Compares the shapes of the run's tensors with those of a model, without reading the tensors.

        Raises:
            RunError: no epoch has finished, or they differ; the first differences are named.
        """
        found = {**tensor_shapes(self.frozen), **tensor_shapes(self.model)}
        mismatches = [
            f"{name} is {found.get(name, 'not there')} (expected {shapes.get(name, 'none')})"
            for name in sorted(found.keys() | shapes.keys())
            if found.get(name) != shapes.get(name)
        ]
        if mismatches:
            raise RunError(f"{self.path}: the weights do not fit the config: {some_of(mismatches)}")
