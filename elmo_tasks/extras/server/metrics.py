"""What the server counts, in the text format of Prometheus."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_TOKENS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one application."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)  # memory, processor time, open files

        common: Any = {"namespace": "elmo_tasks", "registry": self._registry}
        self._requests = Counter("requests_total", "Answered requests.", ("endpoint", "status"), **common)
        self._seconds = Histogram("request_seconds", "Seconds until the answer is sent.", ("endpoint",), **common)
        self.open_requests = Gauge("open_requests", "Requests that are not answered yet.", **common)
        self.open_tokens = Gauge("open_tokens", "Tokens of requests that are not answered yet.", **common)
        self._batch_requests = Histogram("batch_requests", "Requests computed together.", buckets=_REQUESTS, **common)
        self._batch_tokens = Histogram("batch_tokens", "Tokens computed together.", buckets=_TOKENS, **common)
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
