import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.server import Limits
from elmo_tasks.extras.server.request_batches import Batcher
from elmo_tasks.extras.server.served_runs import ServedRun
from tests.extras.server.conftest import Serve, blocked, post


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
    batcher = Batcher(batch_tokens=10)
    yield batcher
    work.go.set()
    batcher.close()


def test_what_waits_is_computed_together_up_to_the_bound_and_in_order(batcher: Batcher, work: Work) -> None:
    """Other work does not end a batch."""
    first = batcher.submit(work.double, 0, 1)
    assert work.started.wait(30)
    elsewhere, sizes = [], ((1, 4), (2, 4), (3, 4), (4, 6), (5, 99), (6, 1))
    others = []
    for item, tokens in sizes:
        others.append(batcher.submit(work.double, item, tokens))
        elsewhere.append(batcher.submit(work.negate, item, 1))
    work.go.set()
    assert first.result(30) == 0
    assert [each.result(30) for each in others] == [2, 4, 6, 8, 10, 12]
    assert [each.result(30) for each in elsewhere] == [-1, -2, -3, -4, -5, -6]
    assert work.batches == [[0], [1, 2], [1, 2, 3, 4, 5, 6], [3, 4], [5], [6]]  # 3 and 4 are just enough


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


def test_closing_computes_what_waits(work: Work) -> None:
    batcher = Batcher(10)
    futures = [batcher.submit(work.negate, item, 1) for item in range(3)]
    batcher.close()
    assert [each.result(0) for each in futures] == [0, -1, -2]
    with pytest.raises(RuntimeError, match="closed"):
        batcher.submit(work.negate, 1, 1)


def test_a_batch_is_counted_before_anyone_has_an_answer(work: Work) -> None:
    counted: list[tuple[int, int, bool]] = []
    batcher = Batcher(10, lambda items, tokens, seconds: counted.append((items, tokens, future.done())))
    future = batcher.submit(work.double, 3, 2)
    work.go.set()
    batcher.close()
    assert counted == [(1, 2, False)]
    assert future.done()


def test_large_bodies_and_long_texts(serve: Serve) -> None:
    with serve(Limits(body_bytes=1000, request_tokens=20, queue_tokens=20)) as client:
        expected = "the body has more than 1,000 bytes"
        assert post(client, "/api/runs/ner/predict", {"text": "a" * 1000}, 413) == expected
        expected = "21 tokens; expected at most 20 in a request. Send less text at once"
        assert post(client, "/api/runs/ner/predict", {"text": "a " * 21}, 422) == expected
        assert post(client, "/api/embed", {"tokens": ["a"] * 21}, 422) == expected
        assert post(client, "/api/runs/ner/predict-batch", {"inputs": ["a " * 11, "a " * 10]}, 422) == expected
        assert post(client, "/api/embed", {"tokens": ["a"] * 20})["tokens"] == ["a"] * 20
        content = b'{"tokens": ["%s"]}' % (b"a" * 984)
        assert len(content) == 1000
        for body, status in ((content, 200), (content + b" ", 413)):
            answer = client.post("/api/embed", content=body, headers={"content-type": "application/json"})
            assert answer.status_code == status


def test_a_request_that_is_allowed_may_also_wait() -> None:
    default = Limits()
    assert (default.request_tokens, default.body_bytes, default.queue_tokens) == (2000, 100_000, 20_000)
    with pytest.raises(ElmoTasksError, match=r"--max-tokens is 5 and --max-waiting-tokens is 4"):
        Limits(request_tokens=5, queue_tokens=4)


@pytest.mark.parametrize(
    ("limits", "refused"),
    [
        (Limits(queue_requests=2), 1),
        (Limits(request_tokens=4, queue_tokens=4), 1),
        (Limits(request_tokens=4, queue_tokens=5), 2),
    ],
)
def test_overload_is_refused_at_once_and_passes(
    limits: Limits, refused: int, serve: Serve, runs: dict[str, ServedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"tokens": ["a", "b"]}
    with serve(limits) as client, ThreadPoolExecutor(2) as threads:
        with blocked(runs["ner"], monkeypatch) as started:
            waiting = [threads.submit(post, client, "/api/runs/ner/predict", body) for _ in range(2)]
            assert started.wait(30)
            until = time.monotonic() + 25
            while "elmo_tasks_open_tokens 4.0" not in client.get("/metrics").text:  # is answered also under overload
                assert time.monotonic() < until
            assert "elmo_tasks_open_requests 2.0" in client.get("/metrics").text
            answer = client.post("/api/runs/again/predict", json={"tokens": ["a"] * refused})
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
            assert "try again" in answer.json()["error"]
        assert all(each.result(30)["results"] for each in waiting)
        assert post(client, "/api/runs/again/predict", body)["results"]
        assert "elmo_tasks_open_tokens 0.0" in client.get("/metrics").text


def test_what_takes_too_long_is_given_up(
    serve: Serve, runs: dict[str, ServedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(Limits(timeout_seconds=0.5)) as client:
        with blocked(runs["ner"], monkeypatch):
            for _ in range(2):  # the second one has not begun
                error = post(client, "/api/runs/ner/predict", {"text": "a"}, 504)
                assert error == "there was no result within 0.5 seconds"
        text = client.get("/metrics").text
        assert "elmo_tasks_open_tokens 0.0" in text
        assert "elmo_tasks_open_requests 0.0" in text
    with serve() as client:
        assert post(client, "/api/runs/ner/predict", {"text": "a"})["results"]
