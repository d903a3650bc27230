"""Trains the runs of a study on a Ray cluster, each as a task of Ray.

Ray repeats the task of a process that dies, and the run is then resumed.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from elmo_tasks.errors import one_line
from elmo_tasks.integrations.ray_engine import ray_cluster
from elmo_tasks.studies.study_training import SECONDS_BETWEEN_LOOKS, Train, Training


@contextlib.contextmanager
def training_on_ray(address: str | None = None) -> Iterator[Train]:
    """What trains a run as a task of Ray, for `run_study`. A run takes a processor, and a GPU if the cluster has any.

    The runs see the current folder and the variables `ELMO_TASKS_...` of this process. All machines must see the files
    under the same paths. If the block ends, so do the trainings.

    Arguments:
        address: that of a running cluster, or "auto"; by default one is started on this machine.

    Raises:
        ElmoTasksError: Ray is not installed, or there is no cluster.
    """
    with ray_cluster(address) as ray:
        num_gpus = 1 if ray.cluster_resources().get("GPU") else 0
        variables = {name: value for name, value in os.environ.items() if name.startswith("ELMO_TASKS_")}
        remote = ray.remote(_train).options(num_cpus=1, num_gpus=num_gpus)

        def train(training: Training, stop: threading.Event) -> str | None:
            task = remote.remote(training, Path.cwd(), variables)
            while not ray.wait([task], timeout=SECONDS_BETWEEN_LOOKS)[0]:
                if stop.is_set():
                    return "interrupted"
            try:
                return ray.get(task)
            except ray.exceptions.RayError as error:
                return f"Ray: {one_line(error)}"

        yield train


def _train(training: Training, folder: Path, variables: Mapping[str, str]) -> str | None:
    """The task, in a process of Ray."""
    os.chdir(folder)
    os.environ.update(variables)
    return training.train(threading.Event())
