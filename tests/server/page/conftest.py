"""A server with a small run of each task, and a browser that visits its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.server.app import create_app
from elmo_tasks.server.bilm_vectors import bilms_of_runs
from elmo_tasks.server.served_runs import load_runs
from tests import browser
from tests.server.conftest import train_all
from tests.server.page.visits import NOTE, TABS, Served, Visit


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a run for each task, each trained for an epoch on few sentences. One of them has a second name."""
    folder = tmp_path_factory.mktemp("page")
    configs = {Path(config).name: config for config in (*TABS.values(), "predicates_ewt")}
    folders = train_all(folder, configs)
    (folder / "ner_conll03" / "README.md").write_text("# Names <b>& more</b>\n", encoding="utf-8")
    seconds = [f"again_{name}={folder / name}" for name in configs if name != "predicates_ewt"]
    runs = load_runs([*folders, *seconds], batch_tokens=256)
    bilms = bilms_of_runs(runs)
    bilms[""].warm_up()
    with browser.served(create_app(runs, bilms, note=NOTE)) as address:
        yield Served(address, folder, runs, bilms[""])


@pytest.fixture(scope="module")
def context(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A window of the browser for the visits of a file. A test may ask for another size or look."""
    with browser.new_context(**getattr(request, "param", {"viewport": {"width": 1000, "height": 900}})) as context:
        yield context


@pytest.fixture
def visit(context: Any, served: Served) -> Iterator[Visit]:
    """A fresh page. In the end it must not have asked other servers, nor have complained."""
    with context.new_page() as page:
        visit = Visit(page)
        page.on("request", lambda asked: visit.requests.append(asked.url))
        page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        page.on("console", lambda message: visit.complaints.append(message.text))
        page.goto(served.address)
        page.get_by_role("tab").first.wait_for()
        yield visit
    assert all(url.startswith((served.address, f"blob:{served.address}")) for url in visit.requests)
    allowed = [f"the server responded with a status of {status}" for status in visit.expected_status]
    assert [text for text in visit.complaints if not any(each in text for each in allowed)] == []
