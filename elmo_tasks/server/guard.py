"""Bounds requests in number, size and time, before anything else sees them."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fastapi import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmo_tasks.server.bounds import Limits
from elmo_tasks.server.metrics import Metrics

_GUARD, _TOKENS = "elmo_tasks.guard", "elmo_tasks.tokens"  # keys of a request's scope: its guard, and its tokens
_OWN = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"
# Swagger's page has a script and styles within it.
_POLICIES = {"/docs": "default-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"}


class Overload(HTTPException):
    """Too much is waiting."""

    def __init__(self) -> None:
        super().__init__(429, "too many requests are waiting; try again in a second", {"Retry-After": "1"})


class Guard:
    """Middleware that refuses what is too much (429), too large (413) or too slow (408, 504).

    An answer is counted before it is sent, so that its reader finds it among the counts and can send the next request.
    One in several parts is counted after the last one: answers that nobody reads cannot fill the memory.
    """

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics
        self._requests = self._tokens = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # as GET; the web server leaves the body out
            scope = {**scope, "method": "GET"}
        begin, status, body_left, body_read = time.monotonic(), 0, self._limits.body_bytes, False
        in_parts = counted = False

        async def bounded_receive() -> Message:
            nonlocal body_left, body_read
            message = await receive()
            body_left -= len(message.get("body", b""))
            body_read = not message.get("more_body", False)
            if body_left < 0:
                raise HTTPException(413, f"the body has more than {self._limits.body_bytes:,} bytes")
            return message

        async def noted_send(message: Message) -> None:
            nonlocal status, in_parts
            if message["type"] == "http.response.start":
                status = message["status"]
                policy = _POLICIES.get(scope["path"], _OWN)
                own = {"content-security-policy": policy, "x-content-type-options": "nosniff"}
                headers = [(name.encode(), value.encode()) for name, value in own.items()]
                message = {**message, "headers": [*message.get("headers", ()), *headers]}
            elif not (in_parts := in_parts or message.get("more_body", False)):
                count()
            await send(message)

        def count() -> None:
            nonlocal counted
            if counted:
                return
            counted = True
            self._requests -= counts
            self.hold(-scope.get(_TOKENS, 0))
            self._metrics.open_requests.set(self._requests)
            route = scope.get("route")
            self._metrics.answered(getattr(route, "path", "") or "other", status, time.monotonic() - begin)

        # Pages and counters are answered also while everything else waits.
        counts = scope["method"] == "POST"
        self._requests += counts
        self._metrics.open_requests.set(self._requests)
        try:
            if self._requests > self._limits.queue_requests and counts:
                await _refuse(Overload(), scope, receive, noted_send)
                return
            scope.update({_GUARD: self, _TOKENS: 0})
            await asyncio.wait_for(self._app(scope, bounded_receive, noted_send), self._limits.timeout_seconds)
        except asyncio.TimeoutError:
            if not status:  # otherwise the connection is closed, since the answer is not complete
                seconds = f"{self._limits.timeout_seconds:g} seconds"
                late = HTTPException(504, f"there was no result within {seconds}")
                slow = HTTPException(408, f"the request did not arrive within {seconds}")
                await _refuse(late if body_read else slow, scope, receive, noted_send)
        finally:
            count()

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


async def _refuse(error: HTTPException, scope: Scope, receive: Receive, send: Send) -> None:
    await error_response(error)(scope, receive, send)


def error_response(error: Any) -> JSONResponse:
    """The answer for an `HTTPException` of FastAPI or Starlette."""
    return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)
