"""What is too much, too large or too slow."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.server.bounds import Limits
from elmo_tasks.server.served_runs import ServedRun
from tests.server.conftest import Serve, blocked, post


def test_large_bodies_and_long_texts(serve: Serve) -> None:
    with serve(Limits(body_bytes=1000, request_tokens=20)) as client:
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
    "limits",
    [
        Limits(queue_requests=2),
        Limits(request_tokens=4, queue_tokens=4),
        Limits(request_tokens=4, queue_tokens=5),
    ],
)
def test_overload_is_refused_at_once_and_passes(
    limits: Limits, serve: Serve, runs: dict[str, ServedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"tokens": ["a", "b"]}
    with serve(limits) as client, ThreadPoolExecutor(2) as threads:
        with blocked(runs["ner"], monkeypatch) as started:
            waiting = [threads.submit(post, client, "/api/runs/ner/predict", body) for _ in range(2)]
            assert started.wait(30)
            until = time.monotonic() + 25
            while "elmo_tasks_open_tokens 4.0" not in client.get("/metrics").text:  # is answered also under overload
                assert time.monotonic() < until
            answer = client.post("/api/runs/again/predict", json=body)
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
            assert "try again" in answer.json()["error"]
        assert all(each.result(30)["results"] for each in waiting)
        assert post(client, "/api/runs/again/predict", body)["results"]


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
