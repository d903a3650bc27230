"""A browser for the tests of pages, and a server of our own that it can visit."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fastapi import FastAPI

_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

MARKS = (
    pytest.mark.slow,
    # Playwright's own event loop is closed after that of a test
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
)


@contextlib.contextmanager
def open_browser() -> Iterator[Any]:
    """Chromium, driven by Playwright. A process can have one at a time."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install playwright")
    if _CHROMIUM is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    arguments = ["--no-sandbox", "--disable-gpu"]
    with (
        sync_api.sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=_CHROMIUM, args=arguments) as browser,
    ):
        yield browser


@contextlib.contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Serves in a thread of its own; gives the address of the page."""
    import uvicorn  # here, because all tests import this file, and few need a server

    from elmo_tasks.extras.server.serving import bind

    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    with bind("127.0.0.1", 0) as bound:
        bound.listen()  # a page that is opened before the thread has begun waits for it
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield "http://127.0.0.1:{1}/".format(*bound.getsockname())
        finally:
            server.should_exit = True
            thread.join()
