"""Trains the runs of a study that are missing, one after the other; several processes may share them."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import filelock

from elmo_tasks.config import to_json
from elmo_tasks.errors import ElmoTasksError, WriteError, one_line
from elmo_tasks.extras.studies.study import StudyRun
from elmo_tasks.extras.studies.study_runs import StudyFolder
from elmo_tasks.files.json_files import write_json
from elmo_tasks.files.paths import check_kind
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.runs.train import train

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_CLAIMS = 0.5  # whether another process still trains a run or a trial


def run_study(folder: StudyFolder, *, command: str, packages: Sequence[str] = ()) -> list[str]:
    """Trains what is missing of the chosen runs.

    Interrupted runs are resumed. A run that fails does not stop the others; a full disk, which would hit them too,
    does. Several processes, also on machines that share a disk, may work on one study: each run is trained by one of
    them, and all end when all runs have.

    Arguments:
        command: what started the study, for its report.
        packages: packages that were imported, for its report; see `elmo_tasks.config.include_packages`.

    Returns:
        the runs that failed here, with their errors.
    """
    check_kind(folder.path, "study.json", remedy="-s names another folder")
    record = {"command": command, "config": to_json(folder.study.config)}
    record |= {"variables": dict(folder.study.variables), "packages": list(packages)}
    write_json(folder.path / "study.json", record)
    folder.write_results()
    runs = folder.chosen()
    waiting = [(run, run_folder) for run, run_folder in runs if not run_folder.metrics.is_file()]
    logger.info("%d of %d runs have finished", len(runs) - len(waiting), len(runs))
    failures = list[str]()
    while waiting:
        with contextlib.ExitStack() as claims:
            mine = next((each for each in waiting if claims.enter_context(claimed(folder.claim(each[1])))), None)
            if mine is None:  # other processes train the last ones
                time.sleep(SECONDS_BETWEEN_CLAIMS)
                continue
            run, run_folder = mine
            error = "" if run_folder.metrics.is_file() else _train(folder, run, run_folder)
        waiting.remove(mine)
        progress = f"{len(runs) - len(waiting)} of {len(runs)}: {run.title}"
        if error:
            failures.append(f"{run.title}: {error}")
            logger.error("%s: failed: %s", progress, error)
            continue
        folder.write_results()
        result = folder.result(run, run_folder)
        logger.info("%s: %s %.2f, %.0f s", progress, result.metric, result.score, result.seconds)
    folder.write_results()  # also those of other processes
    return failures


def _train(folder: StudyFolder, run: StudyRun, run_folder: RunFolder) -> str:
    """Trains a run; returns its error, empty if it finishes."""
    # Arms that share the run may report the scores of different data.
    splits = sorted({other.split for other, its_folder in folder.pairs() if its_folder.path == run_folder.path})
    logger.info("%s: %s", run.title, "resumed" if run_folder.is_started() else "begins")
    try:
        train(
            run.config_file,
            run_folder.path,
            overrides=run.overrides,
            folds=1,
            variables=folder.study.variables,
            resume=any(file.exists() for file in run_folder.files),
            predictions=splits,
        )
    except (WriteError, OSError):
        raise
    except Exception as error:  # what a model of the user's own, or torch without memory, can raise
        if not isinstance(error, ElmoTasksError):
            logger.error("%s", run.title, exc_info=True)
        return one_line(error)
    return ""


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Locks a file, which is made if it does not exist, and yields whether no other process has locked it.

    Unlike that of `locked`, the file stays. Where locks do not work, a warning says so, and the file counts as locked.

    Raises:
        PermissionError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock, is_ours = filelock.FileLock(path), True
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        is_ours = False
    except PermissionError:
        raise
    except (OSError, NotImplementedError) as error:
        logger.warning("%s: no lock (%s); make sure that no other command works there", path, error)
    try:
        yield is_ours
    finally:
        lock.release()
