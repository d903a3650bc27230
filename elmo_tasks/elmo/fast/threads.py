"""Two tasks at once on the CPU, each with half of torch's threads.

The two directions of a biLM know nothing of each other until they are joined. Each running on its own threads beats
both in turn on all threads: nothing waits for the slowest thread after every one of many short operations.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

import torch

_ResultT = TypeVar("_ResultT")


def run_together(tasks: Sequence[Callable[[], _ResultT]]) -> list[_ResultT]:
    """The results of tasks, run without gradient, two at a time where torch may use two threads or more.

    Raises:
        Exception: what the first of the tasks that failed raised, after all have ended.
    """
    threads = torch.get_num_threads()
    if threads < 2 or len(tasks) < 2:
        return [_without_gradient(task) for task in tasks]
    workers = _workers(os.getpid(), threads)
    futures: list[Future[_ResultT]] = [workers.submit(_without_gradient, task) for task in tasks]
    wait(futures)
    return [future.result() for future in futures]


def _without_gradient(task: Callable[[], _ResultT]) -> _ResultT:
    with torch.inference_mode():
        return task()


@functools.lru_cache(maxsize=1)
def _workers(process: int, threads: int) -> ThreadPoolExecutor:
    """Two threads for tasks. A forked process, and another number of threads, want new ones."""
    started = threading.Barrier(2)

    def start(_: int) -> None:
        torch.set_num_threads(threads // 2)
        started.wait()  # so that each of the two gets one of the calls

    workers = ThreadPoolExecutor(2, thread_name_prefix="bilm")
    list(workers.map(start, range(2)))
    torch.set_num_threads(threads)  # threads that start later take over the number set last
    return workers
