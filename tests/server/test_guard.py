"""What is too much, too large or too slow."""

from __future__ import annotations

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.server.bounds import Limits
from elmo_tasks.server.guard import Guard, admit
from elmo_tasks.server.metrics import Metrics
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


@pytest.mark.parametrize("parts", [1, 3])
def test_an_answer_is_counted_before_it_is_sent_or_after_its_last_part(parts: int) -> None:
    metrics, open_tokens = Metrics(), []

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        admit(scope, 7)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for part in range(1, parts + 1):
            await send({"type": "http.response.body", "body": b"x", "more_body": part < parts})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            counts = re.findall(r"^elmo_tasks_(?:open_tokens|open_requests|requests_total.*) (\S+)$", text(), re.M)
            open_tokens.append([float(count) for count in counts])

    def text() -> str:
        return metrics.text().decode()

    scope = {"type": "http", "method": "POST", "path": "/"}
    asyncio.run(Guard(answer, Limits(), metrics)(scope, None, send))  # type: ignore[arg-type]
    assert open_tokens == ([[1.0, 0.0, 0.0]] if parts == 1 else [[1.0, 7.0]] * parts)
    assert 'requests_total{endpoint="other",status="200"} 1.0' in text()
    assert "elmo_tasks_open_tokens 0.0" in text()
