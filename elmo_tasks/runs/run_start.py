"""How a run begins or is resumed: the checks before data is read, the first weights, and the files of its folder."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from elmo_tasks.config import own_packages, to_json
from elmo_tasks.elmo.options import BiLMOptions
from elmo_tasks.errors import FORCE, RunError, some_of
from elmo_tasks.files.json_files import read_json, write_json
from elmo_tasks.files.tensor_files import read_tensors, write_tensors
from elmo_tasks.models.model import TaskModel
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.experiment_config import ExperimentConfig, Results
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.folder import LENGTH, RunFolder, Split
from elmo_tasks.runs.model_building import check_frozen_models, tensor_shapes
from elmo_tasks.runs.warm_start import warm_start
from elmo_tasks.text.vocabulary import Vocabulary
from elmo_tasks.training.callbacks import Progress
from elmo_tasks.training.processes import RunAccelerator
from elmo_tasks.training.trainer_config import TrainerConfig

logger = logging.getLogger(__name__)


def check_before_reading(
    config: ExperimentConfig, run: RunFolder, from_run: str | Path | None, predictions: Collection[Split]
) -> None:
    """Raises an error for what is missing, so that it is known before the data is read."""
    if "test" in predictions and not config.has_test():
        raise RunError(f"{run.path}: cannot write predictions of test data, because the config evaluates none")
    if "validation" in predictions and not config.has_validation():
        raise RunError(f"{run.path}: cannot write predictions of validation data, because the config has none")
    if elmo := config.elmo():
        options = elmo.files().options
        if unused := BiLMOptions.load(options).unused_keys():
            logger.info("%s: these keys have no effect here: %s", options, some_of(unused, most=10))
    if transformer := config.transformer():
        transformer.files()
    if from_run and not run.is_started():
        open_run(from_run)


def finished_results(run: RunFolder, predictions: Collection[Split], *, begins: bool) -> dict[str, Any] | None:
    """The results of a run that has finished with the same config and has these predictions.

    None if there is something to do: a run that lacks predictions continues from its last state, and makes them.

    Raises:
        RunError: predictions are missing, and there is no state of the training to make them from.
    """
    if begins or run.changed or not run.metrics.is_file():
        return None
    if all(run.predictions_for(split).is_file() for split in predictions):
        logger.info("%s: finished before; nothing to do", run.path)
        return read_json(run.metrics, Results, "the metrics of a run").model_dump(exclude_unset=True)
    if not run.training_state.is_file():
        command = f"elmo-tasks evaluate {run.path} DATA --predictions FILE"
        raise RunError(f"{run.path}: finished before, without these predictions; `{command}` writes some")
    return None


@dataclasses.dataclass(frozen=True)
class RunStart:
    """A run that begins, or that is resumed from its folder."""

    config: ExperimentConfig
    run: RunFolder
    settings: TrainerConfig  # those of the config, with the precision that "auto" means
    from_run: str | Path | None  # the run to start from
    begins: bool
    self_contained: bool  # whether the files of the biLM and of the transformer are copied into the run
    accelerator: RunAccelerator

    @functools.cached_property
    def resuming(self) -> bool:
        """Whether the training continues from a saved state."""
        return not self.begins and self.run.training_state.is_file()

    def check(self) -> None:
        """Raises `RunError` if the run cannot continue with what has changed in its config, or cannot start there."""
        run = self.run
        if run.changed and not self.begins and run.metrics.is_file() and not self.resuming:
            raise RunError(
                f"{run.path}: finished before, and there is no {run.training_state.name} to continue from; `elmo-tasks "
                f"train CONFIG -s DIR --from {run.path}` begins another run with its weights"
            )
        schedule = self.settings.learning_rate_scheduler
        if "trainer.num_epochs" in run.changed and schedule.spans_training:
            raise RunError(
                f"{run.path}: trainer.num_epochs cannot change: the learning rates of '{to_json(schedule)['type']}' "
                f"depend on it from the first step on; `elmo-tasks train CONFIG -s DIR --from {run.path}` begins "
                "another run with its weights"
            )
        if self.from_run and self.resuming:
            logger.info(
                "%s: continues with its own state; the weights of %s are for a run that begins", run.path, self.from_run
            )
        elif self.from_run and Path(self.from_run).resolve() == run.path.resolve():
            raise RunError(f"{run.path}: contains the run to start from; choose another folder for the result")
        for frozen in run.frozen_models:
            if self.begins and frozen.is_own_copy(self.config.model.embedder):
                raise RunError(
                    f"{frozen.copies}: the config has this {frozen.title}, and a run that begins here removes it; copy "
                    "it to another place, or choose another folder for the run"
                )

    def check_data(self, data: Data) -> dict[str, str]:
        """The hashes of the data; raises `RunError` if the run began with other data."""
        hashes = data.hashes(self.config)
        if not self.begins:
            self.run.check_data(hashes)
        return hashes

    def load_weights(self, vocabulary: Vocabulary, model: TaskModel) -> dict[str, Any] | None:
        """Gives a new model the weights that it starts with: frozen ones of the run, or those of the run to start from.

        Returns:
            the contents of `origin.json`; None if there is no other run, or a state of the training follows.

        Raises:
            RunError: the run began with another vocabulary, biLM, transformer or run to start from; or as `warm_start`.
        """
        if not self.begins:
            self._load_frozen(vocabulary, model)
        if self.resuming:
            return None
        recorded = None if self.begins else self._recorded_origin()
        source = self.from_run if self.begins else recorded and (self.from_run or recorded["run"])
        if not source:
            return None

        def shapes_of(other: Vocabulary) -> dict[str, tuple[int, ...]]:
            return tensor_shapes(self.config, other, self.run)

        origin = warm_start(model, vocabulary, shapes_of, self.config.model.embedder, source)
        if recorded and origin["model"] != recorded["model"]:
            raise RunError(f"{source}: not the run that {self.run.path} began from; {FORCE} begins it again")
        return origin

    def _load_frozen(self, vocabulary: Vocabulary, model: TaskModel) -> None:
        """Loads a resumed run's frozen tensors."""
        saved = Vocabulary.load(self.run.vocabulary).to_json()
        if changed := [name for name, value in vocabulary.to_json().items() if value != saved[name]]:
            raise RunError(
                f"{self.run.path}: cannot resume with other data: its vocabulary differs in {', '.join(changed)}; "
                "expected the data that the run began with, or another folder"
            )
        check_frozen_models(self.config, self.run)
        model.load_state_dict(read_tensors(self.run.frozen), strict=False)

    def _recorded_origin(self) -> dict[str, Any] | None:
        """What a warm start has written about the run that it took weights from; None if there was no warm start."""
        if not self.run.origin.is_file():
            return None
        origin = read_json(self.run.origin, dict[str, Any], "the origin of a run")
        return origin if {"run", "model"} <= origin.keys() else None

    def write(
        self,
        vocabulary: Vocabulary,
        model: TaskModel,
        origin: Mapping[str, Any] | None,
        hashes: Mapping[str, str],
        data: Data,
    ) -> None:
        """Writes the files that a new run has before its first step, in place of an earlier run or what is left of one.

        Arguments:
            origin: what `load_weights` returned.
            hashes: what `check_data` returned.
        """
        self.run.clear()
        write_json(self.run.data, hashes)
        if (elmo := self.config.elmo()) and elmo.requires_grad:
            BiLMOptions.load(elmo.files().options).save(self.run.bilm_options)
        for frozen in self.run.frozen_models:
            frozen.refer_to_config(self.config.model.embedder)
            if self.self_contained:
                frozen.copy_files()
        if origin:
            write_json(self.run.origin, origin)
        if self.config.validation_share:
            write_json(self.run.validation_examples, data.validation_locations(self.config))
        vocabulary.save(self.run.vocabulary)
        trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
        # The tensors of a frozen biLM or transformer are not in the model's state: they are in its own files.
        write_tensors(self.run.frozen, {name: each for name, each in model.state_dict().items() if name not in trained})
        precision = self.settings.precision if self.config.trainer.precision == "auto" else None
        self.run.create(to_json(self.config), own_packages(self.config), precision=precision)

    def write_changes(self, progress: Progress) -> None:
        """Writes the config of a resumed run if it has changed, and removes results that are no longer its last.

        Raises:
            RunError: the config has fewer epochs than have begun.
        """
        run = self.run
        if not run.changed:
            return
        begun = progress.epoch + (progress.recent_steps > 0)
        if self.config.trainer.num_epochs < begun:
            raise RunError(f"{run.path}: {begun} epochs have begun; expected trainer.num_epochs={begun} or more")
        if self.accelerator.is_main_process:
            if not run.changed.isdisjoint(LENGTH):  # it trains more
                for path in run.results:
                    path.unlink(missing_ok=True)
            for frozen in run.frozen_models:
                frozen.refer_to_config(self.config.model.embedder)
            write_json(run.config, to_json(self.config))
