"""A server with a small run of each task, and a browser that visits its page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.extras.server.app import create_app
from elmo_tasks.extras.server.bilm_vectors import bilms_of_runs
from elmo_tasks.extras.server.served_runs import load_runs
from tests import browser
from tests.extras.server.page.visits import NO_RUN, NOTE, TABS, Served, Visit


@pytest.fixture(scope="session")
def served(task_runs: Path) -> Iterator[Served]:
    """A server with a run for each task. All but that of predicates have a second name."""
    names = [Path(config).name for config in TABS.values()]
    again = [f"again_{name}={task_runs / name}" for name in names]
    runs = load_runs([*(str(task_runs / name) for name in (*names, "predicates_ewt")), *again], batch_tokens=256)
    for run in runs.values():
        run.about["examples"] = None  # as an installed model
    bilms = bilms_of_runs(runs)
    bilms[""].warm_up()
    with browser.served(create_app(runs, bilms, note=NOTE)) as address:
        yield Served(address, task_runs, runs, bilms[""])


@pytest.fixture(scope="module")
def context(browser: Any, served: Served, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A window of the browser for the visits of a file. A test may ask for another size or look."""
    with browser.new_context(**getattr(request, "param", {"viewport": {"width": 1000, "height": 900}})) as context:
        context.new_page().goto(served.address + NO_RUN)  # while it is open, the browser keeps the process of all pages
        yield context


@pytest.fixture
def visit(context: Any, served: Served) -> Iterator[Visit]:
    """A fresh page without a result. In the end it must not have asked other servers, nor have complained."""
    with context.new_page() as page:
        visit = Visit(page)
        page.on("request", lambda asked: visit.requests.append(asked.url))
        page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        page.on("console", lambda message: visit.complaints.append(message.text))
        page.goto(served.address + NO_RUN)
        page.get_by_role("tab").first.wait_for()
        yield visit
    assert all(url.startswith((served.address, f"blob:{served.address}")) for url in visit.requests)
    allowed = [f"the server responded with a status of {status}" for status in visit.expected_status]
    assert [text for text in visit.complaints if not any(each in text for each in allowed)] == []
