"""Serves an application until the process is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import math
import os
import socket
from typing import Any

import uvicorn
from fastapi import FastAPI

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.server import Limits

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
            if os.name == "posix":  # elsewhere it would let two servers have the same address
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            stack.pop_all()  # it stays open
            return bound
    except (OSError, UnicodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not a host name"
        raise ElmoTasksError(f"{host}:{port}: {problem}; choose another address with --host and --port") from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(app: FastAPI, bound: socket.socket, limits: Limits) -> None:
    """Serves until SIGTERM or SIGINT, then finishes the requests that are there."""
    logging.getLogger("uvicorn").handlers = logging.getLogger("elmo_tasks").handlers
    if logger.isEnabledFor(logging.DEBUG):
        logging.getLogger("uvicorn.access").setLevel(logging.INFO)
    bound.listen()
    host, port, *_ = bound.getsockname()
    logger.info("serving at http://%s:%d; press Ctrl-C to stop", f"[{host}]" if ":" in host else host, port)
    make_server(app, limits).run(sockets=[bound])


def make_server(app: FastAPI, limits: Limits) -> uvicorn.Server:
    """A server with bounds on connections, headers and times."""
    config = uvicorn.Config(
        app,
        http="h11",
        log_config=None,
        access_log=True,  # with --verbose, see `serve`
        limit_concurrency=limits.connections,
        timeout_graceful_shutdown=math.ceil(limits.timeout_seconds),
        lifespan="on",
        ws="none",
        proxy_headers=False,
        server_header=False,
    )
    config.load()
    seconds = limits.timeout_seconds + _GRACE_SECONDS
    config.http_protocol_class = _with_deadline(config.http_protocol_class, seconds)
    return uvicorn.Server(config)


def _with_deadline(protocol: Any, seconds: float) -> Any:
    """A protocol whose connections are cut when a request, its answer or its reader takes far too long."""

    class Protocol(protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.deadline = self.loop.call_later(seconds, transport.abort)

        def on_response_complete(self) -> None:  # the deadline begins again
            self.deadline.cancel()
            self.deadline = self.loop.call_later(seconds, self.transport.abort)
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            self.deadline.cancel()
            super().connection_lost(exc)

    return Protocol
