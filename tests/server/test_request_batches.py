from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from elmo_tasks.server.request_batches import Batcher


class Work:
    """Remembers its batches. The first batch waits until it is let go, so that others gather meanwhile."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.started, self.go = threading.Event(), threading.Event()

    def double(self, items: list[int]) -> list[int | Exception]:
        self.started.set()
        assert self.go.wait(30)
        self.batches.append(items)
        return [ValueError(f"not {item}") if item < 0 else 2 * item for item in items]

    def negate(self, items: list[int]) -> list[int]:
        self.batches.append(items)
        return [-item for item in items]


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def batcher(work: Work) -> Iterator[Batcher]:
    batcher = Batcher(batch_tokens=10, wait_seconds=0.0)
    yield batcher
    work.go.set()
    batcher.close()


def test_what_waits_is_computed_together_up_to_the_bound_and_in_order(batcher: Batcher, work: Work) -> None:
    first = batcher.submit(work.double, 0, 1)
    assert work.started.wait(30)
    others = [batcher.submit(work.double, item, tokens) for item, tokens in ((1, 4), (2, 4), (3, 4), (4, 99), (5, 1))]
    elsewhere = batcher.submit(work.negate, 6, 1)
    work.go.set()
    assert first.result(30) == 0
    assert [each.result(30) for each in others] == [2, 4, 6, 8, 10]
    assert elsewhere.result(30) == -6
    assert work.batches == [[0], [1, 2], [3], [4], [5], [6]]


def test_other_work_does_not_end_a_batch(batcher: Batcher, work: Work) -> None:
    batcher.submit(work.double, 0, 1)
    assert work.started.wait(30)
    last = [batcher.submit(process, 1, 1) for process in (work.double, work.negate, work.double, work.negate)][-1]
    work.go.set()
    assert last.result(30) == -1
    assert work.batches == [[0], [1, 1], [1, 1]]


def test_an_error_is_that_of_its_item_only(batcher: Batcher, work: Work) -> None:
    work.go.set()
    good, bad = (batcher.submit(work.double, item, 1) for item in (3, -3))
    assert good.result(30) == 6
    with pytest.raises(ValueError, match="not -3"):
        bad.result(30)


def test_after_a_fault_the_next_batch_is_computed(
    batcher: Batcher, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(items: list[int]) -> list[int]:
        raise ZeroDivisionError

    with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError, match="the batch failed: ZeroDivisionError"):
        batcher.submit(fail, 1, 1).result(30)
    assert "a batch failed" in caplog.text
    with pytest.raises(RuntimeError, match="the batch failed: ValueError"):  # too few results
        batcher.submit(lambda items: [], 1, 1).result(30)
    assert batcher.submit(work.negate, 1, 1).result(30) == -1


def test_what_is_cancelled_is_not_computed(batcher: Batcher, work: Work) -> None:
    batcher.submit(work.double, 0, 1)
    assert work.started.wait(30)
    cancelled, alone, kept = (batcher.submit(each, 1, 1) for each in (work.double, work.negate, work.double))
    assert cancelled.cancel()
    assert alone.cancel()
    work.go.set()
    assert kept.result(30) == 2
    assert batcher.submit(work.negate, 2, 1).result(30) == -2
    assert work.batches == [[0], [1], [2]]


def test_the_first_waits_for_others_but_not_for_ever(work: Work) -> None:
    seen: list[tuple[int, int]] = []
    batcher = Batcher(10, 0.3, lambda items, tokens, seconds: seen.append((items, tokens)))
    begin = time.monotonic()
    futures = [batcher.submit(work.negate, item, 2) for item in range(3)]
    assert [each.result(30) for each in futures] == [0, -1, -2]
    assert time.monotonic() - begin >= 0.29
    batcher.close()
    assert work.batches == [[0, 1, 2]]
    assert seen == [(3, 6)]


def test_closing_computes_what_waits(work: Work) -> None:
    batcher = Batcher(10, 60.0)
    futures = [batcher.submit(work.negate, item, 1) for item in range(3)]
    batcher.close()
    assert [each.result(0) for each in futures] == [0, -1, -2]
    with pytest.raises(RuntimeError, match="closed"):
        batcher.submit(work.negate, 1, 1)


def test_a_batch_is_counted_before_anyone_has_an_answer(work: Work) -> None:
    work.go.set()
    answered: list[bool] = []
    batcher = Batcher(10, 60.0, lambda *counts: answered.extend(each.done() for each in futures))
    futures = [batcher.submit(work.double, item, 1) for item in (3, -3)]
    batcher.close()
    assert answered == [False, False]
    assert all(each.done() for each in futures)
