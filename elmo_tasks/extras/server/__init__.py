"""The web application: predictions of trained runs over HTTP, and the page that shows them."""

from __future__ import annotations

import dataclasses

from elmo_tasks.errors import ElmoTasksError


@dataclasses.dataclass(frozen=True)
class Limits:
    """What the server accepts: it keeps the memory and the response times bounded, whatever the load.

    Attributes:
        batch_tokens: the most tokens of requests that are computed together. A longer request is computed by itself.
        request_tokens: the most tokens of one request.
        body_bytes: the most bytes of one request.
        queue_requests: the most requests that are being read, wait, are computed or being answered.
        queue_tokens: the most tokens of these. A sentence counts once for each time that the model reads it, as far as
            that is known, such as by given predicates. This is also the bound of what a model reads for one request
            where that is only known once it is being computed.
        timeout_seconds: how long a request may take, from its first byte to the last of its answer.
        connections: the most connections. Those that are idle, or do not read their answer, count too.
    """

    batch_tokens: int = 2048
    request_tokens: int = 2000
    body_bytes: int = 100_000
    queue_requests: int = 256
    queue_tokens: int = 20_000
    timeout_seconds: float = 30.0
    connections: int = 512

    def __post_init__(self) -> None:
        if self.request_tokens > self.queue_tokens:
            raise ElmoTasksError(
                f"--max-tokens is {self.request_tokens:,} and --max-waiting-tokens is {self.queue_tokens:,}; "
                "expected --max-waiting-tokens to be at least --max-tokens"
            )
