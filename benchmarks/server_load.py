"""What each client of `benchmarks.server` does; locust runs this file."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

from locust import FastHttpUser, task

_SENTENCES = itertools.cycle(json.loads(Path(os.environ["SENTENCES"]).read_text(encoding="utf-8")))


class Client(FastHttpUser):
    """Sends a sentence as soon as it has the answer to the one before."""

    @task
    def predict(self) -> None:
        self.client.post(os.environ["ADDRESS"], json={"tokens": next(_SENTENCES)})
