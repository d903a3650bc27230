"""A stand-in for Ray, in this process: what a cluster answers, and what it was asked to start.

The tests of `make engines` use Ray itself.
"""

from __future__ import annotations

import logging
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest


class RayError(Exception):
    """What Ray raises if a process dies, for example."""


class FakeRay(types.ModuleType):
    """The package `ray`, with a cluster that computes everything when it is asked for.

    Attributes:
        resources: of the cluster.
        clusters: the addresses of all clusters that were joined or started.
        is_running: whether there is one now.
        has_page: whether it serves its page, from which anyone who can reach it may run code.
        actors: how many have been started.
        needs: the processors and GPUs that each actor occupies.
        failure: what is raised when an actor has to compute something.
        missing: the addresses where there is no cluster.
        said: what it has shown of its own progress.
    """

    def __init__(self) -> None:
        super().__init__("ray")
        self.resources: dict[str, float] = {"CPU": 4.0}
        self.clusters: list[str] = []
        self.is_running = self.has_page = False
        self.actors = 0
        self.needs: tuple[float | None, float | None] = (None, None)
        self.failure: Exception | None = None
        self.missing: set[str] = set()
        self.said: list[str] = []
        self.exceptions = types.ModuleType("ray.exceptions")
        self.exceptions.RayError = RayError  # type: ignore[attr-defined]
        self._context = types.SimpleNamespace(enable_progress_bars=True)
        self.data = types.SimpleNamespace(
            DataContext=types.SimpleNamespace(get_current=lambda: self._context),
            ActorPoolStrategy=lambda size: size,
            range=lambda count, override_num_blocks: _Rows(self, min(count, override_num_blocks)),
        )

    def init(
        self,
        address: str,
        include_dashboard: bool = True,
        log_to_driver: bool = True,
        logging_level: int = logging.INFO,
    ) -> None:
        if address in self.missing:
            raise ConnectionError(f"no answer\nfrom {address}")
        self.clusters.append(address)
        self.is_running, self.has_page = True, include_dashboard
        if log_to_driver or logging_level < logging.ERROR:
            self.said.append("a log of what each process prints")

    def shutdown(self) -> None:
        self.is_running = False

    def cluster_resources(self) -> dict[str, float]:
        return self.resources

    def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        assert self.is_running
        if self.failure:
            raise self.failure
        return function(*arguments)

    def start_actors(self, number: int) -> None:
        self.actors += number
        if self._context.enable_progress_bars or logging.getLogger("ray.data").level < logging.ERROR:
            self.said.append("the plan and its progress")


class _Rows:
    def __init__(self, ray: FakeRay, count: int) -> None:
        self._ray, self._count = ray, count

    def map(
        self,
        kind: Callable[..., Any],
        fn_constructor_kwargs: dict[str, Any],
        compute: int,
        num_cpus: float | None,
        num_gpus: float | None,
    ) -> _Rows:
        self._ray.needs = num_cpus, num_gpus
        self._actors = [kind(**fn_constructor_kwargs) for _ in range(compute)]
        self._ray.start_actors(compute)
        return self

    def iter_rows(self) -> Iterator[dict[str, Any]]:
        for number in range(self._count):
            yield self._ray.compute(self._actors[number % len(self._actors)], {"id": number})


def use_fake_ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    """Puts the stand-in in the place of the package `ray`."""
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray.exceptions", ray.exceptions)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(logging.getLogger("ray.data"), "level", logging.INFO)
    return ray
