"""Two tasks at once, each with half of torch's threads.

The two directions of a biLM are independent until they are joined. Running both at once on half of the threads each is
faster than one after the other on all threads, where each of many short operations waits for the slowest thread.
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


def run_together(tasks: Sequence[Callable[[], _ResultT]], device: torch.device) -> list[_ResultT]:
    """The results of tasks, run without gradient, two at a time if torch may use two threads or more.

    Arguments:
        tasks: on the CPU, they may not call this function.
        device: what they run on. A GPU runs them one after the other.

    Raises:
        Exception: the error of the first failed task, after all tasks have ended.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads < 2 or len(tasks) < 2:
        return [_without_gradient(task) for task in tasks]
    workers = _workers(os.getpid(), threads)
    futures: list[Future[_ResultT]] = [workers.submit(_without_gradient, task) for task in tasks]
    wait(futures)
    return [future.result() for future in futures]


@torch.no_grad()
def _without_gradient(task: Callable[[], _ResultT]) -> _ResultT:
    return task()


@functools.lru_cache(maxsize=1)
def _workers(process: int, threads: int) -> ThreadPoolExecutor:
    """Two threads for tasks. A forked process or another number of threads needs new ones."""
    started = threading.Barrier(2)

    def start(_: int) -> None:
        torch.get_num_threads()  # a thread's first call sets its number to that of the process
        torch.set_num_threads(threads // 2)
        started.wait()  # so that each of the two gets one of the calls

    workers = ThreadPoolExecutor(2, thread_name_prefix="bilm")
    list(workers.map(start, range(2)))
    torch.set_num_threads(threads)  # threads that start later use the number that was set last
    return workers
