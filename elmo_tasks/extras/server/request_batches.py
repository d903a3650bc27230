"""Requests that come at about the same time are computed together, in one thread."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

logger = logging.getLogger(__name__)

Process = Callable[[list[Any]], Sequence[Any]]
"""Computes several items. For each it gives the result, or the error that its request gets."""


@dataclasses.dataclass(frozen=True)
class _Waiting:
    process: Process
    item: Any
    tokens: int
    future: Future[Any]


class Batcher:
    """Gathers items and computes them in batches, the oldest first.

    A batch begins with the oldest item, and takes further ones for the same `process`, in the order of their arrival,
    up to `batch_tokens`. While a batch is computed, the next one gathers. One thread computes everything: more would
    only compete for the processors, and the memory of one batch is a bound.

    Arguments:
        batch_tokens: the most tokens of a batch. A larger item is a separate batch.
        observe: called after each batch with its number of items, its tokens and its seconds, before any item has its
            result.
    """

    def __init__(
        self,
        batch_tokens: int,
        observe: Callable[[int, int, float], object] = lambda items, tokens, seconds: None,
    ) -> None:
        self._batch_tokens = batch_tokens
        self._observe = observe
        self._waiting: list[_Waiting] = []
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="batches", daemon=True)
        self._thread.start()

    def submit(self, process: Process, item: Any, tokens: int) -> Future[Any]:
        """Adds an item, and returns its result as a future. An item whose future is cancelled is not computed.

        Raises:
            RuntimeError: the batcher is closed.
        """
        future: Future[Any] = Future()
        with self._changed:
            if self._closing:
                raise RuntimeError("the batcher is closed")
            self._waiting.append(_Waiting(process, item, tokens, future))
            self._changed.notify()
        return future

    def close(self) -> None:
        """Computes what is waiting, and ends the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next_batch():
            begin = time.monotonic()
            running = [each for each in batch if each.future.set_running_or_notify_cancel()]
            if not running:
                continue
            try:
                results = running[0].process([each.item for each in running])
                answers = list(zip(running, results, strict=True))
            except Exception as error:  # a bug, or no memory: this batch gets an error, and the next one is computed
                logger.exception("a batch failed")
                problem = f"the batch failed: {type(error).__name__}"
                answers = [(each, RuntimeError(problem)) for each in running]
            # Counted first: people who have an answer find it among the counts.
            self._observe(len(running), sum(each.tokens for each in running), time.monotonic() - begin)
            for each, result in answers:
                if isinstance(result, Exception):
                    each.future.set_exception(result)
                else:
                    each.future.set_result(result)

    def _next_batch(self) -> list[_Waiting]:
        """Waits for the next batch; empty at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            if not self._waiting:
                return []
            first, *others = self._waiting
            batch, tokens = [first], first.tokens
            for each in others:
                if each.process == first.process:
                    if tokens + each.tokens > self._batch_tokens:
                        break
                    batch.append(each)
                    tokens += each.tokens
            taken = {id(each) for each in batch}
            self._waiting = [each for each in self._waiting if id(each) not in taken]
            return batch
