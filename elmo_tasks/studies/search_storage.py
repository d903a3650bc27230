"""What Optuna knows about the trials of a search: a journal, in which several processes and machines write.

Optuna finds killed trials by the heartbeats of a database. Here, a process locks a file while it trains a trial: the
lock of a process that was killed is free, and another one continues the trial.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import optuna
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import StudyDirection
from optuna.trial import Trial

from elmo_tasks.errors import RunError, WriteError, one_line
from elmo_tasks.files.locks import claimed
from elmo_tasks.studies.searches import Search

JOURNAL = "trials.journal"

_DATABASE = "trials.db"  # of searches that earlier versions made
_CLAIMS = ".claims"  # a folder with a file for each trial, which is locked while it is trained, and one for the journal
_STUDY = "search"  # the study's name in the journal


class SearchStorage:
    """The trials of a search.

    Attributes:
        study: Optuna's.
        lock: what a process holds while it writes in the journal, or chooses a trial. It may take it several times.

    Raises:
        RunError: the journal is damaged, or an earlier version made the search.
    """

    def __init__(self, path: Path, search: Search) -> None:
        if (path / _DATABASE).is_file() and not (path / JOURNAL).is_file():
            raise RunError(
                f"{path}: has the trials of an earlier version ({_DATABASE}), which cannot be continued; "
                "-s names another folder. `elmo-tasks report` still reads them"
            )
        optuna.logging.disable_default_handler()  # trials are logged here
        self._search = search
        self._claims = path / _CLAIMS
        self._claims.mkdir(parents=True, exist_ok=True)
        self.lock = filelock.FileLock(self._claims / "journal")
        higher = search.experiment.trainer.higher_is_better
        try:
            self._storage = optuna.storages.JournalStorage(_Journal(path / JOURNAL, self.lock))
            self.study = optuna.create_study(
                storage=self._storage,
                pruner=_pruner(search),
                study_name=_STUDY,
                direction=StudyDirection.MAXIMIZE if higher else StudyDirection.MINIMIZE,
                load_if_exists=True,
            )
        except (optuna.exceptions.OptunaError, ValueError, LookupError, TypeError, AssertionError) as error:
            raise RunError(f"{path / JOURNAL}: not the journal of a search ({one_line(error)})") from None

    def missing(self) -> list[int]:
        """The numbers, from 0, of the trials that have not ended."""
        trials = self.study.get_trials(deepcopy=False)
        return [n for n in range(self._search.config.trials) if n >= len(trials) or not trials[n].state.is_finished()]

    @contextlib.contextmanager
    def claimed_trial(self) -> Iterator[tuple[Trial, list[str]] | None]:
        """Claims the first trial that is missing and that no other process trains; None if there is none.

        Yields:
            a new trial, or one that was interrupted, and its values as `--set` takes them.
        """
        with contextlib.ExitStack() as claims:
            with self.lock:
                for number in self.missing():
                    if claims.enter_context(claimed(self._claims / f"trial_{number + 1}")):
                        chosen = self._trial(number)
                        break
                else:
                    chosen = None
            yield chosen

    def _trial(self, number: int) -> tuple[Trial, list[str]]:
        """A new trial, or one that was interrupted, which only Optuna's constructor gives."""
        self.study.sampler = _sampler(self._search, number)
        if number >= len(self.study.get_trials(deepcopy=False)):
            trial = self.study.ask()
        else:
            study_id = self._storage.get_study_id_from_name(_STUDY)
            trial = Trial(self.study, self._storage.get_trial_id_from_study_id_trial_number(study_id, number))
        return trial, [f"{parameter.key}={parameter.suggest(trial)}" for parameter in self._search.parameters]


class _Lock(JournalFileOpenLock):
    """The lock of a journal. The kernel releases it if its process is killed, and others need not break it.

    It also cuts off a last line that is not whole, because the next one would be written behind it.
    """

    def __init__(self, journal: Path, lock: filelock.BaseFileLock) -> None:
        super().__init__(str(journal))
        self._journal, self._lock = journal, lock

    def acquire(self) -> bool:
        self._lock.acquire()
        with self._journal.open("rb+") as stream:
            content = stream.read()
            if (whole := content.rfind(b"\n") + 1) < len(content):
                stream.truncate(whole)
        return True

    def release(self) -> None:
        self._lock.release()


class _Journal(JournalFileBackend):
    """The file of a journal. That it cannot be written is a `WriteError`."""

    def __init__(self, path: Path, lock: filelock.BaseFileLock) -> None:
        super().__init__(str(path), _Lock(path, lock))
        self._path = path

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        try:
            super().append_logs(logs)
        except OSError as error:
            raise WriteError(self._path, error) from None


def _pruner(search: Search) -> optuna.pruners.BasePruner:
    if search.config.pruning is None:
        return optuna.pruners.NopPruner()
    return optuna.pruners.MedianPruner(search.config.pruning.startup_trials, search.config.pruning.warmup_epochs + 1)


def _sampler(search: Search, number: int) -> optuna.samplers.BaseSampler:
    """A sampler for one trial, with a seed of its own: what an interrupted search has drawn is not lost."""
    seed = int(np.random.SeedSequence([search.config.seed, number]).generate_state(1)[0])
    if search.config.sampler == "random":
        return optuna.samplers.RandomSampler(seed)
    return optuna.samplers.TPESampler(seed=seed)
