"""Serves an application until the process is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import math
import socket

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.server.bounds import Limits

logger = logging.getLogger(__name__)

_GRACE_SECONDS = 10.0  # beyond the time of a request, before its connection is cut


def bind(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any free one. It does not listen yet.

    Raises:
        ElmoTasksError: the address is not one of this machine, or in use.
    """
    try:
        with contextlib.ExitStack() as stack:
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
            bound = stack.enter_context(socket.socket(family))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            stack.pop_all()  # it stays open
            return bound
    except OSError as error:
        raise ElmoTasksError(f"{host}:{port}: {error.strerror}; --host and --port name another address") from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(app: FastAPI, bound: socket.socket, limits: Limits) -> None:
    """Serves until SIGTERM or SIGINT, then finishes the requests that are there."""
    logging.getLogger("uvicorn").handlers = logging.getLogger("elmo_tasks").handlers
    make_server(app, limits).run(sockets=[bound])


def make_server(app: FastAPI, limits: Limits) -> uvicorn.Server:
    """A server with bounds on connections, headers and times."""

    class Protocol(H11Protocol):
        """HTTP whose connections are cut when a request, its answer or its reader takes far too long."""

        _cut: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._restart()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._cut:
                self._cut.cancel()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            self._restart()
            super().on_response_complete()

        def _restart(self) -> None:
            if self._cut:
                self._cut.cancel()
            self._cut = self.loop.call_later(limits.timeout_seconds + _GRACE_SECONDS, self.transport.abort)

    config = uvicorn.Config(
        app,
        http=Protocol,
        log_config=None,
        access_log=False,
        limit_concurrency=limits.connections,
        timeout_graceful_shutdown=math.ceil(limits.timeout_seconds),
        lifespan="on",
        ws="none",
        proxy_headers=False,
        server_header=False,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for host, port, *_ in (bound.getsockname() for bound in sockets or ()):
            logger.info("serving at http://%s:%d; Ctrl-C ends", f"[{host}]" if ":" in host else host, port)
