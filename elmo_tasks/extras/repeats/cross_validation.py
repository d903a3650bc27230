"""Cross-validation: a score by models that have not seen what they predict, and then a model of all examples.

The training data is split into folds. For each fold, a model learns from the others. What the folds show decides how
the last model is trained, which learns from all examples: its number of epochs, its threshold and its temperature. For
a fold itself they are decided by the other folds, so that its score is one on examples that nothing depends on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import shutil
import statistics
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import torch

from elmo_tasks.commands.options import refuse_torchrun
from elmo_tasks.config import Overrides, load_config, override_list
from elmo_tasks.data_readers.sources import Source, config_value
from elmo_tasks.errors import ElmoTasksError, counted
from elmo_tasks.extras.calibration.calibration import calibrate_folds
from elmo_tasks.extras.repeats.report import write_report
from elmo_tasks.files.atomic import atomic_write
from elmo_tasks.files.json_files import json_text, read_json, read_record, read_records, write_json
from elmo_tasks.files.tensor_files import read_tensors, tensor_shapes, write_tensors
from elmo_tasks.progress import counted_items
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.evaluate import evaluate_examples
from elmo_tasks.runs.experiment_config import BestEpoch, ExperimentConfig, Results
from elmo_tasks.runs.experiment_data import Data, with_columns
from elmo_tasks.runs.folder import RunFolder, Split
from elmo_tasks.runs.learned import HELD_OUT, LEARNED, Learned
from elmo_tasks.runs.load import Run, load_run
from elmo_tasks.runs.plan import plan_run
from elmo_tasks.runs.train import train
from elmo_tasks.training.callbacks import Callback, Progress
from elmo_tasks.training.data_splits import most_folds
from elmo_tasks.training.trainer_config import TrainerConfig

logger = logging.getLogger(__name__)

_MOST_EXAMPLES = 2000  # of a training that nobody asked to be a cross-validation
_SHARES = (0.25, 0.5)  # of the training data, for the growth of the score
_FEWEST_TO_GROW = 20  # examples
_EPOCHS = "epochs"  # a folder in the run of a fold, until all is done
_ENOUGH = 2  # folds for the growth, where a training takes long


class _Part(NamedTuple):
    """A training on all folds but one, or on a share of them."""

    fold: int  # that is held out, from 1
    path: Path
    share: float = 1.0


def train_folds(
    config: str | Path | Mapping[str, Any],
    folder: str | Path,
    num_folds: int,
    *,
    datasets: Mapping[str, Source | None] | None = None,
    overrides: Overrides = (),
    variables: Mapping[str, str] | None = None,
    from_run: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    predictions: Collection[Split] = (),
    only_if_small: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """Trains a run, and scores it by a cross-validation; other arguments and errors are those of `train`.

    Arguments:
        num_folds: into which the training data is split. The config's validation data is not used.
        only_if_small: with more than 2,000 examples, holds a fifth of them out instead.

    Returns:
        the contents of `metrics.json`. The validation scores are those of the predictions of all folds together.
    """
    refuse_torchrun("a cross-validation (--folds 1 holds out a fifth instead)")
    run = RunFolder(folder)
    names = {key: None if source is None else config_value(source) for key, source in (datasets or {}).items()}
    own = [*override_list(overrides)]
    changes = [
        *own,
        "validation_data_path=null",
        "validation_share=null",
        "trainer.patience=null",
        f"folds={num_folds}",
    ]
    known = run.path if resume and run.is_started() else from_run
    experiment = with_columns(load_config(config, ExperimentConfig, changes, variables, replaced=names), known)
    # The predictions of the folds are always written.
    tested: list[Split] = [split for split in predictions if split != "validation"]
    plan = plan_run(run, experiment, resume=resume, force=force, from_run=from_run, predictions=tested)
    if plan.state == "finished" and run.cross_validation.is_file():
        logger.info("%s: finished before; nothing to do", run.path)
        return read_json(run.metrics, Results, "the metrics of a run").model_dump(exclude_unset=True)
    settings |= {"datasets": datasets, "variables": variables, "resume": resume, "folds": 1, "columns_of": known}
    data = Data.read(experiment, datasets, {})  # what is noticed is said where all examples are learned from
    data.check_labels(experiment)
    count, learned = len(data.training), data.learned(experiment)
    most = most_folds(data.training, data.reader.task)
    if only_if_small:
        num_folds = min(num_folds, most)
        if count > _MOST_EXAMPLES or num_folds < 2:
            text = "%s: no cross-validation, which is the default for 2 to %s different ones"
            logger.info(text, counted(count, "example"), f"{_MOST_EXAMPLES:,}")
            own += ["validation_data_path=null"] if num_folds < 2 else []
            settings |= {"from_run": from_run, "force": force, "predictions": predictions}
            return train(config, folder, overrides=own, **settings)
    elif most < num_folds:
        raise ElmoTasksError(f"{counted(most, 'example')} for {num_folds} folds; expected at least as many")
    if force:
        shutil.rmtree(run.folds, ignore_errors=True)
    start = _Start.of(from_run, learned, num_folds)

    def train_part(part: _Part) -> None:
        held_out = [f"fold.number={part.fold}", f"fold.of={num_folds}", f"fold.seed={experiment.validation_seed}"]
        held_out.append("test_data_path=null")
        if part.share < 1:
            held_out.append(f"train_share.share={part.share}")
        own_settings = settings | {"callbacks": [*settings.get("callbacks", ()), _KeepEpochs(part.path)]}
        own_settings |= {"from_run": start.of_fold(part.fold), "earlier": start.learned, "self_contained": False}
        with _quiet(logging.ERROR):
            train(config, part.path, overrides=[*changes, *held_out], **own_settings)

    folds = [_Part(number, run.folds / str(number)) for number in range(1, num_folds + 1)]
    text = "%s: %s in %d folds, each predicted by a model of the others; --folds 1 holds out a fifth of them instead"
    logger.info(text, run.path, counted(count, "example"), num_folds)
    for part in _timed(folds, "folds"):
        train_part(part)
    is_fast = not tensor_shapes(RunFolder(folds[0].path).model)  # nothing is trained by epochs
    shares = _SHARES if count >= _FEWEST_TO_GROW and not experiment.train_share else ()
    parts = [
        _Part(part.fold, run.folds / f"{part.fold}_{100 * share:.0f}_percent", share)
        for share in shares
        for part in (folds if is_fast else folds[:_ENOUGH])
    ]
    for part in _timed(parts, "parts of the data"):
        train_part(part)

    scores = {part: _scores_of_epochs(part, experiment) for part in [*folds, *parts]}
    epochs = {
        part: _best_epoch([scores[other] for other in folds if other != part], experiment.trainer) for part in folds
    }
    for part in folds:
        _settle(part, epochs[part], [other for other in folds if other != part])
    epoch = _best_epoch([scores[part] for part in folds], experiment.trainer)
    last = _StopAfter(epoch, _threshold(folds, epoch))
    settings["callbacks"] = [*settings.get("callbacks", ()), last]
    settings |= {"from_run": start.source, "earlier": start.learned, "force": force, "predictions": tested}
    with _quiet(logging.WARNING):
        metrics = train(config, folder, overrides=changes, **settings)

    models = [load_run(part.path, overrides=["calibrated=false"]) for part in folds]
    with _quiet(logging.ERROR):
        held_out = [Data.read(model.config, datasets, {}, start.learned).held_out["validation"] for model in models]
        pairs = _write_predictions(run, list(zip(models, held_out, strict=True)))
    key_of = data.reader.task.key
    numbers = {key_of(each): part.fold for part, own in zip(folds, held_out, strict=True) for each in own}
    Learned({key: numbers.get(key, LEARNED) for key in learned.parts}, learned.labels).write(run.learned)

    def loss_with(share: float) -> float:
        """By how much the score of a fold is another if its model learns from a share, the mean of the folds."""
        changes = []
        for part in parts:
            if part.share == share:
                whole = folds[part.fold - 1]
                chosen = epochs[whole] - 1
                changes.append(scores[part][chosen] - scores[whole][chosen])
        return statistics.fmean(changes)

    losses = {round(share * count): loss_with(share) for share in shares}
    unknown = str(start.source) if start.source and not start.learned else None
    metrics["best"]["validation"] = write_report(run, data, experiment, pairs, losses, num_folds, epoch, unknown)
    write_json(run.metrics, metrics)
    for part in [*folds, *parts]:
        shutil.rmtree(part.path / _EPOCHS, ignore_errors=True)
        RunFolder(part.path).training_state.unlink(missing_ok=True)
    return metrics


@dataclasses.dataclass(frozen=True)
class _Start:
    """What the models start with, so that no fold's model has seen what it is held to predict.

    Attributes:
        source: the run to start from, if there is one.
        learned: what it has learned from, if it says so.
        by_fold: whether it has seen some of the examples. Then a fold starts with the same fold of that run.
    """

    source: str | Path | None = None
    learned: Learned | None = None
    by_fold: bool = False

    @classmethod
    def of(cls, source: str | Path | None, examples: Learned, num_folds: int) -> _Start:
        if source is None:
            return cls()
        run = open_run(source)
        learned = Learned.read(run.learned)
        if learned is None:
            text = "%s: does not say what it has learned from; if it has seen these examples, the score is too high"
            logger.warning(text, source)
            return cls(source)
        known = sum(learned.parts.get(key, HELD_OUT) >= LEARNED for key in examples.parts)
        if not known:
            return cls(source, learned)
        logger.info("%s: its training data and this one, each text once: %s", source, learned.changes(examples))
        by_fold = (run.folds / str(num_folds)).is_dir() and not (run.folds / str(num_folds + 1)).exists()
        if not by_fold:
            text = "%s: has learned from %d of the examples, and has no %d folds: all models start anew"
            logger.warning(text, source, known, num_folds)
            return cls(None, learned)
        return cls(source, learned, by_fold)

    def of_fold(self, number: int) -> str | Path | None:
        return open_run(self.source).folds / str(number) if self.source and self.by_fold else self.source


class _KeepEpochs(Callback):
    """Keeps the parameters of every epoch, with the threshold that the held-out fold chose for a model that has one."""

    def __init__(self, run: Path) -> None:
        self._run = run

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        tensors = {name: each.detach() for name, each in self.trainer.parameters.items()}
        if (threshold := self.trainer.objective.model.threshold) is not None:
            tensors["threshold"] = threshold
        write_tensors(_epoch_file(self._run, progress.epoch + 1), tensors)


def _epoch_file(run: Path, epoch: int) -> Path:
    return run / _EPOCHS / f"{epoch}.safetensors"


class _StopAfter(Callback):
    """Ends a training after an epoch, with a threshold for a model that has one."""

    def __init__(self, epoch: int, threshold: float | None) -> None:
        self._epoch = epoch
        self._threshold = threshold

    def on_start(self, progress: Progress) -> None:
        if self._threshold is not None:
            self.trainer.objective.model.threshold.fill_(self._threshold)
        if progress.epoch >= self._epoch:  # a run that is resumed after its last epoch
            self.trainer.stop()

    def on_epoch(self, progress: Progress, record: Mapping[str, Any]) -> None:
        if progress.epoch + 1 >= self._epoch:
            self.trainer.stop()


def _timed(parts: Sequence[_Part], what: str) -> Iterator[_Part]:
    """The parts, with a progress bar, and lines that say how long the rest may take.

    The first part may take longer, because it fills the layer store. So the second one says it again.
    """
    start = time.monotonic()
    for number, part in enumerate(counted_items(parts, what, total=len(parts)), start=1):
        begun = time.monotonic()
        yield part
        if number <= 2 and number < len(parts):
            now = time.monotonic()
            rest = (now - begun) * (len(parts) - number)
            logger.info("%d of %d %s after %.0f s; to go: about %.0f s", number, len(parts), what, now - start, rest)


def _scores_of_epochs(part: _Part, experiment: ExperimentConfig) -> list[float]:
    """The validation metric of each epoch on the fold that is held out."""
    records = read_records(RunFolder(part.path).records, BestEpoch, "the record of an epoch")
    return [experiment.trainer.value_of(record.validation) for record in records]


def _best_epoch(scores: Sequence[Sequence[float]], trainer: TrainerConfig) -> int:
    """The epoch, from 1, with the best mean score of some folds; of equal ones the first."""
    means = [statistics.fmean(each) for each in zip(*scores, strict=False)]
    best = max(means) if trainer.higher_is_better else min(means)
    return means.index(best) + 1


def _threshold(folds: Sequence[_Part], epoch: int) -> float | None:
    """The mean threshold of folds after an epoch; None for models that have none."""
    found = [read_tensors(_epoch_file(part.path, epoch)).get("threshold") for part in folds]
    thresholds = [each.item() for each in found if each is not None]
    return statistics.fmean(thresholds) if thresholds else None


def _settle(part: _Part, epoch: int, others: Sequence[_Part]) -> None:
    """Gives the run of a fold the parameters of an epoch, and the threshold of the other folds."""
    run = RunFolder(part.path)
    tensors = read_tensors(_epoch_file(part.path, epoch))
    if (threshold := _threshold(others, epoch)) is not None:
        tensors["threshold"] = torch.tensor(threshold)
    write_tensors(run.model, tensors, epoch=str(epoch))
    write_json(run.metrics, {"best": read_record(run.records, epoch, BestEpoch).model_dump()})


def _write_predictions(
    run: RunFolder, folds: Sequence[tuple[Run, datasets.Dataset]]
) -> list[dict[str, dict[str, Any]]]:
    """Writes what the model of each fold predicts for the examples held out, and what it says of probabilities.

    Returns:
        the `example` and the `prediction` of each line, in the order of the training data.
    """
    calibration = calibrate_folds(folds)
    found: list[tuple[tuple[int, int], dict[str, dict[str, Any]]]] = []

    def keep(row: int, example: dict[str, Any], prediction: dict[str, Any]) -> None:
        found.append(((example["file"], example["line"] or 0), {"example": example, "prediction": prediction}))

    for fold, examples in folds:
        fold.model.temperature = calibration.get("temperature", 1.0)
        evaluate_examples(fold, examples, sink=keep)
    pairs = [pair for _, pair in sorted(found, key=lambda each: each[0])]
    with atomic_write(run.validation_predictions) as stream:
        stream.writelines(f"{json_text(pair)}\n".encode() for pair in pairs)
    if calibration:
        write_json(run.calibration, calibration)
    return pairs


@contextlib.contextmanager
def _quiet(level: int) -> Iterator[None]:
    """Within the block, the package logs only what is at least this serious."""
    package = logging.getLogger("elmo_tasks")
    earlier = package.level
    package.setLevel(max(level, package.getEffectiveLevel()))
    try:
        yield
    finally:
        package.setLevel(earlier)
