"""Bounds requests in number, size and time, before anything else sees them, and counts them for Prometheus."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Collection
from typing import Any

from fastapi import HTTPException
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmo_tasks.extras.server import Limits

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_TOKEN_BUCKETS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_REQUEST_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_GUARD, _TOKENS = "elmo_tasks.guard", "elmo_tasks.tokens"  # keys of a request's scope: its guard, and its tokens
_PORT = re.compile(r":\d*$")
_OWN = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
# Swagger's page has a script and styles within it.
_POLICIES = {"/docs": "default-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"}


class Metrics:
    """The counters of one application, in the text format of Prometheus."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)  # memory, processor time, open files

        common: Any = {"namespace": "elmo_tasks", "registry": self._registry}
        self._requests = Counter("requests_total", "Answered requests.", ("endpoint", "status"), **common)
        self._seconds = Histogram("request_seconds", "Seconds until the answer is sent.", ("endpoint",), **common)
        self.open_requests = Gauge("open_requests", "Requests that are not answered yet.", **common)
        self.open_tokens = Gauge("open_tokens", "Tokens of requests that are not answered yet.", **common)
        self._batch_requests = Histogram(
            "batch_requests", "Requests computed together.", buckets=_REQUEST_BUCKETS, **common
        )
        self._batch_tokens = Histogram("batch_tokens", "Tokens computed together.", buckets=_TOKEN_BUCKETS, **common)
        self._batch_seconds = Histogram("batch_seconds", "Seconds to compute a batch.", **common)

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        self._requests.labels(endpoint, status).inc()
        self._seconds.labels(endpoint).observe(seconds)

    def computed(self, requests: int, tokens: int, seconds: float) -> None:
        self._batch_requests.observe(requests)
        self._batch_tokens.observe(tokens)
        self._batch_seconds.observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Overload(HTTPException):
    """Too much is waiting."""

    def __init__(self) -> None:
        super().__init__(429, "too many requests are waiting; try again in a second", {"Retry-After": "1"})


class _Request:
    """A request, whose body is bounded, and the answer to it.

    Attributes:
        status: of the answer, 0 until it begins.
        is_read: whether the whole body has arrived.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, body_bytes: int) -> None:
        self.scope, self._receive, self._send = scope, receive, send
        self._body_bytes = self._body_left = body_bytes
        self.begin, self.status, self.is_read = time.monotonic(), 0, False
        self.counts = scope["method"] == "POST"  # pages and counters are answered also while everything else waits

    async def receive(self) -> Message:
        message = await self._receive()
        self._body_left -= len(message.get("body", b""))
        self.is_read = not message.get("more_body", False)
        if self._body_left < 0:
            raise HTTPException(413, f"the body has more than {self._body_bytes:,} bytes")
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            policy = _POLICIES.get(self.scope["path"], _OWN)
            own = {"content-security-policy": policy, "x-content-type-options": "nosniff"}
            headers = [(name.encode(), value.encode()) for name, value in own.items()]
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await self._send(message)

    async def refuse(self, error: HTTPException) -> None:
        await error_response(error)(self.scope, self.receive, self.send)


class Guard:
    """Middleware that refuses what is too much (429), too large (413) or too slow (408, 504), and other hosts (400).

    A request counts until its answer is sent: answers that nobody reads cannot fill the memory.
    """

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics, hosts: Collection[str]) -> None:
        self._app, self._limits, self._metrics, self._hosts = app, limits, metrics, {each.lower() for each in hosts}
        self._requests = self._tokens = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # as GET; the web server leaves the body out
            scope = {**scope, "method": "GET"}
        request = _Request(scope, receive, send, self._limits.body_bytes)
        self._requests += request.counts
        self._metrics.open_requests.set(self._requests)
        try:
            host = _PORT.sub("", Headers(scope=scope).get("host", "")).lower()
            if not self._hosts & {host, "*"}:
                known = f"the header Host is {host[:80]!r}; expected one of {', '.join(sorted(self._hosts))}"
                await request.refuse(HTTPException(400, f"{known}, or a name that serve --allow-host has added"))
                return
            if self._requests > self._limits.queue_requests and request.counts:
                await request.refuse(Overload())
                return
            scope.update({_GUARD: self, _TOKENS: 0})
            await asyncio.wait_for(self._app(scope, request.receive, request.send), self._limits.timeout_seconds)
        except asyncio.TimeoutError:
            if not request.status:  # otherwise the connection is closed, since the answer is not complete
                within = f"{self._limits.timeout_seconds:g} seconds"
                late = HTTPException(504, f"there was no result within {within}")
                slow = HTTPException(408, f"the request did not arrive within {within}")
                await request.refuse(late if request.is_read else slow)
        finally:
            self._requests -= request.counts
            self.hold(-request.scope.get(_TOKENS, 0))
            self._metrics.open_requests.set(self._requests)
            route = request.scope.get("route")
            seconds = time.monotonic() - request.begin
            self._metrics.answered(getattr(route, "path", "") or "other", request.status, seconds)

    def hold(self, tokens: int) -> None:
        """Counts tokens that are not answered yet, or no longer if there are fewer than 0.

        Raises:
            Overload: there would be too many.
        """
        if tokens > 0 and self._tokens + tokens > self._limits.queue_tokens:
            raise Overload
        self._tokens += tokens
        self._metrics.open_tokens.set(self._tokens)


def admit(scope: Scope, tokens: int) -> None:
    """Counts the tokens of a request until it is answered; raises `Overload` if too many are waiting."""
    scope[_GUARD].hold(tokens)
    scope[_TOKENS] += tokens


def error_response(error: Any) -> JSONResponse:
    """The answer for an `HTTPException` of FastAPI or Starlette."""
    return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)
