"""Makes parts on a Ray cluster: each unit is a row of a Ray data set, which a pool of actors works through.

Ray starts a cluster on this machine where none is given. It restarts actors that die and repeats their units.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from typing import Any

from elmo_tasks.errors import ElmoTasksError, one_line
from elmo_tasks.integrations.parts import Made, PartsFolder, TableFunction
from elmo_tasks.integrations.units import Unit
from elmo_tasks.progress import progress_bar


class _Worker:
    """An actor, which keeps its model for all of its units."""

    def __init__(self, folder: PartsFolder, function: TableFunction, units: Sequence[Unit]) -> None:
        self._folder, self._function, self._units = folder, function, units

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        unit = self._units[row["id"]]
        try:
            made = self._folder.process([unit], self._function, visible=False)
        except ElmoTasksError as error:
            return {"source": unit.source, "error": str(error), "errors": 0}
        return {"source": unit.source, "error": None, "errors": made.errors}


@contextlib.contextmanager
def ray_cluster(address: str | None) -> Iterator[Any]:
    """Connects to a Ray cluster within the block, and yields the package `ray`.

    Arguments:
        address: that of a running cluster, or "auto"; by default that in `RAY_ADDRESS`. Without one, a cluster is
            started on this machine.

    Raises:
        ElmoTasksError: Ray is not installed, or there is no cluster, or it fails within the block.
    """
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise ElmoTasksError("Ray is not installed; install it with: pip install 'elmo-tasks[ray]'") from None
    address = address or os.environ.get("RAY_ADDRESS", "local")  # without it, Ray may join another user's cluster
    try:
        ray.init(address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except ConnectionError as error:
        raise ElmoTasksError(f"--address {address}: no Ray cluster there ({one_line(error)})") from None
    try:
        yield ray
    except ray.exceptions.RayError as error:
        raise ElmoTasksError(f"Ray: {error}") from error
    finally:
        ray.shutdown()


def process_on_ray(
    folder: PartsFolder,
    units: Sequence[Unit],
    function: TableFunction,
    *,
    address: str | None = None,
    workers: int | None = None,
    use_gpu: bool = False,
) -> Made:
    """Makes the parts that are missing.

    Arguments:
        folder, units, function: see `PartsFolder.process`. All machines must see the files under the same paths.
        address: that of a running cluster; by default one is started on this machine.
        workers: how many actors, each with one thread or one GPU; by default as many as there are.

    Raises:
        ElmoTasksError: as `PartsFolder.process`; or Ray is not installed.
    """
    missing = [unit for unit in units if not folder.is_done(unit)]
    folder.begin()
    if not missing:
        return Made()
    errors = 0
    with ray_cluster(address) as ray:
        ray.data.DataContext.get_current().enable_progress_bars = False
        # It shows its plan otherwise. Only now, because `ray.data` sets the level when it is first used.
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        available = ray.cluster_resources().get("GPU" if use_gpu else "CPU", 0)
        made = ray.data.range(len(missing), override_num_blocks=len(missing)).map(
            _Worker,
            fn_constructor_kwargs={"folder": folder, "function": function, "units": missing},
            compute=ray.data.ActorPoolStrategy(size=workers or max(1, min(len(missing), int(available)))),
            num_cpus=None if use_gpu else 1,
            num_gpus=1 if use_gpu else None,
        )
        with progress_bar() as bar:
            task = bar.add_task("parts", total=len(units), completed=len(units) - len(missing), note="")
            for row in made.iter_rows():
                if row["error"] is not None:
                    raise ElmoTasksError(row["error"])
                errors += row["errors"]
                bar.update(task, advance=1, note=row["source"])
    return Made(len(missing), errors)
